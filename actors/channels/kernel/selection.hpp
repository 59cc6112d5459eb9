// Waits for any of many channels: POLL of Prokesch 2011, section 4.4.5, at a cost that does not grow with their number.
//
// A member stands at each thing that is waited for, as its Wakeable. When it is woken it comes to the selector's stack,
// and wakes the selector's user. The user looks at what came, and at nothing else. (The thesis's consumer looks at all
// streams at each POLL. Here it arms a member once, as epoll does, and again after that member was given out.)
//
// One word is the thesis's poll-token and its wakeup-sd: null, or the newest of a stack of members that came, or the
// user that waits, which has a bit set. The thesis has a lock for each stream, for two pairs of actions that must not
// interleave. Here:
//   1. "Look whether a stream is empty, and flag it" is announce() of waiting.hpp. Either the producer sees the
//      member, or the member's second look sees the value.
//   2. "Wake the user once, and tell which stream" is one compare-and-swap of the word: who puts a member over the
//      waiting user has taken the token. The next ones find a member there, and no token. The user waits by a
//      compare-and-swap from null, so it never waits beside a member that came.
// After its compare-and-swap a waker touches neither the member nor the selector, only the user that it took out. So a
// user that has got all its members back may end the selector.
//
// A member is in one place: armed (at its Waitable, with a waker, or on the stack), listed, or given. Rules:
//   1. The list is private to the user, first in first out: members that may be ready. A member that was armed comes to its
//      end; so does the member that was given out last, if it is still ready. So nobody starves.
//   2. A listed member may be ready no longer, since its user may have used it meanwhile. So it is looked at when its
//      turn comes, and armed if it is not ready.
//   3. Nothing is armed that is listed or given.
//
// Progress: a waker is lock-free, and one that fails meets another that got through, or the user. remove() waits for a
// waker that has taken the member out and not yet put it on the stack, which is two steps.
#pragma once

#include <sched.h>

#include <cassert>
#include <cstdint>

#include "callboard/channels/kernel/waiting.hpp"
#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

class Selector;

class Member : public Wakeable {
public:
    // `at` outlives the membership, and so does the member; `user` is whatever the user wants to find again.
    explicit Member(Waitable& at, void* user = nullptr) : Wakeable{wake_selector}, user(user), at_(at) {}
    ~Member() { assert(phase_ == Phase::none && "it is removed first"); }
    Member(const Member&) = delete;

    void* user;
    Member* next{nullptr};  // on the stack, or in the list

private:
    friend class Selector;
    enum class Phase : std::uint8_t { none, armed, listed, given };

    static void wake_selector(Wakeable* self);

    Waitable& at_;
    Selector* selector_{nullptr};
    Member* previous_{nullptr};  // in the list
    Phase phase_{Phase::none};
};

// It can be waited for itself, so a member of one selector may stand at another one.
class Selector final : public Waitable, OneAtATime<Owner> {
public:
    Selector() = default;
    Selector(const Selector&) = delete;
    ~Selector() { assert(count_ == 0 && "members are removed first"); }

    // The user; also while it waits: it is woken if that member is ready.
    void add(Member& member) {
        const Alone<Owner> alone(*this);
        assert(member.phase_ == Member::Phase::none && "a member is in one selector");
        member.selector_ = this;
        member.phase_ = Member::Phase::armed;
        ++count_;
        if (!member.at_.announce(&member)) come(&member);
    }

    // The user; also while it waits. After that nobody touches the member.
    void remove(Member& member) {
        const Alone<Owner> alone(*this);
        assert(member.phase_ != Member::Phase::none && member.selector_ == this);
        if (member.phase_ == Member::Phase::armed && !member.at_.withdraw(&member)) await(member);
        if (member.phase_ == Member::Phase::listed) unlink(member);
        if (given_ == &member) given_ = nullptr;
        member.phase_ = Member::Phase::none;
        --count_;
    }

    // The user. A member that is ready, in turn; null if none is. It is given out until the next call.
    [[nodiscard]] Member* next() {
        const Alone<Owner> alone(*this);
        if (!is_ready()) return nullptr;
        given_ = first_;
        unlink(*given_);
        given_->phase_ = Member::Phase::given;
        return given_;
    }

    // The user. A member is ready, and next() will give it.
    bool is_ready() override {
        const Alone<Owner> alone(*this);
        list_what_came();
        if (Member* const member = given_) {
            given_ = nullptr;
            list_or_arm(*member);
        }
        while (first_ != nullptr && !first_->at_.is_ready()) {
            Member& member = *first_;
            unlink(member);
            list_or_arm(member);
        }
        return first_ != nullptr;
    }

    // The user. A waiter of the user's that was announced before is woken. Release pairs with come().
    bool announce(Wakeable* who) override {
        const Alone<Owner> alone(*this);
        assert(who != nullptr && who->wake != nullptr && !(reinterpret_cast<std::uintptr_t>(who) & waiting));
        if (is_ready()) return false;
        std::uintptr_t state = state_.load(relaxed);
        do {
            if (state != nothing && !(state & waiting)) return false;  // a member came
        } while (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(who) | waiting, release, relaxed));
        if (Wakeable* const other = waiter_in(state); other != nullptr && other != who) other->wake(other);
        return true;
    }

    // The user. relaxed: in both cases next() looks at what came.
    bool withdraw(Wakeable* who) override {
        const Alone<Owner> alone(*this);
        std::uintptr_t state = reinterpret_cast<std::uintptr_t>(who) | waiting;
        return state_.compare_exchange_strong(state, nothing, relaxed);
    }

    std::int64_t size() const { return count_; }

private:
    friend class Member;
    static constexpr std::uintptr_t nothing = 0, waiting = 1;  // with the latter, the user's Wakeable
    static constexpr int patience = 1000;                      // turns: some microseconds

    static Wakeable* waiter_in(std::uintptr_t state) {
        return state & waiting ? reinterpret_cast<Wakeable*>(state & ~waiting) : nullptr;
    }

    // Any thread, with a member that it has taken out of its place. Release pairs with list_what_came(), acquire with
    // announce(): who wakes the user sees the whole Wakeable.
    void come(Member* member) {
        std::uintptr_t state = state_.load(relaxed);
        do {
            assert(state != reinterpret_cast<std::uintptr_t>(member) && "a member comes once");
            set_next(member, state & waiting ? nullptr : reinterpret_cast<Member*>(state));
        } while (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(member), acq_rel, relaxed));
        if (Wakeable* const user = waiter_in(state)) user->wake(user);
    }

    // Acquire pairs with come(). relaxed: where no member is seen, the user waits by a compare-and-swap.
    void list_what_came() {
        const std::uintptr_t state = state_.load(relaxed);
        if (state == nothing || state & waiting) return;
        auto* const newest = reinterpret_cast<Member*>(state_.exchange(nothing, acquire));
        for (Member* member = oldest_first(newest); member != nullptr;) {
            Member* const following = get_next(member);
            list(*member);
            member = following;
        }
    }

    // A waker has it.
    void await(const Member& member) {
        for (int turn = 0; list_what_came(), member.phase_ == Member::Phase::armed; ++turn) {
            if (turn < patience) relax();
            else sched_yield();
        }
    }

    void list_or_arm(Member& member) {
        member.phase_ = Member::Phase::armed;
        if (!member.at_.announce(&member)) list(member);
    }

    void list(Member& member) {
        assert(member.phase_ == Member::Phase::armed && "a member is in one phase");
        member.phase_ = Member::Phase::listed;
        member.next = nullptr;
        member.previous_ = last_;
        (last_ == nullptr ? first_ : last_->next) = &member;
        last_ = &member;
    }

    void unlink(Member& member) {
        assert(member.phase_ == Member::Phase::listed);
        (member.previous_ == nullptr ? first_ : member.previous_->next) = member.next;
        (member.next == nullptr ? last_ : member.next->previous_) = member.previous_;
    }

    alignas(cache_line) Atomic<std::uintptr_t> state_{nothing};
    alignas(cache_line) Member* first_{nullptr};  // these are the user's
    Member* last_{nullptr};
    Member* given_{nullptr};
    std::int64_t count_{0};
};

// A thread that woke the member has it alone, so the selector is still there.
inline void Member::wake_selector(Wakeable* self) {
    auto* const member = static_cast<Member*>(self);
    member->selector_->come(member);
}

}  // namespace callboard
