// Work stealing: an idle worker takes half of the work that is overdue at another.
//
// An unpinned cell becomes ready where its waker runs (make_ready), so cells that exchange messages come together
// without a plan. Independent cells spread, because idle workers take them. Idle workers do all of this work. A busy
// worker pays for it with a lock of two plain stores (core/threads/biased_lock.hpp), and a load of one word after a
// put.
//
// Taking a cell that its worker would have dispatched in a moment costs both workers more than it saves, because the
// cell's mailbox, its state and its partners are in the other worker's caches. So a thief takes only overdue cells:
// some of two or more cells that two looks found, or cells behind a long dispatch. A theft may keep the thief busy
// for less than it cost both workers. Then the thief sleeps before the next theft, each time for longer: many cells
// with little work are best left where they are. A stolen cell keeps its affinity: it moves for good when a worker
// wakes it. Cells that keep a thief busy, but make its team slower, are given back, and the thief's stealing is
// throttled for a while: see stealing_trials.hpp. A throttled worker takes only cells that stand still behind a
// dispatch of a millisecond.
//
// At most one worker of a team watches the others; it keeps that role while it naps between looks. Rules:
//   1. An idle worker takes the role if it is free, looks for as long as a worker does before it sleeps, then
//      naps, each time for longer. Without the role it sleeps, as one of the `sleepers`.
//   2. A watcher that has napped, and finds all others idle, gives the role up and sleeps as well.
//   3. A watcher that is about to take cells, stolen or announced, gives the role up before it puts them. If
//      others are busy, it calls one of the sleepers to take the role over.
//   4. A worker puts a cell that can be stolen, and looks for sleepers and a watcher. If there are sleepers and
//      no watcher, it calls a sleeper: it makes that one the watcher and wakes it (Worker::call()).
//   5. So does a thread that announces such a cell to a busy worker, from outside of the team (Worker::wake()).
//   6. A throttled worker leaves the role to a sleeper that is not throttled, if there is one.
// So a cell that waits behind a long dispatch is seen: by the watcher, within a nap or two; without a watcher,
// by the sleeper that the put calls. Why no cell falls between these rules. A worker that gives up the role says
// so (by rule 2 also that it sleeps), and then looks whether all others are idle. A worker that begins to work
// counts its idle time as ended, and then, after a put, looks at the role and at the sleepers. All of these are
// sequentially consistent, so one of the two sees the other. To be safe, sleepers look again now and then while
// any other works.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

// Nanoseconds.
inline constexpr std::int64_t look_every = 1'000;  // each look pulls a line out of another core's cache
inline constexpr std::int64_t overdue_after = 10'000;  // in one dispatch, before others take the worker's cells
inline constexpr std::int64_t overdue_when_throttled = 1'000'000;  // the same, for a throttled thief
inline constexpr std::int64_t worth_a_theft = 20'000;  // of work: about ten times the cost of a theft
inline constexpr std::int64_t first_nap = 50'000;
inline constexpr std::int64_t longest_nap = 4'000'000;
inline constexpr std::int64_t longest_sleep = 50'000'000;  // beside workers that are busy

inline constexpr std::int64_t most_stolen = 128;  // at a time: the victim may want its lock

// Lets these workers take each other's work. Before the first of them runs.
inline void let_steal(TeamState& team, const std::vector<Worker*>& members) {
    team.members = members;
    for (Worker* worker : members) {
        assert(!worker->steals && worker->index < members.size() && members[worker->index] == worker);
        worker->lock.prepare();
        worker->steals = true;
        worker->nap_ns = first_nap;
        worker->observations.resize(members.size());
    }
}

inline bool try_watch(Worker& worker) {
    Worker* watcher = worker.team->watcher.load(relaxed);
    if (watcher == &worker) return true;
    if (watcher != nullptr || !worker.team->watcher.compare_exchange_strong(watcher, &worker, relaxed)) return false;
    for (Observation& seen : worker.observations) seen = {};
    return true;
}

// Whether cells are overdue at another worker, which is the victim then.
inline bool sees_victim(Worker& worker, std::int64_t now) {
    const TeamState& team = *worker.team;
    for (std::uint32_t step = 1; step < team.members.size(); ++step) {
        const std::uint32_t number = static_cast<std::uint32_t>((worker.index + step) % team.members.size());
        Worker& other = *team.members[number];
        assert(&other != &worker);
        Observation& seen = worker.observations[number];
        const std::int64_t ready = other.stealable.load(relaxed);
        assert(ready >= 0);
        if (ready == 0 && (other.inbox.is_empty() || other.idles.load(relaxed) % 2 == 1)) {
            seen.since = 0;
            continue;
        }
        const std::uint64_t dispatches = other.dispatches.get();
        const bool is_throttled = worker.trials.is_throttled.load(relaxed);
        const bool crowded = ready > 1 && !is_throttled;
        if (seen.since == 0 || dispatches != seen.dispatches) {
            const bool twice = seen.since != 0 && seen.crowded && crowded;
            seen = {dispatches, now, crowded};
            if (!twice) continue;
        } else if (now - seen.since < (is_throttled ? overdue_when_throttled : overdue_after)) {
            continue;
        }
        worker.victim = &other;
        return true;
    }
    return false;
}

// Whether the last theft paid off, when its thief is idle again.
inline bool paid_off(Worker& worker) {
    if (worker.stole_at == 0) return true;
    const bool paid = monotonic_ns() - worker.stole_at >= worth_a_theft;
    worker.stole_at = 0;
    worker.nap_ns = paid ? first_nap : std::min(2 * worker.nap_ns, longest_nap);
    assert(worker.nap_ns <= longest_nap);
    return paid;
}

// The worker's thread. Sends its unpinned ready cells to the worker of their affinity, or if that is this worker, to
// the last one that it stole from. False: its policy does not give up all of them.
inline bool give_back(Worker& worker) {
    while (worker.stealable.load(relaxed) != 0) {
        worker.lock.lock();
        Cell* const cell = worker.remove_unpinned();
        worker.lock.unlock();
        if (cell == nullptr) return false;
        assert(worker.robbed != nullptr && worker.robbed != &worker && "what is stealable here was stolen");
        if (cell->affinity.load(relaxed) == &worker) cell->affinity.store(worker.robbed, relaxed);
        cell->affinity.load(relaxed)->wake(cell);
    }
    return true;
}

// The worker's thread, now and then: decides whether its stealing is throttled.
inline void consider_stealing(Worker& worker, std::int64_t now) {
    Trials& trials = worker.trials;
    if (__builtin_expect(!trials.is_due(now), 1) || worker.team->stopping.load(relaxed) != 0) return;
    assert(worker.robbed != nullptr && "trials begin with a theft");
    const Worker& robbed = *worker.robbed;
    const std::uint64_t idles = robbed.idles.load(relaxed) + (std::uint64_t{robbed.index} << 48);
    TeamCounts counts{0, worker.handled.get(), idles, robbed.trials.is_throttled.load(relaxed)};
    for (const Worker* member : worker.team->members) counts.handled += member->handled.get();
    const bool was_throttled = trials.is_throttled.load(relaxed);
    TrialLease& lease = worker.team->trial_lease;
    if (trials.consider(now, counts, lease) && !give_back(worker)) trials.steal_freely(now, lease);
    if (trials.is_throttled.load(relaxed) != was_throttled) worker.nap_ns = first_nap;
}

// A throttled worker leaves the role of the watcher to a sleeper that is not.
inline void pass_watch(Worker& worker) {
    if (!worker.trials.is_throttled.load(relaxed) || !worker.is_watching()) return;
    for (const Worker* member : worker.team->members) {
        if (!member->is_asleep.load(relaxed) || member->trials.is_throttled.load(relaxed)) continue;
        worker.stop_watching();
        return;
    }
}

// An idle worker looks for work. True: a thread announced an actor, or the end, or there is a victim.
inline bool find_work(Context* context) {
    Worker& worker = *context->worker;
    const auto announced = [&worker] {
        return !worker.inbox.is_empty() || worker.team->stopping.load(relaxed) != 0;
    };
    const bool may_look = paid_off(worker);
    if (worker.steals) {
        consider_stealing(worker, monotonic_ns());
        pass_watch(worker);
    }
    if (!worker.steals || !try_watch(worker) || !may_look)
        return context->spinner.wait_until(announced, worker_patience);
    std::uint32_t looks = 0;
    std::int64_t next_look = 0;
    return context->spinner.wait_until([&] {
        if (announced()) return true;
        if (looks++ % 16 != 0) return false;
        const std::int64_t now = monotonic_ns();
        if (now < next_look) return false;
        next_look = now + look_every;
        return sees_victim(worker, now);
    }, worker_patience);
}

// From here on others may call it. Comes before the worker's last look whether they are idle.
inline void begin_sleeping(Worker& worker) {
    assert(!worker.is_asleep.load(relaxed) && "a worker sleeps once");
    worker.is_asleep.store(true, relaxed);
    worker.team->sleepers.fetch_add(1, seq_cst);
}

inline void stop_sleeping(Worker& worker) {
    if (worker.is_asleep.load(relaxed) && worker.is_asleep.exchange(false, relaxed))
        worker.team->sleepers.fetch_sub(1, relaxed);
}

// For a worker that found nothing. Sleeps until it is woken, for `nanoseconds` at most unless that is negative.
// False: it slept for that long. True: it is to look again.
inline bool sleep(Worker& worker, std::int64_t nanoseconds) {
    if (!worker.steals) return worker.parker.park(nanoseconds);
    TeamState& team = *worker.team;
    const auto park = [&](std::int64_t limit) {
        const bool is_short = nanoseconds < 0 || limit < nanoseconds;
        return worker.parker.park(is_short ? limit : nanoseconds) || is_short;
    };
    if (worker.is_watching()) {
        const std::int64_t nap = worker.nap_ns;
        assert(nap > 0 && nap <= longest_nap);
        worker.nap_ns = std::min(2 * nap, longest_nap);
        if (worker.parker.park(nap) || !worker.others_idle()) return true;
        worker.give_up_watch();
    }
    begin_sleeping(worker);
    bool again = true;
    if (worker.others_idle()) {
        again = worker.parker.park(nanoseconds);
    } else if (Worker* const watcher = team.watcher.load(seq_cst)) {
        // Rule 6, for a watcher that naps.
        const bool is_throttled = worker.trials.is_throttled.load(relaxed);
        if (!is_throttled && watcher->trials.is_throttled.load(relaxed)) watcher->parker.unpark();
        again = park(longest_sleep);
    }
    stop_sleeping(worker);
    return again;
}

// Takes the unpinned cells that were announced to a busy worker, the newest first. Announces the others again.
inline Cell* take_announced(Worker& victim) {
    Cell *taken = nullptr, *following = nullptr;
    for (Cell* cell = oldest_first(victim.inbox.take_all()); cell != nullptr; cell = following) {
        following = cell->next;
        if (!cell->has(unpinned_cell)) {
            victim.wake(cell);
            continue;
        }
        cell->next = taken;
        taken = cell;
    }
    return taken;
}

// Takes half of the unpinned ready cells, the newest first.
inline Cell* take_half(Worker& victim) {
    // Acquire pairs with Worker::count(): the victim's actions without its lock are over.
    if (victim.stealable.load(acquire) == 0 || !victim.lock.try_visit()) return nullptr;
    Cell* taken = nullptr;
    for (auto wanted = std::min((victim.stealable.load(relaxed) + 1) / 2, most_stolen); wanted > 0; --wanted) {
        Cell* const cell = victim.remove_unpinned();
        if (cell == nullptr) break;
        cell->next = taken;
        taken = cell;
    }
    victim.lock.leave();
    return taken;
}

// The thread of an idle worker. Takes cells from its victim. True: the worker has a cell now. False: there is no
// victim, or nothing to take from it; then the worker naps before it looks again.
inline bool steal(Worker& worker) {
    Worker* const victim = std::exchange(worker.victim, nullptr);
    if (victim == nullptr) return false;
    assert(victim != &worker && victim->team == worker.team && "an idle worker steals from another");
    worker.stole_at = monotonic_ns();
    Cell* taken = take_half(*victim);
    if (taken == nullptr) taken = take_announced(*victim);
    if (taken == nullptr) {
        worker.observations[victim->index] = {};
        return false;
    }
    worker.robbed = victim;
    worker.trials.note_theft(worker.stole_at);
    worker.stop_watching();
    worker.put_all(oldest_first(taken));
    return true;
}

}  // namespace callboard
