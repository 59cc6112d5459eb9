// The reorder buffer against the paper's, and two with locks: workers that claim inputs, work on each for a
// known time, and send the output. Every run checks that all outputs left, in order, and none was changed.
#include <map>
#include <mutex>
#include <thread>

#include "callboard/mailbox/ordered/reorder.hpp"
#include "../../bench/peers/reorder_locked.hpp"
#include "reorder_flag.hpp"
#include "work.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;

namespace {

constexpr int round_count = 11;
constexpr double run_ns = 20e6;  // about how long a run takes
constexpr std::size_t capacity = 256;

// Figure 2 as it stands, with a map for the outputs that wait.
template <class T>
class MapReorderBuffer {
public:
    explicit MapReorderBuffer(std::size_t) {}

    template <class Sink>
    bool send(std::int64_t serial, T&& value, Sink&& sink) {
        const std::lock_guard<std::mutex> guard(lock_);
        if (serial != next_) {
            waiting_.emplace(serial, value);
            return true;
        }
        sink(value);
        for (++next_; !waiting_.empty() && waiting_.begin()->first == next_; ++next_) {
            sink(waiting_.begin()->second);
            waiting_.erase(waiting_.begin());
        }
        return true;
    }

private:
    std::mutex lock_;
    std::int64_t next_ = 0;
    std::map<std::int64_t, T> waiting_;
};

struct Shape {
    int threads;
    double cost_ns;
    int claim;    // how many inputs a worker claims at once
    int outputs;  // for each input; the sink adds each to the worklist of the next operator
};

// Nanoseconds per input, all threads together.
template <class Buffer>
double order_them(Shape shape, double speed) {
    const double expected = std::max(30.0, (shape.cost_ns + 2.0 * shape.outputs) / shape.threads);
    const auto all = static_cast<std::int64_t>(run_ns / expected);
    const int turns = static_cast<int>(shape.cost_ns * speed);
    Buffer buffer(capacity);
    alignas(callboard::cache_line) Atomic<std::int64_t> claimed{0};
    alignas(callboard::cache_line) std::int64_t sent = 0;
    bool in_order = true;
    std::vector<std::int64_t> downstream(1024);
    std::size_t added = 0;
    Atomic<int> waiting{shape.threads};
    Atomic<std::int64_t> begin{0};
    Atomic<std::uint64_t> kept{0};
    const auto sink = [&](std::int64_t& value) {
        in_order &= value == sent;
        ++sent;
        for (int i = 0; i < shape.outputs; ++i) downstream[added++ % downstream.size()] = value;
    };
    std::vector<std::thread> workers;
    for (int index = 0; index < shape.threads; ++index) {
        workers.emplace_back([&, index] {
            bench::pin(index);
            std::uint64_t own = static_cast<std::uint64_t>(index);
            if (waiting.fetch_sub(1, callboard::acq_rel) == 1)
                begin.store(monotonic_ns(), callboard::relaxed);
            while (waiting.load(callboard::acquire) != 0) callboard::relax();
            for (std::int64_t first; (first = claimed.fetch_add(shape.claim, callboard::relaxed)) < all;) {
                const std::int64_t end = std::min(all, first + shape.claim);
                for (std::int64_t serial = first; serial < end; ++serial) {
                    own = bench::work(own, turns);
                    for (int tries = 1; !buffer.send(serial, std::int64_t{serial}, sink); ++tries) {
                        if (tries % 512 == 0) std::this_thread::yield();
                        else callboard::relax();
                    }
                }
            }
            kept.fetch_add(own, callboard::relaxed);  // or the work could be left out
        });
    }
    for (std::thread& worker : workers) worker.join();
    const std::int64_t end = monotonic_ns();
    bench::require(sent == all, "an output is missing");
    bench::require(in_order, "an output is out of order");
    bench::require(added == static_cast<std::size_t>(all * shape.outputs), "an output was not added");
    return static_cast<double>(end - begin.load(callboard::relaxed)) / static_cast<double>(all);
}

void table(int claim, int outputs, std::initializer_list<double> costs, double speed) {
    std::printf("Workers claim %d at once; %d output%s for each input.\n\n", claim, outputs,
                outputs == 1 ? "" : "s");
    bench::head("ns per input: median (least to most)",
                {"ours", "figure 4", "locked ring", "locked map", "locked ring / ours"});
    for (const int threads : bench::thread_counts()) {
        for (const double cost : costs) {
            const Shape shape{threads, cost, claim, outputs};
            char name[80];
            std::snprintf(name, sizeof name, "%.0f ns, %d thread%s", cost, threads, threads == 1 ? "" : "s");
            auto samples = bench::rounds(round_count, {
                {"", [=] { return order_them<callboard::ReorderBuffer<std::int64_t>>(shape, speed); }},
                {"", [=] { return order_them<callboard::FlagReorderBuffer<std::int64_t>>(shape, speed); }},
                {"", [=] { return order_them<callboard::LockedReorderBuffer<std::int64_t>>(shape, speed); }},
                {"", [=] { return order_them<MapReorderBuffer<std::int64_t>>(shape, speed); }},
            });
            std::printf("| %s |", name);
            for (const auto& sample : samples)
                std::printf(" %.1f (%.1f to %.1f) |", sample.median, sample.least, sample.most);
            std::printf(" %.2f |\n", samples[2].median / samples[0].median);
            std::fflush(stdout);
        }
    }
    bench::foot();
}

}  // namespace

int main() {
    const double speed = bench::turns_per_ns();
    table(1, 1, {0, 50, 200, 1000, 10000}, speed);
    table(16, 1, {0, 50, 200, 1000, 10000}, speed);
    table(1, 50, {0, 200, 1000, 10000}, speed);
}
