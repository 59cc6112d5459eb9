// Senders and receivers on separate threads, at channels of capacity 0, 1, 2 and 3, that wait, give up waiting, and
// close. Values are plain memory, so that a missing order is a data race. Each wait has a time limit, and a thread that
// exceeds it was not woken.
#include <memory>

#include "callboard/channels/kernel/channel.hpp"
#include "channels.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;
using channels::Sleeping;

namespace {

struct Parcel {
    std::int64_t number = -1, again = -1;
};

// Each way to look into a word: one that changes all the time, the product's, and the one without a barrier.
#define FOR_EACH_ORDERING(call)                    \
    call<Channel<Parcel*, BasicConcurrent<0>>>();  \
    call<Channel<Parcel*, Concurrent>>();          \
    call<Channel<Parcel*, BasicConcurrent<INT32_MAX>>>()

// Waits as a user that may be cancelled: it is woken, or withdraws, or gives up after a moment and looks again.
void wait_somehow(Waitable& place, Random& random) {
    Sleeping user;  // a new one for each wait, so a waker that came too late would touch what is gone
    const std::uint32_t choice = random.below(8);
    if (choice == 0) {
        if (place.announce(&user) && !place.withdraw(&user)) user.park();
    } else if (choice == 1) {
        user.wait_for(place, 1 + random.below(20000));
    } else if (!user.wait_for(place, patience)) {
        check::give_up(__FILE__, __LINE__, "a lost wake-up");
    }
}

template <class Pipe>
void send(Pipe& channel, Parcel* parcel, Random& random) {
    if (!channel.is_rendezvous()) {
        while (channel.send_nowait(parcel) == Transfer::not_yet) wait_somehow(channel.sending(), random);
        return;
    }
    for (;;) {
        // At a rendezvous, now and then by waiting for a receiver, else by an offer that is sometimes taken back.
        if (random.below(4) == 0) {
            if (channel.send_nowait(parcel) != Transfer::not_yet) return;
            std::this_thread::yield();
        } else if (const Transfer result = channel.offer(parcel); result == Transfer::ended) {
            return;
        } else if (result == Transfer::done) {
            Parcel* back = nullptr;
            while (!channel.taken()) {
                if (random.below(2) == 0 || channel.has_ended()) {
                    if (!channel.retract(back)) return;
                    if (back != parcel) check::give_up(__FILE__, __LINE__, "another value came back");
                    if (channel.has_ended()) return;
                    break;
                }
                wait_somehow(channel.sending(), random);
            }
            if (back == nullptr) return;
        } else {
            wait_somehow(channel.sending(), random);
        }
    }
}

// Null: the end.
template <class Pipe>
Parcel* receive(Pipe& channel, Random& random) {
    Parcel* parcel = nullptr;
    for (;;) {
        switch (channel.receive_nowait(parcel)) {
            case Transfer::done: return parcel;
            case Transfer::ended: return nullptr;
            case Transfer::not_yet: wait_somehow(channel.receiving(), random);
        }
    }
}

template <class Pipe>
void everything_arrives(std::int64_t capacity, std::size_t most) {
    Pipe channel(capacity);
    std::vector<Parcel> parcels(most);
    std::int64_t sent = 0, received = 0, wrong = 0;
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index + 2 * capacity));
        if (index == 0) {
            const std::int64_t end = monotonic_ns() + longest() / 10;
            for (Parcel& parcel : parcels) {
                if (sent % 16 == 0 && monotonic_ns() > end) break;
                parcel = {sent, sent};
                send(channel, &parcel, random);
                ++sent;
                random.pause();
            }
            channel.close_sender();
        } else {
            while (const Parcel* const parcel = receive(channel, random)) {
                wrong += parcel->number != received || parcel->again != received;
                ++received;
                random.pause();
            }
        }
    });
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(sent, received);
    CHECK(sent > 0);
    CHECK_EQUAL(channel.written(), sent);
    CHECK_EQUAL(channel.read(), sent);
}

template <class Pipe>
void everything_arrives() {
    for (const std::int64_t capacity : {0, 1, 2, 3}) everything_arrives<Pipe>(capacity, 20000);
}

// Many short channels, that the receiver or a third thread ends in the middle.
template <class Pipe>
void nothing_is_lost_at_the_end() {
    constexpr int most = 2000, values = 8;
    Rounds rounds(most);
    struct Round {
        explicit Round(std::int64_t capacity) : channel(capacity) {}
        Pipe channel;
        std::vector<Parcel> parcels{values};
        Atomic<int> sides{3}, received{0};
    };
    std::unique_ptr<Round> round;
    Atomic<int> begun{0};
    together(3, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int turn = 1;; ++turn) {
            if (index == 0) {
                if (!rounds.go_on(turn)) break;
                round = std::make_unique<Round>(turn % 3);
                begun.store(turn, release);
            } else {
                await([&] { return begun.load(acquire) == turn || rounds.over(); });
                if (begun.load(acquire) != turn) break;
            }
            Round& now = *round;
            if (index == 0) {
                for (Parcel& parcel : now.parcels) {
                    parcel = {1, 1};
                    send(now.channel, &parcel, random);
                    if (now.channel.has_ended()) break;
                }
                now.channel.close_sender();
            } else if (index == 1) {
                const std::uint32_t until = random.below(2 * values);
                for (std::uint32_t i = 0; i < until; ++i) {
                    const Parcel* const parcel = receive(now.channel, random);
                    if (parcel == nullptr) break;
                    now.received.fetch_add(static_cast<int>(parcel->number), relaxed);
                }
                now.channel.close_receiver();
            } else {
                for (std::uint32_t i = random.below(200); i != 0; --i) relax();
                if (random.below(2)) now.channel.cancel();
            }
            now.sides.fetch_sub(1, acq_rel);
            if (index != 0) continue;
            await([&] { return now.sides.load(acquire) == 0; });
            Parcel* left;
            while (now.channel.take_left(left)) now.received.fetch_add(static_cast<int>(left->number), relaxed);
            if (now.channel.written() != now.received.load(relaxed)) check::give_up(__FILE__, __LINE__, "a value was lost");
            if (now.channel.written() != now.channel.read()) check::give_up(__FILE__, __LINE__, "a value was not counted");
        }
    });
}

void a_moment(Random& random) {
    for (std::uint32_t i = random.below(32); i != 0; --i) relax();
}

// One thread makes a side ready at about the time at which the other goes to sleep there. Then the other side.
template <class Pipe>
void a_side_becomes_ready_while_its_user_goes_to_sleep() {
    Pipe channel(1);
    Parcel parcel;
    Rounds rounds(20000);
    Atomic<int> begun{0}, ended{0};
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        Parcel* found = nullptr;
        for (int turn = 1; index == 0 ? rounds.go_on(turn) : !rounds.over(); ++turn) {
            if (index == 0) begun.store(turn, release);
            else await([&] { return begun.load(acquire) == turn || rounds.over(); });
            if (rounds.over()) break;
            a_moment(random);
            if (index == 0) {
                if (turn % 2 == 1) CHECK(channel.send_nowait(&parcel) == Transfer::done);
                else CHECK(channel.receive_nowait(found) == Transfer::done);
                await([&] { return ended.load(acquire) == turn; });
            } else {
                Sleeping user;
                if (!user.wait_for(turn % 2 == 1 ? channel.receiving() : channel.sending(), patience))
                    check::give_up(__FILE__, __LINE__, "a lost wake-up");
                ended.store(turn, release);
            }
        }
    });
}

template <class Pipe>
void a_value_comes_with_the_end() {
    Rounds rounds(20000);
    std::unique_ptr<Pipe> channel;
    Parcel parcel;
    Atomic<int> begun{0}, ended{0};
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int turn = 1; index == 0 ? rounds.go_on(turn) : !rounds.over(); ++turn) {
            if (index == 0) {
                channel = std::make_unique<Pipe>(1);
                begun.store(turn, release);
                a_moment(random);
                CHECK(channel->send_nowait(&parcel) == Transfer::done);
                channel->close_sender();
                await([&] { return ended.load(acquire) == turn; });
                continue;
            }
            await([&] { return begun.load(acquire) == turn || rounds.over(); });
            if (rounds.over()) break;
            Parcel* found = nullptr;
            Transfer result;
            while ((result = channel->receive_nowait(found)) == Transfer::not_yet) {}
            if (result == Transfer::ended) check::give_up(__FILE__, __LINE__, "the end came before the value");
            while (channel->receive_nowait(found) != Transfer::ended) {}
            ended.store(turn, release);
        }
    });
}

// The two sides wait for each other all the time, so each word changes between its two ways to be looked at.
template <class Pipe>
void two_that_answer_each_other() {
    Pipe there(1), back(1);
    Parcel parcel{0, 0};
    Rounds rounds(20000);
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (int turn = 1; rounds.go_on(turn); ++turn) {
                parcel.number = turn;
                send(there, &parcel, random);
                Parcel* const answer = receive(back, random);
                if (answer != &parcel || answer->again != turn) check::give_up(__FILE__, __LINE__, "another answer");
            }
            there.close_sender();
        } else {
            while (Parcel* const question = receive(there, random)) {
                question->again = question->number;
                send(back, question, random);
            }
        }
    });
}

}  // namespace

TEST("everything that was sent is received, once and in order") { FOR_EACH_ORDERING(everything_arrives); }
TEST("whichever side ends a channel, a sent value is received or left, and no thread sleeps for ever") {
    FOR_EACH_ORDERING(nothing_is_lost_at_the_end);
}
TEST("a side that becomes ready while its user goes to sleep wakes it") {
    FOR_EACH_ORDERING(a_side_becomes_ready_while_its_user_goes_to_sleep);
}
TEST("a value that comes with the end is received") { FOR_EACH_ORDERING(a_value_comes_with_the_end); }
TEST("two that answer each other are woken each time") { FOR_EACH_ORDERING(two_that_answer_each_other); }

CHECK_MAIN
