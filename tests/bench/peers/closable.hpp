// Delegation to resources that end: a thread that comes too late is refused, and goes elsewhere.
//
// Das et al. 2009 need it twice. An element whose counter is taken over must not be incremented any more (section
// 4.3.1: lazy deletion). A frequency bucket that is empty is removed logically (section 4.3.2, invariant 4.10).
// Both are closed by one compare-and-swap from a word that says that no request is pending. So delegation's
// argument holds here. Either a request enters the word before it is closed, and is served, or it is refused, and
// its sender is told. A resource stays closed until open(), which only a thread that alone has the resource may
// call.
//
// ClosableCount counts requests by weight: a sender adds how much it wants, which is more than 0. Closed is the
// least number there is. A refused sender has added to it, but the count stays below 0. For each sender adds to
// it only once, because a refused sender does not find the resource again, and the sum of all additions is below
// 2**63.
//
// ClosableDelegation has one more state: left. A request may be left at a resource that nobody owns, by a
// thread that owns another and must not own a second (principle 4.2). From then on the resource cannot be closed.
//
//            own_or_delegate             leave, delegate
//     free ───────────────────► owned ─────────────────► pending requests, an owner
//       │  ◄───────────────────       ◄─────────────────            │
//       │      try_release      │           take                    │ leave, delegate: more
//       │ leave                 │ try_close
//       ▼                       ▼
//     pending requests, left  closed           own_left: left ─► owned, with what was left in hand
//
// One of the threads that leave requests found the resource free. It is told so, and must come back when it
// owns nothing, and call own_left(). Until it does, all others leave or delegate theirs on top. So the left
// requests are served when that thread comes. If it is stopped before, it is like an owner that is stopped.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"

namespace callboard {

// The outcome of handing over a request.
enum class Handed { mine, delegated, refused };

class ClosableCount {
public:
    // Any thread. mine: the caller owns the resource, and its request is due. Acquire pairs with the last owner's
    // settle() or try_close(), release with this owner's settle() and due().
    [[nodiscard]] Handed own_or_delegate(std::int64_t weight) {
        assert(weight > 0);
        const std::int64_t before = pending_.fetch_add(weight, acq_rel);
        assert((before < 0 ? before < -weight : before <= INT64_MAX - weight) && "all that is added is below 2**63");
        return before == 0 ? Handed::mine : before > 0 ? Handed::delegated : Handed::refused;
    }

    // The owner, when it has served `served` requests, at most as many as are due. Returns how many are due now; at
    // 0 the resource is free. Release pairs with the next owner's own_or_delegate(), acquire with those of the senders
    // whose requests are due.
    [[nodiscard]] std::int64_t settle(std::int64_t served) {
        assert(served > 0 && pending_.load(relaxed) >= served && "no more is served than was due");
        return pending_.fetch_sub(served, acq_rel) - served;
    }

    // The owner. How much is due now. Acquire pairs with the senders' release.
    std::int64_t due() const { return pending_.load(acquire); }

    // Any thread. True: nobody owned it, and nobody will. Wait-free. Acquire pairs with the last owner's settle(),
    // release with is_closed() and the senders that are refused.
    [[nodiscard]] bool try_close() {
        std::int64_t pending = pending_.load(relaxed);
        return pending == 0 && pending_.compare_exchange_strong(pending, closed_, acq_rel, relaxed);
    }

    // Any thread. Acquire pairs with try_close().
    bool is_closed() const { return pending_.load(acquire) < 0; }

    // For a thread that alone has the resource, before others can find it: the caller owns it, and
    // `weight` is due.
    void open(std::int64_t weight) {
        assert(weight > 0);
        pending_.store(weight, relaxed);
    }

private:
    static constexpr std::int64_t closed_ = INT64_MIN;

    Atomic<std::int64_t> pending_{0};
};

// Request has a member `next`, as for Delegation, and is aligned to 4 bytes or more.
template <class Request>
class ClosableDelegation {
public:
    // The outcome of leaving a request.
    enum class Left { first, more, refused };

    // Any thread that owns nothing. mine: the caller owns the resource, and still has its request. Acquire pairs with
    // the last owner's release, release with the owner's take() or own_left().
    [[nodiscard]] Handed own_or_delegate(Request* request) {
        assert(request != nullptr);
        std::uintptr_t state = state_.load(relaxed);
        for (;;) {
            if (state == free_) {
                if (state_.compare_exchange_weak(state, owned_, acquire, relaxed)) return Handed::mine;
            } else if (state == closed_) {
                return Handed::refused;
            } else if (put(state, request)) {
                return Handed::delegated;
            }
        }
    }

    // Any thread. first: the resource was free, and the caller must call own_left() as soon as it owns nothing.
    // Release pairs with the owner's take() or own_left().
    [[nodiscard]] Left leave(Request* request) {
        assert(request != nullptr);
        std::uintptr_t state = state_.load(relaxed);
        while (state != closed_) {
            const bool first = state == free_;
            if (put(state, request)) return first ? Left::first : Left::more;
        }
        return Left::refused;
    }

    // The thread that was told `first`, once. The caller owns the resource, and gets the requests that were left
    // there, oldest first. Acquire pairs with the threads that left them, and with the last owner's release.
    [[nodiscard]] Request* own_left() { return oldest_first(untagged(state_.exchange(owned_, acquire))); }

    // Any thread. Owns the resource if it is free.
    [[nodiscard]] bool try_own() {
        std::uintptr_t state = free_;
        return state_.compare_exchange_strong(state, owned_, acquire, relaxed);
    }

    // The owner. All pending requests, oldest first, linked by `next`; null if there are none. Acquire pairs with the
    // delegators' release.
    Request* take() {
        const std::uintptr_t state = state_.load(relaxed);
        assert(state != free_ && !(state & left_) && "the owner alone takes");
        if (state == owned_) return nullptr;
        return oldest_first(reinterpret_cast<Request*>(state_.exchange(owned_, acquire)));
    }

    // The owner. True: the resource is free. False: requests are pending, take() them first.
    [[nodiscard]] bool try_release() {
        std::uintptr_t state = owned_;
        return state_.compare_exchange_strong(state, free_, release, relaxed);
    }

    // The owner, instead of try_release(). True: nobody will own it again. False: requests are pending. Release pairs
    // with is_closed().
    [[nodiscard]] bool try_close() {
        std::uintptr_t state = owned_;
        return state_.compare_exchange_strong(state, closed_, release, relaxed);
    }

    // Any thread. Acquire pairs with try_close().
    bool is_closed() const { return state_.load(acquire) == closed_; }

    // For a thread that alone has the resource, before others can find it: free.
    void open() { state_.store(free_, relaxed); }

private:
    // With the left bit: nobody owns it, and the rest is the newest request.
    static constexpr std::uintptr_t free_ = 0, owned_ = 1, left_ = 2, closed_ = left_;

    static Request* untagged(std::uintptr_t state) { return reinterpret_cast<Request*>(state & ~left_); }

    // It was not closed when `state` was read. False: it is another now, read again.
    bool put(std::uintptr_t& state, Request* request) {
        static_assert(alignof(Request) >= 4, "two bits of its address are the state's");
        assert(state != closed_ && "nothing comes to what is closed");
        const std::uintptr_t below = state == owned_ ? free_ : state;
        assert(untagged(below) != request && "a request is pending once");
        assert((reinterpret_cast<std::uintptr_t>(request) & (owned_ | left_)) == 0);
        set_next(request, untagged(below));
        const std::uintptr_t unowned = state == free_ ? left_ : state & left_;
        return state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(request) | unowned, release,
                                            relaxed);
    }

    Atomic<std::uintptr_t> state_{free_};
};

}  // namespace callboard
