// The locks of a summary: one for each stream, and the guard of the summary as a whole.
//
// A thread that counts takes a free stream, if possible the same as last time, and waits for one only if all are
// taken. A thread that changes the whole summary takes all of them. Elements are admitted only as far as the total
// stays below 2**63.
//
// The guard is for code that may be entered again by the same thread. Comparing Python keys runs their code, which
// may use the summary again, or let another thread have the interpreter. So a thread that has the interpreter only
// tries to enter, and waits without it.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "callboard/core/atomics.hpp"

namespace callboard {

class StreamSlots {
public:
    explicit StreamSlots(unsigned streams) : streams_(streams), locks_(new Lock[streams]) {
        assert(streams != 0);
    }

    static constexpr unsigned none = ~0u;

    // Any thread. A free stream, or none.
    unsigned try_take() {
        const unsigned first = usual();
        for (unsigned i = 0, at = first; i < streams_; ++i, at = at + 1 == streams_ ? 0 : at + 1)
            if (locks_[at].mutex.try_lock()) return at;
        return none;
    }

    unsigned take() {
        const unsigned free = try_take();
        if (free != none) return free;
        locks_[usual()].mutex.lock();
        return usual();
    }

    void give_back(unsigned stream) {
        assert(stream < streams_);
        locks_[stream].mutex.unlock();
    }

    // All streams, in one order, so that two such threads do not wait for each other.
    void take_all() {
        for (unsigned at = 0; at < streams_; ++at) locks_[at].mutex.lock();
    }
    void give_back_all() {
        for (unsigned at = 0; at < streams_; ++at) locks_[at].mutex.unlock();
    }

    // Any thread, before it counts these elements. False: the total would not stay below 2**63. relaxed, here and
    // below: the number guards no other memory.
    bool admit(std::uint64_t elements) {
        std::uint64_t total = admitted_.load(relaxed);
        do
            if (elements >> 63 != 0 || (total + elements) >> 63 != 0) return false;
        while (!admitted_.compare_exchange_weak(total, total + elements, relaxed));
        return true;
    }
    std::uint64_t admitted() const { return admitted_.load(relaxed); }
    void retract(std::uint64_t elements) {
        assert(admitted() >= elements);
        admitted_.fetch_sub(elements, relaxed);
    }
    void admit_first(std::uint64_t elements) {
        assert(elements >> 63 == 0);
        admitted_.store(elements, relaxed);
    }

private:
    struct alignas(cache_line) Lock {
        std::mutex mutex;
    };

    // Threads are numbered as they come.
    unsigned usual() const {
        static Atomic<unsigned> threads{0};
        static thread_local const unsigned number = threads.fetch_add(1, relaxed);
        return number % streams_;
    }

    const unsigned streams_;
    const std::unique_ptr<Lock[]> locks_;
    alignas(cache_line) Atomic<std::uint64_t> admitted_{0};
};

class SummaryGuard {
public:
    bool try_enter() {
        if (!mutex_.try_lock()) return false;
        owner_.store(std::this_thread::get_id(), relaxed);
        return true;
    }

    // Not for the thread that is in already.
    void enter() {
        assert(!is_mine());
        mutex_.lock();
        owner_.store(std::this_thread::get_id(), relaxed);
    }

    void leave() {
        assert(is_mine());
        owner_.store({}, relaxed);
        mutex_.unlock();
    }

    // The calling thread is in. relaxed: it reads what it wrote itself, or something that is not its number.
    bool is_mine() const { return owner_.load(relaxed) == std::this_thread::get_id(); }

private:
    std::mutex mutex_;
    Atomic<std::thread::id> owner_{};
};

}  // namespace callboard
