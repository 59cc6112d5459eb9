// A run in which one operator seems faster: see delay_ledger.hpp. It watches the slices of work of a flow's pools, and
// makes threads pause after theirs.
//
// Lifetime. Lanes that have read its address may call it late, so it lives as long as the flow. Without weights it only
// watches; between experiments pools do not know it.
//
// The sender is a separate member: the thread that makes the rows is slowed down as well, when it passes them. It is
// two members if the operator needs the interpreter. Between two calls it makes rows, and needs the interpreter as well,
// or waits for them elsewhere.
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
    // Pauses the calling thread for a number of nanoseconds, and returns the time when that was over, without a wait
    // for the interpreter. `holding`: no other thread has the interpreter during the pause.
    using Pause = std::int64_t (*)(std::int64_t nanoseconds, bool holding);

    // `one_lock`: stages that need the interpreter exclude each other.
    VirtualSpeedUp(std::size_t stages, Pause pause, bool one_lock)
        : weights_(stages, 0.0), pause_(pause), one_lock_(one_lock) {
        ledger_.add_member();
        ledger_.add_member();
    }

    // Told of all slices as well; null: nobody. Before pools know this one.
    void pass_on_to(SliceObserver* next) { next_ = next; }

    // From now on, the fraction of their time by which stages, by position, have to seem shorter. Debts are
    // forgotten. `locked`: these stages need the interpreter.
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

    // The nanoseconds to subtract from the time since set().
    double inserted() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return ledger_.inserted();
    }

    // --- those who work ----------------------------------------------------------------------------

    // By a lane, after a slice.
    std::int64_t worked(const Stage& stage, std::int64_t begin, std::int64_t end, std::uint64_t rows) override {
        if (next_ != nullptr) next_->worked(stage, begin, end, rows);
        const auto kind = one_lock_ && stage.runs_on == python_lanes ? DelayLedger::locked : DelayLedger::free;
        std::unique_lock<std::mutex> lock(mutex_);
        Thread& me = this_thread();
        const std::int64_t used = thread_cpu_ns();
        begin = begin < me.until ? me.until : begin;  // of work within which there was other work
        if (begin > end) begin = end;
        const double lock_share = part(used - me.cpu, end - begin);
        me.cpu = used;
        if (!active_ || begin == end) return end;
        ledger_.worked(me.member, {begin, end, kind, weights_[stage.position], lock_share});
        me.until = pay(lock, me.member, kind, lock_share, end);
        return me.until;
    }

    // By the sender: with its next rows.
    void arrives() {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto now = monotonic_ns();
        held_ = part(thread_cpu_ns() - cpu_, now - left_);  // 0 on another thread
        if (active_ && left_ != 0) {
            ledger_.worked(sender, {left_, now, sender_kind()});
            ledger_.worked(sender_outside, {left_, now, DelayLedger::outside});
        }
        left_ = 0;
    }

    // When they are handed over. `is_full`: it waits for room next, and is no longer at work.
    void leaves(bool is_full) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!active_) return;
        auto now = pay(lock, sender, sender_kind(), held_, monotonic_ns());
        now = pay(lock, sender_outside, DelayLedger::outside, 0.0, now);
        left_ = active_ && !is_full ? now : 0;
        cpu_ = thread_cpu_ns();
    }

private:
    static constexpr std::size_t sender = 0, sender_outside = 1;
    static constexpr double least = 100'000;          // ns that are worth a pause, as a sleep is late by half of that
    static constexpr std::int64_t most = 20'000'000;  // ns of one pause: then it looks whether the experiment is over

    static constexpr std::int64_t most_holding = 1'000'000;  // of which nobody else has the interpreter

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

    DelayLedger::Lock sender_kind() const { return targets_locked_ ? DelayLedger::locked : DelayLedger::free; }

    static double part(std::int64_t of, std::int64_t all) {
        if (of <= 0 || all <= 0) return all == 0 ? 1.0 : 0.0;
        return of < all ? static_cast<double>(of) / static_cast<double>(all) : 1.0;
    }

    // Pauses for the member's debt, and for new debt during the pause. Returns the time when that was over. It holds
    // the interpreter during the pause if it held it for a good part of its work, `lock_share`, and did not sleep.
    std::int64_t pay(std::unique_lock<std::mutex>& lock, std::size_t member, DelayLedger::Lock kind, double lock_share,
                     std::int64_t now) {
        const bool holding = kind == DelayLedger::locked && lock_share > 0.25;
        // An operator that needs the interpreter may want it back.
        const std::int64_t longest = holding && targets_locked_ ? most_holding : most;
        while (active_ && ledger_.debt(member) >= least) {
            const auto debt = static_cast<std::int64_t>(ledger_.debt(member));
            const auto begin = now;
            lock.unlock();
            const auto end = pause_(debt < longest ? debt : longest, holding);
            lock.lock();
            now = end < begin ? begin : end;
            if (active_) ledger_.paused(member, {begin, now, kind});
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
    std::int64_t left_{0};  // when the sender did, unless it waits for room; and its processor time then
    std::int64_t cpu_{0};
    double held_{0.0};
};

}  // namespace callboard
