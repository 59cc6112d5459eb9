// The benchmarks as CAF actors: event-based, each with its own state, on CAF's work-stealing
// scheduler with WORKERS threads. Usage: caf BENCHMARK SIZE [WORKERS]; prints one line of JSON.

#include <caf/all.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "result.hpp"

using namespace caf;
using std::int64_t;

// Calls `begin` and waits for `answers` numbers to come back to `self`; their sum is the result.
template <class Begin>
Result timed(scoped_actor& self, int64_t operations, int64_t want, int answers, Begin begin) {
    int64_t got = 0;
    auto start = std::chrono::steady_clock::now();
    begin();
    for (int i = 0; i < answers; ++i) self->receive([&](int64_t answer) { got += answer; });
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {operations, seconds.count(), got, want};
}

struct peers_state {
    std::vector<actor> peers;  // whom this actor sends to; told before the run
    int64_t sent = 0, got = 0, total = 0;
};
using peer = stateful_actor<peers_state>;

// Passes a falling number round; whoever gets the 0 reports its place.
behavior player(peer* self, int64_t place, const actor& report) {
    return {
        [=](put_atom, const actor& next) { self->state.peers.push_back(next); },
        [=](int64_t left) {
            if (left > 0) self->send(self->state.peers[0], left - 1);
            else self->send(report, place);
        },
    };
}

Result ring(scoped_actor& self, int64_t n, int64_t size, int rings = 1) {
    std::vector<actor> starts;
    for (int r = 0; r < rings; ++r) {
        std::vector<actor> players;
        for (int64_t place = 1; place <= size; ++place)
            players.push_back(self->spawn(player, place, actor_cast<actor>(self)));
        for (int64_t i = 0; i < size; ++i)
            self->send(players[i], put_atom_v, players[(i + 1) % size]);
        starts.push_back(players[0]);
    }
    return timed(self, n * rings, rings * (n % size + 1), rings, [&] {
        for (auto& start : starts) self->send(start, n);
    });
}

// Adds what it is told, and reports the sum when asked.
behavior counter(peer* self, const actor& report) {
    return {
        [=](int64_t value) { self->state.total += value; },
        [=](get_atom) { self->send(report, self->state.total); },
    };
}

// Tells the numbers below n to the counters in turn.
behavior producer(event_based_actor* self, const std::vector<actor>& counters) {
    return {[=](int64_t n) {
        std::size_t at = 0;
        for (int64_t i = 0; i < n; ++i) {
            self->send(counters[at], i);
            if (++at == counters.size()) at = 0;
        }
        for (auto& each : counters) self->send(each, get_atom_v);
    }};
}

Result fan_out(scoped_actor& self, int64_t n, int count) {
    std::vector<actor> counters;
    for (int i = 0; i < count; ++i)
        counters.push_back(self->spawn(counter, actor_cast<actor>(self)));
    auto source = self->spawn(producer, counters);
    return timed(self, n, n * (n - 1) / 2, count, [&] { self->send(source, n); });
}

struct tally {
    std::atomic<int64_t> open, total;
};

// Counts its one message and is gone; the last one reports.
behavior child(event_based_actor* self, tally* tally, const actor& report) {
    return {[=](int64_t value) {
        tally->total += value;
        if (--tally->open == 0) self->send(report, tally->total.load());
        self->quit();
    }};
}

behavior parent(event_based_actor* self, tally* tally, const actor& report) {
    return {[=](int64_t n) {
        for (int64_t i = 0; i < n; ++i) self->send(self->spawn(child, tally, report), i);
    }};
}

Result create(scoped_actor& self, int64_t n) {
    tally counts{{n}, {0}};
    auto source = self->spawn(parent, &counts, actor_cast<actor>(self));
    return timed(self, n, n * (n - 1) / 2, 1, [&] { self->send(source, n); });
}

behavior stage(event_based_actor* self, const actor& next) {
    return {[=](int64_t value) { self->send(next, value + 1); }};
}

// Closes the line of stages: keeps 1,024 items on their way and checks those that arrive.
behavior ends(peer* self, int64_t n, int64_t stages, const actor& report) {
    return {
        [=](put_atom, const actor& first) { self->state.peers.push_back(first); },
        [=](int64_t value) {
            auto& state = self->state;
            int64_t chunk = 1;
            if (value < 0) chunk = 1024;
            else state.total += value == state.got++ + stages;
            for (; chunk > 0 && state.sent < n; --chunk) self->send(state.peers[0], state.sent++);
            if (state.got == n) self->send(report, state.total);
        },
    };
}

Result pipeline(scoped_actor& self, int64_t n, int64_t stages) {
    auto last = self->spawn(ends, n, stages, actor_cast<actor>(self));
    auto first = last;
    for (int64_t i = 0; i < stages; ++i) first = self->spawn(stage, first);
    self->send(last, put_atom_v, first);
    return timed(self, n * stages, n, 1, [&] { self->send(last, int64_t{-1}); });
}

// Pings random others, one at a time; a ping carries its sender's number, and a pong is -1.
behavior chatter(peer* self, int64_t number, int64_t n, const actor& report) {
    self->state.total = number;  // the random state
    auto ping = [=] {
        auto& state = self->state;
        int64_t others = static_cast<int64_t>(state.peers.size()) - 1;
        state.total = (state.total * 1103515245 + 12345) & 0x7fffffff;
        auto other = (number + 1 + (state.total >> 8) % others) % (others + 1);
        self->send(state.peers[other], number);
    };
    return {
        [=](put_atom, const actor& next) { self->state.peers.push_back(next); },
        [=](int64_t from) {
            auto& state = self->state;
            if (from >= 0) ++state.got, self->send(state.peers[from], int64_t{-1});
            else if (state.sent++ < n) ping();
            else self->send(report, int64_t{0});
        },
        [=](get_atom) { self->send(report, self->state.got); },
    };
}

Result big(scoped_actor& self, int64_t n, int64_t count) {
    std::vector<actor> chatters;
    for (int64_t i = 0; i < count; ++i)
        chatters.push_back(self->spawn(chatter, i, n, actor_cast<actor>(self)));
    for (auto& each : chatters)
        for (auto& other : chatters) self->send(each, put_atom_v, other);
    auto result = timed(self, 2 * n * count, n * count, count, [&] {
        for (auto& each : chatters) self->send(each, int64_t{-1});
    });
    result.got = timed(self, 0, 0, count, [&] {
        for (auto& each : chatters) self->send(each, get_atom_v);
    }).got;
    return result;
}

struct transfer { int64_t payer, payee, amount; };

struct bank {
    std::vector<actor> accounts;  // complete before the first message
    std::vector<transfer> orders;
    actor teller;
};

struct account_state {
    std::deque<transfer> later;
    bool paying = false;
    int64_t balance = 0;
};

// Pays one transfer at a time, and keeps what it is told meanwhile for later.
behavior account(stateful_actor<account_state>* self, int64_t number, const bank* bank, const actor& report) {
    auto pay = [=](const transfer& t) {
        self->state.paying = true;
        self->state.balance -= t.amount;
        self->send(bank->accounts[t.payee], add_atom_v, number, t.amount);
    };
    return {
        [=](put_atom, int64_t payee, int64_t amount) {
            transfer t{number, payee, amount};
            if (self->state.paying) self->state.later.push_back(t);
            else pay(t);
        },
        [=](add_atom, int64_t payer, int64_t amount) {
            self->state.balance += amount;
            self->send(bank->accounts[payer], ok_atom_v);
        },
        [=](ok_atom) {
            auto& state = self->state;
            state.paying = false;
            self->send(bank->teller, ok_atom_v);
            if (state.later.empty()) return;
            auto first = state.later.front();
            state.later.pop_front();
            pay(first);
        },
        [=](get_atom) { self->send(report, number * self->state.balance); },
    };
}

// Orders the next transfer whenever one is made.
behavior teller(peer* self, const bank* bank, const actor& report) {
    auto order = [=] {
        if (self->state.sent == static_cast<int64_t>(bank->orders.size())) return;
        auto& t = bank->orders[self->state.sent++];
        self->send(bank->accounts[t.payer], put_atom_v, t.payee, t.amount);
    };
    return {
        [=](put_atom) {
            for (std::size_t i = 0; i < bank->accounts.size(); ++i) order();
        },
        [=](ok_atom) {
            order();
            if (++self->state.got == static_cast<int64_t>(bank->orders.size())) self->send(report, int64_t{0});
        },
    };
}

Result banking(scoped_actor& self, int64_t n, int64_t accounts) {
    bank bank;
    int64_t want = 0, state = 2;
    for (int64_t i = 0; i < n; ++i) {
        state = (state * 1103515245 + 12345) & 0x7fffffff;
        int64_t payer = (state >> 8) % accounts, step = (state >> 8) / accounts;
        int64_t payee = (payer + 1 + step % (accounts - 1)) % accounts, amount = 1 + state % 99;
        bank.orders.push_back({payer, payee, amount});
        want += amount * (payee - payer);
    }
    for (int64_t i = 0; i < accounts; ++i)
        bank.accounts.push_back(self->spawn(account, i, &bank, actor_cast<actor>(self)));
    bank.teller = self->spawn(teller, &bank, actor_cast<actor>(self));
    auto result = timed(self, 4 * n, want, 1, [&] { self->send(bank.teller, put_atom_v); });
    result.got = timed(self, 0, 0, static_cast<int>(accounts), [&] {
        for (auto& each : bank.accounts) self->send(each, get_atom_v);
    }).got;
    return result;
}

int run(const std::string& benchmark, int64_t n, scoped_actor& self) {
    if (benchmark == "ping_pong") return print(ring(self, n, 2));
    if (benchmark == "thread_ring") return print(ring(self, n, 100));
    if (benchmark == "pairs") return print(ring(self, n, 2, 8));
    if (benchmark == "rings") return print(ring(self, n, 100, 8));
    if (benchmark == "counting") return print(fan_out(self, n, 1));
    if (benchmark == "fork_join_throughput") return print(fan_out(self, n, 60));
    if (benchmark == "fork_join_create") return print(create(self, n));
    if (benchmark == "banking") return print(banking(self, n, 1000));
    if (benchmark == "pipeline_10") return print(pipeline(self, n, 10));
    if (benchmark == "pipeline_100") return print(pipeline(self, n, 100));
    if (benchmark == "native_pipeline") return print(pipeline(self, n, 1000));
    if (benchmark == "big") return print(big(self, n, 120));
    return std::fprintf(stderr, "no benchmark %s\n", benchmark.c_str()), 2;
}

int main(int argc, char** argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: caf BENCHMARK SIZE [WORKERS]\n"), 2;
    actor_system_config config;
    auto workers = static_cast<std::size_t>(argc > 3 ? std::atoi(argv[3]) : 1);
#if CAF_VERSION < 1800
    config.set("scheduler.max-threads", workers);
#else
    core::init_global_meta_objects();
    config.set("caf.scheduler.max-threads", workers);
#endif
    actor_system system{config};
    int status;
    {
        scoped_actor self{system};
        status = run(argv[1], std::atoll(argv[2]), self);
    }
    std::fflush(stdout);
    std::_Exit(status);  // the actors that refer to each other would keep the system alive
}
