// Gates beside each other: how many values a second go from sources to readers, each value to each reader. Every run
// checks that each reader got all of them, in order.
//
// Threads are pinned in turn, first those of sources. Where there are more than cores, who has to wait yields.
#include <map>
#include <thread>

#include "callboard/core/mix.hpp"
#include "../../bench/peers/ring_gate.hpp"
#include "../gate_model.hpp"
#include "../../bench/peers/locked_gate.hpp"
#include "../../bench/peers/scale_gate.hpp"
#include "bench.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;

namespace {

constexpr int round_count = 5;
constexpr unsigned all = 192'000;  // values of a run
constexpr std::size_t window = 1024;

using Ring = callboard::RingGate<std::int64_t, std::int64_t>;
using Scale = callboard::ScaleGate<std::int64_t, std::int64_t>;
using Locked = callboard::LockedGate<std::int64_t, std::int64_t>;

std::uint64_t checksum_with(std::uint64_t checksum, const Entry& entry) {
    return 31 * checksum + static_cast<std::uint64_t>(entry.value);
}

// What sources bring, whose times are random and all alike, and the checksum of its sorted merge.
struct Program {
    std::vector<std::vector<GateValue>> values;
    std::uint64_t checksum = 0;

    explicit Program(unsigned sources) : values(sources) {
        std::vector<Entry> entries;
        for (unsigned source = 0; source < sources; ++source) {
            std::int64_t time = 0;
            for (unsigned i = 0; i < all / sources; ++i) {
                time += static_cast<std::int64_t>(callboard::random_number(source, i) % (2 * sources));
                const GateValue value{time, std::int64_t{source} << 32 | i};
                values[source].push_back(value);
                entries.push_back({time, source, value.value});
            }
        }
        for (const Entry& entry : in_order(entries)) checksum = checksum_with(checksum, entry);
    }
};

const Program& program_of(unsigned sources) {
    static std::map<unsigned, Program> programs;
    return programs.try_emplace(sources, sources).first->second;
}

// Calls `action()`, which says how much it did, until that is `count` in all.
template <class Action>
void until_done(std::size_t count, bool crowded, Action action) {
    for (int tries = 1; count != 0; ++tries) {
        const std::size_t done = action();
        count -= done;
        if (done != 0) continue;
        if (crowded || tries % 512 == 0) std::this_thread::yield();
        else callboard::relax();
    }
}

// Millions of values a second.
template <class Gate>
double rate(unsigned sources, unsigned readers, std::size_t batch) {
    const Program& program = program_of(sources);
    const unsigned count = all / sources, threads = sources + readers;
    const bool crowded = static_cast<int>(threads) > CPU_COUNT(&bench::allowed_cores());
    Gate gate(sources, readers, window);
    Atomic<unsigned> waiting{threads};
    Atomic<std::int64_t> begin{0};
    Atomic<bool> in_order{true};
    std::vector<std::thread> workers;
    for (unsigned index = 0; index < threads; ++index) {
        workers.emplace_back([&, index] {
            bench::pin(static_cast<int>(index));
            std::vector<Entry> entries(batch);
            std::uint64_t checksum = 0;
            if (waiting.fetch_sub(1, callboard::acq_rel) == 1) begin.store(monotonic_ns(), callboard::relaxed);
            while (waiting.load(callboard::acquire) != 0) std::this_thread::yield();
            if (index < sources) {
                const GateValue* next = program.values[index].data();
                const GateValue* const end = next + count;
                until_done(count, crowded, [&] {
                    const std::size_t left = static_cast<std::size_t>(end - next);
                    const std::size_t added = gate.add_many(index, next, std::min(batch, left));
                    next += added;
                    return added;
                });
                gate.end(index);
                return;
            }
            until_done(std::size_t{count} * sources, crowded, [&] {
                const std::size_t taken = gate.next_many(index - sources, entries.data(), batch);
                for (std::size_t i = 0; i < taken; ++i) checksum = checksum_with(checksum, entries[i]);
                return taken;
            });
            if (checksum != program.checksum) in_order.store(false, callboard::relaxed);
        });
    }
    for (std::thread& worker : workers) worker.join();
    const std::int64_t end = monotonic_ns();
    bench::require(in_order.load(callboard::relaxed), "a reader got another sequence");
    return 1e3 * all / static_cast<double>(end - begin.load(callboard::relaxed));
}

// Nanoseconds that one thread takes for each value: to add it, or to read it. It adds half a window, then reads that.
template <class Gate>
double alone(unsigned sources, bool of_reading) {
    const Program& program = program_of(sources);
    const std::size_t count = window / 2, blocks = all / sources / count;
    Gate gate(sources, 1, window);
    std::vector<Entry> entries(count * sources);
    std::int64_t adding = 0, reading = 0;
    std::uint64_t taken = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::int64_t begin = monotonic_ns();
        for (unsigned source = 0; source < sources; ++source)
            taken -= gate.add_many(source, &program.values[source][block * count], count);
        const std::int64_t middle = monotonic_ns();
        taken += gate.next_many(0, entries.data(), entries.size());
        reading += monotonic_ns() - middle;
        adding += middle - begin;
    }
    for (unsigned source = 0; source < sources; ++source) gate.end(source);
    taken += gate.next_many(0, entries.data(), entries.size());
    bench::require(taken == 0, "a value is missing or doubled");
    return static_cast<double>(of_reading ? reading : adding) / static_cast<double>(blocks * count * sources);
}

void table_of_one_thread() {
    std::printf("One thread.\n\n");
    bench::head("ns per value: median (least to most)",
                {"rings: add", "read", "ScaleGate: add", "read", "locked: add", "read"});
    for (const unsigned sources : {1, 2, 8, 16}) {
        bench::row(std::to_string(sources) + (sources == 1 ? " source" : " sources"), bench::rounds(round_count, {
            {"", [=] { return alone<Ring>(sources, false); }}, {"", [=] { return alone<Ring>(sources, true); }},
            {"", [=] { return alone<Scale>(sources, false); }}, {"", [=] { return alone<Scale>(sources, true); }},
            {"", [=] { return alone<Locked>(sources, false); }}, {"", [=] { return alone<Locked>(sources, true); }}}));
    }
    bench::foot();
}

void table(std::size_t batch, const std::vector<unsigned>& counts_of_sources,
           const std::vector<unsigned>& counts_of_readers) {
    std::printf("%zu at once.\n\n", batch);
    bench::head("million values a second: median (least to most)", {"rings", "ScaleGate", "locked"});
    for (const unsigned sources : counts_of_sources) {
        for (const unsigned readers : counts_of_readers) {
            const auto name = std::to_string(sources) + (sources == 1 ? " source, " : " sources, ") +
                              std::to_string(readers) + (readers == 1 ? " reader" : " readers");
            bench::row(name, bench::rounds(round_count, {
                {"", [=] { return rate<Ring>(sources, readers, batch); }},
                {"", [=] { return rate<Scale>(sources, readers, batch); }},
                {"", [=] { return rate<Locked>(sources, readers, batch); }}}));
        }
    }
    bench::foot();
}

}  // namespace

int main() {
    table(64, {1, 2, 4, 8, 16}, {1, 2, 4, 8});
    table(1, {1, 2, 4}, {1, 2, 4});
    table_of_one_thread();
}
