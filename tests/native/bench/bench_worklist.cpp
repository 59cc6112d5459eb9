// The bounded rings that values travel in, against a ring under a lock. Every run checks that all values came
// out, and that their sum is right; where one thread pops, that they came in order.
#include <mutex>
#include <thread>

#include "callboard/mailbox/ordered/ring.hpp"
#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"
#include "bench.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;

namespace {

constexpr int round_count = 11;
constexpr std::int64_t all = 400000;  // values of a run
constexpr std::size_t capacity = 1024;

struct Spsc {
    static constexpr const char* name = "one to one";
    callboard::Spsc<std::int64_t> ring{capacity};
    bool push(std::int64_t value) { return ring.try_push(value); }
    bool pop(std::int64_t& value) { return ring.try_pop(value); }
};

struct Spmc {
    static constexpr const char* name = "one to many";
    callboard::Spmc<std::int64_t> ring{capacity};
    bool push(std::int64_t value) { return ring.try_push(value); }
    bool pop(std::int64_t& value) { return ring.try_pop(value); }
};

struct Worklist {
    static constexpr const char* name = "worklist";
    callboard::Worklist<std::int64_t> list{capacity};
    bool push(std::int64_t value) { return list.push(value) != list.none; }
    bool pop(std::int64_t& value) { return list.pop(value) != list.none; }
};

struct Locked {
    static constexpr const char* name = "std::mutex and a ring";
    std::mutex lock;
    callboard::Ring<std::int64_t> slots{capacity};
    std::int64_t head = 0, tail = 0;
    bool push(std::int64_t value) {
        const std::lock_guard<std::mutex> guard(lock);
        if (tail - head == slots.capacity()) return false;
        slots[tail++] = value;
        return true;
    }
    bool pop(std::int64_t& value) {
        const std::lock_guard<std::mutex> guard(lock);
        if (head == tail) return false;
        value = slots[head++];
        return true;
    }
};

template <class Action>
void until_done(Action done) {
    for (int tries = 1; !done(); ++tries) {
        if (tries % 512 == 0) std::this_thread::yield();
        else callboard::relax();
    }
}

// Nanoseconds for each value, pushed and popped. With one thread, in turns of 64.
template <class Way>
double alone() {
    Way way;
    std::int64_t next = 0, value = 0;
    bool good = true;
    const std::int64_t begin = monotonic_ns();
    for (std::int64_t pushed = 0; pushed < all;) {
        for (int i = 0; i < 64; ++i) good &= way.push(pushed++);
        for (int i = 0; i < 64; ++i) good &= way.pop(value) && value == next++;
    }
    const std::int64_t end = monotonic_ns();
    bench::require(good, "a value is missing or out of order");
    return static_cast<double>(end - begin) / static_cast<double>(next);
}

// With threads: each pushes its share if it is one of the first, each pops if it is one of the last.
template <class Way>
double together(int threads, int producers, int consumers) {
    Way way;
    Atomic<int> waiting{threads};
    Atomic<std::int64_t> begin{0}, sum{0};
    Atomic<bool> in_order{true};
    std::vector<std::thread> workers;
    for (int index = 0; index < threads; ++index) {
        workers.emplace_back([&, index] {
            bench::pin(index);
            const std::int64_t share = all / producers, mine = all / consumers;
            std::int64_t own_sum = 0, last = -1, next = index * share;
            std::int64_t to_push = index < producers ? share : 0;
            std::int64_t to_pop = index >= threads - consumers ? mine : 0;
            if (waiting.fetch_sub(1, callboard::acq_rel) == 1)
                begin.store(monotonic_ns(), callboard::relaxed);
            while (waiting.load(callboard::acquire) != 0) callboard::relax();
            until_done([&] {
                std::int64_t value = 0;
                while (to_push != 0 && way.push(next)) ++next, --to_push;
                while (to_pop != 0 && way.pop(value)) {
                    if (consumers == 1 && producers == 1 && value != last + 1)
                        in_order.store(false, callboard::relaxed);
                    last = value;
                    own_sum += value;
                    --to_pop;
                }
                return to_push == 0 && to_pop == 0;
            });
            sum.fetch_add(own_sum, callboard::relaxed);
        });
    }
    for (std::thread& worker : workers) worker.join();
    const std::int64_t end = monotonic_ns();
    bench::require(sum.load(callboard::relaxed) == all * (all - 1) / 2, "a value is missing or doubled");
    bench::require(in_order.load(callboard::relaxed), "a value is out of order");
    return static_cast<double>(end - begin.load(callboard::relaxed)) / static_cast<double>(all);
}

}  // namespace

int main() {
    std::thread([] {}).join();  // a process that never had a second thread locks for nothing
    bench::head("ns per value: median (least to most)",
                {Spsc::name, Spmc::name, Worklist::name, Locked::name});
    bench::row("one thread", bench::rounds(round_count, {
        {"", alone<Spsc>}, {"", alone<Spmc>}, {"", alone<Worklist>}, {"", alone<Locked>}}));
    bench::row("one producer, one consumer", bench::rounds(round_count, {
        {"", [] { return together<Spsc>(2, 1, 1); }}, {"", [] { return together<Spmc>(2, 1, 1); }},
        {"", [] { return together<Worklist>(2, 1, 1); }}, {"", [] { return together<Locked>(2, 1, 1); }}}));
    bench::foot();
    bench::head("ns per value: median (least to most)", {Worklist::name, Locked::name});
    bench::row("two threads, both push and pop", bench::rounds(round_count, {
        {"", [] { return together<Worklist>(2, 2, 2); }}, {"", [] { return together<Locked>(2, 2, 2); }}}));
    bench::foot();
}
