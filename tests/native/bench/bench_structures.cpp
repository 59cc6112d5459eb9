// Structures that order or divide rows, against the paper's others, in pipelines of native operators of a known cost:
// figures 9 to 14 of Prasaad et al. 2018, section 7. Every run checks that all rows came out, and in order, by what
// the same pipeline gives on one thread.
//
//     bench_structures                                               a sample
//     bench_structures NAME ROWS LANES OPTION=VALUE... OPERATOR...   one run, for tests/bench: prints a line of JSON
//
//   OPERATOR   KIND:NS:SELECTIVITY, NS for a row and so many rows out for one in: SL, stateless; PS, keyed by what is
//              even; PR, keyed by ranges of a position that sigma and mean distribute; SF, stateful
//   scheme     hybrid or non_blocking (ours), partitioned, shared (keyed operators), locked (reordering)
//   measure    rate; or latency, the mean time from a round's beginning to its end, in ms
//   tuple      bytes of memory that belong to a row: each operator reads and writes all of them
//   state      the same of a keyed operator's partition; rows have a tuple then
//   batch, window, markers, partitions, sigma, mean, and ct=1 for the heuristic of the same name
//
// Lanes are pinned to cores. One more thread sends, as a caller does.
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "callboard/core/threads/parker.hpp"
#include "callboard/scheduling/flow/flow.hpp"
#include "callboard/scheduling/flow/native_work.hpp"
#include "../../bench/peers/partitioned_queue.hpp"
#include "../../bench/peers/reorder_locked.hpp"
#include "../../bench/peers/shared_queue.hpp"
#include "../../bench/peers/stages.hpp"
#include "bench.hpp"

using namespace callboard;

namespace {

// A row is its serial number, and below it so many bits that keys are made of.
constexpr int low_bits = 16;
constexpr std::int64_t low_mask = (1 << low_bits) - 1;
constexpr std::int64_t patience = 60'000'000'000;

struct Kind {
    std::string name;
    std::int64_t ns;
    double selectivity;
    bool is_keyed() const { return name[0] == 'P'; }
};

struct Load {
    std::int64_t rows;
    int lanes;
    std::vector<Kind> kinds;
    std::string scheme = "hybrid";
    std::size_t batch = 512;
    std::uint32_t window = 256, markers = 64, partitions = 64;
    double sigma = 0, mean = 0;
    std::size_t tuple = 0, state = 0;
    bool by_throughput = false;
};

using Words = std::vector<std::uint64_t>;

// The memory of rows, for as many as can be on their way: a row's place is free once its round has left.
class Tuples {
public:
    explicit Tuples(const Load& load)
        : words_(load.tuple / sizeof(std::uint64_t)), places_(load.window * load.batch), all_(words_ * places_) {}

    std::size_t words() const { return words_; }
    std::uint64_t* of(std::int64_t row) {
        return all_.data() + static_cast<std::uint64_t>(row >> low_bits) % places_ * words_;
    }
    void fill(const Value* rows, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i)
            for (std::size_t word = 0; word < words_; ++word)
                of(rows[i].integer)[word] = static_cast<std::uint64_t>(rows[i].integer) + word;
    }

private:
    const std::size_t words_, places_;
    Words all_;
};

void spin(std::int64_t ns) {
    if (ns == 0) return;
    for (const auto end = monotonic_ns() + ns; monotonic_ns() < end;) {
    }
}

struct Operator;

// What a partition has of a keyed operator, or all have of another one.
struct Part {
    Operator* op;
    Words state;
};

struct Operator {
    Kind kind;
    Tuples& tuples;
    std::vector<Part> parts{};
    std::vector<std::uint64_t> keys{};  // for each range, a key that is in the partition
    Atomic<std::int64_t> stopped_at{INT64_MAX};
    NativeWork native{};

    Operator(const Kind& kind, const Load& load, Tuples& tuples, bool costs) : kind(kind), tuples(tuples) {
        if (!costs) this->kind.ns = 0;
        for (std::uint32_t range = 0; kind.name == "PR" && range < load.partitions; ++range) {
            std::uint64_t key = 0;
            while (Division::partition_of(key, load.partitions) != range) ++key;
            keys.push_back(key);
        }
        const Words state(kind.is_keyed() ? load.state / sizeof(std::uint64_t) : 0);
        parts.assign(kind.is_keyed() ? load.partitions : 1, {this, state});
        native.process = process;
        native.key_of = key_of;
        for (Part& part : parts) native.objects.push_back(&part);
        native.stopped_at = &stopped_at;
        native.edges = 1;
    }

    static void process(void* self, const Value* rows, std::uint64_t count, Output* out) {
        Part& part = *static_cast<Part*>(self);
        const Kind& kind = part.op->kind;
        for (std::uint64_t i = 0; i < count; ++i) {
            spin(kind.ns);
            touch(part, rows[i].integer);
            const std::int64_t row = rows[i].integer, low = row & low_mask;
            const std::uint32_t chance = Division::partition_of(static_cast<std::uint64_t>(row), 1000);
            const auto children = static_cast<std::int64_t>(kind.selectivity + chance / 1000.0);
            for (std::int64_t child = 0; child < children; ++child)
                out->push_integer((row & ~low_mask) | ((low * 31 + child) & low_mask));
        }
    }

    static void touch(Part& part, std::int64_t row) {
        Tuples& tuples = part.op->tuples;
        if (tuples.words() == 0) return;
        std::uint64_t* const tuple = tuples.of(row);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < tuples.words(); ++i) sum += tuple[i]++;
        for (auto& word : part.state) word += sum;
        if (!part.state.empty()) tuple[0] += part.state[sum % part.state.size()];
    }

    static std::uint64_t key_of(void* self, const Value* row) {
        const auto& keys = static_cast<Part*>(self)->op->keys;
        const auto low = static_cast<std::uint64_t>(row->integer & low_mask);
        return keys.empty() ? low : keys[low * keys.size() >> low_bits];
    }
};

// The end: what came, and whether in order.
struct End {
    Tuples& tuples;
    std::uint64_t count = 0, sum = 0;
    std::int64_t last = 0;
    bool in_order = true;
    Atomic<std::int64_t> stopped_at{INT64_MAX};
    NativeWork native{};

    explicit End(Tuples& tuples) : tuples(tuples) {
        native.process = [](void* self, const Value* rows, std::uint64_t count, Output*) {
            static_cast<End*>(self)->take(rows, count);
        };
        native.objects = {this};
        native.stopped_at = &stopped_at;
    }

    void take(const Value* rows, std::uint64_t many) {
        for (std::uint64_t i = 0; i < many; ++i) {
            in_order &= rows[i].integer >> low_bits >= last;
            last = rows[i].integer >> low_bits;
            sum = sum * 31 + static_cast<std::uint64_t>(rows[i].integer);
            for (std::size_t word = 0; word < tuples.words(); ++word) sum += tuples.of(rows[i].integer)[word];
        }
        count += many;
    }
};

std::vector<std::int64_t> rows_of(const Load& load) {
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal(load.mean, load.sigma);
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < load.rows; ++i) {
        std::int64_t low = i * 40503 & low_mask;
        if (load.sigma != 0) {
            double key = normal(generator);
            while (key < -1 || key >= 1) key = normal(generator);
            low = static_cast<std::int64_t>((key + 1) * 32768);
        }
        rows.push_back(i << low_bits | low);
    }
    return rows;
}

// One batch after the other.
template <class Take>
void in_chunks(const std::vector<std::int64_t>& rows, std::size_t batch, Take&& take) {
    for (std::size_t begin = 0; begin < rows.size(); begin += batch) {
        const std::size_t end = std::min(rows.size(), begin + batch);
        Output chunk(end - begin);
        for (std::size_t i = begin; i < end; ++i) chunk.push_integer(rows[i]);
        take(chunk.take());
    }
}

struct Parked {
    Parker parker;
    static void wake(void* self) { static_cast<Parked*>(self)->parker.unpark(); }
};

struct Outcome {
    double seconds, cpu, latency_ms;
};

double cpu_seconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

template <template <class> class Queue, template <class> class Buffer>
Outcome play(const Load& load, const std::vector<std::int64_t>& rows, End& end) {
    Flow::Settings settings;
    settings.window = load.window;
    settings.marker_every = load.markers;
    Flow flow(settings);
    std::unique_ptr<Chooser> chooser = std::make_unique<ChooseLatest>(true);
    if (load.by_throughput) chooser = std::make_unique<ChooseByThroughput>(100'000'000, settings.time_slice_ns);
    Pool& pool = flow.add_pool(std::move(chooser));
    const auto lanes = static_cast<std::uint32_t>(load.lanes);
    std::vector<std::unique_ptr<Operator>> operators;
    Stage* last = nullptr;
    const auto connect = [&](Stage& stage) {
        if (last == nullptr) flow.add_entry(stage, 0);
        else flow.connect(*last, stage, 0);
        last = &stage;
    };
    for (const Kind& kind : load.kinds) {
        operators.push_back(std::make_unique<Operator>(kind, load, end.tuples, true));
        NativeWork& native = operators.back()->native;
        connect(kind.is_keyed() ? add_keyed<Queue, Buffer>(flow, pool, native.divider(), native.partition_work(), all_lanes,
                                                           lanes, load.partitions)
                : kind.name == "SL" ? add_shared<Buffer>(flow, pool, native.whole(), all_lanes, lanes)
                                    : flow.add_ordered(pool, native.whole(), all_lanes, 1));
    }
    connect(flow.add_ordered(pool, end.native.whole(), all_lanes, 1));
    flow.finish_graph();
    std::vector<std::unique_ptr<Parked>> parked;
    for (int i = 0; i < load.lanes; ++i) {
        parked.push_back(std::make_unique<Parked>());
        pool.add_lane(all_lanes, Parked::wake, parked.back().get());
    }
    Atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < load.lanes; ++i)
        threads.emplace_back([&, i] {
            bench::pin(i);
            while (!over.load(acquire))
                if (pool.run(static_cast<std::uint32_t>(i)).reason == Pool::Rest::idle)
                    parked[static_cast<std::size_t>(i)]->parker.park();
        });
    const auto begin = monotonic_ns();
    const double begin_cpu = cpu_seconds();
    in_chunks(rows, load.batch, [&](Values* values) {
        if (!flow.has_room())
            bench::require(flow.wait_until_done(flow.admitted() - settings.window / 2, patience), "no room");
        end.tuples.fill(values->begin(), values->count());
        void* chunk = values;
        flow.admit(&chunk);
    });
    bench::require(flow.wait_until_done(flow.admitted(), patience), "a round is missing");
    const auto spent = monotonic_ns() - begin;
    const double cpu = cpu_seconds() - begin_cpu;
    over.store(true, release);
    for (auto& lane : parked) lane->parker.unpark();
    for (auto& thread : threads) thread.join();
    double latency = 0;
    const auto times = flow.markers().finished();
    for (const auto& one : times) latency += static_cast<double>(one.left - one.begun) / 1e6;
    return {static_cast<double>(spent) / 1e9, cpu, times.empty() ? 0 : latency / static_cast<double>(times.size())};
}

Outcome play(const Load& load) {
    const auto rows = rows_of(load);
    for (const Kind& kind : load.kinds)
        bench::require(load.tuple == 0 || kind.selectivity <= 1, "rows that have a tuple in common");
    bench::require(load.tuple != 0 || load.state == 0, "a state, and no tuple");
    Tuples tuples(load), tuples_alone(load);
    End end(tuples), want(tuples_alone);
    const auto outcome = load.scheme == "partitioned" ? play<PartitionedQueue, ReorderBuffer>(load, rows, end)
                         : load.scheme == "shared"    ? play<SharedQueue, ReorderBuffer>(load, rows, end)
                         : load.scheme == "locked"    ? play<HybridQueue, LockedReorderBuffer>(load, rows, end)
                                                      : play<HybridQueue, ReorderBuffer>(load, rows, end);
    std::vector<std::unique_ptr<Operator>> operators;
    for (const Kind& kind : load.kinds)
        operators.push_back(std::make_unique<Operator>(kind, load, tuples_alone, false));
    in_chunks(rows, load.batch, [&](Values* chunk) {
        tuples_alone.fill(chunk->begin(), chunk->count());
        for (auto& each : operators)
            if (chunk != nullptr) chunk = each->native.alone(chunk, each->kind.is_keyed());
        if (chunk == nullptr) return;
        want.take(chunk->begin(), chunk->count());
        want.native.let_go(chunk);
    });
    bench::require(end.count == want.count, "a row is missing, or there twice");
    bench::require(end.in_order && end.sum == want.sum, "a row is out of order");
    return outcome;
}

Kind kind_of(const std::string& word) {
    char name[3] = "";
    double ns = 0, selectivity = 1;
    const int found = std::sscanf(word.c_str(), "%2[A-Z]:%lf:%lf", name, &ns, &selectivity);
    bench::require(found == 3, ("no operator: " + word).c_str());
    return {name, static_cast<std::int64_t>(ns), selectivity};
}

// Wrong results end the program before it prints, so what it prints is right.
int one(int count, char** words) {
    Load load{std::atoll(words[2]), std::atoi(words[3]), {}};
    std::map<std::string, std::string> given{{"measure", "rate"}};
    for (int i = 4; i < count; ++i) {
        const std::string word = words[i];
        const auto sign = word.find('=');
        if (sign == word.npos) load.kinds.push_back(kind_of(word));
        else given[word.substr(0, sign)] = word.substr(sign + 1);
    }
    const auto number = [&](const char* name, auto& value) {
        if (given.count(name)) value = static_cast<std::decay_t<decltype(value)>>(std::stod(given[name]));
    };
    number("batch", load.batch), number("window", load.window), number("markers", load.markers);
    number("partitions", load.partitions), number("sigma", load.sigma), number("mean", load.mean);
    number("tuple", load.tuple), number("state", load.state), number("ct", load.by_throughput);
    if (given.count("scheme")) load.scheme = given["scheme"];
    const auto outcome = play(load);
    if (given["measure"] != "rate")
        std::printf("{\"value\": %.9f, \"got\": 1, \"want\": 1}\n", outcome.latency_ms);
    else
        std::printf("{\"operations\": %lld, \"seconds\": %.9f, \"cpu\": %.9f, \"got\": 1, \"want\": 1}\n",
                    static_cast<long long>(load.rows), outcome.seconds, outcome.cpu);
    return 0;
}

void sample(const char* title, Load load, const std::vector<std::string>& schemes) {
    std::printf("%s, 2 lanes.\n\n", title);
    bench::head("", {"thousand rows/s: median (least to most)"});
    std::vector<bench::Candidate> candidates;
    for (const auto& scheme : schemes) {
        load.scheme = scheme;
        if (scheme == "partitioned") load.partitions = 2;
        candidates.push_back({scheme, [load] { return static_cast<double>(load.rows) / play(load).seconds / 1e3; }});
    }
    const auto samples = bench::rounds(3, candidates);
    for (std::size_t i = 0; i < samples.size(); ++i) bench::row(schemes[i], {samples[i]});
    bench::foot();
}

}  // namespace

int main(int count, char** words) {
    if (count > 4) return one(count, words);
    Load keyed{10'000, 2, {{"PR", 10'000, 1}}};
    keyed.partitions = 100, keyed.sigma = 0.1, keyed.mean = 0.5;
    sample("A keyed operator of 10 us, skewed keys", keyed, {"hybrid", "shared", "partitioned"});
    Load light{100'000, 2, {{"SL", 200, 1}}};
    light.batch = 16, light.window = 1024;
    sample("A stateless operator of 200 ns, rounds of 16 rows", light, {"non_blocking", "locked"});
}
