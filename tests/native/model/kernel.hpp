// In place of the system calls that the structures make. Each is expressed by the checker's own operations, so what the
// kernel may do is explored as well.
#pragma once

#include <errno.h>

#include <ctime>

#include "callboard/core/atomics.hpp"

namespace model {

// The kernel's part in a test that sleeps, or locks a mutex. Such a test makes one before its threads.
class Kernel {
public:
    Kernel() { of_this_run = this; }

    // Sleeps if the word is as expected, until a later wake(). The kernel compares under a lock, so it misses no
    // change before that wake: here the comparison is an update that changes nothing. Both are relaxed, so that no
    // structure can lean on the kernel's lock. A thread may wake for nothing: it has read an old count.
    long wait(void* address, std::uint32_t expected, const timespec* time) {
        auto& word = *static_cast<callboard::Atomic<std::uint32_t>*>(address);
        const int before = woken_.load(callboard::relaxed);
        if (word.fetch_or(0, callboard::relaxed) != expected) return EAGAIN;
        if (time != nullptr && choose(2, {"a timeout", 0}) == 1) {
            thread_clock() += time->tv_sec * std::int64_t{1'000'000'000} + time->tv_nsec;
            return ETIMEDOUT;
        }
        begin_attempt();
        if (woken_.load(callboard::relaxed) == before) model::wait(time != nullptr);
        return 0;
    }

    void wake() { woken_.fetch_add(1, callboard::relaxed); }

    // Sleeps until the eventfd can be read, as a thread that polls descriptors does.
    void listen() {
        begin_attempt();
        if (rung_.load(callboard::relaxed) == 0) model::wait();
    }
    // A test has one mutex, or several that nobody holds at once.
    void lock() {
        begin_attempt();
        int expected = 0;
        if (!locked_.compare_exchange_strong(expected, 1, callboard::acquire, callboard::relaxed)) model::wait();
    }
    void unlock() { locked_.store(0, callboard::release); }

    void ring() { rung_.fetch_add(1, callboard::relaxed); }

    static inline Kernel* of_this_run = nullptr;

private:
    callboard::Atomic<int> woken_{0}, rung_{0}, locked_{0};
};

}  // namespace model
