// Tools of the stress tests: threads that start together, a ledger of arrived messages, small
// caches.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/core/memory/node.hpp"
#include "callboard/core/mix.hpp"
#include "check.hpp"

namespace stress {

using callboard::Node;

// So small that full, empty and exhausted are the common cases.
using SmallCache = callboard::BasicNodeCache<2, 4>;

// Nanoseconds. Longer than an honest wait on a busy machine, short enough to name the test that hangs.
#ifndef STRESS_PATIENCE_S
#define STRESS_PATIENCE_S 5
#endif
inline constexpr std::int64_t patience = STRESS_PATIENCE_S * std::int64_t{1'000'000'000};

// A generator of its own for each thread: pauses and choices differ, and are the same in each run.
class Random {
public:
    explicit Random(std::uint64_t seed) : seed_(seed) {}
    std::uint32_t below(std::uint32_t limit) {
        return static_cast<std::uint32_t>(callboard::random_number(seed_, taken_++) >> 32) % limit;
    }
    // Mostly nothing, sometimes a few loops, now and then the processor.
    void pause() {
        const std::uint32_t choice = below(64);
        if (choice == 0) std::this_thread::yield();
        else if (choice < 16) for (auto i = choice; i != 0; --i) callboard::relax();
    }

private:
    const std::uint64_t seed_;
    std::uint64_t taken_{0};
};

// Waits until the condition holds: a while on the processor, then leaving it to others.
template <class Condition>
void await(Condition holds) {
    for (int tries = 0; !holds(); ++tries) {
        if (tries < 2000) callboard::relax();
        else std::this_thread::yield();
    }
}

// By how much some tests are shorter: what AddressSanitizer or an emulator shows, it shows in few rounds.
#ifndef STRESS_SHORTER
#ifdef __SANITIZE_ADDRESS__
#define STRESS_SHORTER 5
#else
#define STRESS_SHORTER 1
#endif
#endif
inline constexpr int shorter = STRESS_SHORTER;

// For how long a test goes on that a busy machine slows down, in nanoseconds. Seeded defects show in a second;
// `make soak` asks for more, in the environment.
inline std::int64_t longest() {
    const char* const seconds = std::getenv("STRESS_SECONDS");
    return (seconds == nullptr ? 1 : std::atoll(seconds)) * std::int64_t{1'000'000'000};
}

// Rounds in which threads answer each other. On a busy machine each may take a time slice, so there are
// `most` of them or as many as fit into longest(). One thread drives; the others look at over().
class Rounds {
public:
    explicit Rounds(int most) : most_(most) {}

    // The driver, before each round, counted from 1.
    bool go_on(int round) {
        if (round <= most_ && callboard::monotonic_ns() < end_ && !over()) return true;
        stop();
        return false;
    }

    void stop() { over_.store(true, callboard::release); }
    bool over() const { return over_.load(callboard::acquire); }

private:
    const int most_;
    const std::int64_t end_ = callboard::monotonic_ns() + longest();
    callboard::Atomic<bool> over_{false};
};

// Runs body(0) to body(count - 1) on threads that start together, and waits for all of them.
template <class Body>
void together(int count, Body body) {
    callboard::Atomic<int> waiting{count};
    std::vector<std::thread> threads;
    for (int index = 0; index < count; ++index) {
        threads.emplace_back([&, index] {
            waiting.fetch_sub(1, callboard::acq_rel);
            while (waiting.load(callboard::acquire) != 0) std::this_thread::yield();
            body(index);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// A message says who sent it and the how-manyth it is.
inline std::int64_t stamp(int producer, int number) {
    return std::int64_t{producer} << 32 | static_cast<std::uint32_t>(number);
}

// The messages that arrived. Its fields are plain on purpose: each receiver must be ordered after
// the last one, and ThreadSanitizer reports it if not. Broken order, loss and doubling all show as a
// message that was not the next one of its producer.
class Ledger {
public:
    explicit Ledger(int producers) : next_(static_cast<std::size_t>(producers), 0) {}

    void receive(std::int64_t stamped) {
        int& next = next_.at(static_cast<std::size_t>(stamped >> 32));
        if (static_cast<int>(stamped & 0xffffffff) != next) ++wrong_;
        ++next;
        ++received_;
    }

    std::int64_t received() const { return received_; }
    int wrong() const { return wrong_; }

private:
    std::vector<int> next_;
    std::int64_t received_ = 0;
    int wrong_ = 0;
};

}  // namespace stress
