#include <memory>
#include <vector>

#include "callboard/scheduling/dispatching.hpp"
#include "callboard/scheduling/priority.hpp"
#include "callboard/scheduling/stealing.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// Two workers that share, on one thread. A cell is known by its number.
struct Pair {
    TeamState team;
    Worker busy, idle;
    ReadyQueue queues[2];
    std::vector<std::unique_ptr<Cell>> cells;
    Context context;

    Pair() {
        Worker* const workers[] = {&busy, &idle};
        for (std::uint32_t i = 0; i < 2; ++i) {
            workers[i]->team = &team;
            workers[i]->index = i;
            workers[i]->ready = ready_set(&queues[i]);
        }
        let_steal(team, {&busy, &idle});
        busy.idles.fetch_add(1, relaxed);
        context.worker = &busy;
    }

    Cell* make(std::uint32_t flags = unpinned_cell) {
        cells.push_back(std::make_unique<Cell>(nullptr, nullptr, flags));
        cells.back()->number = cells.size();
        cells.back()->affinity.store(&busy, relaxed);
        return cells.back().get();
    }

    void put(int count, std::uint32_t flags = unpinned_cell) {
        for (int i = 0; i < count; ++i) busy.put(make(flags));
    }

    bool steal_from_busy() {
        idle.victim = &busy;
        return steal(idle);
    }
};

std::vector<std::uint64_t> all_of(Worker& worker) {
    std::vector<std::uint64_t> numbers;
    while (Cell* cell = worker.fetch()) numbers.push_back(cell->number);
    return numbers;
}

// The worker dispatches its next cell, which is ready again.
void dispatch_one(Worker& worker) {
    worker.put(worker.fetch());
    worker.dispatches.add(1);
}

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST("a thief takes the older half, whose affinity stays") {
    Pair pair;
    pair.put(5);
    CHECK(pair.steal_from_busy());
    CHECK(pair.cells[0]->affinity.load(relaxed) == &pair.busy);
    CHECK(all_of(pair.idle) == (Numbers{1, 2, 3}));
    CHECK(all_of(pair.busy) == (Numbers{4, 5}));
}

TEST("a cell with a fixed affinity stays, though a thief passes it") {
    Pair pair;
    pair.put(2, 0);
    pair.put(2);
    CHECK(pair.steal_from_busy());
    CHECK(all_of(pair.idle) == (Numbers{3}));
    CHECK(all_of(pair.busy) == (Numbers{1, 2, 4}));
}

TEST("a policy that cannot pass others by lends nothing while they are there") {
    Pair pair;
    TwoLevelReady levels(16);
    pair.busy.ready = ready_set(&levels);
    pair.put(4);
    pair.put(1, 0);
    CHECK(!pair.steal_from_busy());
    CHECK(all_of(pair.busy) == (Numbers{1, 2, 3, 4, 5}));
    pair.put(4);
    CHECK(pair.steal_from_busy());
    CHECK(all_of(pair.idle) == (Numbers{6, 7}));
}

TEST("a victim of which nothing is to be had does not hide others, and is not asked again at once") {
    Pair pair;
    pair.busy.wake(pair.make(0));
    CHECK(!sees_victim(pair.idle, 1) && sees_victim(pair.idle, 1 + overdue_after));
    CHECK(!steal(pair.idle));
    CHECK(!sees_victim(pair.idle, 2 + overdue_after));
    pair.idle.stole_at = INT64_MAX;  // no time has passed since, though the test may have been held up
    CHECK(!paid_off(pair.idle));
}

TEST("cells that were announced to a busy worker are taken, except those with a fixed affinity") {
    Pair pair;
    Cell* const placed = pair.make(0);
    pair.busy.wake(pair.make());
    pair.busy.wake(placed);
    pair.busy.wake(pair.make());
    CHECK(pair.steal_from_busy());
    CHECK(all_of(pair.idle) == (Numbers{2, 3}));
    CHECK(pair.busy.take_in());
    CHECK(all_of(pair.busy) == (Numbers{1}));
}

TEST("a thief that meets the victim at its ready set goes away") {
    Pair pair;
    pair.put(4);
    pair.busy.lock.lock();
    CHECK(!pair.steal_from_busy());
    pair.busy.lock.unlock();
    CHECK_EQUAL(all_of(pair.busy).size(), 4u);
}

TEST("a policy that does not lend keeps its cells") {
    Pair pair;
    pair.busy.ready.lent = 0;
    pair.put(4);
    CHECK(!sees_victim(pair.idle, 1) && !sees_victim(pair.idle, 1 + overdue_after));
    CHECK(!pair.steal_from_busy());
}

TEST("one cell is worth a theft behind a long dispatch") {
    Pair pair;
    pair.put(1);
    CHECK(!sees_victim(pair.idle, 1));
    CHECK(!sees_victim(pair.idle, overdue_after));
    CHECK(sees_victim(pair.idle, 1 + overdue_after));
    CHECK(pair.idle.victim == &pair.busy);
}

TEST("one cell that its worker comes to is not") {
    Pair pair;
    pair.put(1);
    for (std::int64_t time = 1; time < 10 * overdue_after; time += look_every) {
        CHECK(!sees_victim(pair.idle, time));
        dispatch_one(pair.busy);
    }
}

TEST("a dispatch within another is progress, too") {
    Pair pair;
    pair.put(1);
    Cell outer([](Cell*, Context*, std::uint32_t) { return Outcome::done; }, nullptr, unpinned_cell);
    Cell inner([](Cell*, Context*, std::uint32_t) { return Outcome::done; }, nullptr, unpinned_cell);
    for (std::int64_t time = 1; time < 10 * overdue_after; time += look_every) {
        CHECK(!sees_victim(pair.idle, time));
        dispatch(&inner, &pair.context, &outer);
    }
}

TEST("a worker takes its lock from the first cell on that may be stolen") {
    Pair pair;
    pair.put(2, 0);
    CHECK(pair.busy.fetch() != nullptr);
    CHECK(!pair.busy.may_be_robbed && pair.busy.has_ready());
    CHECK(!pair.steal_from_busy());
    CHECK(pair.busy.fetch() != nullptr && !pair.busy.has_ready());
    pair.put(1);
    CHECK(pair.busy.may_be_robbed && pair.busy.has_ready());
    CHECK(pair.steal_from_busy());
    CHECK(!pair.busy.has_ready());
}

TEST("two cells are, on two looks, though their worker goes on") {
    Pair pair;
    pair.put(2);
    CHECK(!sees_victim(pair.idle, 1));
    dispatch_one(pair.busy);
    CHECK(sees_victim(pair.idle, 1 + look_every));
}

TEST("a thief that had little of it sleeps for longer, and one that had much does not") {
    Pair pair;
    pair.put(4);
    CHECK(pair.steal_from_busy());
    pair.idle.stole_at = INT64_MAX;
    CHECK(!paid_off(pair.idle));
    CHECK_EQUAL(pair.idle.nap_ns, 2 * first_nap);
    CHECK(paid_off(pair.idle));  // that was the last time
    CHECK(pair.steal_from_busy());
    pair.idle.stole_at -= worth_a_theft;
    CHECK(paid_off(pair.idle));
    CHECK_EQUAL(pair.idle.nap_ns, first_nap);
}

TEST("a throttled worker takes only cells that stand still for long") {
    Pair pair;
    pair.idle.trials.is_throttled.store(true, relaxed);
    pair.put(3);
    for (std::int64_t time = 1; time < 2 * overdue_when_throttled; time += overdue_when_throttled / 8) {
        CHECK(!sees_victim(pair.idle, time));
        dispatch_one(pair.busy);
    }
    CHECK(!sees_victim(pair.idle, 3 * overdue_when_throttled));
    CHECK(!sees_victim(pair.idle, 4 * overdue_when_throttled - 1));
    CHECK(sees_victim(pair.idle, 4 * overdue_when_throttled));
}

TEST("unpinned cells are given back to the worker that they were stolen from, and stay there") {
    Pair pair;
    pair.put(4);
    CHECK(pair.steal_from_busy());
    Cell* const placed = pair.make(0);
    placed->affinity.store(&pair.idle, relaxed);
    pair.idle.put(placed);
    pair.cells[0]->affinity.store(&pair.idle, relaxed);
    give_back(pair.idle);
    CHECK(all_of(pair.idle) == (Numbers{5}));
    CHECK(pair.busy.take_in());
    CHECK(all_of(pair.busy) == (Numbers{3, 4, 1, 2}));
    CHECK(pair.cells[0]->affinity.load(relaxed) == &pair.busy);
}

TEST("a throttled worker leaves the role of the watcher to a sleeper that is not throttled, and to no other") {
    Pair pair;
    pair.idle.idles.fetch_add(1, relaxed);
    CHECK(try_watch(pair.idle));
    pair.busy.is_asleep.store(true, relaxed);
    pair.team.sleepers.fetch_add(1, relaxed);
    pass_watch(pair.idle);
    CHECK(pair.idle.is_watching());  // it takes part itself
    pair.idle.trials.is_throttled.store(true, relaxed);
    pair.busy.trials.is_throttled.store(true, relaxed);
    pass_watch(pair.idle);
    CHECK(pair.idle.is_watching());
    pair.busy.trials.is_throttled.store(false, relaxed);
    pass_watch(pair.idle);
    CHECK(pair.team.watcher.load(relaxed) == &pair.busy);
}

TEST("a cell that was announced to an idle worker stays there") {
    Pair pair;
    pair.busy.idles.fetch_add(1, relaxed);
    pair.busy.wake(pair.make());
    CHECK(!sees_victim(pair.idle, 1) && !sees_victim(pair.idle, 1 + overdue_after));
}

TEST("a put calls a sleeper, which watches then, and nobody while somebody watches") {
    Pair pair;
    pair.idle.is_asleep.store(true, relaxed);
    pair.team.sleepers.fetch_add(1, relaxed);
    pair.put(1, 0);
    CHECK(pair.idle.is_asleep.load(relaxed));  // not for what cannot move
    pair.put(1);
    CHECK(!pair.idle.is_asleep.load(relaxed));
    CHECK_EQUAL(pair.team.sleepers.load(relaxed), 0u);
    CHECK(pair.team.watcher.load(relaxed) == &pair.idle);
    CHECK(pair.idle.parker.park(0));  // it was woken
    pair.idle.is_asleep.store(true, relaxed);
    pair.team.sleepers.fetch_add(1, relaxed);
    pair.put(1);
    CHECK(pair.idle.is_asleep.load(relaxed));
}

TEST("announcing an unpinned cell to a busy worker calls a sleeper; announcing one that cannot move does not") {
    Pair pair;
    pair.idle.is_asleep.store(true, relaxed);
    pair.team.sleepers.fetch_add(1, relaxed);
    pair.busy.wake(pair.make(0));
    CHECK(pair.idle.is_asleep.load(relaxed));
    pair.busy.idles.fetch_add(1, relaxed);
    pair.busy.wake(pair.make());
    CHECK(pair.idle.is_asleep.load(relaxed));  // an idle worker will see it itself
    pair.busy.idles.fetch_add(1, relaxed);
    pair.busy.wake(pair.make());
    CHECK(!pair.idle.is_asleep.load(relaxed));
    CHECK(pair.team.watcher.load(relaxed) == &pair.idle);
}

TEST("a watcher that gives up its role beside a busy worker calls another worker") {
    Pair pair;
    CHECK(try_watch(pair.busy));
    pair.idle.is_asleep.store(true, relaxed);
    pair.team.sleepers.fetch_add(1, relaxed);
    pair.busy.stop_watching();
    CHECK(pair.team.watcher.load(relaxed) == nullptr);  // the other one is idle
    pair.idle.idles.fetch_add(1, relaxed);
    CHECK(try_watch(pair.busy));
    pair.busy.stop_watching();
    CHECK(pair.team.watcher.load(relaxed) == &pair.idle);
}

TEST("an unpinned cell runs where its waker runs") {
    Pair pair;
    Cell* const unpinned = pair.make();
    Cell* const placed = pair.make(0);
    for (Cell* cell : {unpinned, placed}) {
        cell->affinity.store(&pair.idle, relaxed);
        make_ready(cell, &pair.context);
    }
    CHECK(all_of(pair.busy) == (Numbers{1}));
    CHECK(pair.idle.take_in());
    CHECK(all_of(pair.idle) == (Numbers{2}));
}

CHECK_MAIN
