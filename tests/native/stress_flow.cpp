// Random graphs of stages under several lanes. The oracle is the same graph evaluated round by round on
// one thread: every sink must get the same rows in the same order. State is plain memory: two lanes
// in one stateful stage, or in one partition, are data races.
#include <functional>
#include <memory>
#include <numeric>

#include "callboard/scheduling/flow/flow.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

using Rows = std::vector<std::int64_t>;

struct Batch {
    Rows rows;
    // Of a batch that is split: what each part gave, for each row.
    std::vector<Rows> outs;
    Atomic<int> pending{0};
    explicit Batch(Rows rows) : rows(std::move(rows)) {}
};

constexpr std::uint32_t partitions = 4;

enum class Work : int { twice, drop_odd, repeat, sum, keyed_sum, merge, sink, count };

// One operator: its function on rows, its state, and how it is a stage.
struct Op {
    Work work;
    std::uint32_t position = 0, outgoing = 0;
    std::vector<std::uint32_t> sources;  // positions; -1 cast: the entry
    Random random{1};
    std::int64_t total = 0;                       // of sum
    std::int64_t totals[partitions] = {};         // of keyed_sum
    Rows got;                                     // of sink

    explicit Op(Work work) : work(work) {}
    bool is_keyed() const { return work == Work::keyed_sum; }
    bool is_stateless() const { return work <= Work::repeat; }

    static std::uint32_t partition_of(std::int64_t row) {
        return static_cast<std::uint32_t>(row % partitions);
    }
    void of_row(std::int64_t row, Rows& out) {
        switch (work) {
            case Work::twice: out.push_back(row * 2 + 1); return;
            case Work::drop_odd: if (row / 2 % 2 == 0) out.push_back(row); return;
            case Work::repeat: out.push_back(row); out.push_back(row + 3); return;
            case Work::sum: total += row % 1000; out.push_back(total); return;
            case Work::keyed_sum: {
                auto& sum = totals[partition_of(row)];
                sum += row % 1000;
                out.push_back(sum);
                return;
            }
            case Work::sink: got.push_back(row); return;
            default: out.push_back(row);
        }
    }
    Rows of_round(const std::vector<Rows>& inputs) {
        Rows out;
        for (auto& rows : inputs)
            for (auto row : rows) of_row(row, out);
        return out;
    }
};

void* process(void* self, std::int64_t, void** inputs, Tally& tally) {
    Op& op = *static_cast<Op*>(self);
    Rows out;
    for (std::size_t i = 0; i < op.sources.size(); ++i) {
        if (inputs[i] == nullptr) continue;
        std::unique_ptr<Batch> batch(static_cast<Batch*>(inputs[i]));
        tally.taken += batch->rows.size();
        for (auto row : batch->rows) op.of_row(row, out);
    }
    tally.given += out.size();
    return out.empty() ? nullptr : new Batch(std::move(out));
}

void* pick(void* self, void* output, std::uint32_t edge) {
    Op& op = *static_cast<Op*>(self);
    return edge + 1 == op.outgoing ? output : new Batch(static_cast<Batch*>(output)->rows);
}

void discard(void*, void* output) { delete static_cast<Batch*>(output); }

std::uint32_t split(void*, void* input, std::uint32_t* concerned) {
    Batch& batch = *static_cast<Batch*>(input);
    bool seen[partitions] = {};
    std::uint32_t count = 0;
    for (auto row : batch.rows) {
        if (!seen[Op::partition_of(row)]) concerned[count++] = Op::partition_of(row);
        seen[Op::partition_of(row)] = true;
    }
    batch.outs.resize(batch.rows.size());
    batch.pending.store(static_cast<int>(count), relaxed);
    return count;
}

bool part(void* self, std::uint32_t partition, std::int64_t, void* input, Tally& tally) {
    Batch& batch = *static_cast<Batch*>(input);
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        if (Op::partition_of(batch.rows[i]) != partition) continue;
        ++tally.taken, ++tally.given;
        static_cast<Op*>(self)->of_row(batch.rows[i], batch.outs[i]);
    }
    return batch.pending.fetch_sub(1, acq_rel) == 1;
}

void* gather(void*, std::int64_t, void* input) {
    std::unique_ptr<Batch> batch(static_cast<Batch*>(input));
    Rows out;
    for (auto& rows : batch->outs) out.insert(out.end(), rows.begin(), rows.end());
    return new Batch(std::move(out));
}

constexpr std::uint32_t entry = ~0u;

// A random graph: each operator takes from an earlier one or the entry; who is taken from by nobody gets
// a sink. Merges take from two.
std::vector<std::unique_ptr<Op>> random_graph(Random& random) {
    std::vector<std::unique_ptr<Op>> ops;
    const auto source = [&] { 
        const auto i = random.below(static_cast<std::uint32_t>(ops.size()) + 1);
        return i == ops.size() ? entry : i;
    };
    const std::uint32_t size = 1 + random.below(6);
    for (std::uint32_t i = 0; i < size; ++i) {
        auto op = std::make_unique<Op>(static_cast<Work>(random.below(static_cast<std::uint32_t>(Work::sink))));
        op->sources.push_back(i == 0 ? entry : source());
        if (op->work == Work::merge) op->sources.push_back(source());
        ops.push_back(std::move(op));
    }
    std::vector<int> taken(ops.size());
    for (auto& op : ops)
        for (auto from : op->sources)
            if (from != entry) ++taken[from];
    for (std::uint32_t i = 0; i < size; ++i) {
        if (taken[i] != 0) continue;
        auto sink = std::make_unique<Op>(Work::sink);
        sink->sources.push_back(i);
        ops.push_back(std::move(sink));
    }
    return ops;
}

struct Parked {
    Parker parker;
    static void wake(void* self) { static_cast<Parked*>(self)->parker.unpark(); }
};

void run_one(std::uint64_t seed, int lane_count, Heuristic::Kind kind) {
    Random random(seed);
    auto ops = random_graph(random);
    auto expected = random_graph(*std::make_unique<Random>(seed));
    Flow::Settings settings;
    settings.window = 2u << random.below(3);
    settings.slice_ns = 1000 << random.below(8);
    settings.turn_ns = 100'000;
    settings.marker_every = 3;
    settings.reordering = static_cast<Reordering>(seed % 2);
    settings.partitioning = static_cast<Partitioning>(seed % 3);
    Flow flow(settings, Heuristic(kind));
    std::vector<Stage*> stages;
    std::vector<Stage::Edge> entries;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
        Op& op = *ops[i];
        const auto stage_kind = op.is_keyed()      ? StageKind::partitioned
                                : op.is_stateless() ? StageKind::parallel
                                                    : StageKind::serial;
        const auto most = stage_kind == StageKind::serial ? 1u : 8u;
        Operator what{&op, process, nullptr, discard, split, part, gather};
        stages.push_back(&flow.add(stage_kind, all_lanes, static_cast<std::uint32_t>(op.sources.size()),
                                   partitions, most, what));
        for (std::uint32_t input = 0; input < op.sources.size(); ++input) {
            if (op.sources[input] == entry) {
                entries.push_back({stages.back(), input});
            } else {
                flow.connect(*stages[op.sources[input]], *stages.back(), input);
                ++ops[op.sources[input]]->outgoing;
            }
        }
    }
    for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i]->outgoing > 1) stages[i]->what.pick = pick;
    flow.finish_graph(entries);
    std::vector<std::unique_ptr<Parked>> parked;
    for (int i = 0; i < lane_count; ++i) {
        parked.push_back(std::make_unique<Parked>());
        flow.add_lane(all_lanes, Parked::wake, parked.back().get());
    }
    const int rounds = 200;
    std::vector<Rows> input(rounds);
    for (auto& rows : input)
        for (auto count = random.below(5); count != 0; --count) rows.push_back(random.below(100000));
    Atomic<bool> over{false};
    together(lane_count + 1, [&](int index) {
        if (index == lane_count) {
            for (auto& rows : input) {
                while (!flow.has_room())
                    if (!flow.wait_until_done(flow.admitted() - settings.window + 1, patience))
                        check::give_up(__FILE__, __LINE__, "no room: seed " + std::to_string(seed));
                std::vector<void*> batches;
                for (std::size_t i = 0; i < entries.size(); ++i)
                    batches.push_back(rows.empty() ? nullptr : new Batch(rows));
                flow.admit(batches.data());
            }
            if (!flow.wait_until_done(rounds, patience))
                check::give_up(__FILE__, __LINE__, "not done: seed " + std::to_string(seed));
            over.store(true, release);
            for (auto& lane : parked) lane->parker.unpark();
            return;
        }
        while (!over.load(acquire))
            if (flow.run(static_cast<std::uint32_t>(index)).reason == Flow::Rest::idle)
                parked[static_cast<std::size_t>(index)]->parker.park(patience);
    });
    // The oracle.
    for (auto& rows : input) {
        std::vector<Rows> outs;
        for (auto& op : expected) {
            std::vector<Rows> inputs;
            for (auto from : op->sources) inputs.push_back(from == entry ? rows : outs[from]);
            outs.push_back(op->of_round(inputs));
        }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i]->work != Work::sink) continue;
        if (ops[i]->got != expected[i]->got)
            check::fail(__FILE__, __LINE__, "other rows than in sequence: seed " + std::to_string(seed));
    }
    CHECK_EQUAL(flow.done(), rounds);
    CHECK_EQUAL(flow.markers().finished().size(), (rounds + 2) / 3u);
}

}  // namespace

TEST("every graph gives what it gives in sequence, by any lanes, heuristic and structures") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed)
        for (int lanes : {1, 2, 4})
            run_one(seed, lanes, static_cast<Heuristic::Kind>(seed % 4));
}

CHECK_MAIN
