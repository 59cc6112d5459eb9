// Two threads at the two ends of small rings, and rings whose ends pass from thread to thread. What is
// carried is plain memory, so that a missing order is a data race.
#include <mutex>

#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "history.hpp"

using callboard::Atomic;
using callboard::Spmc;
using callboard::Spsc;
using namespace stress;

namespace {

struct Parcel {
    std::int64_t number = -1, again = -1;
};

void everything_arrives(std::size_t capacity, std::int64_t all) {
    Spsc<Parcel> ring(capacity);
    std::int64_t wrong = 0;
    together(2, [&](int index) {
        Random random(capacity);
        for (std::int64_t number = 0; number < all; ++number) {
            Parcel parcel{number, number};
            await([&] { return index == 0 ? ring.try_push(parcel) : ring.try_pop(parcel); });
            if (index == 1) wrong += parcel.number != number || parcel.again != number;
            random.pause();
        }
    });
    CHECK_EQUAL(wrong, 0);
    CHECK(ring.peek() == nullptr);
}

// Whoever holds an end's lock is that end: the lock orders each after the last, as the ring asks for.
void ends_pass_on(int threads, std::size_t capacity, std::int64_t all) {
    Spsc<Parcel> ring(capacity);
    std::mutex producers, consumers;
    std::int64_t pushed = 0, popped = 0, wrong = 0;
    together(2 * threads, [&](int index) {
        for (bool go_on = true; go_on; std::this_thread::yield()) {
            const std::lock_guard<std::mutex> guard(index < threads ? producers : consumers);
            Parcel parcel;
            if (index < threads) {
                if ((go_on = pushed < all)) pushed += ring.try_push({pushed, pushed});
            } else if ((go_on = popped < all) && ring.try_pop(parcel)) {
                wrong += parcel.number != popped || parcel.again != popped;
                ++popped;
            }
        }
    });
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(popped, all);
}

// Numbers 0, 1, 2 and so on by one producer; who takes which is recorded.
void a_history_is_linearizable(std::size_t capacity, int consumers, int all) {
    history::Clock clock;
    Spmc<int> ring(capacity);
    std::vector<std::vector<history::Call>> pushes(1), pops(static_cast<std::size_t>(consumers));
    Atomic<int> left{all};
    together(consumers + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index) + capacity);
        while (left.load(callboard::relaxed) > 0) {
            if (index == consumers) {
                const auto next = static_cast<std::int64_t>(pushes[0].size());
                if (next == all) return;
                history::Call call = clock.record([&](history::Call& push) {
                    push.serial = ring.try_push(static_cast<int>(next)) ? next : -1;
                });
                if (call.serial >= 0) pushes[0].push_back(call);
            } else {
                pops[static_cast<std::size_t>(index)].push_back(clock.record([&](history::Call& pop) {
                    int value = -1;
                    pop.serial = ring.try_pop(value) ? value : -1;
                }));
                if (pops[static_cast<std::size_t>(index)].back().serial >= 0)
                    left.fetch_sub(1, callboard::relaxed);
            }
            if (random.below(4) == 0) std::this_thread::yield();
        }
    });
    std::vector<history::Call> none;
    history::Queue queue{{}, {}, {}, capacity};
    queue.pushes = history::by_serial(pushes, none);
    queue.pops = history::by_serial(pops, queue.nones);
    if (queue.nones.size() > 200) queue.nones.resize(200);  // the check takes their number times all
    CHECK_EQUAL(queue.pops.size(), static_cast<std::size_t>(all));
    CHECK(history::without_gap(queue.pops));
    CHECK(queue.linearizable());
    CHECK(queue.nones_are_honest());
}

}  // namespace

TEST("everything that was pushed is popped, whole and in order") {
    for (const std::int64_t capacity : {1, 2, 8})
        everything_arrives(static_cast<std::size_t>(capacity), 5000 * capacity);
}

TEST("an end of a ring may pass from thread to thread if each comes after the last") {
    for (const std::size_t capacity : {1u, 4u}) ends_pass_on(2, capacity, 6000);
}

TEST("many consumers take each value once, and recorded histories are linearizable") {
    for (int round = 0; round < 60 / shorter; ++round)
        for (const std::size_t capacity : {1u, 2u, 4u})
            for (const int consumers : {1, 3}) a_history_is_linearizable(capacity, consumers, 60);
}

CHECK_MAIN
