// The checker's operations, its memory, and the system calls: the linker finds these before the library's.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "kernel.hpp"
#include "run.hpp"

namespace model {

Id make_location(std::uint64_t value, Site site) { return running->make(value, site); }
void end_location(Id location, Site site) { running->destroy(location, site); }
Found access(const Access& what) { return running->access(what); }
void store(Id location, std::uint64_t value, std::memory_order order, Site site) {
    Event what;
    what.location = location;
    what.value = value;
    what.order = order;
    what.site = site;
    running->write(what);
}
void fence(Kind kind, Site site) { running->fence(kind, site); }
unsigned choose(unsigned count, Site site) { return running->choose(count, site); }
void die_before(unsigned operation) { running->die_before(operation); }
void pause() { running->pause(); }
void wait(bool may_end) { running->wait(may_end); }
void begin_attempt() { running->begin_attempt(); }
void end_attempt() { running->end_attempt(); }
Moment now() { return running->moment(); }
bool is_before_now(Moment moment) { return running->is_before_now(moment); }
std::int64_t& thread_clock() { return running->clock(); }
void fail(const char* what, Site site) {
    allocating = -1;
    running->fail(site.line == 0 ? what : Run::say(site) + ": " + what);
}
void run_together(const Body* bodies, int count) { running->together(bodies, count); }

}  // namespace model

void* operator new(std::size_t bytes) { return model::allocate(bytes); }
void* operator new[](std::size_t bytes) { return model::allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t) { return model::allocate(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t) { return model::allocate(bytes); }
void operator delete(void* memory) noexcept { model::give_back(memory); }
void operator delete[](void* memory) noexcept { model::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { model::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { model::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { model::give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { model::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { model::give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { model::give_back(memory); }

extern "C" {

// An assertion of a header that does not hold: the execution fails, and its test is named.
[[noreturn]] void __assert_fail(const char* what, const char* file, unsigned line, const char*) noexcept {
    model::fail(what, {file, static_cast<int>(line)});
    __builtin_trap();
}

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
            model::fence(model::Kind::heavy_fence, {"membarrier", 0});
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
int sched_yield() noexcept { model::wait(); }

// A thread's time goes on when it has waited for that long.
int clock_gettime(clockid_t, timespec* time) noexcept {
    if (model::allocating < 0) return timespec_get(time, TIME_UTC) == TIME_UTC ? 0 : -1;
    *time = {model::thread_clock() / 1'000'000'000, model::thread_clock() % 1'000'000'000};
    return 0;
}
}
