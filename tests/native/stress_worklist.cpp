// Threads at both ends of small worklists. What is carried is plain memory: a consumer that is not
// ordered after its producer, or a producer after the consumer before it, is a data race.
#include "callboard/mailbox/ordered/worklist.hpp"
#include "history.hpp"

using callboard::Atomic;
using callboard::Worklist;
using namespace stress;

namespace {

struct Parcel {
    std::int64_t stamped = -1, again = -1;
};

// Each value arrives once, with the serial number that its producer was told, whole, and in order.
void everything_arrives(int producers, int consumers, std::size_t capacity, int each) {
    const std::int64_t all = std::int64_t{producers} * each;
    Worklist<Parcel> list(capacity);
    std::vector<std::int64_t> told(static_cast<std::size_t>(all), -1);     // by serial number
    std::vector<std::int64_t> arrived(static_cast<std::size_t>(all), -1);  // likewise
    Atomic<std::int64_t> left{all};
    Atomic<int> wrong{0};
    together(producers + consumers, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        std::int64_t last = -1;
        if (index < producers) {
            for (int number = 0; number < each; ++number) {
                std::int64_t serial = -1;
                const std::int64_t value = stamp(index, number);
                await([&] { return (serial = list.push({value, value})) != list.none; });
                if (serial <= last || serial >= all) wrong.fetch_add(1, callboard::relaxed);
                else told[static_cast<std::size_t>(serial)] = value;
                last = serial;
                random.pause();
            }
        } else {
            while (left.load(callboard::relaxed) > 0) {
                Parcel parcel;
                const std::int64_t serial = list.pop(parcel);
                if (serial == list.none) {
                    std::this_thread::yield();
                    continue;
                }
                left.fetch_sub(1, callboard::relaxed);
                if (serial <= last || serial >= all || parcel.stamped != parcel.again)
                    wrong.fetch_add(1, callboard::relaxed);
                else arrived[static_cast<std::size_t>(serial)] = parcel.stamped;
                last = serial;
                random.pause();
            }
        }
    });
    CHECK_EQUAL(wrong.load(callboard::relaxed), 0);
    CHECK_EQUAL(list.size(), 0);
    CHECK(told == arrived);
    Ledger ledger(producers);
    for (const std::int64_t value : arrived) if (value >= 0) ledger.receive(value);
    CHECK_EQUAL(ledger.received(), all);
    CHECK_EQUAL(ledger.wrong(), 0);
}

void a_history_is_linearizable(std::size_t capacity, int threads, int calls) {
    history::Clock clock;
    Worklist<std::int64_t> list(capacity);
    std::vector<std::vector<history::Call>> pushes(static_cast<std::size_t>(threads)), pops = pushes;
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index) + capacity);
        for (int number = 0; number < calls; ++number) {
            if (random.below(2) == 0) {
                pushes[static_cast<std::size_t>(index)].push_back(clock.record([&](history::Call& call) {
                    call.value = stamp(index, number);
                    call.serial = list.push(call.value);
                }));
            } else {
                pops[static_cast<std::size_t>(index)].push_back(clock.record([&](history::Call& call) {
                    call.serial = list.pop(call.value);
                }));
            }
            random.pause();
        }
    });
    history::Queue queue{{}, {}, {}, capacity};
    std::vector<history::Call> refused;
    queue.pushes = history::by_serial(pushes, refused);
    queue.pops = history::by_serial(pops, queue.nones);
    CHECK(history::without_gap(queue.pushes));
    CHECK(history::without_gap(queue.pops));
    CHECK(queue.pops.size() <= queue.pushes.size());
    for (std::size_t i = 0; i < queue.pops.size(); ++i)
        CHECK_EQUAL(queue.pops[i].value, queue.pushes[i].value);
    CHECK(queue.linearizable());
    CHECK(queue.nones_are_honest());
    // The other end, where free slots are what is put in and taken out, and all are there at the beginning.
    history::Queue slots{std::vector<history::Call>(capacity), queue.pushes, refused, 0};
    for (history::Call& call : slots.pushes) call.begin = call.end = -1;
    slots.pushes.insert(slots.pushes.end(), queue.pops.begin(), queue.pops.end());
    CHECK(slots.nones_are_honest());
}

}  // namespace

TEST("everything that was pushed is popped once, whole, in the order of its serial numbers") {
    for (const std::size_t capacity : {1u, 2u, 4u}) {
        everything_arrives(1, 1, capacity, 10000 / shorter);
        everything_arrives(2, 2, capacity, 10000 / shorter);
        everything_arrives(3, 1, capacity, 10000 / shorter);
        everything_arrives(1, 3, capacity, 10000 / shorter);
    }
}

TEST("recorded histories of a worklist are linearizable, and each `none` had a reason") {
    for (int round = 0; round < 100 / shorter; ++round)
        for (const std::size_t capacity : {1u, 2u, 4u})
            for (const int threads : {2, 4}) a_history_is_linearizable(capacity, threads, 40);
}

CHECK_MAIN
