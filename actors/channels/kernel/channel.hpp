// A channel: bounded, first in first out, between one sender and one receiver, each of which can wait for the other.
//
// Streams with READ, WRITE and PEEK as in Prokesch 2011, sections 4.4.2 to 4.4.4. A ring carries the values, and its
// two counters are the thesis's two semaphores: their difference says how many values are there, and how much room.
// A side that cannot go on waits at its word (waiting.hpp). So a value that meets nobody who waits costs no more than
// the ring, and one look at the other side's word.
//
// A channel of capacity 0 is a rendezvous. Its sender offers a value in a slot, and waits until it is taken.
//
// Rules:
//   1. Each role belongs to one user at a time: sender's calls, receiver's calls. A role passes on by something that
//      orders one user after the other. "Any thread" is who holds a reference.
//   2. Each call that makes a side ready wakes its waiter, after that: a value, room, a receiver that waits at a
//      rendezvous, an end. A waiter may be woken for nothing, and looks again.
//   3. A side that is ready stays ready until its own user acts. So what select() found can be taken: nobody else
//      takes it. The exceptions are an offer at a rendezvous, which its sender may take back, and cancel().
//   4. Closing takes effect once, and for good. A value that was sent before close_sender() is received. A value
//      that is sent while close_receiver() runs is sent, or refused.
//   5. After cancel() nothing is received. The receiver's role takes out what is left, by take_left(). Whoever lets
//      the channel go does the same: the channel never drops a value by itself.
//
// Progress: wait-free, but for what wake() does.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "callboard/channels/kernel/handover.hpp"
#include "callboard/channels/kernel/waiting.hpp"
#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"

namespace callboard {

enum class Transfer : std::uint8_t {
    done,
    not_yet,  // no room, or no value
    ended,    // and for good
};

// T is a pointer or a number. At a rendezvous null is no value.
template <class T, class Ordering>
class Channel : OneAtATime<Producer>, OneAtATime<Consumer> {
    static_assert(std::is_pointer_v<T> || std::is_integral_v<T>);

public:
    explicit Channel(std::int64_t capacity)
        : ring_(static_cast<std::size_t>(capacity == 0 ? 1 : capacity)), capacity_(capacity) {
        assert(capacity >= 0);
    }
    Channel(const Channel&) = delete;

    // The sender. At a rendezvous: done if a receiver waited, which is woken for this value.
    [[nodiscard]] Transfer send_nowait(T value) {
        const Alone<Producer> alone(*this);
        if (has_ended()) return Transfer::ended;
        if (__builtin_expect(is_rendezvous(), 0)) return hand_to_waiter(value);
        if (!ring_.try_push(value)) return Transfer::not_yet;
        receiver_.wake();
        return Transfer::done;
    }

    // The sender, at a rendezvous. Done: the value lies there until it is taken() or retracted. Not yet: the value
    // before is still there.
    [[nodiscard]] Transfer offer(T value) {
        const Alone<Producer> alone(*this);
        assert(is_rendezvous());
        if (has_ended()) return Transfer::ended;
        offer_ = Offer::wanted;
        if (!slot_.try_offer(value)) return Transfer::not_yet;
        offer_ = Offer::made;
        receiver_.wake();
        return Transfer::done;
    }

    // The sender, after offer() was done. True: the receiver has the value.
    [[nodiscard]] bool taken() {
        const Alone<Producer> alone(*this);
        assert(offer_ == Offer::made);
        if (!slot_.is_free()) return false;
        offer_ = Offer::none;
        return true;
    }

    // The sender, when it gives up what it began with offer(). True: the value is the sender's again. False: it was
    // taken, or never lay there.
    [[nodiscard]] bool retract(T& value) {
        const Alone<Producer> alone(*this);
        return std::exchange(offer_, Offer::none) == Offer::made && slot_.take(value);
    }

    // The sender. Room is there; at a rendezvous, what was offered is taken, or a receiver waits. Or it has ended.
    [[nodiscard]] bool send_ready() {
        const Alone<Producer> alone(*this);
        if (has_ended()) return true;
        if (!is_rendezvous()) return ring_.has_room();
        return slot_.is_free() && (offer_ != Offer::none || receiver_.has_waiter());
    }

    // The receiver. The value is left as it is unless done.
    [[nodiscard]] Transfer receive_nowait(T& value) {
        const Alone<Consumer> alone(*this);
        // Before the ring: a receiver that sees the end sees all that was sent before it.
        const unsigned ends = ends_.load(acquire);  // pairs with end_by()
        if (__builtin_expect((ends & cancelled) == 0, 1) && take_out(value)) return Transfer::done;
        return ends == 0 ? Transfer::not_yet : Transfer::ended;
    }

    // The receiver. The oldest value, which stays. A rendezvous shows none: what is offered is still the sender's.
    [[nodiscard]] bool peek(T& value) {
        const Alone<Consumer> alone(*this);
        const T* const oldest = is_cancelled() ? nullptr : ring_.peek();
        if (oldest == nullptr) return false;
        value = *oldest;
        return true;
    }

    // The sender and the receiver at once. The value in the slot of a rendezvous: an offer, or one that
    // send_nowait() handed to a receiver that has not taken it yet.
    [[nodiscard]] bool peek_slot(T& value) const {
        const T found = is_cancelled() ? T{} : slot_.offered();
        if (found == T{}) return false;
        value = found;
        return true;
    }

    // The receiver. A value is there, or it has ended.
    [[nodiscard]] bool receive_ready() {
        const Alone<Consumer> alone(*this);
        return has_ended() || ring_.peek() != nullptr || !slot_.is_free();
    }

    // The receiver's role, whether closed, cancelled or not: takes out the oldest value. The sender is woken.
    [[nodiscard]] bool take_left(T& value) {
        const Alone<Consumer> alone(*this);
        return take_out(value);
    }

    // Where the sender and the receiver wait. Each side's user alone calls these.
    Waitable& sending() { return sending_; }
    Waitable& receiving() { return receiving_; }

    // Any thread. True: it had not been closed so.
    bool close_sender() { return end_by(sender_closed); }
    bool close_receiver() { return end_by(receiver_closed); }
    bool cancel() { return end_by(cancelled); }

    // Any thread. Acquire pairs with end_by().
    bool is_sender_closed() const { return ends_.load(acquire) & sender_closed; }
    bool is_receiver_closed() const { return ends_.load(acquire) & receiver_closed; }
    bool is_cancelled() const { return ends_.load(acquire) & cancelled; }
    bool has_ended() const { return ends_.load(acquire) != 0; }

    bool is_rendezvous() const { return capacity() == 0; }

    // Any thread, hints. An offer at a rendezvous is not in the channel.
    std::int64_t size() const { return ring_.size(); }
    std::int64_t capacity() const { return capacity_.load(relaxed); }
    std::int64_t written() const { return handed_.load(relaxed) + ring_.pushed(); }
    std::int64_t read() const { return handed_.load(relaxed) + ring_.popped(); }

    // While no call is in work. Calls `visit` with each value that is sent or offered, until one does not give 0.
    // Gives the last one's.
    template <class Visit>
    int for_each(Visit visit) const {
        const T offered = slot_.offered();
        const int given = offered == T{} ? 0 : visit(offered);
        return given != 0 ? given : ring_.for_each(visit);
    }

    // While both sides are suspended, ordered after both and before both, as a thread that finds a circle of full
    // channels is. More room, and the sender is woken.
    void grow(std::int64_t capacity) {
        assert(capacity > this->capacity());
        if (capacity > ring_.capacity()) ring_.grow(static_cast<std::size_t>(capacity));
        capacity_.store(capacity, relaxed);
        if (T offered; slot_.take(offered)) {
            [[maybe_unused]] const bool fits = ring_.try_push(offered);
            assert(fits);
            receiver_.wake();
        }
        sender_.wake();
    }

private:
    enum class Offer : std::uint8_t { none, wanted, made };
    static constexpr unsigned sender_closed = 1, receiver_closed = 2, cancelled = 4;

    // The receiver is taken out first: once it is woken for a value, the value comes.
    Transfer hand_to_waiter(T value) {
        if (!slot_.is_free()) return Transfer::not_yet;
        Wakeable* const waiter = receiver_.take();
        if (waiter == nullptr) return Transfer::not_yet;
        [[maybe_unused]] const bool fits = slot_.try_offer(value);
        assert(fits && "the sender alone fills the slot");
        if (offer_ == Offer::made) offer_ = Offer::none;  // it was taken: the slot was free
        waiter->wake(waiter);
        return Transfer::done;
    }

    bool take_out(T& value) {
        if (!ring_.try_pop(value)) {
            if (__builtin_expect(!is_rendezvous(), 1) || !slot_.take(value)) return false;
            handed_.store(handed_.load(relaxed) + 1, relaxed);  // the receiver alone writes it
        }
        sender_.wake();
        return true;
    }

    // Release pairs with the loads of ends_. Both sides look again.
    bool end_by(unsigned how) {
        const bool is_new = (ends_.fetch_or(how, release) & how) == 0;
        receiver_.wake();
        sender_.wake();
        return is_new;
    }

    bool announce_sender(Wakeable* who) {
        return !send_ready() && sender_.announce(who, [this] { return send_ready(); });
    }

    bool announce_receiver(Wakeable* who) {
        return !receive_ready() && receiver_.announce(who, [this] {
            if (is_rendezvous()) sender_.wake();  // that waits for a receiver
            return receive_ready();
        });
    }

    struct SendingEnd final : Waitable {
        explicit SendingEnd(Channel& channel) : channel(channel) {}
        bool is_ready() override { return channel.send_ready(); }
        bool announce(Wakeable* who) override { return channel.announce_sender(who); }
        bool withdraw(Wakeable* who) override { return channel.sender_.withdraw(who); }
        Channel& channel;
    };

    struct ReceivingEnd final : Waitable {
        explicit ReceivingEnd(Channel& channel) : channel(channel) {}
        bool is_ready() override { return channel.receive_ready(); }
        bool announce(Wakeable* who) override { return channel.announce_receiver(who); }
        bool withdraw(Wakeable* who) override { return channel.receiver_.withdraw(who); }
        Channel& channel;
    };

    static constexpr std::size_t apart = Ordering::apart;
    Spsc<T, apart> ring_;
    alignas(apart) WaitingWord<Ordering> receiver_;  // the sender looks at it for each value
    Offer offer_{Offer::none};                       // the sender; other than none, it waits for the slot
    alignas(apart) WaitingWord<Ordering> sender_;    // and the receiver at this
    alignas(apart) Atomic<unsigned> ends_{0};        // from here on seldom written, but at a rendezvous
    Atomic<std::int64_t> capacity_;                  // relaxed: grow() alone changes it
    Handover<T> slot_;
    Atomic<std::int64_t> handed_{0};                      // the receiver; values that went through the slot
    SendingEnd sending_{*this};
    ReceivingEnd receiving_{*this};
};

}  // namespace callboard
