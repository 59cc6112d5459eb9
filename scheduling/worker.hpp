// A worker: its ready set, its inbox, and the state that it shares with its team.
//
// Prokesch 2011, section 4.2: workers have disjoint ready sets that only they touch, or a thief; a wake-up that
// concerns another worker's actor travels to that worker as a message (section 4.2.3).
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "callboard/core/memory/stack.hpp"
#include "callboard/core/monitoring/records.hpp"
#include "callboard/core/threads/biased_lock.hpp"
#include "callboard/core/threads/parker.hpp"
#include "callboard/mailbox/delegation.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/forward.hpp"
#include "callboard/scheduling/stealing_trials.hpp"

namespace callboard {

// How long a worker looks for work before it parks: about the cost of a futex wake to both threads.
inline constexpr std::int64_t worker_patience = 15'000;

// A priority policy's two functions. LPEL calls them PUT-READY and FETCH-READY. Only the worker's
// own thread calls them, without the interpreter, or, where the policy lends, a thief within the worker's lock.
struct ReadySet {
    void* state{nullptr};
    void (*put)(void* state, Cell*){nullptr};
    Cell* (*fetch)(void* state){nullptr};  // null: empty
    void (*destroy)(void* state){nullptr};  // with the policy, if it owns the state
    // Flags of the cells that a thief may fetch, while the worker cannot. 0 where fetch is a user's code.
    std::uint32_t lent{0};
    Cell* (*fetch_unpinned)(void* state){nullptr};  // passes others by, where it can; null: none near
};

// The shared state of the workers of one system.
struct TeamState {
    // The interpreter token: its owner runs Python cells; the others delegate theirs to it.
    Delegation<Cell> token;
    // Cells in state waiting, and deferred answers of actors; a system with one of them is not idle.
    alignas(cache_line) Atomic<std::int64_t> waiting{0};
    Atomic<std::uint32_t> stopping{0};
    Atomic<std::uint32_t> draining{0};  // a thread waits on `became_idle`
    Parker became_idle;
    // For workers that take each other's work: see stealing.hpp.
    alignas(cache_line) Atomic<Worker*> watcher{nullptr};
    Atomic<std::uint32_t> sleepers{0};
    TrialLease trial_lease;
    std::vector<Worker*> members;  // all of them, by their index, before the first one runs
};

// A watcher's observation of another worker.
struct Observation {
    std::uint64_t dispatches{0};
    std::int64_t since{0};  // the first look that found waiting cells and that number; 0: no cell waits
    bool crowded{false};    // two or more waited
};

struct Worker {
    // --- other threads write ---------------------------------------------------------------------
    alignas(cache_line) Stack<Cell> inbox;  // cells that they woke
    Atomic<Worker*> stand_in{nullptr};      // while it is suspended: see in_charge()
    Parker parker;
    Atomic<bool> is_asleep{false};  // and one of the team's sleepers

    // --- the worker's thread writes, others read ---------------------------------------------------
    alignas(cache_line) Atomic<std::uint64_t> idles{1};  // begun and ended ones; odd: it is idle
    Atomic<std::uint64_t> current{0};                    // the number of the cell that it dispatches
    // Monotonic ns, now and then. Where messages take long: when the one in work began.
    Atomic<std::int64_t> loop_time{0};
    Counter dispatches;

    // --- the worker's thread, and a thief within `lock` -------------------------------------------
    alignas(cache_line) BiasedLock lock;
    Atomic<std::int64_t> stealable{0};  // ready cells that a thief may take
    Counter handled;                    // messages, ever; of the worker's thread alone, and read by all
    std::int64_t kept_ready{0};         // the other ready cells
    std::int64_t python_ready{0};       // of these, those that want the token
    ReadySet ready;

    // --- the worker's thread alone ----------------------------------------------------------------
    alignas(cache_line) TeamState* team{nullptr};
    bool steals{false};                     // it steals unpinned ready cells of its team, and others steal its own
    bool may_be_robbed{false};              // it had such a cell: from then on it takes its lock
    Worker* victim{nullptr};                // the worker that was seen to have more than it can do
    Worker* robbed{nullptr};                // the last one that it stole from
    Trials trials;                          // whether that is of use
    std::int64_t stole_at{0};               // until it is idle again
    std::int64_t nap_ns{0};                 // how long it sleeps between two looks
    std::vector<Observation> observations;  // by the other workers' numbers
    std::uint32_t index{0};
    void* owner{nullptr};         // the WorkerThread; borrowed
    bool has_token{false};
    bool timed{false};              // measure each dispatch, for a policy or for monitoring
    bool notes_waits{false};        // by the recorder, too
    std::uint32_t quantum{64};      // how many messages a dispatch handles, except in a flood
    bool exact{false};              // no dispatch takes more than the quantum: a replay is the same
    std::uint32_t look_mask{0};     // it looks at the clock after each dispatch, or after each second, or ...
    std::int64_t time_slice_ns{0};  // after this time a dispatch begins no more messages; 0: no limit
    Recorder* recorder{nullptr};    // notes each dispatch, if there is one
    std::int64_t started{0};        // of the dispatch in work: when the last dispatch or wait ended
    Counter busy_ns;                // in dispatches, if timed
    IdleTime idle;                  // without anything to do

    void put(Cell* cell) {
        assert(cell->ready_on.load(relaxed) == nullptr && "a cell is in one ready set");
        cell->ready_on.store(this, relaxed);
        const std::uint32_t flags = cell->flags.load(relaxed);
        if (may_be_robbed || (flags & ready.lent)) return put_locked(cell);
        keep(flags, 1);
        ready.put(ready.state, cell);
    }

    Cell* fetch() {
        if (may_be_robbed) return remove_locked();
        Cell* const cell = ready.fetch(ready.state);
        if (cell == nullptr) return nullptr;
        assert(cell->ready_on.load(relaxed) == this && "a cell is fetched where it was put");
        cell->ready_on.store(nullptr, relaxed);
        keep(cell->flags.load(relaxed), -1);
        return cell;
    }

    // Makes ready the cells that other threads announced or delegated. True if there was anything.
    bool take_in() {
        if (inbox.is_empty() && !(has_token && team->token.has_pending())) return false;
        take_in_all();
        return true;
    }

    // Any thread. A suspended worker's cells become ready at its stand-in, which has a lower index. Their affinity
    // stays: they come back when the worker is resumed. A thread that looked before the worker was suspended
    // may still wake a cell there; the worker hands it on. So nothing depends on when the change is seen.
    Worker* in_charge() {
        Worker* worker = this;
        while (Worker* const other = worker->stand_in.load(acquire)) {
            assert(other->index < worker->index && other->team == worker->team && "so this ends");
            worker = other;
        }
        return worker;
    }

    bool is_suspended() const { return stand_in.load(relaxed) != nullptr; }

    // The worker's thread, when it is suspended. Gives all cells that are ready here, or were delegated to it, to its
    // stand-in. The token is free after that.
    void hand_on() {
        Cell* first = nullptr;
        Cell** last = &first;
        do {
            take_in();
            while (Cell* const cell = fetch()) {
                cell->next = nullptr;
                *last = cell;
                last = &cell->next;
            }
        } while (has_token && !release_token());
        while (first != nullptr) {
            Cell* const following = first->next;
            in_charge()->wake(first);
            first = following;
        }
    }

    // True: the worker has the token, and may run `cell`. False: the cell belongs to the token's owner now.
    bool own_token_or_delegate(Cell* cell) {
        if (!has_token) has_token = team->token.own_or_delegate(cell);
        return has_token;
    }

    // True: the token is free. False: threads delegated cells, which are ready here now.
    bool release_token() {
        assert(has_token);
        if (team->token.try_release()) {
            has_token = false;
            return true;
        }
        take_in();
        return false;
    }

    // Any thread. If the inbox was not empty, the thread that filled it has woken the worker. A busy worker may
    // be busy for long: then others have to look at its inbox. (Sequentially consistent, as are the end of the
    // worker's idle time and its look at the inbox after that. Either the worker sees the cell then, or this thread
    // sees that the worker is busy.)
    void wake(Cell* cell) {
        assert(cell->ready_on.load(relaxed) == nullptr && "a cell is in one place at a time (rule 1)");
        const bool may_move = steals && cell->has(unpinned_cell);  // after the push it is another's
        if (inbox.push(cell, seq_cst)) parker.unpark();
        if (may_move && idles.load(seq_cst) % 2 == 0 && team->sleepers.load(seq_cst) != 0) call();
    }

    void put_all(Cell* cell) {
        while (cell != nullptr) {
            Cell* const following = cell->next;
            put(cell);
            cell = following;
        }
    }

    // A thief, or the worker's thread, within `lock`. An unpinned one, if the policy can pass the others by.
    Cell* remove_unpinned() {
        if (kept_ready == 0) return remove();
        return ready.fetch_unpinned != nullptr ? removed(ready.fetch_unpinned(ready.state)) : nullptr;
    }

    // Its thread.
    bool has_ready() const { return kept_ready + stealable.load(relaxed) != 0; }

    bool is_watching() const { return team->watcher.load(relaxed) == this; }

    // False: the thread that gave the role has taken it back: see call().
    bool give_up_watch() {
        Worker* self = this;
        return team->watcher.compare_exchange_strong(self, nullptr, seq_cst);
    }

    // Rule 3 of stealing.hpp.
    void stop_watching() {
        if (__builtin_expect(!is_watching(), 1) || !give_up_watch()) return;
        if (team->sleepers.load(seq_cst) != 0 && !others_idle()) call();
    }

    bool others_idle() const {
        for (const Worker* other : team->members)
            if (other != this && other->idles.load(seq_cst) % 2 == 0) return false;
        return true;
    }

    // Any thread. Calls a sleeper to look for overdue cells, unless there is a watcher. It calls a throttled one only
    // if there is no other. The role comes first: a sleeper that another thread has woken, and that is busy now, does
    // not get it.
    __attribute__((noinline)) void call() {
        if (team->watcher.load(seq_cst) != nullptr) return;
        const auto count = static_cast<std::uint32_t>(team->members.size());
        for (std::uint32_t step = 1; step < 2 * count; ++step) {
            Worker* const other = team->members[(index + step) % count];
            if (other == this || !other->is_asleep.load(relaxed)) continue;
            if (step < count && other->trials.is_throttled.load(relaxed)) continue;
            Worker* watcher = nullptr;
            if (!team->watcher.compare_exchange_strong(watcher, other, seq_cst)) return;
            if (other->is_asleep.exchange(false, seq_cst)) {
                team->sleepers.fetch_sub(1, relaxed);
                other->parker.unpark();
                return;
            }
            watcher = other;
            team->watcher.compare_exchange_strong(watcher, nullptr, seq_cst);
        }
    }

private:
    void put_locked(Cell* cell) {
        may_be_robbed = true;  // before `stealable` says so, without which no thief comes
        lock.lock();
        count(cell, 1);
        ready.put(ready.state, cell);
        lock.unlock();
        // The put comes after the end of the worker's last idle time: see stealing.hpp, between rules 2 and 4.
        if (stealable.load(relaxed) != 0 && __builtin_expect(team->sleepers.load(seq_cst) != 0, 0)) call();
    }

    Cell* remove_locked() {
        lock.lock();
        Cell* const cell = remove();
        lock.unlock();
        return cell;
    }

    Cell* remove() { return removed(ready.fetch(ready.state)); }

    Cell* removed(Cell* cell) {
        if (cell == nullptr) return nullptr;
        assert(cell->ready_on.load(relaxed) == this && "a cell is fetched where it was put");
        cell->ready_on.store(nullptr, relaxed);
        count(cell, -1);
        return cell;
    }

    void count(const Cell* cell, std::int64_t change) {
        assert(stealable.load(relaxed) >= 0);
        const std::uint32_t flags = cell->flags.load(relaxed);
        if (!(flags & ready.lent)) return keep(flags, change);
        stealable.store(stealable.load(relaxed) + change, release);  // pairs with take_half()
        assert(stealable.load(relaxed) >= 0 && "what is fetched was put");
    }

    void keep(std::uint32_t flags, std::int64_t change) {
        kept_ready += change;
        assert(kept_ready >= 0 && "what is fetched was put");
        if (flags & wants_token) python_ready += change;
        assert(python_ready >= 0 && "what is fetched was put");
    }

    __attribute__((noinline)) void take_in_all() {
        stop_watching();  // before the puts, so that they may call another
        put_all(oldest_first(inbox.take_all()));
        if (has_token && team->token.has_pending()) put_all(team->token.take());
    }
};

}  // namespace callboard
