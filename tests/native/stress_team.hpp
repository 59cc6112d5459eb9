// Workers for stress tests: a team whose threads have small caches, and the loop of the runtime's worker, without the
// interpreter.
#pragma once

#include <deque>
#include <vector>

#include "callboard/scheduling/dispatching.hpp"
#include "callboard/scheduling/priority.hpp"
#include "callboard/scheduling/stealing.hpp"
#include "stress.hpp"

namespace stress {

struct ThreadContext : callboard::Context {
    SmallCache small;
};

struct StressTeam {
    explicit StressTeam(int count, bool steals = true, std::uint32_t quantum = 64) {
        std::vector<callboard::Worker*> members;
        for (int i = 0; i < count; ++i) {
            callboard::Worker& worker = workers.emplace_back();
            worker.team = &shared;
            worker.index = static_cast<std::uint32_t>(i);
            worker.quantum = quantum;
            worker.ready = callboard::ready_set(&ready.emplace_back());
            members.push_back(&worker);
        }
        if (steals) callboard::let_steal(shared, members);
    }

    void stop() {
        shared.stopping.store(1, callboard::release);
        for (callboard::Worker& worker : workers) worker.parker.unpark();
    }

    // As WorkerThread.loop_with() and rest(). Calls `after(worker)` after each dispatch.
    template <class After>
    void work(callboard::Worker& worker, const After& after) {
        ThreadContext context;
        context.worker = &worker;
        worker.idles.fetch_add(1, callboard::seq_cst);
        for (;;) {
            const bool stops = shared.stopping.load(callboard::acquire);
            if (worker.is_suspended() && !stops) {
                rest(worker);
                continue;
            }
            callboard::Cell* const cell = worker.fetch();
            if (cell != nullptr) {
                if (cell->has(callboard::wants_token) && !worker.own_token_or_delegate(cell)) continue;
                callboard::dispatch(cell, &context, nullptr);
                after(worker);
                worker.take_in();
                continue;
            }
            if (worker.take_in() || (worker.has_token && !worker.release_token()) || callboard::steal(worker)) continue;
            if (stops && worker.inbox.is_empty()) return;
            worker.idles.fetch_add(1, callboard::release);
            if (!callboard::find_work(&context)) callboard::sleep(worker, -1);
            worker.idles.fetch_add(1, callboard::seq_cst);
        }
    }
    void work(callboard::Worker& worker) {
        work(worker, [](callboard::Worker&) {});
    }

    callboard::TeamState shared;
    std::deque<callboard::Worker> workers;
    std::deque<callboard::ReadyQueue> ready;

private:
    void rest(callboard::Worker& worker) {
        worker.stop_watching();
        worker.hand_on();
        while (worker.is_suspended() && !shared.stopping.load(callboard::acquire)) {
            worker.hand_on();
            worker.idles.fetch_add(1, callboard::seq_cst);
            if (worker.inbox.is_empty()) worker.parker.park();
            worker.idles.fetch_add(1, callboard::seq_cst);
        }
    }
};

}  // namespace stress
