// The floor for native actors: what one worker loop costs when it has no feature at all.
//
// A message is a pooled node pushed to a multi-producer single-consumer queue with one exchange,
// popped, and handed to a virtual function. There is no supervision, no monitoring, no policy, no
// way to stop an actor, and a message is one 64-bit integer. The queue marks itself empty in the
// low bit of its tail, so that the one exchange of a push also answers whether to wake the reader
// (as in Pony's runtime). Usage: floor BENCHMARK SIZE [WORKERS]; prints one line of JSON.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "result.hpp"

constexpr auto relaxed = std::memory_order_relaxed, acquire = std::memory_order_acquire,
               release = std::memory_order_release, acq_rel = std::memory_order_acq_rel;

struct alignas(64) Node {  // a line each: nodes travel between the workers' pools
    std::atomic<Node*> next;
    std::int64_t value;
};

// Each worker's spare nodes: taken by its senders, given back by its receivers.
class Pool {
public:
    Node* take() {
        if (free_ == nullptr) grow();
        Node* node = free_;
        free_ = node->next.load(relaxed);
        return node;
    }
    void give(Node* node) {
        node->next.store(free_, relaxed);
        free_ = node;
    }

private:
    void grow() {
        constexpr int slab = 256;
        auto* nodes = new Node[slab];  // never freed
        for (int i = 0; i < slab; ++i) give(nodes + i);
    }
    Node* free_ = nullptr;
};

struct Worker;

class alignas(64) Actor {
public:
    Actor(Worker& home) : home(home) {
        head_ = pool().take();
        head_->next.store(nullptr, relaxed);
        tail_.store(tag(head_), relaxed);
    }
    virtual ~Actor() { pool().give(head_); }
    virtual void receive(std::int64_t value) = 0;

    void tell(std::int64_t value);
    bool run(int quantum);  // true when messages are left

    static Pool& pool() {
        static thread_local Pool instance;
        return instance;
    }

    Worker& home;
    Actor* next_ready = nullptr;

private:
    static std::uintptr_t tag(Node* node) { return reinterpret_cast<std::uintptr_t>(node) | 1; }

    Node* head_;
    alignas(64) std::atomic<std::uintptr_t> tail_;  // of the last node; its low bit says "empty"
};

// A worker runs its ready actors in turn; actors made ready by another worker come in by `inbox`.
struct alignas(64) Worker {
    static thread_local Worker* current;

    void make_ready(Actor* actor) {
        actor->next_ready = nullptr;
        *last = actor;
        last = &actor->next_ready;
    }
    void announce(Actor* actor) {
        Actor* top = inbox.load(relaxed);
        do actor->next_ready = top;
        while (!inbox.compare_exchange_weak(top, actor, release, relaxed));
    }
    void run(const std::atomic<bool>& finished) {
        current = this;
        for (int idle = 0; !finished.load(relaxed);) {
            if (inbox.load(relaxed) != nullptr) drain_inbox();
            if (first == nullptr) {
                if (++idle > 1000) std::this_thread::yield();
                continue;
            }
            idle = 0;
            Actor* actor = first;
            first = actor->next_ready;
            if (first == nullptr) last = &first;
            if (actor->run(64)) make_ready(actor);
        }
    }

    Actor* first = nullptr;
    Actor** last = &first;
    alignas(64) std::atomic<Actor*> inbox{nullptr};

private:
    void drain_inbox() {
        Actor* actor = inbox.exchange(nullptr, acquire);
        while (actor != nullptr) {
            Actor* next = actor->next_ready;
            make_ready(actor);
            actor = next;
        }
    }
};

thread_local Worker* Worker::current = nullptr;

inline void Actor::tell(std::int64_t value) {
    Node* node = pool().take();
    node->value = value;
    node->next.store(nullptr, relaxed);
    auto own = reinterpret_cast<std::uintptr_t>(node);
    auto previous = tail_.exchange(own, acq_rel);
    bool was_empty = previous & 1;
    auto* before = reinterpret_cast<Node*>(previous & ~std::uintptr_t{1});
    before->next.store(node, release);
    if (!was_empty) return;
    if (Worker::current == &home) home.make_ready(this);
    else home.announce(this);
}

inline bool Actor::run(int quantum) {
    while (quantum-- > 0) {
        Node* next = head_->next.load(acquire);
        if (next == nullptr) {  // empty, unless a push is between its exchange and its link
            auto expected = reinterpret_cast<std::uintptr_t>(head_);
            return !tail_.compare_exchange_strong(expected, tag(head_), release, relaxed);
        }
        std::int64_t value = next->value;
        pool().give(head_);
        head_ = next;
        receive(value);
    }
    return true;
}

struct System {
    explicit System(int count) {
        for (int i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>());
    }
    // Sends `first` to `actor` from the first worker and returns the seconds until `finished`.
    double run(Actor& actor, std::int64_t first) {
        std::vector<std::thread> others;
        for (std::size_t i = 1; i < workers.size(); ++i)
            others.emplace_back([this, i] { workers[i]->run(finished); });
        Worker::current = workers[0].get();
        auto begin = std::chrono::steady_clock::now();
        actor.tell(first);
        workers[0]->run(finished);
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        for (auto& other : others) other.join();
        return seconds.count();
    }
    // Neighbours share a worker: the home of the `index`th of `count` actors.
    Worker& block(std::size_t index, std::size_t count) {
        return *workers[index * workers.size() / count];
    }
    std::vector<std::unique_ptr<Worker>> workers;
    std::atomic<bool> finished{false};
};

// Passes a falling number round; whoever gets the 0 ends the run.
struct Player : Actor {
    Player(System& system, Worker& home) : Actor(home), system(system) {}
    void receive(std::int64_t left) override {
        if (left > 0) return next->tell(left - 1);
        ++ended;
        system.finished.store(true);
    }
    System& system;
    Actor* next = nullptr;
    int ended = 0;
};

Result ring(System& system, std::int64_t n, std::size_t size) {
    std::vector<std::unique_ptr<Player>> players;
    for (std::size_t i = 0; i < size; ++i)
        players.push_back(std::make_unique<Player>(system, system.block(i, size)));
    for (std::size_t i = 0; i < size; ++i) players[i]->next = players[(i + 1) % size].get();
    double seconds = system.run(*players[0], n);
    return {n, seconds, players[n % size]->ended, 1};
}

// Tells the numbers below n to its counters in turn, in batches, so that no queue outgrows the cache.
// Without counters to start with, spawns one for each number, and drops a batch of them when it is done.
struct Source : Actor {
    struct Counter : Actor {
        Counter(Worker& home, Source& source) : Actor(home), source(source) {}
        void receive(std::int64_t value) override {
            source.total += value;
            if (--source.open == 0) source.tell(source.sent);
        }
        Source& source;
    };
    Source(System& system, std::int64_t n, std::size_t fixed)
            : Actor(*system.workers[0]), system(system), n(n), fixed(fixed) {
        while (counters.size() < fixed) spawn();
    }
    void spawn() { counters.push_back(std::make_unique<Counter>(home, *this)); }
    void receive(std::int64_t) override {
        if (sent == n) return system.finished.store(true);
        open = std::min<std::int64_t>(1024, n - sent);
        if (fixed == 0) counters.clear();
        for (std::int64_t end = sent + open; sent < end; ++sent) {
            if (fixed == 0) spawn(), at = counters.size() - 1;
            counters[at]->tell(sent);
            if (++at == counters.size()) at = 0;
        }
    }
    System& system;
    std::int64_t n, sent = 0, open = 0, total = 0;
    std::size_t fixed, at = 0;
    std::vector<std::unique_ptr<Counter>> counters;
};

Result fan_out(System& system, std::int64_t n, std::size_t counters) {
    Source source(system, n, counters);
    double seconds = system.run(source, 0);
    return {n, seconds, source.total, n * (n - 1) / 2};
}

struct Stage : Actor {
    using Actor::Actor;
    void receive(std::int64_t value) override { next->tell(value + 1); }
    Actor* next = nullptr;
};

// Closes the line of stages: keeps `window` items on their way and checks those that arrive.
struct Ends : Actor {
    Ends(System& system, Worker& home, std::int64_t n, std::int64_t stages)
            : Actor(home), system(system), n(n), stages(stages) {}
    void receive(std::int64_t value) override {
        if (value < 0) {
            for (sent = 0; sent < std::min(-value, n); ++sent) first->tell(sent);
            return;
        }
        in_order += value == arrived + stages;
        if (++arrived == n) system.finished.store(true);
        else if (sent < n) first->tell(sent++);
    }
    System& system;
    Actor* first = nullptr;
    std::int64_t n, stages, sent = 0, arrived = 0, in_order = 0;
};

Result pipeline(System& system, std::int64_t n, std::size_t stages, std::int64_t window) {
    std::vector<std::unique_ptr<Stage>> line;
    Ends ends(system, *system.workers[0], n, static_cast<std::int64_t>(stages));
    for (std::size_t i = 0; i < stages; ++i)
        line.push_back(std::make_unique<Stage>(system.block(i, stages)));
    for (std::size_t i = 0; i + 1 < stages; ++i) line[i]->next = line[i + 1].get();
    line.back()->next = &ends;
    ends.first = line[0].get();
    double seconds = system.run(ends, -window);
    return {n * static_cast<std::int64_t>(stages), seconds, ends.in_order, n};
}

int main(int argc, char** argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: floor BENCHMARK SIZE [WORKERS]\n"), 2;
    std::string benchmark = argv[1];
    std::int64_t n = std::atoll(argv[2]);
    System system(argc > 3 ? std::atoi(argv[3]) : 1);
    if (benchmark == "ping_pong") return print(ring(system, n, 2));
    if (benchmark == "thread_ring") return print(ring(system, n, 100));
    if (benchmark == "counting") return print(fan_out(system, n, 1));
    if (benchmark == "fork_join_throughput") return print(fan_out(system, n, 60));
    if (benchmark == "fork_join_create") return print(fan_out(system, n, 0));
    if (benchmark == "native_pipeline") return print(pipeline(system, n, 1000, 16384));
    return std::fprintf(stderr, "no benchmark %s\n", argv[1]), 2;
}
