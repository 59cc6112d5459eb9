// Threads that send to small reorder buffers. The sink's ledger is plain memory: two senders at once, or
// one that is not ordered after the last, are data races.
#include "callboard/mailbox/ordered/reorder.hpp"
#include "../bench/peers/reorder_locked.hpp"
#include "reorder_flag.hpp"
#include "history.hpp"

using callboard::Atomic;
using callboard::FlagReorderBuffer;
using callboard::LockedReorderBuffer;
using callboard::ReorderBuffer;
using namespace stress;

namespace {

struct Parcel {
    std::int64_t serial = -1, again = -1;
};

// Workers claim serial numbers as they come, and send when they please.
template <class Buffer>
void everything_leaves_in_order(int threads, std::size_t capacity, std::int64_t all) {
    Buffer buffer(capacity);
    Atomic<std::int64_t> claimed{0};
    std::int64_t sent = 0, wrong = 0;
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (std::int64_t serial; (serial = claimed.fetch_add(1, callboard::relaxed)) < all;) {
            random.pause();
            Parcel parcel{serial, serial};
            await([&] {
                return buffer.send(serial, std::move(parcel), [&](Parcel& arrived) {
                    wrong += arrived.serial != sent || arrived.again != sent;
                    if (!std::is_same<Buffer, LockedReorderBuffer<Parcel>>::value)
                        wrong += !buffer.has_room(sent + buffer.capacity() / 2);
                    ++sent;
                });
            });
        }
    });
    CHECK_EQUAL(sent, all);
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(buffer.next(), all);
}

// In each round every thread has one value to send, at the same time. When all have, all have left.
template <class Buffer>
void nothing_stays_behind(int threads, int most) {
    Buffer buffer(64);
    Rounds rounds(most);
    Atomic<std::int64_t> begun{0}, finished{0};
    std::int64_t sent = 0;
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int round = 1; index != 0 || rounds.go_on(round); ++round) {
            if (index == 0) begun.store(round, callboard::release);
            else await([&] { return begun.load(callboard::acquire) >= round || rounds.over(); });
            if (rounds.over()) return;
            for (auto i = random.below(4); i != 0; --i) callboard::relax();
            const bool added = buffer.send(std::int64_t{round - 1} * threads + (round + index) % threads,
                                           int{index}, [&](int&) { ++sent; });
            CHECK(added);
            finished.fetch_add(1, callboard::acq_rel);
            if (index != 0) continue;
            await([&] { return finished.load(callboard::acquire) == std::int64_t{round} * threads; });
            if (sent == std::int64_t{round} * threads) continue;
            CHECK(!"a value was left behind");
            rounds.stop();
        }
    });
}

// A history is linearizable if values leave in order, each after its send() began; if a value enters
// after the one that was a ring's length before has left; if nobody is refused who was told of room; and
// if all have left by the time at which all calls have ended.
template <class Buffer>
void a_history_is_linearizable(int threads, std::size_t capacity, std::int64_t all) {
    history::Clock clock;
    Buffer buffer(capacity);
    Atomic<std::int64_t> claimed{0};
    std::vector<std::vector<history::Call>> logs(static_cast<std::size_t>(threads));
    std::vector<history::Call> left;
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index) + capacity);
        for (std::int64_t serial; (serial = claimed.fetch_add(1, callboard::relaxed)) < all;) {
            random.pause();
            for (bool fits = false; !fits;) {
                logs[static_cast<std::size_t>(index)].push_back(clock.record([&](history::Call& call) {
                    fits = buffer.send(serial, std::int64_t{serial}, [&](std::int64_t& value) {
                        left.push_back(clock.record([&](history::Call& leave) { leave.serial = value; }));
                    });
                    call.value = serial;
                    call.serial = fits ? serial : -1;
                }));
                if (!fits) std::this_thread::yield();
            }
        }
    });
    std::vector<history::Call> refused;
    std::vector<history::Call> added = history::by_serial(logs, refused);
    CHECK_EQUAL(left.size(), static_cast<std::size_t>(all));
    CHECK(history::without_gap(left));
    CHECK(history::without_gap(added));
    for (std::size_t i = 0; i < left.size(); ++i) {
        history::Call* const before = i == 0 ? nullptr : &left[i - 1];
        history::Call* const made_room = i < capacity ? nullptr : &left[i - capacity];
        CHECK(history::place(added[i], {made_room}));
        CHECK(history::place(left[i], {before, &added[i]}));
    }
    for (const history::Call& call : refused) {
        const auto told = call.value - static_cast<std::int64_t>(capacity / 2);
        CHECK(call.value >= static_cast<std::int64_t>(capacity));
        CHECK(told < 0 || left[static_cast<std::size_t>(told)].begin > call.begin);
    }
}

}  // namespace

TEST("whatever the order in which values come, they leave in that of their serial numbers") {
    for (const std::size_t capacity : {1u, 2u, 4u, 64u}) {
        for (const int threads : {2, 4}) {
            const int all = (threads == 2 ? 8000 : 1500) / shorter;  // with more threads than cores, many wait for one
            everything_leaves_in_order<ReorderBuffer<Parcel>>(threads, capacity, all);
            everything_leaves_in_order<FlagReorderBuffer<Parcel>>(threads, capacity, all);
            everything_leaves_in_order<LockedReorderBuffer<Parcel>>(threads, capacity, all / 4);
        }
    }
}

TEST("when all senders have gone, nothing that is next is left behind") {
    nothing_stays_behind<ReorderBuffer<int>>(2, 80000 / shorter);
    nothing_stays_behind<ReorderBuffer<int>>(3, 8000 / shorter);
}

TEST("when all senders have gone, nothing is left behind in figure 4 either") {
    nothing_stays_behind<FlagReorderBuffer<int>>(2, 80000 / shorter);
}

TEST("recorded histories of a reorder buffer are linearizable") {
    for (int round = 0; round < 60 / shorter; ++round) {
        for (const std::size_t capacity : {1u, 2u, 8u}) {
            a_history_is_linearizable<ReorderBuffer<std::int64_t>>(2, capacity, 60);
            a_history_is_linearizable<ReorderBuffer<std::int64_t>>(4, capacity, 60);
            a_history_is_linearizable<FlagReorderBuffer<std::int64_t>>(3, capacity, 60);
        }
    }
}

CHECK_MAIN
