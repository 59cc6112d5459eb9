// The contract of the hybrid queue and of its two baselines, on one thread; a visit that consumes stands
// for a second worker. stress_hybrid.cpp has the threads.
#include <utility>
#include <vector>

#include "callboard/mailbox/hybrid.hpp"
#include "callboard/mailbox/partitioned.hpp"
#include "callboard/mailbox/shared.hpp"
#include "check.hpp"

namespace {

using callboard::HybridQueue;
using callboard::PartitionedQueue;
using callboard::SharedQueue;

using Served = std::vector<std::pair<std::uint32_t, int>>;

std::vector<int> of_partition(const Served& served, std::uint32_t partition) {
    std::vector<int> values;
    for (const auto& [one, value] : served) if (one == partition) values.push_back(value);
    return values;
}

template <class Queue>
void serves_each_partition_in_order() {
    Queue queue(3, 8, 8);
    Served served;
    CHECK_EQUAL(queue.size(), 0);
    for (const auto& [partition, value] : Served{{0, 1}, {2, 2}, {0, 3}, {1, 4}, {0, 5}, {2, 6}})
        CHECK(queue.add(partition, value));
    CHECK_EQUAL(queue.size(), 6);
    const auto visit = [&](std::uint32_t partition, int value) {
        served.emplace_back(partition, value);
        return true;
    };
    CHECK_EQUAL(queue.consume(visit), 6);
    CHECK_EQUAL(queue.size(), 0);
    CHECK_EQUAL(queue.consume(visit), 0);
    CHECK(of_partition(served, 0) == std::vector<int>({1, 3, 5}));
    CHECK(of_partition(served, 1) == std::vector<int>({4}));
    CHECK(of_partition(served, 2) == std::vector<int>({2, 6}));
}

template <class Queue>
void stops_when_it_is_told_to() {
    Queue queue(2, 8, 8);
    std::vector<int> served;
    for (int i = 0; i < 4; ++i) CHECK(queue.add(0, i));
    const auto one = [&](std::uint32_t, int value) {
        served.push_back(value);
        return false;
    };
    for (int i = 1; i <= 4; ++i) {
        CHECK_EQUAL(queue.consume(one), 1);
        CHECK_EQUAL(served.size(), static_cast<std::size_t>(i));
    }
    CHECK_EQUAL(queue.consume(one), 0);
    CHECK(served == std::vector<int>({0, 1, 2, 3}));
}

template <class Queue>
void never_serves_two_of_a_partition_at_once() {
    Queue queue(2, 8, 8);
    Served served;
    int inside = 0;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    CHECK(queue.add(1, 3));
    const auto second_worker = [&](std::uint32_t partition, int value) {
        CHECK_EQUAL(partition, 1u);
        served.emplace_back(partition, value);
        return true;
    };
    const auto first_worker = [&](std::uint32_t partition, int value) {
        CHECK_EQUAL(++inside, 1);
        if (value == 0) queue.consume(second_worker);
        served.emplace_back(partition, value);
        --inside;
        return true;
    };
    while (queue.consume(first_worker) != 0) {}
    CHECK(of_partition(served, 0) == std::vector<int>({0, 1, 2}));
    CHECK(of_partition(served, 1) == std::vector<int>({3}));
}

}  // namespace

TEST("each partition's values are served in order, each once") {
    serves_each_partition_in_order<HybridQueue<int>>();
    serves_each_partition_in_order<PartitionedQueue<int>>();
    serves_each_partition_in_order<SharedQueue<int>>();
}

TEST("a worker that is told to stop leaves the rest to the next call") {
    stops_when_it_is_told_to<HybridQueue<int>>();
    stops_when_it_is_told_to<PartitionedQueue<int>>();
    stops_when_it_is_told_to<SharedQueue<int>>();
}

TEST("while a partition is being served, another worker gets other partitions only") {
    never_serves_two_of_a_partition_at_once<HybridQueue<int>>();
    never_serves_two_of_a_partition_at_once<PartitionedQueue<int>>();
    never_serves_two_of_a_partition_at_once<SharedQueue<int>>();
}

TEST("the hybrid queue serves in the order of arrival if one worker is at it") {
    HybridQueue<int> queue(4, 8, 8);
    std::vector<int> served;
    for (int i = 0; i < 8; ++i) CHECK(queue.add(static_cast<std::uint32_t>(i * 3 % 4), i));
    queue.consume([&](std::uint32_t, int value) {
        served.push_back(value);
        return true;
    });
    CHECK(served == std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST("what another worker claims of an owned partition is served by its owner, before the rest") {
    HybridQueue<int> queue(2, 8, 8);
    std::vector<int> served;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    const auto visit = [&](std::uint32_t, int value) {
        served.push_back(value);
        if (value == 0) {
            CHECK_EQUAL(queue.consume([](std::uint32_t, int) { return true; }), 0);
            CHECK_EQUAL(queue.size(), 0);  // both others are claimed
            CHECK(queue.add(1, 9));
        }
        return true;
    };
    CHECK_EQUAL(queue.consume(visit), 4);
    CHECK(served == std::vector<int>({0, 1, 2, 9}));
}

TEST("claims that an owner leaves behind are served before what nobody has claimed") {
    HybridQueue<int> queue(2, 8, 8);
    std::vector<int> served;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    const auto stop_at_once = [&](std::uint32_t, int value) {
        served.push_back(value);
        if (value == 0) queue.consume([](std::uint32_t, int) { return true; });
        return false;
    };
    CHECK_EQUAL(queue.consume(stop_at_once), 1);
    CHECK_EQUAL(queue.size(), 1);  // the partition, with two claims
    CHECK(queue.add(1, 9));
    CHECK(queue.add(0, 3));
    while (queue.consume(stop_at_once) != 0) {}
    CHECK(served == std::vector<int>({0, 1, 2, 9, 3}));
    CHECK_EQUAL(queue.size(), 0);
}

TEST("a value without room is refused and nothing of it stays behind") {
    HybridQueue<int> narrow(2, 2, 8), full(2, 8, 2);
    for (HybridQueue<int>* queue : {&narrow, &full}) {
        CHECK(queue->add(0, 0));
        CHECK(queue->add(0, 1));
        CHECK(!queue->add(0, 2));
        CHECK_EQUAL(queue->add(1, 2), queue == &narrow);
        std::vector<int> served;
        const auto visit = [&](std::uint32_t, int value) {
            served.push_back(value);
            return true;
        };
        queue->consume(visit);
        CHECK(queue->add(0, 3));
        queue->consume(visit);
        CHECK_EQUAL(served.size(), queue == &narrow ? 4u : 3u);
        CHECK_EQUAL(served.back(), 3);
    }
}

CHECK_MAIN
