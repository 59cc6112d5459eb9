// Stealing: a thief at its victim's ready set, and the rules of stealing.hpp by which no cell waits unseen. The loops
// of workers are not here: each thread does the one step of a worker that the rule is of.
#include "callboard/scheduling/stealing.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

// First in, first out. Whoever is at it while another is, or without being ordered after it, is a data race.
struct ReadyCells {
    Plain<int> put{0}, fetched{0};
    Cell* cells[4]{};

    ReadySet as_set() {
        ReadySet set;
        set.state = this;
        set.put = [](void* state, Cell* cell) {
            auto& self = *static_cast<ReadyCells*>(state);
            self.cells[self.put] = cell;
            self.put = self.put + 1;
        };
        set.fetch = [](void* state) -> Cell* {
            auto& self = *static_cast<ReadyCells*>(state);
            if (self.fetched == self.put) return nullptr;
            Cell* const cell = self.cells[self.fetched];
            self.fetched = self.fetched + 1;
            return cell;
        };
        set.lent = unpinned_cell;
        return set;
    }
};

// Two workers that share, both idle; and unpinned cells, each with what its last dispatch wrote.
struct Pair {
    model::Kernel kernel;
    TeamState team;
    Worker busy, other;
    ReadyCells ready[2];
    Cell cells[2] = {{nullptr, nullptr, unpinned_cell}, {nullptr, nullptr, unpinned_cell}};
    Plain<int> dispatched[2] = {0, 0};

    Pair() {
        Worker* const workers[] = {&busy, &other};
        for (std::uint32_t i = 0; i < 2; ++i) {
            workers[i]->team = &team;
            workers[i]->index = i;
            workers[i]->ready = ready[i].as_set();
            cells[i].number = i;
            cells[i].affinity.store(&busy, relaxed);
        }
        let_steal(team, {&busy, &other});
    }

    // As a worker whose idle time ends.
    void begin_work() { busy.idles.fetch_add(1, seq_cst); }

    bool steal_from_busy() {
        other.victim = &busy;
        return steal(other);
    }

    // The worker's next cell, if it has one.
    void dispatch_one(Worker& worker) {
        Cell* const cell = worker.fetch();
        if (cell == nullptr) return;
        Plain<int>& count = dispatched[cell->number];
        count = count + 1;
    }

    void check_each_was_dispatched(int count) {
        for (Worker* worker : {&busy, &other})
            while (worker->has_ready()) dispatch_one(*worker);
        for (int i = 0; i < count; ++i) CHECK(dispatched[i] == 1);
        CHECK(busy.stealable.load(relaxed) == 0 && other.stealable.load(relaxed) == 0);
    }
};

// As a third worker that has the watch.
void begin_watching(Worker& watcher, TeamState& team) {
    watcher.team = &team;
    watcher.index = 2;
    watcher.steals = true;
    team.members.push_back(&watcher);
    team.watcher.store(&watcher, relaxed);
}

}  // namespace

MODEL("one cell: it is fetched by its worker or by a thief, once") {
    Pair pair;
    together([&] { pair.busy.put(&pair.cells[0]), pair.dispatch_one(pair.busy); },
             [&] { if (pair.steal_from_busy()) pair.dispatch_one(pair.other); });
    pair.check_each_was_dispatched(1);
}

MODEL("one cell: a thief comes after all that its worker did without the lock") {
    Pair pair;
    Cell pinned{nullptr, nullptr, 0};
    together(
        [&] {
            pair.busy.put(&pinned);
            CHECK(pair.busy.fetch() == &pinned);
            pair.busy.put(&pair.cells[0]);
        },
        [&] { if (pair.steal_from_busy()) pair.dispatch_one(pair.other); });
    pair.check_each_was_dispatched(1);
}

MODEL("two cells: each is fetched by its worker or by a thief, once") {
    Pair pair;
    together(
        [&] {
            for (Cell& cell : pair.cells) pair.busy.put(&cell);
            pair.dispatch_one(pair.busy);
        },
        [&] { if (pair.steal_from_busy()) pair.dispatch_one(pair.other); });
    pair.check_each_was_dispatched(2);
}

MODEL("a cell that is announced to a worker is taken in by it or by a thief, once") {
    Pair pair;
    together([&] { pair.busy.wake(&pair.cells[0]); },
             [&] { if (pair.busy.take_in()) pair.dispatch_one(pair.busy); },
             [&] { if (pair.steal_from_busy()) pair.dispatch_one(pair.other); });
    pair.busy.take_in();
    pair.check_each_was_dispatched(1);
}

MODEL("a watcher that goes to sleep sees that another works, or is called by its put") {
    Pair pair;
    pair.team.watcher.store(&pair.other, relaxed);
    together([&] { pair.begin_work(), pair.busy.put(&pair.cells[0]); }, [&] { (void)sleep(pair.other, -1); });
}

MODEL("a worker that begins to work sees an announced cell, or a sleeper is called") {
    Pair pair;
    begin_sleeping(pair.other);
    Plain<int> is_seen{0};
    together(
        [&] {
            pair.begin_work();
            is_seen = !pair.busy.inbox.is_empty();
        },
        [&] { pair.busy.wake(&pair.cells[0]); });
    CHECK(is_seen != 0 || pair.team.watcher.load(relaxed) == &pair.other);
}

MODEL("one gives up the watch, and another begins to work: one of them calls the sleeper") {
    Pair pair;
    Worker watcher;
    begin_watching(watcher, pair.team);
    begin_sleeping(pair.other);
    together([&] { pair.begin_work(), pair.busy.put(&pair.cells[0]); }, [&] { watcher.stop_watching(); });
    CHECK(pair.team.watcher.load(relaxed) == &pair.other);
    CHECK(pair.team.sleepers.load(relaxed) == 0);
}

MODEL("one gives up the watch beside work, and another goes to sleep: that one sees it, or is called") {
    Pair pair;
    Worker watcher;
    begin_watching(watcher, pair.team);
    pair.begin_work();
    Plain<int> is_seen{0};
    together([&] { watcher.stop_watching(); },
             [&] {
                 begin_sleeping(pair.other);
                 is_seen = pair.team.watcher.load(seq_cst) != &watcher;
             });
    CHECK(is_seen != 0 || pair.team.watcher.load(relaxed) == &pair.other);
}

MODEL("two call: one sleeper is called once") {
    Pair pair;
    begin_sleeping(pair.other);
    together([&] { pair.busy.call(); }, [&] { pair.busy.call(); }, [&] { stop_sleeping(pair.other); });
    CHECK(pair.team.sleepers.load(relaxed) == 0 && !pair.other.is_asleep.load(relaxed));
}
