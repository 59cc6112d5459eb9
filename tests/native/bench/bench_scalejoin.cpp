// A join as in ScaleJoin (Gulisano et al. 2015, section IV): lanes each read all rows and store every n-th, and what
// they find is put into one order. Rows are those of the paper (paper_rows.hpp).
//
//     bench_scalejoin rates      comparisons and rows a second by lanes, as in its figure 5
//     bench_scalejoin latency    from when a row is ready until its pairs are read, at half of that rate: 7b and 7c
//     bench_scalejoin balance    how unlike the lanes' work is, for streams of changing rates: 8, counted on one thread
//     bench_scalejoin running    the same, measured on lanes that run, in slices of time
//
// In `rates` and `latency` the window of R is full, and rows of S come: each is compared with all of the window, by the
// lanes together. The main thread says which rows have come and reads the pairs, and sleeps where it has nothing to do.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/streams/programs/joins/kernel/full_join.hpp"
#include "paper_rows.hpp"

using namespace callboard;
using bench::Answer;
using bench::Rows;

namespace {

constexpr std::size_t batch_rows = 512, pair_room = 4096;
constexpr std::int64_t per_second = 1000;

// Numbers of a row of S and of its partner.
struct Pair {
    std::uint64_t row, partner;
};

// One of the threads that compare.
class Lane {
public:
    Lane(unsigned lane, unsigned lanes, const Rows& window, const Rows& probes, std::int64_t within)
        : lane_(lane),
          join_({bench::paper_predicate(), JoinRule::three_step, within, lanes, lane}, best_path()),
          probes_(probes) {
        join_.join(window.batch(0, window.sides.size()), matches_);
    }

    // When it had done how many rows, in order of time.
    struct Progress {
        std::int64_t time;
        std::uint64_t rows;
    };
    const std::vector<Progress>& progress() const { return progress_; }

    // Joins all rows of S; `sent` is how many have come.
    void run(const Atomic<std::uint64_t>& sent) {
        std::uint64_t done = 0;
        while (done < probes_.sides.size()) {
            const std::uint64_t count = std::min<std::uint64_t>(batch_rows, sent.load(acquire) - done);  // pairs with join_all()
            if (count == 0) {
                std::this_thread::yield();
                continue;
            }
            // Rows of S alone come, so they are neighbours where they lie.
            join_.join(probes_.batch(done, count), matches_);
            for (const JoinMatch& match : matches_)
                while (!pairs_.try_push({done + match.row, match.partner})) std::this_thread::yield();
            done += count;
            progress_.push_back({monotonic_ns(), done});
            done_.store(done, release);  // pairs with rows_done()
        }
    }

    // The main thread: all pairs of these rows can be taken then.
    std::uint64_t rows_done() const { return done_.load(acquire); }

    // The main thread.
    bool take(Pair& pair) { return pairs_.try_pop(pair); }

private:
    const unsigned lane_;
    FullJoin<std::int64_t> join_;
    const Rows& probes_;
    std::vector<JoinMatch> matches_;
    std::vector<Progress> progress_;
    Spsc<Pair> pairs_{pair_room};
    Atomic<std::uint64_t> done_{0};  // rows
};

struct Outcome {
    Answer answer{};
    double ns_per_row{0};
    std::vector<double> latencies{};  // in microseconds, of the rows that have pairs
    std::vector<std::vector<Lane::Progress>> progress{};  // of each lane
};

// Rows come as fast as they can, or one each `pace_ns`.
Outcome join_all(unsigned lanes, const Rows& window, const Rows& probes, std::int64_t within, double pace_ns) {
    const std::size_t count = probes.sides.size();
    Atomic<std::uint64_t> sent{0};
    std::vector<std::unique_ptr<Lane>> all;
    for (unsigned lane = 0; lane < lanes; ++lane)
        all.push_back(std::make_unique<Lane>(lane, lanes, window, probes, within));
    std::vector<std::thread> threads;
    for (unsigned lane = 0; lane < lanes; ++lane)
        threads.emplace_back([&, lane] {
            bench::pin(static_cast<int>(lane));
            all[lane]->run(sent);
        });

    if (pace_ns != 0) bench::pin(static_cast<int>(lanes));
    Outcome outcome;
    std::vector<std::int64_t> ready(count);
    std::vector<std::deque<Pair>> found(lanes);
    std::uint64_t latest = ~std::uint64_t{0}, complete = 0;  // of rows before `complete` all pairs are found
    const std::int64_t start = monotonic_ns();
    while (complete != count) {
        const std::int64_t now = monotonic_ns();
        const std::size_t due =
            pace_ns == 0 ? count : std::min(count, static_cast<std::size_t>(static_cast<double>(now - start) / pace_ns));
        const bool has_more = due != sent.load(relaxed);
        for (std::size_t row = sent.load(relaxed); row < due; ++row) ready[row] = now;
        sent.store(due, release);  // pairs with run()
        complete = count;
        for (const auto& lane : all) complete = std::min(complete, lane->rows_done());
        for (unsigned lane = 0; lane < lanes; ++lane)
            for (Pair pair; all[lane]->take(pair);) found[lane].push_back(pair);
        const std::int64_t read = monotonic_ns();
        const std::uint64_t before = outcome.answer.matches;
        for (;;) {
            std::deque<Pair>* first = nullptr;
            for (std::deque<Pair>& one : found)
                if (!one.empty() && (first == nullptr || one.front().row < first->front().row)) first = &one;
            if (first == nullptr || first->front().row >= complete) break;
            const Pair pair = first->front();
            first->pop_front();
            outcome.answer.add(pair.row, pair.partner);
            if (pair.row != latest) outcome.latencies.push_back(static_cast<double>(read - ready[pair.row]) / 1e3);
            latest = pair.row;
        }
        if (!has_more && outcome.answer.matches == before && pace_ns == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    outcome.ns_per_row = static_cast<double>(monotonic_ns() - start) / static_cast<double>(count);
    for (std::thread& thread : threads) thread.join();
    for (const auto& lane : all) outcome.progress.push_back(lane->progress());
    return outcome;
}

// How many rows a lane had done by a time, between two of its batches in proportion.
double rows_at(const std::vector<Lane::Progress>& lane, std::int64_t time) {
    const auto after = std::upper_bound(lane.begin(), lane.end(), time,
                                        [](std::int64_t when, const Lane::Progress& point) { return when < point.time; });
    if (after == lane.begin()) return static_cast<double>(after->rows);
    const Lane::Progress& before = *std::prev(after);
    if (after == lane.end()) return static_cast<double>(before.rows);
    const double part = static_cast<double>(time - before.time) / static_cast<double>(after->time - before.time);
    return static_cast<double>(before.rows) + part * static_cast<double>(after->rows - before.rows);
}

// What `rates`, `latency` and `running` have in common: a full window of R, and rows of S.
struct Case {
    explicit Case(std::int64_t seconds, std::size_t batches = 32, std::int64_t rate = per_second)
        : within(seconds * 1000),
          window(1, static_cast<std::size_t>(seconds * per_second), 0, 0, per_second, 1),
          probes(2, batches * batch_rows, window.sides.size(), within, rate, 0) {}

    const std::int64_t within;
    const Rows window, probes;
};

void measure_rates() {
    std::printf("Comparisons and rows a second, by lanes\n\n");
    bench::head("window", {"lanes", "10**9 comparisons/s", "rows/s", "times those of 1 lane"});
    for (std::int64_t seconds : {300, 600, 900}) {
        const Case one(seconds);
        const std::vector<int> counts = bench::thread_counts();
        const Answer expected = join_all(1, one.window, one.probes, one.within, 0).answer;
        bench::require(expected.matches != 0, "no pairs");
        std::vector<bench::Candidate> candidates;
        for (int lanes : counts)
            candidates.push_back({"", [&one, &expected, lanes] {
                const Outcome outcome = join_all(static_cast<unsigned>(lanes), one.window, one.probes, one.within, 0);
                bench::require(outcome.answer == expected, "other pairs than those of 1 lane");
                return outcome.ns_per_row;
            }});
        const auto samples = bench::rounds(9, candidates);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double ns = samples[i].median, rows = static_cast<double>(one.window.sides.size());
            std::printf("| %lld s | %d | %.2f | %.0f | %.2f |\n", static_cast<long long>(seconds), counts[i], rows / ns,
                        1e9 / ns, samples[0].median / ns);
            std::fflush(stdout);
        }
    }
    bench::foot();
}

void measure_latency() {
    std::printf("Microseconds from when a row is ready until its pairs are read, at half of the rate\n\n");
    bench::head("window", {"lanes", "rows/s", "median", "99th percentile"});
    for (std::int64_t seconds : {300, 600, 900}) {
        const Case one(seconds);
        for (int lanes : bench::thread_counts()) {
            if (lanes != 1 && lanes >= CPU_COUNT(&bench::allowed_cores())) continue;  // the main thread needs a core
            const auto threads = static_cast<unsigned>(lanes);
            const Outcome fast = join_all(threads, one.window, one.probes, one.within, 0);
            std::vector<double> medians, tails;
            for (int round = 0; round < 5; ++round) {
                Outcome paced = join_all(threads, one.window, one.probes, one.within, 2 * fast.ns_per_row);
                bench::require(paced.answer == fast.answer, "other pairs than at full speed");
                std::sort(paced.latencies.begin(), paced.latencies.end());
                medians.push_back(paced.latencies[paced.latencies.size() / 2]);
                tails.push_back(paced.latencies[paced.latencies.size() * 99 / 100]);
            }
            std::printf("| %lld s | %d | %.0f | %.0f | %.0f |\n", static_cast<long long>(seconds), lanes,
                        0.5e9 / fast.ns_per_row, bench::summary(medians).median, bench::summary(tails).median);
            std::fflush(stdout);
        }
    }
    std::printf("\n");
}

// The comparisons of running lanes in slices of 100 ms. Rows of S come within half a second, so hardly a row of R is too old:
// each is compared with all that a lane has stored, and rows are what there is to count.
void measure_running() {
    constexpr std::int64_t time_slice_ns = 100'000'000;
    std::printf("Comparisons of lanes that run, in slices of 100 ms, window of 300 s\n\n");
    bench::head("lanes", {"slices", "10**9 comparisons/s of a lane", "standard deviation, %", "most"});
    const Case one(300, 700, 1000 * per_second);
    for (int lanes : bench::thread_counts(2)) {
        const Outcome outcome = join_all(static_cast<unsigned>(lanes), one.window, one.probes, one.within, 0);
        const double stored = static_cast<double>(one.window.sides.size()) / lanes;
        std::int64_t begin = 0, end = outcome.progress[0].back().time;
        for (const auto& lane : outcome.progress) begin = std::max(begin, lane[0].time), end = std::min(end, lane.back().time);
        std::vector<double> means, deviations;
        for (std::int64_t from = begin; from + time_slice_ns <= end; from += time_slice_ns) {
            double sum = 0, squares = 0;
            std::vector<double> compared;
            for (const auto& lane : outcome.progress) {
                compared.push_back(stored * (rows_at(lane, from + time_slice_ns) - rows_at(lane, from)));
                sum += compared.back();
            }
            const double mean = sum / lanes;
            for (double each : compared) squares += (each - mean) * (each - mean);
            means.push_back(mean / time_slice_ns);
            deviations.push_back(100 * std::sqrt(squares / lanes) / mean);
        }
        bench::require(!means.empty(), "the run was shorter than a slice");
        std::printf("| %d | %zu | %.1f | %.2f | %.2f |\n", lanes, means.size(), bench::summary(means).median,
                    bench::summary(deviations).median, bench::summary(deviations).most);
        std::fflush(stdout);
    }
    std::printf("\n");
}

// --- balance -----------------------------------------------------------------------------------------------------

// Rows a second of one physical stream, by the second.
struct Source {
    std::uint8_t side;
    std::function<double(int second)> rate;
};

// What each lane compares in each second, once windows are full, if all were comparing.
void measure_balance() {
    constexpr int window_s = 300, measured_s = 300;
    const auto constant = [](double rate) { return [rate](int) { return rate; }; };
    const auto wave = [](double mean, double swing, double period) {
        return [=](int second) { return mean + swing * std::sin(2 * M_PI * second / period); };
    };
    const auto peaks = [](double rate, int period) {
        return [=](int second) { return second % period < 10 ? 5 * rate : rate; };
    };
    const struct {
        const char* name;
        std::uint64_t lanes;
        std::vector<Source> sources;
    } cases[] = {
        {"constant rates, 1 R and 4 S",
         10,
         {{1, constant(1200)}, {0, constant(90)}, {0, constant(180)}, {0, constant(270)}, {0, constant(360)}}},
        {"rates that swing, 3 R and 2 S",
         12,
         {{1, wave(400, 200, 60)}, {1, wave(300, 250, 97)}, {1, wave(200, 100, 31)}, {0, wave(500, 300, 73)},
          {0, wave(400, 350, 120)}}},
        {"rates with peaks, 4 R and 2 S",
         14,
         {{1, peaks(100, 90)}, {1, peaks(200, 70)}, {1, peaks(150, 120)}, {1, constant(300)}, {0, peaks(300, 80)},
          {0, constant(400)}}},
        {"twice as many R as S, in turns", 3, {{1, constant(800)}, {0, constant(400)}}},
    };
    std::printf("Comparisons by lanes, window of %d s\n\n", window_s);
    bench::head("streams", {"lanes", "10**6 comparisons/s of a lane, least to most", "standard deviation, %", "most"});
    for (const auto& [name, lanes, sources] : cases) {
        std::vector<std::unique_ptr<JoinWindows<std::int64_t>>> windows;
        for (std::uint64_t lane = 0; lane < lanes; ++lane) {
            const JoinSettings<std::int64_t> settings{JoinPredicate{}, JoinRule::three_step, window_s * 1000, lanes, lane};
            windows.push_back(std::make_unique<JoinWindows<std::int64_t>>(settings, JoinColumns{}));
        }
        std::vector<double> means, deviations;
        std::uint64_t number = 0;
        for (int second = 0; second < window_s + measured_s; ++second) {
            std::vector<std::pair<double, std::uint8_t>> rows;
            for (const Source& source : sources) {
                const int count = static_cast<int>(source.rate(second));
                for (int i = 0; i < count; ++i) rows.push_back({second * 1e3 + 1e3 * i / count, source.side});
            }
            std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.first < b.first; });
            std::vector<double> compared(lanes);
            for (const auto& [time, side] : rows) {
                const auto whole = static_cast<std::int64_t>(time);
                JoinBatch<std::int64_t> batch;
                batch.rows = 1;
                batch.sides = &side;
                batch.times = &whole;
                batch.numbers = &number;
                for (std::uint64_t lane = 0; lane < lanes; ++lane)
                    windows[lane]->take(
                        batch, 0,
                        [&, lane](const auto& window) {
                            compared[lane] += static_cast<double>(window.end() - window.begin());
                        },
                        [&](auto& window, std::int64_t now) { window.push(now, number, nullptr, 0); },
                        [](std::uint32_t, std::uint64_t) {});
                ++number;
            }
            for (auto& window : windows) window->purge();
            if (second < window_s) continue;
            double sum = 0, squares = 0;
            for (double one : compared) sum += one;
            const double mean = sum / static_cast<double>(lanes);
            for (double one : compared) squares += (one - mean) * (one - mean);
            means.push_back(mean / 1e6);
            deviations.push_back(100 * std::sqrt(squares / static_cast<double>(lanes)) / mean);
        }
        const bench::Sample mean = bench::summary(means), deviation = bench::summary(deviations);
        std::printf("| %s | %llu | %.1f to %.1f | %.5f | %.5f |\n", name, static_cast<unsigned long long>(lanes),
                    mean.least, mean.most, deviation.median, deviation.most);
        std::fflush(stdout);
    }
    std::printf("\n");
}

}  // namespace

// All tables, or the one whose name is given.
int main(int count, char** words) {
    const std::string wanted = count > 1 ? words[1] : "";
    const std::pair<const char*, void (*)()> tables[] = {
        {"rates", measure_rates}, {"latency", measure_latency}, {"balance", measure_balance}, {"running", measure_running}};
    for (const auto& [name, measure] : tables)
        if (wanted.empty() || wanted == name) measure();
}
