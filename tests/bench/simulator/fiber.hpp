// A fiber: a function with its own stack. A switch is a few nanoseconds: no system call, unlike swapcontext().
#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace simulated {

class Fiber {
public:
    static constexpr std::size_t stack_size = (8 << 20) + (4 << 10);  // as pthread_create() has them, with a guard

    Fiber() = default;  // of the program's own stack

    // Stacks lie as far apart as those of threads, because a chain tells lanes by the addresses of their stacks; and
    // always at the same addresses, so that a run can be repeated.
    Fiber(std::function<void()> body, int number) : body_(std::move(body)), begun_(false) {
        const auto wanted = std::uintptr_t{0x600000000000} + stack_size * static_cast<std::size_t>(number);
        constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
        stack_ = mmap(reinterpret_cast<void*>(wanted), stack_size, PROT_READ | PROT_WRITE, how, -1, 0);
        if (stack_ == MAP_FAILED) std::perror("stack"), std::exit(1);
    }
    Fiber(const Fiber&) = delete;

    // Leaves this one, which runs, for another one, until something resumes this.
    void resume(Fiber& other) {
        if (_setjmp(here_) == 0) other.enter();
    }

private:
    void enter() {
        if (begun_) _longjmp(here_, 1);
        begun_ = true;
        ucontext_t context;
        getcontext(&context);
        context.uc_stack.ss_sp = stack_;
        context.uc_stack.ss_size = stack_size;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::run), 2, static_cast<unsigned>(self),
                    static_cast<unsigned>(self >> 32));
        setcontext(&context);
    }

    static void run(unsigned low, unsigned high) {
        reinterpret_cast<Fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32)->body_();
        std::abort();  // a body ends by a switch
    }

    const std::function<void()> body_{};
    bool begun_{true};
    void* stack_{nullptr};
    jmp_buf here_;
};

}  // namespace simulated
