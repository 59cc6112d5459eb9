// In place of the system calls that the structures make: the linker finds these first. Each is said in the checker's
// own operations, so what the kernel may do is explored as well.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <ctime>

#include "callboard/core/atomics.hpp"

namespace model {

// What the kernel knows of a test that sleeps, or locks a mutex, which makes one of these before its threads.
class Kernel {
public:
    Kernel() { of_this_run = this; }

    // Sleeps if the word says so, until somebody wakes who comes later. A word is compared with all that
    // wakers have done, for which the kernel has a lock: here it is an update that changes nothing. Neither orders
    // more than that, so that no structure leans on it. It may wake for nothing: that is an old count.
    long wait(void* address, std::uint32_t expected, const timespec* time) {
        auto& word = *static_cast<callboard::Atomic<std::uint32_t>*>(address);
        const int before = woken_.load(callboard::relaxed);
        if (word.fetch_or(0, callboard::relaxed) != expected) return EAGAIN;
        if (time != nullptr && running->choose(2, {"a timeout", 0}) == 1) {
            running->clock() += time->tv_sec * std::int64_t{1'000'000'000} + time->tv_nsec;
            return ETIMEDOUT;
        }
        running->begin_attempt();
        if (woken_.load(callboard::relaxed) == before) running->wait(time != nullptr);
        return 0;
    }

    void wake() { woken_.fetch_add(1, callboard::relaxed); }

    // What listens to descriptors sleeps here.
    void listen() {
        running->begin_attempt();
        if (rung_.load(callboard::relaxed) == 0) running->wait();
    }
    // A test has one mutex, or several that nobody holds at once.
    void lock() {
        running->begin_attempt();
        int expected = 0;
        if (!locked_.compare_exchange_strong(expected, 1, callboard::acquire, callboard::relaxed)) running->wait();
    }
    void unlock() { locked_.store(0, callboard::release); }

    void ring() { rung_.fetch_add(1, callboard::relaxed); }

    static inline Kernel* of_this_run = nullptr;

private:
    callboard::Atomic<int> woken_{0}, rung_{0}, locked_{0};
};

}  // namespace model

extern "C" {

long syscall(long number, ...) noexcept {
    va_list words;
    va_start(words, number);
    long result = 0;
    if (number == SYS_futex) {
        void* const word = va_arg(words, void*);
        const int operation = va_arg(words, int);
        const auto value = va_arg(words, std::uint32_t);
        if (operation == FUTEX_WAIT_PRIVATE) {
            errno = static_cast<int>(model::Kernel::of_this_run->wait(word, value, va_arg(words, const timespec*)));
            result = errno == 0 ? 0 : -1;
        } else {
            model::Kernel::of_this_run->wake();
        }
    } else if (number == SYS_membarrier) {
        if (va_arg(words, int) == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
            model::running->fence(model::Kind::heavy_fence, {"membarrier", 0});
    } else {
        __builtin_trap();
    }
    va_end(words);
    return result;
}

int eventfd_write(int, eventfd_t) noexcept {
    model::Kernel::of_this_run->ring();
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t*) noexcept {
    if (model::allocating >= 0) model::Kernel::of_this_run->lock();
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t*) noexcept {
    if (model::allocating >= 0) model::Kernel::of_this_run->unlock();
    return 0;
}

// A loop that yields would go on for ever.
int sched_yield() noexcept { model::running->wait(); }

// A thread's time goes on when it has waited for that long.
int clock_gettime(clockid_t, timespec* time) noexcept {
    if (model::allocating < 0) return timespec_get(time, TIME_UTC) == TIME_UTC ? 0 : -1;
    *time = {model::running->clock() / 1'000'000'000, model::running->clock() % 1'000'000'000};
    return 0;
}
}
