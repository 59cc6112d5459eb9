// One of the partitions that keys are divided among: its counters, and their owner.
//
// A thread with work for the partition becomes the owner and does it, or hands it to the owner and goes on (Das et
// al. 2009, section 4.1, by mailbox/delegation.hpp). Most of that work is batches of keys that a stream counted by
// itself (stream_side.hpp).
#pragma once

#include <cassert>
#include <cstdint>
#include <new>
#include <utility>

#include "callboard/core/one_at_a_time.hpp"
#include "callboard/core/threads/parker.hpp"
#include "callboard/frequency/counting/counters.hpp"
#include "callboard/frequency/designs/budget.hpp"
#include "callboard/mailbox/delegation.hpp"

namespace callboard {

template <class Keys>
class Partition : OneAtATime<Owner> {
public:
    class Request {
    public:
        Request* next{nullptr};

        Request() = default;
        Request(const Request&) = delete;
        virtual ~Request() = default;
        // The owner of the partition. Throws std::bad_alloc if it is not done, and is served again.
        virtual void serve(Partition& partition) = 0;
    };

    // The `place`-th of those that share the budget.
    Partition(Budget& budget, std::size_t place, std::uint64_t seed)
        : budget_(budget), place_(place), counters_(0, seed, ~std::uint32_t{0}) {}

    // Any thread. Has the request served, now or by the owner. Throws std::bad_alloc if something could not be served
    // for lack of memory: the next owner tries again.
    void hand(Request& request) {
        if (!door_.own_or_delegate(&request)) return;
        const bool good = serve(std::exchange(waiting_, nullptr));
        leave(serve_own(request) && good);
    }

    // Any thread: becomes the owner until leave(), if there is none. The owner serves pending requests now and then.
    bool try_own() { return door_.try_own(); }
    void serve_pending() {
        if (door_.has_pending()) serve(door_.take());
    }
    bool serve_own(Request& request) {
        request.next = nullptr;
        return serve(&request);
    }
    void leave(bool good = true) {
        good &= serve(std::exchange(waiting_, nullptr));
        settle();
        do good &= serve(door_.take());
        while (!door_.try_release());
        if (!good) throw std::bad_alloc();
    }

    // Any thread. Runs `look(counters)`, after all that was handed over before, and waits for that.
    template <class Look>
    void visit(const Look& look) {
        Visit<Look> visit(look);
        hand(visit);
        visit.done.park();
        if (visit.failed) throw std::bad_alloc();
    }

    // The owner. The key with this hash came `count` times; its memory is exchanged if it gets another key's counter.
    void add(typename Keys::Kept& key, std::uint64_t hash, std::uint64_t count) {
        const Alone<Owner> alone(*this);
        assert(count != 0);
        while (!counters_.add_kept(key, hash, count, level_)) {
            if (budget_.try_take()) {
                counters_.grow(0);
            } else if (!is_least_at_level()) {
                said_ = 0;  // it is taken back
                counters_.grow(budget_.overdraw(place_));
            }
        }
    }

    // The owner. Gives up counters that are too many, as far as that is its turn.
    void settle() {
        const Alone<Owner> alone(*this);
        while (budget_.has_debt() && is_least_at_level() && budget_.try_repay()) counters_.give_up();
    }

    Budget& budget() { return budget_; }
    Counters<Keys>& counters() { return counters_; }  // the owner's

private:
    template <class Look>
    struct Visit final : Request {
        explicit Visit(const Look& look) : look(look) {}
        void serve(Partition& partition) override {
            try {
                partition.settle();
                look(partition.counters_);
                failed = partition.waiting_ != nullptr;  // what it was to see
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            done.unpark();  // the visitor's from here on
        }
        const Look& look;
        bool failed{false};
        Parker done;
    };

    // The owner, when all counters have been used. Whether its least one may be taken over or given up.
    bool is_least_at_level() {
        const std::uint64_t least = counters_.least();
        if (least <= level_) return true;
        if (least != said_) level_ = budget_.raise(place_, said_ = least);
        else level_ = budget_.level();
        return least <= level_;
    }

    // The owner. False: some of them could not be served, and wait.
    bool serve(Request* taken) {
        bool good = true;
        while (taken != nullptr) {
            Request* const request = taken;
            taken = request->next;  // before it is its sender's again
            try {
                request->serve(*this);
            } catch (const std::bad_alloc&) {
                request->next = std::exchange(waiting_, request);
                good = false;
            }
        }
        return good;
    }

    Budget& budget_;
    const std::size_t place_;
    alignas(cache_line) Delegation<Request> door_;
    alignas(cache_line) Request* waiting_{nullptr};  // the owner's: what failed
    std::uint64_t level_{0};                         // the owner's: no counter anywhere is below it
    std::uint64_t said_{0};                          // the owner's: the least count that the budget knows of
    Counters<Keys> counters_;
};

}  // namespace callboard
