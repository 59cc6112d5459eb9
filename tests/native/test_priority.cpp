// The structures of the shipped priority policies: the order of cells, of which none is lost or starves.
#include "callboard/scheduling/priority.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "check.hpp"
#include "stress.hpp"

using namespace callboard;

namespace {

struct TestCell : Cell {
    explicit TestCell(std::uint32_t given_weight = 0) : Cell(nullptr, nullptr, 0) {
        weight = given_weight;
    }

    // As if `handled` messages had taken `nanoseconds` in all.
    TestCell& costing(std::uint64_t nanoseconds, std::uint64_t handled = 1) {
        busy_ns.add(nanoseconds);
        messages.add(handled);
        return *this;
    }

    TestCell& with_waiting(std::int64_t count) {
        if (limits == nullptr) limits = new Limits(INT64_MAX, 0);
        limits->exceed(count);
        return *this;
    }
};

// A worker with a policy: put() and fetch() as the worker's loop calls them.
template <class Ready>
struct Bench : Worker {
    template <class... Options>
    explicit Bench(Options... options) : policy(options...) {
        ready = ready_set(&policy);
    }

    // Puts all, and checks that they come out in the order of `expected`.
    void check_order(std::vector<Cell*> all, std::vector<Cell*> expected) {
        for (Cell* cell : all) put(cell);
        for (Cell* cell : expected) CHECK(fetch() == cell);
        CHECK(fetch() == nullptr);
    }

    // How often others are fetched before `patient`, while each other is put again at once.
    int passes(Cell* patient, std::vector<Cell*> others, int limit = 1'000'000) {
        put(patient);
        for (Cell* cell : others) put(cell);
        for (int count = 0; count < limit; ++count) {
            Cell* cell = fetch();
            if (cell == patient) return count;
            started += 100;
            put(cell);
        }
        return limit;
    }

    Ready policy;
};

struct Fifo {
    void put(Cell* cell) { queue.put(cell); }
    Cell* fetch() { return queue.fetch(); }
    ReadyQueue queue;
};

// Puts and fetches at random; every cell that was put is fetched exactly once, and none waits for
// longer than `bound` fetches.
template <class Ready, class... Options>
void check_conservation(int bound, Options... options) {
    Bench<Ready> bench(options...);
    stress::Random random(7);
    constexpr int count = 40;
    std::vector<std::unique_ptr<TestCell>> cells;
    std::vector<int> waited(count, -1);  // fetches since the put; -1: not ready
    for (int i = 0; i < count; ++i) {
        cells.push_back(std::make_unique<TestCell>(static_cast<std::uint32_t>(i % 4)));
        cells.back()->costing(random.below(2000)).with_waiting(random.below(50));
        cells.back()->number = static_cast<std::uint64_t>(i);
    }
    int ready = 0, longest = 0;
    for (int step = 0; step < 200'000; ++step) {
        bench.started += 100;
        const int i = static_cast<int>(random.below(count));
        if (waited[static_cast<std::size_t>(i)] < 0 && random.below(8) != 0) {
            bench.put(cells[static_cast<std::size_t>(i)].get());
            waited[static_cast<std::size_t>(i)] = 0;
            ++ready;
        } else if (Cell* cell = bench.fetch()) {
            int& its = waited[cell->number];
            CHECK(its >= 0);
            longest = std::max(longest, its);
            its = -1;
            --ready;
            for (int& others : waited) others += others >= 0;
        } else {
            CHECK_EQUAL(ready, 0);
        }
    }
    while (bench.fetch() != nullptr) --ready;
    CHECK_EQUAL(ready, 0);
    if (longest > bound) check::equal(longest, bound, "the longest wait, in fetches", __FILE__, __LINE__);
}

}  // namespace

TEST("a queue gives the cells in the order in which they came") {
    Bench<Fifo> bench;
    TestCell a, b, c;
    bench.check_order({&a, &b, &c}, {&a, &b, &c});
    bench.check_order({&c, &a}, {&c, &a});
}

TEST("a queue gives from its middle and its end without losing the rest") {
    ReadyQueue queue;
    TestCell a, b, c, d;
    for (Cell* cell : {&a, &b, &c}) queue.put(cell);
    CHECK(queue.take_after(&b) == &c);
    queue.put(&d);
    CHECK(queue.take_after(&a) == &b);
    CHECK(queue.take_after(nullptr) == &a);
    CHECK(queue.fetch() == &d);
    CHECK(queue.fetch() == nullptr);
}

TEST("two levels: cells with a weight come first") {
    Bench<TwoLevelReady> bench(16u);
    TestCell low, high(1), higher(5), last;
    bench.check_order({&low, &high, &higher, &last}, {&high, &higher, &low, &last});
}

TEST("two levels: a cell without a weight is passed by as often as the patience says") {
    Bench<TwoLevelReady> bench(5u);
    TestCell low, one(1), two(1);
    CHECK_EQUAL(bench.passes(&low, {&one, &two}), 5);
}

TEST("weighted: the heavier first, and equals in the order in which they came") {
    Bench<WeightedReady> bench(16);
    TestCell none, one(1), two(2), another(2);
    bench.check_order({&none, &one, &two, &another}, {&two, &another, &one, &none});
}

TEST("weighted: a cell is passed by until `ageing` puts made up for each unit of the difference") {
    Bench<WeightedReady> bench(10);
    TestCell light(1), heavy(4);
    CHECK_EQUAL(bench.passes(&light, {&heavy}), 29);
}

TEST("weighted: the largest weight there is delays another, and no longer than it says") {
    Bench<WeightedReady> bench(std::int64_t{2147483647});
    TestCell none, most(4294967295u);
    bench.check_order({&none, &most}, {&most, &none});
}

TEST("shortest first: an unmeasured cell comes first, and then the least mean cost") {
    Bench<ShortestReady> bench(100);
    TestCell slow, quick, fresh;
    slow.costing(9000, 3);
    quick.costing(20000, 20);
    bench.check_order({&slow, &quick, &fresh}, {&fresh, &quick, &slow});
}

TEST("shortest first: a cell waits `patience` times its cost for those that come after it") {
    Bench<ShortestReady> bench(10);
    TestCell slow, quick;
    slow.costing(500);
    quick.costing(100);
    // 100 ns pass with each fetch; quick's deadline reaches slow's after 10 * (500 - 100) ns.
    CHECK_EQUAL(bench.passes(&slow, {&quick}), 40);
}

TEST("shortest first: costs of any size are ordered") {
    Bench<ShortestReady> bench(std::int64_t{2147483647});
    TestCell hours, second;
    hours.costing(std::uint64_t{1} << 62);
    second.costing(1'000'000'000);
    bench.check_order({&hours, &second}, {&second, &hours});
}

TEST("longest queue: the cell with the most messages first, and equals in their order") {
    Bench<LongestReady> bench(16u);
    TestCell a, b, c, uncounted;
    a.with_waiting(1);
    b.with_waiting(7);
    c.with_waiting(7);
    bench.check_order({&uncounted, &a, &b, &c}, {&b, &c, &a, &uncounted});
}

TEST("longest queue: lengths count as they are at the fetch, not at the put") {
    Bench<LongestReady> bench(16u);
    TestCell a, b;
    a.with_waiting(2);
    b.with_waiting(1);
    bench.put(&a);
    bench.put(&b);
    b.with_waiting(5);
    CHECK(bench.fetch() == &b);
}

TEST("longest queue: only the first of the window are looked at") {
    Bench<LongestReady> bench(2u);
    TestCell a, b, far;
    a.with_waiting(1);
    b.with_waiting(2);
    far.with_waiting(9);
    bench.check_order({&a, &b, &far}, {&b, &far, &a});
}

TEST("longest queue: a cell is passed by as often as the window is long") {
    Bench<LongestReady> bench(6u);
    TestCell small, large;
    small.with_waiting(1);
    large.with_waiting(100);
    CHECK_EQUAL(bench.passes(&small, {&large}), 6);
}

TEST("a cell that was put into a policy in Python is never lost, in any order of fetches") {
    TrackedReady tracked;
    std::list<Cell*> model;
    std::vector<std::unique_ptr<TestCell>> cells;
    for (int i = 0; i < 20; ++i) cells.push_back(std::make_unique<TestCell>());
    std::vector<Cell*> outside;
    for (auto& cell : cells) outside.push_back(cell.get());
    stress::Random random(3);
    std::uint64_t passes = 0;
    for (int step = 0; step < 100'000; ++step) {
        if (!outside.empty() && random.below(2) == 0) {
            tracked.put(outside.back());
            model.push_back(outside.back());
            outside.pop_back();
        } else if (!model.empty()) {
            auto chosen = model.begin();
            std::advance(chosen, random.below(static_cast<std::uint32_t>(model.size())));
            passes = chosen == model.begin() ? 0 : passes + 1;
            tracked.take(*chosen);
            outside.push_back(*chosen);
            model.erase(chosen);
        }
        CHECK(tracked.first() == (model.empty() ? nullptr : model.front()));
        CHECK_EQUAL(tracked.count(), model.size());
        CHECK_EQUAL(tracked.passes(), passes);
    }
}

TEST("at random: every policy gives each cell once, and no cell waits for ever") {
    check_conservation<Fifo>(40);
    check_conservation<TwoLevelReady>(40 * 17, 16u);
    check_conservation<WeightedReady>(40 + 3 * 16, 16);
    check_conservation<ShortestReady>(40 + 10 * 2000 / 100, 10);
    check_conservation<LongestReady>(40 * 17, 16u);
}

TEST("the ready sets of two workers, which are made one after the other, share no cache line") {
    CHECK_EQUAL(alignof(ReadyQueue), cache_line);
    CHECK_EQUAL(alignof(TwoLevelReady), cache_line);
    CHECK_EQUAL(alignof(WeightedReady), cache_line);
    CHECK_EQUAL(alignof(ShortestReady), cache_line);
    CHECK_EQUAL(alignof(LongestReady), cache_line);
}

CHECK_MAIN
