// Delegation to resources that end: who comes too late is refused, and goes elsewhere.
//
// Das et al. 2009 need it twice. An element whose counter is taken over must not be incremented any more
// (section 4.3.1: lazy deletion), and a frequency bucket that is empty is removed logically (section 4.3.2,
// invariant 4.10). Both are closed by one compare-and-swap from a word that says that nobody waits. So what
// holds for delegation holds here: a request enters the word before it is closed, and is served, or it does
// not, and its sender is told. Closed is for good, or until open(), which is for whoever alone has the
// resource in hand.
//
// ClosableCount counts what is due by weight: a sender adds how much it wants, which is more than 0. Closed is
// the least number there is. Who is refused has added to it; it stays below 0, since nobody adds to it twice
// (a sender who was refused does not find the resource again) and all that is ever added is below 2**63.
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
// Of those who leave requests, one found the resource free. It is told so, and must come back when it owns
// nothing, and call own_left(). Until it does, all others leave or delegate theirs on top. So what was left is
// served when that thread comes; one that is stopped before is like an owner that is stopped.
#pragma once

#include <cassert>

#include "callboard/mailbox/delegation.hpp"

namespace callboard {

// What became of a request.
enum class Handed { mine, delegated, refused };

class ClosableCount : private CountedDelegation {
public:
    // Any thread. mine: the caller owns the resource, and its request is due. Acquire pairs with the last owner's
    // settle() or try_close(), release with this owner's settle() and due().
    [[nodiscard]] Handed own_or_delegate(std::int64_t weight) {
        assert(weight > 0);
        const std::int64_t before = pending_.fetch_add(weight, acq_rel);
        assert((before < 0 ? before < -weight : before <= INT64_MAX - weight) && "all that is added is below 2**63");
        return before == 0 ? Handed::mine : before > 0 ? Handed::delegated : Handed::refused;
    }

    using CountedDelegation::settle;

    // The owner. What is due now. Acquire pairs with the senders' release.
    std::int64_t due() const { return pending_.load(acquire); }

    // Any thread. True: nobody owned it, and nobody will. It does not wait for anybody. Acquire pairs with the last
    // owner's settle(), release with is_closed() and those who are refused.
    [[nodiscard]] bool try_close() {
        std::int64_t pending = pending_.load(relaxed);
        return pending == 0 && pending_.compare_exchange_strong(pending, closed_, acq_rel, relaxed);
    }

    // Any thread. Acquire pairs with try_close().
    bool is_closed() const { return pending_.load(acquire) < 0; }

    // Who alone has the resource, before others can find it: owned by the caller, and so much is due.
    void open(std::int64_t weight) {
        assert(weight > 0);
        pending_.store(weight, relaxed);
    }

private:
    static constexpr std::int64_t closed_ = INT64_MIN;
};

// Request has a member `next`, as for Delegation, and is aligned to 4 bytes or more.
template <class Request>
class ClosableDelegation : private Delegation<Request> {
    using Base = Delegation<Request>;
    using Base::free_;
    using Base::owned_;
    using Base::state_;

public:
    // What became of a request that was left.
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

    // Who was told `first`, once. The caller owns the resource, and has what was left there, oldest first. Acquire
    // pairs with those who left it, and with the last owner's release.
    [[nodiscard]] Request* own_left() { return oldest_first(untagged(state_.exchange(owned_, acquire))); }

    using Base::take;
    using Base::try_own;
    using Base::try_release;

    // The owner, instead of try_release(). True: nobody will own it again. False: requests are pending. Release pairs
    // with is_closed().
    [[nodiscard]] bool try_close() {
        std::uintptr_t state = owned_;
        return state_.compare_exchange_strong(state, closed_, release, relaxed);
    }

    // Any thread. Acquire pairs with try_close().
    bool is_closed() const { return state_.load(acquire) == closed_; }

    // Who alone has the resource, before others can find it: free.
    void open() { state_.store(free_, relaxed); }

private:
    // With the left bit: nobody owns it, and the rest is the newest request.
    static constexpr std::uintptr_t left_ = 2, closed_ = left_;

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
};

}  // namespace callboard
