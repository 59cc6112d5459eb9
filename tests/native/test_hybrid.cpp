// The contract of the hybrid queue and of its two baselines, on one thread; a visit that consumes stands
// for a second worker. stress_hybrid.cpp has the threads.
#include <utility>
#include <vector>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "../bench/peers/partitioned_queue.hpp"
#include "../bench/peers/shared_queue.hpp"
#include "check.hpp"

namespace {

using callboard::HybridQueue;
using callboard::PartitionedQueue;
using callboard::SharedQueue;

using Values = std::vector<int>;

void nobody(std::uint32_t, int) { CHECK(!"there is nothing to serve"); }

template <class Queue>
void serves_each_partition_in_order() {
    Queue queue(3, 8);
    std::vector<Values> served(3);
    CHECK_EQUAL(queue.waiting(), 0);
    for (const auto& [partition, value] :
         std::vector<std::pair<std::uint32_t, int>>{{0, 1}, {2, 2}, {0, 3}, {1, 4}, {0, 5}, {2, 6}})
        CHECK(queue.add(partition, value));
    CHECK_EQUAL(queue.waiting(), 6);
    const auto visit = [&](std::uint32_t partition, int value) { served[partition].push_back(value); };
    while (queue.consume_one(visit)) {}
    CHECK_EQUAL(queue.waiting(), 0);
    CHECK(!queue.consume_one(nobody));
    CHECK(served[0] == Values({1, 3, 5}));
    CHECK(served[1] == Values({4}));
    CHECK(served[2] == Values({2, 6}));
}

template <class Queue>
void serves_no_more_than_it_is_told_to() {
    Queue queue(2, 8);
    Values served;
    for (int i = 0; i < 4; ++i) CHECK(queue.add(0, i));
    for (std::size_t i = 1; i <= 4; ++i) {
        CHECK(queue.consume_one([&](std::uint32_t, int value) { served.push_back(value); }, 1));
        CHECK_EQUAL(served.size(), i);
    }
    CHECK(!queue.consume_one(nobody));
    CHECK(served == Values({0, 1, 2, 3}));
}

template <class Queue>
void never_serves_two_of_a_partition_at_once() {
    Queue queue(2, 8);
    std::vector<Values> served(2);
    int inside = 0;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    CHECK(queue.add(1, 3));
    const auto second_worker = [&](std::uint32_t partition, int value) {
        CHECK_EQUAL(partition, 1u);
        served[partition].push_back(value);
    };
    const auto first_worker = [&](std::uint32_t partition, int value) {
        CHECK_EQUAL(++inside, 1);
        if (value == 0) while (queue.consume_one(second_worker)) {}
        served[partition].push_back(value);
        --inside;
    };
    while (queue.consume_one(first_worker)) {}
    CHECK(served[0] == Values({0, 1, 2}));
    CHECK(served[1] == Values({3}));
}

}  // namespace

TEST("each partition's values are served in order, each once") {
    serves_each_partition_in_order<HybridQueue<int>>();
    serves_each_partition_in_order<PartitionedQueue<int>>();
    serves_each_partition_in_order<SharedQueue<int>>();
}

TEST("a worker serves no more values of a partition than it is told to") {
    serves_no_more_than_it_is_told_to<HybridQueue<int>>();
    serves_no_more_than_it_is_told_to<PartitionedQueue<int>>();
    serves_no_more_than_it_is_told_to<SharedQueue<int>>();
}

TEST("while a partition is being served, another worker gets other partitions only") {
    never_serves_two_of_a_partition_at_once<HybridQueue<int>>();
    never_serves_two_of_a_partition_at_once<PartitionedQueue<int>>();
    never_serves_two_of_a_partition_at_once<SharedQueue<int>>();
}

TEST("one worker alone serves the hybrid queue in the order of arrival") {
    HybridQueue<int> queue(4, 2);
    Values served;
    for (int i = 0; i < 8; ++i) CHECK(queue.add(static_cast<std::uint32_t>(i * 3 % 4), i));
    while (queue.consume_one([&](std::uint32_t, int value) { served.push_back(value); })) {}
    CHECK(served == Values({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST("a worker serves partitions of its home first, and of other homes when its own is empty") {
    HybridQueue<int> queue(4, 2, 2);
    Values served;
    const auto visit = [&](std::uint32_t partition, int) { served.push_back(static_cast<int>(partition)); };
    for (const std::uint32_t partition : {0u, 1u, 2u, 3u, 1u}) CHECK(queue.add(partition, 0));
    CHECK_EQUAL(queue.waiting(), 5);
    for (int i = 0; i < 2; ++i) CHECK(queue.consume_one(visit, 16, 1));
    for (int i = 0; i < 3; ++i) CHECK(queue.consume_one(visit, 16, 2));  // at home where worker 0 is
    CHECK(served == Values({1, 3, 0, 2, 1}));
    CHECK_EQUAL(queue.waiting(), 0);
    CHECK(!queue.consume_one(nobody, 16, 1));
}

TEST("however many workers there are, a partition's values find room, and are served") {
    for (const std::uint32_t workers : {1u, 3u, 64u}) {
        HybridQueue<int> queue(5, 4, workers);
        int served = 0;
        for (std::uint32_t partition = 0; partition < 5; ++partition)
            for (int i = 0; i < 4; ++i) CHECK(queue.add(partition, i));
        CHECK(!queue.add(0, 4));
        while (queue.consume_one([&](std::uint32_t, int) { ++served; }, 16, workers - 1)) {}
        CHECK_EQUAL(served, 20);
    }
}

TEST("the owner of a partition serves at once the value that another worker takes from it") {
    HybridQueue<int> queue(2, 8);
    Values served;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    const auto visit = [&](std::uint32_t, int value) {
        served.push_back(value);
        if (value != 0) return;
        CHECK(queue.consume_one(nobody));
        CHECK(queue.consume_one(nobody));
        CHECK(!queue.consume_one(nobody));
        CHECK_EQUAL(queue.waiting(), 0);
    };
    CHECK(queue.consume_one(visit));
    CHECK(served == Values({0, 1, 2}));
    CHECK(!queue.consume_one(nobody));
}

TEST("the rest of an owner's values is served before values without a reservation") {
    HybridQueue<int> queue(2, 8);
    Values served;
    for (int i = 0; i < 3; ++i) CHECK(queue.add(0, i));
    const auto visit = [&](std::uint32_t, int value) {
        served.push_back(value);
        if (value == 0) while (queue.consume_one(nobody)) {}
    };
    CHECK(queue.consume_one(visit, 1));
    CHECK_EQUAL(queue.waiting(), 1);  // the partition, with two values due
    CHECK(queue.add(1, 9));
    CHECK(queue.add(0, 3));
    while (queue.consume_one(visit, 1)) {}
    CHECK(served == Values({0, 1, 2, 9, 3}));
    CHECK_EQUAL(queue.waiting(), 0);
}

TEST("a partition without room refuses, the others do not, and nothing of the refused stays behind") {
    HybridQueue<int> queue(2, 2);
    Values served;
    const auto visit = [&](std::uint32_t, int value) { served.push_back(value); };
    CHECK(queue.add(0, 0));
    CHECK(queue.add(0, 1));
    CHECK(!queue.add(0, 2));
    CHECK(queue.add(1, 3));
    CHECK(queue.add(1, 4));
    while (queue.consume_one(visit)) {}
    CHECK(queue.add(0, 5));
    while (queue.consume_one(visit)) {}
    CHECK(served == Values({0, 1, 3, 4, 5}));
}

CHECK_MAIN
