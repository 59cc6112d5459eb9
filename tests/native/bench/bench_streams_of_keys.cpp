// The evaluation of Das et al. 2009, section 5, with a thread for each stream: designs of a summary that streams count
// in. Zipf streams of a million elements each, an alphabet of five million, epsilon 1e-4.
//
//     bench_streams_of_keys [saturated] [unsaturated] [tuning] [profile] [asking] [rounds=5] [elements=1000000]
//                           [alpha=...] [streams=...]
//     bench_streams_of_keys streams_of_keys ELEMENTS STREAMS DESIGN ALPHA    one run, for tests/bench: a line of JSON
//
//   saturated    figures 5 and 6: execution times, and how many times as long as the others Shared takes
//   unsaturated  figure 7: a read fails with probability 0.1, 0.3 or 0.5
//   tuning       figure 8: execution times of the designs that throttle, with and without, and of Shared
//   profile      figures 9 and 10: how much is delegated, as designs count it. Figure 2, the split of the time into
//                hashing, the summary and waiting, is not measured
//   asking       figure 1: a query each 50,000 elements, and the processor time that queries take of all
//
// Without a word it is a sample of the first, for `make bench`. Designs take turns within a round. Every run checks
// that counts add up where they should, and the 25 most frequent keys against their exact counts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "callboard/frequency/counting/keys.hpp"
#include "callboard/frequency/designs/partitioned.hpp"
#include "callboard/frequency/designs/sequential.hpp"
#include "../../bench/peers/cooperative.hpp"
#include "../../bench/peers/independent_summary.hpp"
#include "../../bench/peers/shared_summary.hpp"
#include "bench.hpp"
#include "zipf.hpp"

using namespace callboard;

namespace {

constexpr std::uint32_t alphabet = 5000000, capacity = 10000;
constexpr std::uint64_t seed = 0x2545f4914f6cdd1d;
constexpr std::size_t chunk = 500;         // so many elements a saturated thread reads and counts at once
constexpr std::size_t query_rate = 50000;  // elements of all streams for each query
constexpr int read_turns = 2;              // a read that fails takes so many pauses: about as long as to count

using Counting = Summary<IntegerKeys>;

// The floor: one lock around a whole chunk, and the sequential counters at their best.
class UnderMutex final : public Counting {
public:
    explicit UnderMutex(unsigned) : counters_(capacity, seed) {}
    void add(unsigned, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        const std::lock_guard<std::mutex> guard(lock_);
        counters_.add(0, keys, weights, count);
    }
    Answer ask(std::size_t most, double support) override {
        const std::lock_guard<std::mutex> guard(lock_);
        return counters_.ask(most, support);
    }
    Estimate estimate(const Probe& key) override {
        const std::lock_guard<std::mutex> guard(lock_);
        return counters_.estimate(key);
    }
    std::uint64_t total() override { return ask(0, 0).total; }
    std::uint32_t size() override { return counters_.size(); }
    void load(const Answer& state) override { counters_.load(state); }

private:
    std::mutex lock_;
    Sequential<IntegerKeys> counters_;
};

struct Design {
    const char* name;
    std::unique_ptr<Counting> (*make)(unsigned streams);
    bool adds_up;                                 // one counter for a key, so the counts add up to the elements
    bool is_tuned = false;                        // for figure 8
    std::string (*profile)(Counting&) = nullptr;  // for figures 9 and 10: what it says of itself after a run
};

template <class Type>
std::unique_ptr<Counting> make(unsigned streams) {
    if constexpr (std::is_constructible_v<Type, unsigned>) return std::make_unique<Type>(streams);
    else return std::make_unique<Type>(capacity, seed, streams);
}

// Equal keys at hand are added up first, or come one by one as in the paper; throttled by its threshold, or never.
template <std::uint32_t threshold, bool gathers>
struct Cooperating : Cooperative<IntegerKeys> {
    explicit Cooperating(unsigned streams) : Cooperative<IntegerKeys>(capacity, seed, streams, threshold, gathers) {}
};
using AsOurs = Cooperating<500, true>;
using AsThePaper = Cooperating<500, false>;
using Unthrottled = Cooperating<0, false>;

struct TwoPartitions : Partitioned<IntegerKeys> {
    explicit TwoPartitions(unsigned streams) : Partitioned<IntegerKeys>(capacity, seed, streams, 2) {}
};

std::string what_it_says(Counting& summary) {
    const CooperationCounts counts = static_cast<Cooperative<IntegerKeys>&>(summary).counts();
    const auto share = [&](std::uint64_t part) { return 100.0 * static_cast<double>(part) / static_cast<double>(counts.elements); };
    char text[200];
    std::snprintf(text, sizeof text, "%.1f%% delegated in the search structure, %.1f%% in the stream summary; queues %.0f on average, %.0f at most; %.0f rests",
                  share(counts.delegated_elements), share(counts.delegated_requests),
                  counts.delegated_requests == 0 ? 0.0 : static_cast<double>(counts.queue_sum) / static_cast<double>(counts.delegated_requests),
                  static_cast<double>(counts.queue_most), static_cast<double>(counts.throttled));
    return text;
}

// A new design is a line here. One that throttles is two, both for figure 8.
const std::vector<Design> designs = {
    {"Shared", make<Shared<IntegerKeys>>, true, true},
    {"Cooperative", make<AsOurs>, true, true, what_it_says},
    {"Cooperative, as the paper's", make<AsThePaper>, true, true, what_it_says},
    {"the same, never throttled", make<Unthrottled>, true, true, what_it_says},
    {"Partitioned", make<TwoPartitions>, false},
    {"Independent", make<Independent<IntegerKeys>>, false},
    {"Sequential, a mutex", make<UnderMutex>, true},
};

struct Options {
    std::vector<std::string> modes;
    std::size_t rounds = 5, elements = 1000000;
    std::vector<double> alphas{0.5, 1.0, 1.5, 2.0, 2.5, 3.0};
    std::vector<unsigned> streams{4, 8, 16, 32};
};

// What the threads do.
struct Load {
    unsigned streams;
    double failing = 0;  // the probability that a read fails
    bool is_asked = false;
};

struct Run {
    double seconds, asking;  // queries' part of the processor time
    std::string profile;
};

double thread_seconds() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// One stream, by its own thread. Returns the processor time that its queries took.
double count_stream(Counting& summary, unsigned stream, const std::vector<std::int64_t>& keys, const Load& load) {
    std::uint64_t reads = 0;
    double asking = 0;
    const auto fails = static_cast<std::uint64_t>(load.failing * 0x1p64);
    std::size_t next_query = query_rate * (stream + 1) / load.streams;  // streams take turns
    for (std::size_t at = 0; at < keys.size();) {
        std::size_t end = std::min(at + chunk, keys.size());
        if (load.failing > 0) {  // what was read until a read fails
            end = at;
            while (end < keys.size() && end < at + chunk && random_number(stream, reads++) >= fails) ++end;
        }
        if (end != at) summary.add(stream, keys.data() + at, nullptr, end - at);
        if (load.failing > 0)
            for (int turn = 0; turn < read_turns; ++turn) relax();
        at = end;
        if (load.is_asked && at >= next_query) {
            next_query += query_rate;
            const double begin = thread_seconds();
            bench::require(!summary.ask(25, 0).rows.empty(), "no rows");
            asking += thread_seconds() - begin;
        }
    }
    return asking;
}

void check(Counting& summary, const Design& design, std::uint64_t total,
           const std::vector<bench::ZipfStreams::Times>& most) {
    const auto answer = summary.ask(capacity, 0);
    std::uint64_t sum = 0;
    for (auto& row : answer.rows) sum += row.count;
    bench::require(answer.total == total && sum <= total, "the total");
    bench::require(!design.adds_up || sum == total, "the sum of the counts");
    bench::require(answer.unseen <= total / capacity, "unseen");
    for (auto& [key, times] : most) {
        const auto found = summary.estimate(key);
        bench::require(times <= found.count && found.count <= times + found.error, "a frequent key's count");
        bench::require(found.error <= total / capacity, "a frequent key's error");
        bench::require(found.has_counter || times <= total / capacity, "a frequent key is missed");
    }
}

Run run(const Design& design, const bench::ZipfStreams& keys, const Load& load,
        const std::vector<bench::ZipfStreams::Times>& most) {
    const auto summary = design.make(load.streams);
    Atomic<unsigned> waiting{load.streams};
    Atomic<std::int64_t> begin{0};
    std::vector<double> asking(load.streams), used(load.streams);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < load.streams; ++i) {
        threads.emplace_back([&, i] {
            bench::pin(static_cast<int>(i));
            if (waiting.fetch_sub(1, acq_rel) == 1) begin.store(monotonic_ns(), relaxed);
            while (waiting.load(acquire) != 0) std::this_thread::yield();
            const double before = thread_seconds();
            asking[i] = count_stream(*summary, i, keys[i], load);
            used[i] = thread_seconds() - before;
        });
    }
    for (std::thread& thread : threads) thread.join();
    const auto ns = static_cast<double>(monotonic_ns() - begin.load(relaxed));
    std::uint64_t total = 0;
    double all_asking = 0, all_used = 0;
    for (unsigned i = 0; i < load.streams; ++i) {
        total += keys[i].size();
        all_asking += asking[i];
        all_used += used[i];
    }
    check(*summary, design, total, most);
    return {ns / 1e9, all_asking / all_used, design.profile == nullptr ? "" : design.profile(*summary)};
}

// The runs of each design, in rounds.
std::vector<std::vector<Run>> rounds(const std::vector<Design>& candidates, const Options& options,
                                     bench::ZipfStreams& keys, const Load& load) {
    keys.grow_to(load.streams);
    const auto most = keys.most_frequent(25);
    std::vector<std::vector<Run>> runs(candidates.size());
    for (std::size_t round = 0; round < options.rounds; ++round) {
        const bench::Others others;
        for (std::size_t i = 0; i < candidates.size(); ++i) runs[i].push_back(run(candidates[i], keys, load, most));
        bench::noise_of_table().push_back(others.share());
    }
    return runs;
}

template <class Value>
bench::Sample sample(const std::vector<Run>& runs, const Value& value) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(value(run));
    return bench::summary(values);
}

// A table of times and ratios, or of queries' parts, with a line for each alpha and number of streams.
void table(const std::string& title, const std::vector<Design>& candidates, const Options& options, double failing,
           bool is_asked) {
    std::printf("%s, %zu elements a stream\n\n", title.c_str(), options.elements);
    std::vector<std::string> columns{"streams"};
    for (const Design& design : candidates) columns.push_back(design.name + std::string(is_asked ? ", %" : ", s"));
    if (!is_asked)
        for (std::size_t i = 1; i < candidates.size(); ++i)
            columns.push_back(candidates[0].name + std::string(" / ") + candidates[i].name);
    bench::head("alpha", columns);
    for (const double alpha : options.alphas) {
        bench::ZipfStreams keys(alpha, alphabet, options.elements);
        for (const unsigned streams : options.streams) {
            const auto runs = rounds(candidates, options, keys, {streams, failing, is_asked});
            std::printf("| %.1f | %u |", alpha, streams);
            std::vector<double> medians;
            for (const auto& of_design : runs) {
                const auto [median, least, most] =
                    sample(of_design, [&](const Run& run) { return is_asked ? 100 * run.asking : run.seconds; });
                std::printf(is_asked ? " %.1f (%.1f to %.1f) |" : " %.3f (%.3f to %.3f) |", median, least, most);
                medians.push_back(median);
            }
            for (std::size_t i = 1; i < medians.size() && !is_asked; ++i)
                std::printf(" %.2f |", medians[0] / medians[i]);
            std::printf("\n");
            std::fflush(stdout);
        }
    }
    bench::foot();
}

// One run each of the designs that say something of themselves.
void profiles(const Options& options) {
    std::printf("Profiles, %zu elements a stream\n\n", options.elements);
    bench::head("alpha", {"streams", "design", "profile"});
    for (const double alpha : options.alphas) {
        bench::ZipfStreams keys(alpha, alphabet, options.elements);
        for (const unsigned streams : options.streams) {
            keys.grow_to(streams);
            for (const Design& design : designs) {
                if (design.profile == nullptr) continue;
                const auto text = run(design, keys, {streams}, keys.most_frequent(25)).profile;
                std::printf("| %.1f | %u | %s | %s |\n", alpha, streams, design.name, text.c_str());
            }
        }
    }
    std::printf("\n");
}

void measure(const std::string& mode, const Options& options) {
    if (mode == "saturated") return table("Saturated", designs, options, 0, false);
    if (mode == "asking") return table("A query each 50,000 elements", designs, options, 0, true);
    if (mode == "profile") return profiles(options);
    if (mode == "tuning") {
        std::vector<Design> tuned;
        std::copy_if(designs.begin(), designs.end(), std::back_inserter(tuned), [](auto& it) { return it.is_tuned; });
        return table("Throttling", tuned, options, 0, false);
    }
    bench::require(mode == "unsaturated", ("no such mode: " + mode).c_str());
    for (const char* failing : {"0.1", "0.3", "0.5"})
        table(std::string("Reads fail with probability ") + failing, designs, options, std::atof(failing), false);
}

// Wrong results end the program before it prints, so what it prints is right.
int one(std::size_t elements, unsigned streams, const std::string& name, double alpha) {
    const auto design = std::find_if(designs.begin(), designs.end(), [&](auto& it) { return it.name == name; });
    bench::require(design != designs.end(), ("no such design: " + name).c_str());
    bench::ZipfStreams keys(alpha, alphabet, elements / streams);
    keys.grow_to(streams);
    const double seconds = run(*design, keys, {streams}, keys.most_frequent(25)).seconds;
    std::printf("{\"operations\": %zu, \"seconds\": %.9f, \"got\": 1, \"want\": 1}\n", elements, seconds);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    if (count == 6 && words[1] == std::string("streams_of_keys"))
        return one(std::stoul(words[2]), static_cast<unsigned>(std::stoul(words[3])), words[4], std::stod(words[5]));
    Options options;
    if (count == 1) options = {{"saturated"}, 3, 50000, {0.5, 1.5, 3.0}, {4, 32}};
    std::map<std::string, std::vector<double>> given;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const std::size_t sign = word.find('=');
        if (sign == word.npos) options.modes.push_back(word);
        else given[word.substr(0, sign)].push_back(std::stod(word.substr(sign + 1)));
    }
    if (given.count("rounds")) options.rounds = static_cast<std::size_t>(given["rounds"].back());
    if (given.count("elements")) options.elements = static_cast<std::size_t>(given["elements"].back());
    if (given.count("alpha")) options.alphas = given["alpha"];
    if (given.count("streams")) options.streams = {given["streams"].begin(), given["streams"].end()};
    if (options.modes.empty()) options.modes = {"saturated"};
    for (const std::string& mode : options.modes) measure(mode, options);
}
