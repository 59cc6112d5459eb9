// Measures the parameters of a simulated machine (machine.hpp) on this one, and prints them as JSON.
//
//     parameters FLOPS:ROWS...     the operators whose costs are wanted
//
// Others use the machine, too. So trials are short, and many. Of one thread's the least counts, of several threads'
// the median. Operators are timed by their thread's own clock, and the longest twentieth is left out.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "../../native/bench/bench.hpp"
#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/threads/parker.hpp"
#include "../natives/operator.hpp"

using namespace callboard;

namespace {

// Threads that wait for each other give way in the end: they may have to share a core.
template <class Holds>
void wait_until(Holds holds) {
    for (int looks = 0; !holds(); ++looks)
        if (looks > 100'000) std::this_thread::yield(), looks = 0;
}

std::int64_t thread_cpu_ns() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * std::int64_t{1000000000} + used.tv_nsec;
}

template <class Try>
double least(int tries, Try once) {
    double best = 1e300;
    for (int i = 0; i < tries; ++i) best = std::min(best, once());
    return best;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class Try>
double middle(int tries, Try once) {
    std::vector<double> times;
    for (int i = 0; i < tries; ++i) times.push_back(once());
    return median(times);
}

template <class Body>
double time_of(int count, Body body, std::int64_t (*clock)() = monotonic_ns) {
    const auto begin = clock();
    for (int i = 0; i < count; ++i) body(i);
    return static_cast<double>(clock() - begin) / count;
}

// Runs both at once on two cores; the time is the first one's.
template <class First, class Second>
double on_two_cores(First first, Second second) {
    double time = 0;
    Atomic<int> missing{2};
    const auto meet = [&] {
        missing.fetch_sub(1, acq_rel);
        wait_until([&] { return missing.load(acquire) == 0; });
    };
    std::thread other([&] {
        bench::pin(1);
        meet();
        second();
    });
    bench::pin(0);
    meet();
    time = first();
    other.join();
    return time;
}

struct alignas(64) Line {
    Atomic<std::int64_t> value{0};
};

double clock_ns() {
    return least(200, [] { return time_of(1000, [](int) { monotonic_ns(); }); });
}

double update_ns() {
    Line line;
    return least(200, [&] { return time_of(1000, [&](int) { line.value.fetch_add(1, seq_cst); }); });
}

// A step from line to line, all of them in so many KiB, in an order that no prefetcher knows.
double step_ns(std::size_t kib) {
    struct alignas(64) Step { Step* next; };
    std::vector<Step> steps(kib * 16);
    std::vector<std::size_t> order(steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (std::size_t i = 0; i < order.size(); ++i) steps[order[i]].next = &steps[order[(i + 1) % order.size()]];
    Step* here = &steps[0];
    const double ns = least(20, [&] { return time_of(100'000, [&](int) { here = here->next; }); });
    bench::require(here != nullptr, "no step");
    return ns;
}

// A word goes to and fro. Each way is a read of what the other wrote, and a write to what the other has read.
double near_ns() {
    constexpr int turns = 200;
    return middle(200, [] {
        Line line;
        const auto side = [&](std::int64_t mine) {
            return time_of(turns, [&](int i) {
                wait_until([&] { return line.value.load(acquire) == 2 * i + mine; });
                line.value.store(2 * i + mine + 1, release);
            });
        };
        return on_two_cores([&] { return side(0); }, [&] { return side(1); }) / 4;
    });
}

// For comparison: two threads that add to one word.
double contended_update_ns() {
    constexpr int turns = 2000;
    return middle(200, [] {
        Line line;
        const auto add = [&] { return time_of(turns, [&](int) { line.value.fetch_add(1, seq_cst); }); };
        return on_two_cores(add, add);
    });
}

// How much longer an operator takes with rows that the other core wrote, for each line.
double row_line_ns() {
    constexpr std::uint32_t rows = 512;
    constexpr int turns = 100;
    alignas(64) static double values[rows];
    const double alone = least(200, [] { return time_of(10, [](int) { shapes::multiply(values, rows, 1); }); });
    const double both = middle(200, [] {
        Line line;
        const auto side = [&](std::int64_t mine) {
            return time_of(turns, [&](int i) {
                wait_until([&] { return line.value.load(acquire) == 2 * i + mine; });
                shapes::multiply(values, rows, 1);
                line.value.store(2 * i + mine + 1, release);
            });
        };
        return on_two_cores([&] { return side(0); }, [&] { return side(1); }) / 2;
    });
    return std::max(0.0, (both - alone - 2 * near_ns()) / (rows / 8));
}

struct Sleep {
    double wake_ns, woken_ns, same_core_ns;
};

// A thread wakes another, which sleeps on the other core, and then the same on one core.
Sleep sleep() {
    constexpr int turns = 2000;
    std::vector<double> wake, woken;
    Parker parker;
    Atomic<std::int64_t> woke_at{0};
    const auto sleeper = [&] {
        for (int i = 0; i < turns; ++i) {
            parker.park();
            woke_at.store(monotonic_ns(), release);
        }
    };
    on_two_cores(
        [&] {
            for (int i = 0; i < turns; ++i) {
                wait_until([&] { return parker.is_parked(); });
                time_of(1, [&](int) { for (const auto end = monotonic_ns() + 20'000; monotonic_ns() < end;) {} });
                const auto begin = monotonic_ns();
                woke_at.store(0, relaxed);
                parker.unpark();
                const auto end = monotonic_ns();
                wait_until([&] { return woke_at.load(acquire) != 0; });
                wake.push_back(static_cast<double>(end - begin));
                woken.push_back(static_cast<double>(woke_at.load(relaxed) - begin));
            }
            return 0.0;
        },
        sleeper);
    Parker here, there;
    std::thread other([&] {
        bench::pin(0);
        for (int i = 0; i < turns; ++i) there.park(), here.unpark();
    });
    bench::pin(0);
    std::vector<double> turn;
    for (int i = 0; i < turns; ++i) turn.push_back(time_of(1, [&](int) { there.unpark(), here.park(); }));
    other.join();
    return {median(wake), median(woken), median(turn) / 2};
}

std::vector<double> cost(int flops, std::uint32_t rows) {
    std::vector<double> room, times;
    double* const values = shapes::aligned(room, rows);
    const auto work = [&](int) {
        if (flops == 0) shapes::fill(values, rows);
        else shapes::multiply(values, rows, flops);
    };
    const int together = std::max(1, static_cast<int>(50'000 / least(10, [&] { return time_of(1, work); })));
    for (int i = 0; i < 1000; ++i) times.push_back(time_of(together, work, thread_cpu_ns));
    std::sort(times.begin(), times.end());
    std::vector<double> quantiles;
    for (int i = 0; i < 20; ++i)
        quantiles.push_back(times[static_cast<std::size_t>((i + 0.5) / 20 * 0.95 * static_cast<double>(times.size()))]);
    return quantiles;
}

}  // namespace

int main(int count, char** words) {
    bench::pin(0);
    const double near = near_ns(), clock = clock_ns();
    const Sleep times = sleep();
    std::printf("{\"update_ns\": %.2f, \"second_cache_ns\": %.2f, \"near_ns\": %.2f, "
                "\"contended_update_ns\": %.2f, \"row_line_ns\": %.3f, \"clock_ns\": %.2f, "
                "\"wake_ns\": %.0f, \"woken_ns\": %.0f, \"switch_ns\": %.0f, \"costs\": [",
                update_ns(), step_ns(256) - step_ns(16), near, contended_update_ns(), row_line_ns(), clock,
                times.wake_ns - clock, times.woken_ns - times.wake_ns,
                std::max(0.0, times.same_core_ns - times.wake_ns));
    for (int i = 1; i < count; ++i) {
        int flops;
        std::uint32_t rows;
        bench::require(std::sscanf(words[i], "%d:%u", &flops, &rows) == 2, "not FLOPS:ROWS");
        std::printf("%s{\"flops\": %d, \"rows\": %u, \"ns\": [", i == 1 ? "" : ",", flops, rows);
        const auto quantiles = cost(flops, rows);
        for (std::size_t j = 0; j < quantiles.size(); ++j) std::printf("%s%.1f", j == 0 ? "" : ", ", quantiles[j]);
        std::printf("]}");
    }
    std::printf("]}\n");
}
