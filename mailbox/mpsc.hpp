// The mailbox's queue: many producers, one consumer, one exchange per push.
//
// It is a linked list behind a dummy node, after Vyukov's queue and LPEL's mailbox (Prokesch 2011,
// section 4.2.2, without its tail lock). The head is the node whose message was consumed last. The
// first waiting message is in its successor. The two lowest bits of the tail say that the consumer is
// idle, and that it was signalled to look elsewhere (at its system messages). So the exchange that
// publishes a message also answers whether the consumer must be woken, as in Pony's actor queues. One
// compare-and-swap makes the consumer idle only if nothing at all waits for it. The rejected
// alternative is a state word beside the queue. It costs one more atomic operation per wake and one
// more per going idle. Moreover, a consumer that had to look elsewhere after it went idle would read
// memory that is no longer its own.
//
// The two ends are two types, so that each can live on its own cache line, beside the other fields
// that its user writes.
//
// Progress: push is wait-free. pop is wait-free, but finds nothing while the queue is momentarily
// unlinked: between a producer's exchange and its store to `next`, the messages behind that store exist
// but cannot be reached. The consumer then finds no message and yet cannot go idle. It stays ready and
// comes back; it never waits in place.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/memory/node.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

// The producers' end.
class MpscTail {
public:
    MpscTail(Node* dummy, bool idle)
        : tail_(reinterpret_cast<std::uintptr_t>(dummy) | (idle ? idle_bit : 0)) {
        assert((reinterpret_cast<std::uintptr_t>(dummy) & bits) == 0);
    }

    // Any thread. True: the consumer was idle, and the caller, who now owns its readiness, must make it ready.
    // Acquire pairs with the release in try_idle(): the thread that wakes the consumer sees all that it did.
    // Acquire and release pair with each other, too: a push stores into the node of the last one.
    [[nodiscard]] bool push(Node* node) { return push_chain(node, node); }

    // Any thread. The nodes from `first` to `last`, linked by `next`, in one exchange.
    [[nodiscard]] bool push_chain(Node* first, Node* last) {
        assert(first != nullptr && last != nullptr);
        last->next.store(nullptr, relaxed);
        const auto before = tail_.exchange(reinterpret_cast<std::uintptr_t>(last), acq_rel);
        assert((before & ~bits) != reinterpret_cast<std::uintptr_t>(last) && "a node is pushed once");
        assert((before & bits) != bits && "an idle consumer has looked at its signal");
        // The exchange took a signal away with the old tail. It is put back before the link. The consumer cannot
        // pass this node, let alone go idle, until the link is there. relaxed: later updates continue signal()'s
        // release sequence.
        if (__builtin_expect(before & signal_bit, 0)) tail_.fetch_or(signal_bit, relaxed);
        // Until this store the queue is unlinked. Release pairs with the acquire in MpscHead::pop().
        reinterpret_cast<Node*>(before & ~bits)->next.store(first, release);
        return before & idle_bit;
    }

    // Any thread. Makes the consumer look elsewhere before it goes idle again. True as for push(). Acquire pairs
    // with try_idle(), release with clear_signal().
    [[nodiscard]] bool signal() {
        auto before = tail_.load(relaxed);
        while (!tail_.compare_exchange_weak(before, (before & ~idle_bit) | signal_bit, acq_rel,
                                            relaxed)) {}
        assert((before & bits) != bits && "an idle consumer has looked at its signal");
        return before & idle_bit;
    }

    // The consumer, before it looks elsewhere. Acquire pairs with signal().
    void clear_signal() { tail_.fetch_and(~signal_bit, acquire); }

    // Any thread, hints.
    bool is_signalled() const { return tail_.load(relaxed) & signal_bit; }
    bool is_idle() const { return tail_.load(relaxed) & idle_bit; }

private:
    friend class MpscHead;
    static constexpr std::uintptr_t idle_bit = 1, signal_bit = 2, bits = 3;
    Atomic<std::uintptr_t> tail_;
};

// The consumer's end: all of it belongs to the owner of the consumer's readiness.
class MpscHead : OneAtATime<Consumer> {
public:
    explicit MpscHead(Node* dummy) : head_(dummy) {}
    MpscHead(const MpscHead&) = delete;
    ~MpscHead() { FreeList::free_chain(head_); }  // and all that waits; no thread may use the other end after this

    // The node that carries the oldest message, or null. The node stays in the queue as its new
    // dummy: read it before the next pop. `spent` is the old dummy, now the caller's.
    Node* pop(Node*& spent) {
        const Alone<Consumer> alone(*this);
        Node* const next = head_->next.load(acquire);
        if (next == nullptr) return nullptr;
        assert(next != head_ && "a node is pushed once");
        spent = head_;
        return head_ = next;
    }

    // True: the queue was empty and the consumer is idle. It owns nothing now, and must not touch the queue
    // until a thread makes it ready again. False: there is a message, perhaps not linked yet, or a signal. It
    // compares the head with the tail and not with the head's link, so a producer between its two steps is
    // never missed. Release pairs with push() and signal(); it acquires nothing, for an idle consumer looks
    // at nothing.
    bool try_idle(MpscTail& tail) {
        auto expected = reinterpret_cast<std::uintptr_t>(head_);
        assert((expected & MpscTail::bits) == 0);
        return tail.tail_.compare_exchange_strong(expected, expected | MpscTail::idle_bit, release,
                                                  relaxed);
    }

private:
    // Where senders pop too (overflow drop_oldest), pop() and try_idle() both belong to the owner of a
    // delegation. Otherwise a sender that popped between try_idle()'s two steps could push the node
    // that it was given. The old head would be the tail again, with a message.
    Node* head_;
};

}  // namespace callboard
