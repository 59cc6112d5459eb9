// Forks of the process, for memory that it shares with another one.
//
// A fork has the objects of its parent, but is not the process with which memory is shared. So it must neither unmap
// memory that it may not have, nor tell the other process anything.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace callboard {

// Counted by handlers of fork(). With vfork() and posix_spawn(), behind which a program is executed, nothing is counted.
// Not by the atomics facade: a model checker would have to know of what is older than its tests.
class Forks {
public:
    // Forks that had begun, counted before each, so that both processes see it.
    static std::uint64_t begun() { return __atomic_load_n(&counted().begun_, __ATOMIC_RELAXED); }

    // Forks between the first process and this one: where it differs is another process.
    static std::uint64_t passed() { return __atomic_load_n(&counted().passed_, __ATOMIC_RELAXED); }

private:
    static Forks& counted() {
        static Forks forks;
        static const int registered = pthread_atfork([] { __atomic_fetch_add(&forks.begun_, 1, __ATOMIC_RELAXED); },
                                                     nullptr,
                                                     [] { __atomic_fetch_add(&forks.passed_, 1, __ATOMIC_RELAXED); });
        (void)registered;
        return forks;
    }

    std::uint64_t begun_{0}, passed_{0};
};

}  // namespace callboard
