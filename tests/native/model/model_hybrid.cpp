// The hybrid queue: partitions with room for one value and for two, a producer, and workers that serve them.
#include "callboard/mailbox/ordered/hybrid.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

using Queue = HybridQueue<Plain<int>>;

// What a partition's owner writes: two owners at once, or one that is not ordered after the last, are a data race.
struct Served {
    Plain<int> next[2] = {0, 0};

    // At most `most` values for each turn. False: there was nothing to take.
    bool serve_one(Queue& queue, std::int64_t most, std::uint32_t worker = 0) {
        return queue.consume_one(
            [&](std::uint32_t partition, Plain<int>& value) {
                CHECK(value == next[partition]);
                next[partition] = value + 1;
            },
            most, worker);
    }
};

// One thread adds these values, one takes twice and one once. Whatever is left is served in the end.
void each_is_served_in_order(std::size_t room, std::initializer_list<std::uint32_t> partitions, std::int64_t most,
                             std::uint32_t workers = 1) {
    Queue queue(2, room, workers);
    Served served;
    Plain<int> added[2] = {0, 0};
    const auto work = [&] { (void)served.serve_one(queue, most, 0); };
    const auto other = [&] { (void)served.serve_one(queue, most, workers - 1); };
    together(
        [&] {
            for (const std::uint32_t partition : partitions)
                if (queue.add(partition, added[partition])) added[partition] = added[partition] + 1;
        },
        [&] { work(), work(); }, other);
    while (queue.waiting() != 0) work();
    for (int partition : {0, 1}) CHECK(served.next[partition] == added[partition]);
}

}  // namespace

MODEL("hybrid, room for one value: each of a partition is served once, in order, by one worker at a time") {
    each_is_served_in_order(1, {0, 0, 0}, 16);
}

MODEL("hybrid, room for one value: so are those of two partitions") { each_is_served_in_order(1, {0, 1, 0}, 16); }

MODEL("hybrid, two homes: each of a partition is served once, in order, by one worker at a time") {
    each_is_served_in_order(1, {0, 1, 0}, 16, 2);
}

MODEL("hybrid, room for two values: each of a partition is served once, in order, by one worker at a time") {
    each_is_served_in_order(2, {0, 0, 0}, 16);
}

MODEL("hybrid, room for two values: a worker that has served enough passes the partition on") {
    each_is_served_in_order(2, {0, 0, 0}, 1);
}

MODEL("hybrid: a worker that goes to sleep sees a value, or its producer sees a sleeper") {
    Queue queue(2, 1, 2);
    Atomic<int> sleeps{0};
    Plain<int> stays{0}, is_called{0};
    together(
        [&] {
            CHECK(queue.add(1, 0));
            is_called = sleeps.load(seq_cst);
        },
        [&] {
            sleeps.store(1, seq_cst);
            stays = queue.waiting() != 0;
        });
    CHECK(stays != 0 || is_called != 0);
}
