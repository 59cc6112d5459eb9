// The hybrid queue against a queue for each partition and against one shared queue: throughput of a keyed
// operator under skew, and latency. Every run checks that each partition saw its values in order, and
// that all outputs left in the order of arrival.
//
// As in section 7.2 of Prasaad et al. 2018: keys are normally distributed over [-1, 1] and partitioned by
// range, into 100 partitions for the hybrid and the shared queue, into as many as there are workers for the
// partitioned queue. Workers feed the queue themselves, one at a time, as an upstream operator does.
#include <cmath>
#include <memory>
#include <random>
#include <thread>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "../../bench/peers/partitioned_queue.hpp"
#include "../../bench/peers/shared_queue.hpp"
#include "work.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;

namespace {

constexpr std::uint32_t many = 100;
constexpr std::int64_t chunk = 32;  // what a worker feeds at once

struct Shape {
    int workers;
    double cost_us;
    std::int64_t inputs, window;  // at most so many inputs are under way
};

// The partition of each input.
std::vector<std::uint32_t> keys(std::int64_t inputs, std::uint32_t partitions, double mean, double sigma) {
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal(mean, sigma);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<std::uint32_t> all;
    while (static_cast<std::int64_t>(all.size()) < inputs) {
        const double key = sigma == 0 ? uniform(generator) : normal(generator);
        if (key >= -1 && key < 1) all.push_back(static_cast<std::uint32_t>((key + 1) / 2 * partitions));
    }
    return all;
}

struct Result {
    double ns_per_input, latency_us;
};

template <class Queue>
Result run(Shape shape, const std::vector<std::uint32_t>& partition_of, std::uint32_t partitions,
           double speed) {
    struct alignas(callboard::cache_line) Partition {
        std::int64_t last = -1, count = 0;
    };
    const int turns = static_cast<int>(shape.cost_us * 1000 * speed);
    Queue queue(partitions, static_cast<std::size_t>(shape.window));
    callboard::ReorderBuffer<std::int64_t> order(static_cast<std::size_t>(2 * shape.window));
    std::vector<Partition> state(partitions);
    std::vector<std::int64_t> started(static_cast<std::size_t>(shape.inputs));
    alignas(callboard::cache_line) Atomic<bool> feeding{false};
    std::int64_t fed = 0;
    alignas(callboard::cache_line) std::int64_t sent = 0, latency = 0;
    bool in_order = true;
    Atomic<int> waiting{shape.workers};
    Atomic<std::int64_t> begin{0}, wrong{0};
    Atomic<std::uint64_t> kept{0};
    const auto feed = [&] {
        if (feeding.load(callboard::relaxed) || feeding.exchange(true, callboard::acquire)) return;
        const std::int64_t end = std::min({shape.inputs, order.next() + shape.window, fed + chunk});
        for (; fed < end; ++fed)
            bench::require(queue.add(partition_of[static_cast<std::size_t>(fed)], fed), "no room");
        feeding.store(false, callboard::release);
    };
    const auto sink = [&](std::int64_t& serial) {
        in_order &= serial == sent++;
        latency += monotonic_ns() - started[static_cast<std::size_t>(serial)];
    };
    std::vector<std::thread> workers;
    for (int index = 0; index < shape.workers; ++index) {
        workers.emplace_back([&, index] {
            bench::pin(index);
            std::uint64_t own = static_cast<std::uint64_t>(index);
            const auto visit = [&](std::uint32_t which, std::int64_t serial) {
                started[static_cast<std::size_t>(serial)] = monotonic_ns();
                Partition& partition = state[which];
                if (serial <= partition.last) wrong.fetch_add(1, callboard::relaxed);
                partition.last = serial;
                ++partition.count;
                own = bench::work(own, turns);
                bench::require(order.send(serial, std::int64_t{serial}, sink), "an output has no room");
            };
            if (waiting.fetch_sub(1, callboard::acq_rel) == 1)
                begin.store(monotonic_ns(), callboard::relaxed);
            while (waiting.load(callboard::acquire) != 0) callboard::relax();
            while (order.next() < shape.inputs) {
                if (queue.waiting() < shape.window / 2) feed();
                if (!queue.consume_one(visit)) callboard::relax();
            }
            kept.fetch_add(own, callboard::relaxed);  // or the work could be left out
        });
    }
    for (std::thread& worker : workers) worker.join();
    const auto ns = static_cast<double>(monotonic_ns() - begin.load(callboard::relaxed));
    std::int64_t counted = 0;
    for (const Partition& partition : state) counted += partition.count;
    bench::require(sent == shape.inputs && counted == shape.inputs, "an input was lost or doubled");
    bench::require(in_order, "an output is out of order");
    bench::require(wrong.load(callboard::relaxed) == 0, "a partition's inputs are out of order");
    const auto inputs = static_cast<double>(shape.inputs);
    return {ns / inputs, static_cast<double>(latency) / inputs / 1000};
}

using Measure = double Result::*;

template <class Queue>
bench::Candidate candidate(Shape shape, std::uint32_t partitions, double mean, double sigma, double speed,
                           Measure measure) {
    auto partition_of = std::make_shared<std::vector<std::uint32_t>>(
        keys(shape.inputs, partitions, mean, sigma));
    return {"", [=] { return run<Queue>(shape, *partition_of, partitions, speed).*measure; }};
}

void row(const char* name, std::size_t count, Shape shape, double mean, double sigma, double speed,
         Measure measure) {
    using Value = std::int64_t;
    const auto few = static_cast<std::uint32_t>(shape.workers);
    const auto samples = bench::rounds(count, {
        candidate<callboard::HybridQueue<Value>>(shape, many, mean, sigma, speed, measure),
        candidate<callboard::PartitionedQueue<Value>>(shape, few, mean, sigma, speed, measure),
        candidate<callboard::SharedQueue<Value>>(shape, many, mean, sigma, speed, measure),
    });
    std::printf("| %s |", name);
    for (const auto& sample : samples)
        std::printf(" %.1f (%.1f to %.1f) |", sample.median, sample.least, sample.most);
    std::printf(" %.2f |\n", samples[1].median / samples[0].median);
    std::fflush(stdout);
}

const std::vector<std::string> columns = {"hybrid", "partitioned", "shared", "partitioned / hybrid"};

void throughput(int workers, double mean, double speed) {
    std::printf("%d workers, keys around %.1f.\n\n", workers, mean);
    bench::head("ns per input: median (least to most)", columns);
    for (const double cost_us : {1.0, 10.0}) {
        for (const double sigma : {0.1, 0.2, 0.5, 1.0}) {
            char name[80];
            std::snprintf(name, sizeof name, "%.0f us, sigma %.1f", cost_us, sigma);
            const auto inputs = static_cast<std::int64_t>(20e3 * workers / cost_us);
            row(name, 7, {workers, cost_us, inputs, 1024}, mean, sigma, speed, &Result::ns_per_input);
        }
    }
    bench::foot();
}

void latency(int workers, double speed) {
    std::printf("%d workers, keys spread evenly, at most 64 inputs under way.\n\n", workers);
    bench::head("us from begin to exit: median of runs' means (least to most)", columns);
    for (const double cost_us : {10.0, 100.0, 1000.0, 10000.0}) {
        char name[80];
        std::snprintf(name, sizeof name, "%.0f us", cost_us);
        const auto inputs = static_cast<std::int64_t>(std::max(75.0, 5e4 / cost_us) * workers);
        row(name, 5, {workers, cost_us, inputs, 64}, 0, 0, speed, &Result::latency_us);
    }
    bench::foot();
}

}  // namespace

int main() {
    const double speed = bench::turns_per_ns();
    for (const int workers : bench::thread_counts(2)) {
        throughput(workers, 0, speed);
        throughput(workers, -0.5, speed);
        latency(workers, speed);
    }
}
