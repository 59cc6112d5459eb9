// A run in which one operator seems faster: see delay_ledger.hpp. It watches the slices of work of a flow's pools, and
// makes threads pause after theirs.
//
// Lifetime. Lanes that have read its address may call it late, so it lives as long as the flow. Without weights it only
// watches; between experiments pools do not know it.
//
// The sender is a member of its own: whoever makes the rows is slowed down as well, where rows are handed over.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/flow/pool.hpp"
#include "callboard/streams/experiments/delay_ledger.hpp"

namespace callboard {

class VirtualSpeedUp final : public SliceObserver {
public:
    // Pauses the calling thread for so many nanoseconds, and returns when that was over, without a wait for the
    // interpreter. `holding`: nobody else has the interpreter meanwhile.
    using Pause = std::int64_t (*)(std::int64_t nanoseconds, bool holding);

    // `one_lock`: stages that need the interpreter exclude each other.
    VirtualSpeedUp(std::size_t stages, Pause pause, bool one_lock)
        : weights_(stages, 0.0), pause_(pause), one_lock_(one_lock) {
        ledger_.add_member();
    }

    // Told of all slices as well; null: nobody. Before pools know this one.
    void pass_on_to(SliceObserver* next) { next_ = next; }

    // From now on, by the positions of stages, the part of their time by which they are to seem shorter. What was owed
    // is forgotten. `locked`: these stages need the interpreter.
    void set(std::vector<double> weights, bool locked) {
        const std::lock_guard<std::mutex> lock(mutex_);
        assert(weights.size() == weights_.size());
        weights_ = std::move(weights);
        targets_locked_ = locked && one_lock_;
        active_ = false;
        for (const double weight : weights_) active_ |= weight > 0.0;
        ledger_.clear();
        left_ = 0;
    }

    // What is to come off the time, in nanoseconds, since set().
    double inserted() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return ledger_.inserted();
    }

    // --- those who work ----------------------------------------------------------------------------

    // By a lane, after a slice.
    std::int64_t worked(const Stage& stage, std::int64_t begin, std::int64_t end, std::uint64_t rows) override {
        if (next_ != nullptr) next_->worked(stage, begin, end, rows);
        const bool locked = one_lock_ && stage.runs_on == python_lanes;
        std::unique_lock<std::mutex> lock(mutex_);
        Thread& me = this_thread();
        const std::int64_t used = thread_cpu_ns();
        const double cpu = static_cast<double>(used - me.cpu);
        me.cpu = used;
        if (!active_) return end;
        begin = begin < me.until ? me.until : begin;  // a pause that was longer than it was said to be
        if (begin > end) begin = end;
        const double held = end == begin ? 1.0 : cpu / static_cast<double>(end - begin);
        const std::size_t member = me.member;
        ledger_.worked(member, {begin, end, locked, weights_[stage.position], held > 1.0 ? 1.0 : held});
        me.until = pay(lock, member, locked, end);
        return me.until;
    }

    // By the sender: with its next rows.
    void arrives() {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto now = monotonic_ns();
        if (active_ && left_ != 0) ledger_.worked(sender, {left_, now});
        left_ = 0;
    }

    // When they are handed over. `is_full`: it waits for room next, and is at work no more.
    void leaves(bool is_full) {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto now = active_ ? pay(lock, sender, false, monotonic_ns()) : 0;
        left_ = active_ && !is_full ? now : 0;
    }

private:
    static constexpr std::size_t sender = 0;
    static constexpr double least = 100'000;        // ns that are worth a pause, as a sleep is late by half of that
    static constexpr std::int64_t most = 20'000'000;  // ns of one pause: then it looks whether the experiment is over

    struct Thread {
        std::thread::id id;
        std::size_t member;
        std::int64_t cpu;
        std::int64_t until;
    };

    static std::int64_t thread_cpu_ns() {
        timespec used;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return used.tv_sec * std::int64_t{1000000000} + used.tv_nsec;
    }

    Thread& this_thread() {
        const auto id = std::this_thread::get_id();
        for (Thread& thread : threads_)
            if (thread.id == id) return thread;
        threads_.push_back({id, ledger_.add_member(), thread_cpu_ns(), 0});
        return threads_.back();
    }

    // Pauses for what the member owes, also for what it comes to owe meanwhile. Returns when that was over.
    std::int64_t pay(std::unique_lock<std::mutex>& lock, std::size_t member, bool locked, std::int64_t now) {
        while (active_ && ledger_.owed(member) >= least) {
            const auto owed = static_cast<std::int64_t>(ledger_.owed(member));
            // Holding the interpreter: whoever needs it is as late. Not if an operator that needs it is to be faster:
            // that one would be late itself.
            const bool holding = locked && !targets_locked_;
            const auto begin = now;
            lock.unlock();
            const auto end = pause_(owed < most ? owed : most, holding);
            lock.lock();
            now = end < begin ? begin : end;
            if (active_) ledger_.paused(member, {begin, now, locked});
        }
        return now;
    }

    std::mutex mutex_;
    DelayLedger ledger_;
    std::vector<double> weights_;
    std::deque<Thread> threads_;  // which stay where they are
    const Pause pause_;
    const bool one_lock_;
    SliceObserver* next_{nullptr};
    bool active_{false};
    bool targets_locked_{false};
    std::int64_t left_{0};
};

}  // namespace callboard
