// Partitions that share a budget of counters: invariants after each step, and the order of service.
#include "callboard/frequency/designs/partition.hpp"

#include <memory>
#include <vector>

#include "callboard/frequency/counting/keys.hpp"
#include "check.hpp"
#include "stress.hpp"

using callboard::Budget;
using callboard::Counters;
using callboard::IntegerKeys;
using callboard::Partition;

namespace {

class Shared {
public:
    Shared(std::uint32_t counters, std::size_t partitions) : budget(counters, partitions), counters_(counters) {
        for (std::size_t at = 0; at < partitions; ++at)
            partitions_.push_back(std::make_unique<Partition<IntegerKeys>>(budget, at, 7));
    }

    Partition<IntegerKeys>& operator[](std::size_t at) { return *partitions_[at]; }

    void count(std::size_t at, std::int64_t key, std::uint64_t weight) {
        Partition<IntegerKeys>& partition = *partitions_[at];
        CHECK(partition.try_own());
        total_ += weight;
        partition.add(key, partition.counters().hash(key), weight);
        partition.leave();
    }

    void visit_all() {
        for (auto& partition : partitions_) partition->visit([](Counters<IntegerKeys>&) {});
    }

    // What budget.hpp argues with.
    void check() {
        std::uint64_t sum = 0, size = 0;
        for (auto& partition : partitions_) {
            const Counters<IntegerKeys>& counters = partition->counters();
            CHECK(counters.unseen() <= budget.level());
            size += counters.size();
            for (const auto slot : counters.above(0)) {
                sum += counters.count_of(slot);
                CHECK(counters.count_of(slot) >= budget.level());
                CHECK(counters.error_of(slot) <= budget.level());
            }
        }
        const std::uint64_t debt = budget.has_debt() ? static_cast<std::uint64_t>(budget.debt()) : 0;
        CHECK(size <= counters_ + debt);
        CHECK(sum <= total_ + debt * budget.level());
        CHECK(budget.level() <= total_ / counters_);
    }

    Budget budget;

private:
    const std::uint32_t counters_;
    std::uint64_t total_{0};
    std::vector<std::unique_ptr<Partition<IntegerKeys>>> partitions_;
};

}  // namespace

TEST("no count is below the level, and the level is not above the bound, wherever the next key comes") {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        stress::Random random(seed);
        const std::uint32_t counters = 1 + random.below(12), partitions = 1u << random.below(3);
        Shared shared(counters, partitions);
        std::uint32_t often = 0, heaviest = 1;
        for (int step = 0; step < 1000; ++step) {
            if (random.below(100) == 0) {  // another part of the stream
                often = random.below(partitions);
                heaviest = random.below(2) == 0 ? 1 : 1 + random.below(1000);
            }
            const std::uint32_t at = random.below(16) == 0 ? random.below(partitions) : often;
            shared.count(at, at + partitions * random.below(60), 1 + random.below(heaviest));
            shared.check();
            if (random.below(30) == 0) shared.visit_all();
        }
        for (std::int64_t looks = 2 * shared.budget.debt(); looks > 0; --looks) shared.visit_all();
        CHECK(!shared.budget.has_debt());
        shared.check();
    }
}

TEST("a partition that needs a counter gets one at once, and the least of all is given up after a look at all") {
    Shared shared(2, 2);
    shared.count(0, 0, 5);
    shared.count(1, 1, 3);
    shared.count(0, 2, 1);  // the least is the other's
    CHECK_EQUAL(shared.budget.debt(), 1);
    CHECK_EQUAL(shared[0].counters().size(), 2u);
    shared.visit_all();
    CHECK_EQUAL(shared.budget.level(), 1u);  // the new one's count
    shared.count(0, 0, 1);
    CHECK_EQUAL(shared.budget.debt(), 0);
    CHECK_EQUAL(shared[0].counters().size(), 1u);
    CHECK_EQUAL(shared[1].counters().size(), 1u);
    shared.check();
}

TEST("a partition without keys keeps nobody from taking over") {
    Shared shared(2, 4);
    for (std::int64_t key = 0; key < 40; key += 4) shared.count(0, key, 1);
    for (int looks = 0; looks < 20; ++looks) shared.visit_all();
    CHECK_EQUAL(shared.budget.debt(), 0);
    for (std::int64_t key = 40; key < 80; key += 4) shared.count(0, key, 1);
    CHECK_EQUAL(shared.budget.debt(), 0);
    shared.check();
}

CHECK_MAIN
