// Delegation: a thread that finds a resource owned hands its request to the owner and does not wait.
//
// Das et al. 2009, section 4.1: principle 4.1 (request delegation), principle 4.2 (an owner acquires
// no second resource), invariant 4.1 (fulfilment guarantee: a delegated request is neither lost nor
// left). One word holds the whole state: free, owned with nothing pending, or the newest of a stack
// of pending requests (core/memory/stack.hpp), which are linked by their `next`.
//
//     if (resource.own_or_delegate(request)) {        // mine: serve it, and then all the others
//         serve(request);
//         while (!resource.try_release())
//             for (Request* r = resource.take(); r != nullptr; r = following) ...serve(r)...
//     }                                               // else the owner serves it
//
// Why no request is lost or left. A request enters the stack only by a compare-and-swap from a word
// that says "owned". The word leaves "owned" only by try_release(), a compare-and-swap from "owned with
// nothing pending". So in the word's modification order each request stands between an acquisition and
// a release. The owner must see try_release() succeed, so it has called take() between the two, and has
// taken the request.
//
// An owner may sleep in the middle of its work, with nothing pending. It names its parker in the word,
// and the thread that delegates to it wakes it. It falls asleep by a compare-and-swap from "owned with
// nothing pending", so a request either makes that fail, or finds the parker. An unpark before the park
// is kept.
//
// CountedDelegation is the same for requests that are all alike, and need only be counted. The word is
// the number of requests that are not settled yet, the owner's own included (Das et al., section 4.3.1;
// Prasaad et al. 2018, figure 7, line 10 to 14). Zero is "free". The argument is the same: a request
// enters by an increment. If that changed zero to one, its sender is the owner. Otherwise there is an
// owner, which releases only by the subtraction that reaches zero, and so after it has served this
// request too.
//
// Progress: own_or_delegate() is lock-free (a failed compare-and-swap means that another request or the
// owner got through), and wait-free where requests are counted. The owner's work is bounded only by the
// requests of others. An owner that must bound it serves a part and leaves the rest in the resource's own
// queue. Or it passes the ownership on, with the pending requests, as HybridQueue does.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"
#include "callboard/core/threads/parker.hpp"

namespace callboard {

// Request has a member `next`, a pointer or an Atomic of one.
template <class Request>
class Delegation {
public:
    // Any thread. True: the caller owns the resource and still has its request. False: the owner
    // has it. Acquire pairs with the last owner's release, release with the owner's take().
    bool own_or_delegate(Request* request) {
        assert(request != nullptr);
        std::uintptr_t state = state_.load(relaxed);
        for (;;) {
            if (state == free_) {
                if (state_.compare_exchange_weak(state, owned_, acquire, relaxed)) return true;
            } else {
                if (push(state, request)) return false;
            }
        }
    }

    // Any thread. Owns the resource if it is free.
    bool try_own() {
        std::uintptr_t state = free_;
        return state_.compare_exchange_strong(state, owned_, acquire, relaxed);
    }

    // Any thread. Hands the request over if there is an owner; false otherwise.
    bool delegate_if_owned(Request* request) {
        assert(request != nullptr);
        std::uintptr_t state = state_.load(relaxed);
        while (state != free_) {
            if (push(state, request)) return true;
        }
        return false;
    }

    // The owner. All pending requests, oldest first, linked by `next`; null if none.
    Request* take() {
        const std::uintptr_t state = state_.load(relaxed);
        assert(state != free_ && "the owner alone takes");
        assert((state == owned_ || !(state & owned_)) && "an owner that takes is awake");
        if (state == owned_) return nullptr;
        // Acquire pairs with the delegators' release, release with has_pending().
        return oldest_first(reinterpret_cast<Request*>(state_.exchange(owned_, acq_rel)));
    }

    // The owner. True: the resource is free. False: requests are pending, take() them first.
    bool try_release() {
        std::uintptr_t state = owned_;
        return state_.compare_exchange_strong(state, free_, release, relaxed);
    }

    // The owner, before it parks. False: requests are pending, take() them instead. relaxed: every thread
    // knew the parker before.
    bool try_sleep(Parker& parker) {
        std::uintptr_t state = owned_;
        return state_.compare_exchange_strong(state, reinterpret_cast<std::uintptr_t>(&parker) | owned_,
                                              relaxed);
    }

    // The owner, after try_sleep() answered true, before anything else.
    void stay_awake() {
        std::uintptr_t state = state_.load(relaxed);
        assert(state != free_ && "the owner alone calls this");
        if (state & owned_) state_.compare_exchange_strong(state, owned_, relaxed);
    }

    // Any thread. Acquire: a thread that finds no request because the owner took it sees what the owner
    // did before.
    bool has_pending() const {
        const std::uintptr_t state = state_.load(acquire);
        return state != free_ && !(state & owned_);
    }

private:
    // With the owned bit: nothing is pending, and the rest is the parker of an owner that sleeps, or 0.
    static constexpr std::uintptr_t free_ = 0, owned_ = 1;

    // There was an owner when `state` was read. False: the state has changed, and was read again.
    bool push(std::uintptr_t& state, Request* request) {
        assert(state != free_ && state != reinterpret_cast<std::uintptr_t>(request) && "a request is pending once");
        assert((reinterpret_cast<std::uintptr_t>(request) & owned_) == 0);
        set_next(request, state & owned_ ? nullptr : reinterpret_cast<Request*>(state));
        if (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(request),
                                          release, relaxed))
            return false;
        if (__builtin_expect((state & owned_) && state != owned_, 0))
            reinterpret_cast<Parker*>(state & ~owned_)->unpark();
        return true;
    }

    Atomic<std::uintptr_t> state_{free_};
};

//     if (resource.own_or_delegate())
//         for (std::int64_t due = 1; due != 0; due = resource.settle(due)) ...serve `due` requests...
class CountedDelegation {
public:
    // Any thread. True: the caller owns the resource, and its request is due. False: the owner has it.
    // Acquire pairs with the last owner's settle(), release with this owner's.
    [[nodiscard]] bool own_or_delegate() { return pending_.fetch_add(1, acq_rel) == 0; }

    // Any thread. Owns the resource if it is free: one empty request is due then.
    [[nodiscard]] bool try_own() {
        std::int64_t pending = 0;
        return pending_.compare_exchange_strong(pending, 1, acquire, relaxed);
    }

    // The owner, when it has served `served` requests, at most as many as are due. Returns how many are
    // due now; at 0 the resource is free. Release pairs with the next owner's own_or_delegate(), acquire
    // with those of the senders whose requests are due.
    [[nodiscard]] std::int64_t settle(std::int64_t served) {
        assert(served > 0 && pending_.load(relaxed) >= served && "no more is served than was due");
        return pending_.fetch_sub(served, acq_rel) - served;
    }

private:
    Atomic<std::int64_t> pending_{0};
};

}  // namespace callboard
