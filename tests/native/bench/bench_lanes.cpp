// Two ways to bring the rows of several sources to the lanes of a join, and what lanes find into one order:
//
//     lots     one thread puts rows into their order, as lots of columns that all lanes read; one puts together what
//              lanes have found of each lot. So a graph does it (actors/streams/programs).
//     gates    each lane reads rows from a gate itself, and adds what it finds to a second one: Gulisano et al. 2015
//              (ScaleJoin), section IV. By rings, and by the paper's list.
//
//     bench_lanes rates     rows a second, both ways, by sources and lanes; all find the same pairs
//     bench_lanes parts     what each part costs for a row, on one thread; and what follows for more lanes
//     bench_lanes once      all parts once, for a count of instructions by callgrind: see read_lot, put_together
//
// Sources add from threads of their own. Who has to wait yields.
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "callboard/core/atomics.hpp"
#include "lanes.hpp"

using namespace callboard;
using namespace bench::lanes;
using bench::Answer;

namespace {

struct Outcome {
    Answer answer{};
    double ns_per_row{0};
};

Outcome by_lots(const Case& of, unsigned lanes) {
    struct Lot {
        Columns columns;
        std::vector<JoinMatch> matches[16];
    };
    const std::uint64_t first = of.before.rows();
    const std::size_t rows = of.rows();
    const auto joins = make_lanes(of, lanes);
    Rings::Rows gate(static_cast<unsigned>(of.sources.size()), 1, gate_window);
    constexpr std::size_t ring = 16;
    std::vector<Lot> lots(ring);
    for (Lot& lot : lots) lot.columns.reserve(lot_rows);
    Atomic<std::size_t> ordered{0}, taken{0};  // lots
    Atomic<bool> is_over{false};
    struct alignas(cache_line) Done {
        Atomic<std::size_t> lots{0};
    };
    std::vector<Done> done(lanes);
    Outcome outcome;
    std::vector<std::thread> threads;
    const std::int64_t start = monotonic_ns();
    start_sources(of, gate, threads);
    threads.emplace_back([&] {
        std::vector<Rings::Rows::Entry> entries(lot_rows);
        std::size_t made = 0;
        for (std::size_t got = 0; got < rows;) {
            if (made - taken.load(acquire) == ring) {
                std::this_thread::yield();
                continue;
            }
            const std::size_t count = read_lot(of, gate, 0, first + got, entries.data(), lots[made % ring].columns);
            if (count == 0) {
                std::this_thread::yield();
                continue;
            }
            got += count;
            ordered.store(++made, release);
        }
        is_over.store(true, release);
    });
    for (unsigned lane = 0; lane < lanes; ++lane)
        threads.emplace_back([&, lane] {
            for (std::size_t at = 0;;) {
                const bool was_over = is_over.load(acquire);
                if (at == ordered.load(acquire)) {
                    if (was_over) return;
                    std::this_thread::yield();
                    continue;
                }
                Lot& lot = lots[at % ring];
                joins[lane]->join(lot.columns.batch(), lot.matches[lane]);
                done[lane].lots.store(++at, release);
            }
        });
    std::size_t got = 0;
    for (std::size_t at = 0; got < rows;) {
        bool is_done = true;
        for (const Done& lane : done) is_done = is_done && lane.lots.load(acquire) > at;
        if (!is_done) {
            std::this_thread::yield();
            continue;
        }
        Lot& lot = lots[at % ring];
        put_together(lot.matches[0], lot.matches + 1, lanes - 1);
        for (const JoinMatch& match : lot.matches[0]) outcome.answer.add(first + got + match.row, match.partner);
        got += lot.columns.rows();
        taken.store(++at, release);
    }
    outcome.ns_per_row = static_cast<double>(monotonic_ns() - start) / static_cast<double>(rows);
    for (std::thread& thread : threads) thread.join();
    return outcome;
}

template <class Gates>
Outcome by_gates(const Case& of, unsigned lanes) {
    const std::uint64_t first = of.before.rows();
    const std::size_t rows = of.rows();
    const auto joins = make_lanes(of, lanes);
    typename Gates::Rows gate(static_cast<unsigned>(of.sources.size()), lanes, gate_window);
    typename Gates::Pairs pairs(lanes, 1, gate_window);
    Outcome outcome;
    std::vector<std::thread> threads;
    const std::int64_t start = monotonic_ns();
    start_sources(of, gate, threads);
    for (unsigned lane = 0; lane < lanes; ++lane)
        threads.emplace_back([&, lane] {
            std::vector<typename Gates::Rows::Entry> entries(lot_rows);
            std::vector<typename Gates::Pairs::Value> values;
            std::vector<JoinMatch> matches;
            Columns lot;
            lot.reserve(lot_rows);
            for (std::size_t got = 0; got < rows;) {
                const std::size_t count = read_lot(of, gate, lane, first + got, entries.data(), lot);
                if (count == 0) {
                    std::this_thread::yield();
                    continue;
                }
                joins[lane]->join(lot.batch(), matches);
                values.clear();
                for (const JoinMatch& match : matches) {
                    const std::uint64_t row = first + got + match.row;
                    values.push_back({static_cast<Time>(row), {row, match.partner}});
                }
                for (std::size_t at = 0; at < values.size();) {
                    const std::size_t added = pairs.add_many(lane, values.data() + at, values.size() - at);
                    at += added;
                    if (added == 0) std::this_thread::yield();
                }
                got += count;
                pairs.come_to(lane, static_cast<Time>(first + got));
            }
            const typename Gates::Pairs::Value last{static_cast<Time>(first + rows), {first + rows, 0}};
            while (pairs.add_many(lane, &last, 1) == 0) std::this_thread::yield();
            pairs.end(lane);
        });
    std::vector<typename Gates::Pairs::Entry> found(lot_rows);
    std::uint64_t latest = 0;
    for (unsigned ended = 0; ended < lanes;) {
        const std::size_t count = pairs.next_many(0, found.data(), lot_rows);
        for (std::size_t i = 0; i < count; ++i) {
            const Pair& pair = found[i].value;
            bench::require(pair.row >= latest, "a pair came after those of a later row");
            latest = pair.row;
            if (pair.row == first + rows) ++ended;
            else outcome.answer.add(pair.row, pair.partner);
        }
        if (count == 0) std::this_thread::yield();
    }
    outcome.ns_per_row = static_cast<double>(monotonic_ns() - start) / static_cast<double>(rows);
    for (std::thread& thread : threads) thread.join();
    return outcome;
}

void measure_rates() {
    constexpr std::size_t round_count = 5;
    std::printf("Rows a second: median (least to most); and times those by lots\n\n");
    bench::head("predicate", {"sources", "lanes", "lots, 10^3/s", "ring gates", "/ lots", "list gates", "/ lots"});
    for (const Predicate& predicate : predicates)
        for (unsigned sources : {2u, 4u, 8u, 16u}) {
            const Case one(predicate, sources);
            const Answer expected = by_lots(one, 1).answer;
            bench::require(expected.matches != 0, "no pairs");
            for (unsigned lanes : {1u, 2u}) {
                const auto checked = [&](const Outcome& outcome) {
                    bench::require(outcome.answer == expected, "other pairs than those of one lane");
                    return 1e6 / outcome.ns_per_row;
                };
                const auto samples = bench::rounds(round_count, {
                    {"", [&] { return checked(by_lots(one, lanes)); }},
                    {"", [&] { return checked(by_gates<Rings>(one, lanes)); }},
                    {"", [&] { return checked(by_gates<Lists>(one, lanes)); }}});
                std::printf("| %s | %u | %u |", predicate.name, sources, lanes);
                for (std::size_t i = 0; i < samples.size(); ++i) {
                    std::printf(" %.0f (%.0f to %.0f) |", samples[i].median, samples[i].least, samples[i].most);
                    if (i != 0) std::printf(" %.2f |", samples[i].median / samples[0].median);
                }
                std::printf("\n");
                std::fflush(stdout);
            }
        }
    bench::foot();
}

// --- parts, on one thread ----------------------------------------------------------------------------------------

// The processor time of this thread: what else runs on the machine makes little difference to that.
std::int64_t thread_ns() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
}

struct Parts {
    double add{0}, read{0}, output{0}, give{0};  // nanoseconds for a row
};

// Sources add half a window, a reader makes lots of it, and so on. The lots are what there is to join.
template <class Rows>
Parts read_alone(const Case& of, std::vector<Columns>* lots) {
    const auto count = static_cast<unsigned>(of.sources.size());
    const std::size_t each = of.sources[0].times.size();
    Rows gate(count, 1, gate_window);
    std::vector<typename Rows::Entry> entries(lot_rows);
    std::int64_t adding = 0, reading = 0;
    std::uint64_t got = 0;
    Columns lot;
    lot.reserve(lot_rows);
    for (std::size_t begin = 0; begin < each; begin += gate_window / 2) {
        const std::size_t end = std::min(each, begin + gate_window / 2);
        const std::int64_t start = thread_ns();
        for (unsigned at = 0; at < count; ++at)
            for (std::size_t next = begin; next < end;) next += add_some(of, gate, at, next);
        if (end == each)
            for (unsigned at = 0; at < count; ++at) gate.end(at);
        const std::int64_t middle = thread_ns();
        while (const std::size_t more = read_lot(of, gate, 0, of.before.rows() + got, entries.data(), lot)) {
            got += more;
            if (lots != nullptr) lots->push_back(lot);
        }
        reading += thread_ns() - middle;
        adding += middle - start;
    }
    const auto rows = static_cast<double>(of.rows());
    bench::require(got == of.rows(), "a row is missing");
    return {static_cast<double>(adding) / rows, static_cast<double>(reading) / rows};
}

// Nanoseconds for a row of one of so many lanes; and what it finds of each lot.
double lane_alone(const Case& of, const std::vector<Columns>& lots, unsigned lanes, unsigned lane,
                  std::vector<std::vector<JoinMatch>>* found) {
    Lane join(of, lanes, lane);
    std::vector<JoinMatch> matches;
    std::int64_t joining = 0;
    for (const Columns& lot : lots) {
        const std::int64_t start = thread_ns();
        join.join(lot.batch(), matches);
        joining += thread_ns() - start;
        if (found != nullptr) found->push_back(matches);
    }
    return static_cast<double>(joining) / static_cast<double>(of.rows());
}

// Who puts out keeps windows, too: it says which rows leave without a partner, and gathers others.
__attribute__((noinline)) void keep_windows(JoinOutputs<Time>& outputs, const Columns& lot) {
    for (std::size_t row = 0; row < lot.rows(); ++row) {
        outputs.arrive(lot.times[row]);
        outputs.keep(lot.sides[row], lot.times[row]);
    }
}

// The same of who puts out: what lanes have found together, and what a join gives of that.
Parts output_alone(const Case& of, const std::vector<Columns>& lots, unsigned lanes) {
    std::vector<std::vector<std::vector<JoinMatch>>> found(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane) lane_alone(of, lots, lanes, lane, &found[lane]);
    JoinOutputs<Time> outputs(JoinKind::inner, JoinRule::strict, static_cast<Time>(2 * of.predicate.window), 0);
    for (std::size_t i = 0; i < of.before.rows(); ++i) outputs.keep(of.before.sides[i], of.before.times[i]);
    std::int64_t together = 0, giving = 0;
    std::vector<std::vector<JoinMatch>> of_lot(lanes);
    for (std::size_t at = 0; at < lots.size(); ++at) {
        for (unsigned lane = 0; lane < lanes; ++lane) of_lot[lane].swap(found[lane][at]);
        const std::int64_t start = thread_ns();
        put_together(of_lot[0], of_lot.data() + 1, lanes - 1);
        const std::int64_t middle = thread_ns();
        keep_windows(outputs, lots[at]);
        giving += thread_ns() - middle;
        together += middle - start;
    }
    const auto rows = static_cast<double>(of.rows());
    return {0, 0, static_cast<double>(together) / rows, static_cast<double>(giving) / rows};
}

void measure_parts() {
    constexpr std::size_t round_count = 5;
    std::printf("Nanoseconds for a row of each part, on one thread: medians\n\n");
    bench::head("sources", {"rings: add", "read", "list: add", "read"});
    for (unsigned sources : {2u, 4u, 8u, 16u}) {
        const Case one(predicates[0], sources);
        const auto samples = bench::rounds(round_count, {
            {"", [&] { return read_alone<Rings::Rows>(one, nullptr).add; }},
            {"", [&] { return read_alone<Rings::Rows>(one, nullptr).read; }},
            {"", [&] { return read_alone<Lists::Rows>(one, nullptr).add; }},
            {"", [&] { return read_alone<Lists::Rows>(one, nullptr).read; }}});
        std::printf("| %u | %.1f | %.1f | %.1f | %.1f |\n", sources, samples[0].median, samples[1].median,
                    samples[2].median, samples[3].median);
        std::fflush(stdout);
    }
    bench::foot();
    bench::head("predicate", {"lanes", "a lane, ns", "put together", "windows of who puts out"});
    for (const Predicate& predicate : predicates) {
        const Case one(predicate, 4);
        std::vector<Columns> lots;
        read_alone<Rings::Rows>(one, &lots);
        for (unsigned lanes : {1u, 2u, 4u, 8u, 16u}) {
            const auto samples = bench::rounds(round_count, {
                {"", [&] { return lane_alone(one, lots, lanes, 0, nullptr); }},
                {"", [&] { return output_alone(one, lots, lanes).output; }},
                {"", [&] { return output_alone(one, lots, lanes).give; }}});
            std::printf("| %s | %u | %.1f | %.1f | %.1f |\n", predicate.name, lanes, samples[0].median,
                        samples[1].median, samples[2].median);
            std::fflush(stdout);
        }
    }
    bench::foot();
}

}  // namespace

int main(int count, char** words) {
    const std::string wanted = count > 1 ? words[1] : "rates";
    if (wanted == "rates") measure_rates();
    if (wanted == "parts") measure_parts();
    if (wanted != "once") return 0;
    const Case one({"", true, 10'000, 64'000}, count > 2 ? static_cast<unsigned>(std::stoi(words[2])) : 4);
    std::vector<Columns> lots;
    read_alone<Rings::Rows>(one, &lots);
    output_alone(one, lots, 2);
}
