// The slots of a summary's streams: each has one thread that feeds it, and a thread may have all of them.
//
// A thread that counts takes a stream that is free, the same one as last time if it is, and waits for one only when
// all are taken. A thread that changes the summary as a whole waits until none is taken, and no thread takes one
// meanwhile. And no more elements are admitted than can be counted.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>

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

    // All streams, in an order, so that two who want that do not wait for each other.
    void take_all() {
        for (unsigned at = 0; at < streams_; ++at) locks_[at].mutex.lock();
    }
    void give_back_all() {
        for (unsigned at = 0; at < streams_; ++at) locks_[at].mutex.unlock();
    }

    // Any thread, before it counts so many elements, below 2**63. False: the total would not be.
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
    void admit_first(std::uint64_t elements) { admitted_.store(elements, relaxed); }

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

}  // namespace callboard
