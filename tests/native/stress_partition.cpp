// Partitions that share a budget of counters, with threads that own them by turns.
#include <memory>
#include <vector>

#include "callboard/frequency/counting/keys.hpp"
#include "callboard/frequency/designs/partition.hpp"
#include "check.hpp"
#include "stress.hpp"

using callboard::Budget;
using callboard::Counters;
using callboard::IntegerKeys;
using Partition = callboard::Partition<IntegerKeys>;

namespace {

// Each thread counts mostly in one partition, so that others have counters which it needs.
void keep_to_the_level(int threads, std::size_t partitions, std::uint32_t capacity, int keys) {
    Budget budget(capacity, partitions);
    std::vector<std::unique_ptr<Partition>> all;
    while (all.size() < partitions) all.push_back(std::make_unique<Partition>(budget, all.size(), 7));
    callboard::Atomic<std::uint64_t> total{0};
    stress::together(threads, [&](int index) {
        stress::Random random(static_cast<std::uint64_t>(index));
        std::uint64_t sum = 0;
        std::uint32_t often = 0, heaviest = 1;
        for (int number = 0; number < keys;) {
            if (number % 256 == 0) {
                often = random.below(static_cast<std::uint32_t>(partitions));
                heaviest = random.below(2) == 0 ? 1 : 1 + random.below(100);
            }
            const std::size_t at = random.below(8) == 0 ? random.below(static_cast<std::uint32_t>(partitions)) : often;
            Partition& partition = *all[at];
            if (partition.try_own()) {
                for (int i = 0; i < 8; ++i, ++number) {
                    std::int64_t key = static_cast<std::int64_t>(at + partitions * random.below(4 * capacity));
                    const std::uint64_t weight = 1 + random.below(heaviest);
                    partition.add(key, partition.counters().hash(key), weight);
                    sum += weight;
                    const std::uint64_t least = partition.counters().least();
                    if (least < budget.level()) check::give_up(__FILE__, __LINE__, "a count is below the level");
                }
                partition.leave();
            } else {
                partition.visit([&](Counters<IntegerKeys>& counters) { number += counters.size() == 0; });
            }
            random.pause();
        }
        total.fetch_add(sum, callboard::relaxed);
    });
    for (std::int64_t looks = 2 * budget.debt(); looks > 0; --looks)
        for (auto& partition : all) partition->visit([](Counters<IntegerKeys>&) {});
    std::uint64_t sum = 0, size = 0;
    for (auto& partition : all) {
        const auto& counters = partition->counters();
        for (const auto slot : counters.above(0)) sum += counters.count_of(slot);
        size += counters.size();
        CHECK(counters.unseen() <= budget.level());
    }
    CHECK(!budget.has_debt());
    CHECK(size <= capacity);
    CHECK(sum <= total.load(callboard::relaxed));
    CHECK(budget.level() <= total.load(callboard::relaxed) / capacity);
}

}  // namespace

TEST("no count falls below the level, whichever thread owns a partition, and in the end the counters are within the budget") {
    for (const std::uint32_t capacity : {3u, 40u, 600u})
        for (const std::size_t partitions : {std::size_t{2}, std::size_t{4}}) {
            keep_to_the_level(2, partitions, capacity, 100000);
            keep_to_the_level(4, partitions, capacity, 50000);
        }
}

CHECK_MAIN
