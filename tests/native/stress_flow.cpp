// Random graphs of stages under several lanes. The oracle is the same graph evaluated round by round on
// one thread: every sink must get the same rows in the same order. State is plain memory: two lanes
// in one stateful stage, or in one partition, are data races.
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "callboard/core/threads/parker.hpp"
#include "callboard/scheduling/flow/flow.hpp"
#include "../bench/peers/partitioned_queue.hpp"
#include "../bench/peers/reorder_locked.hpp"
#include "../bench/peers/shared_queue.hpp"
#include "../bench/peers/stages.hpp"
#include "choosers.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

using Rows = std::vector<std::int64_t>;

struct Batch {
    Rows rows;
    std::vector<Rows> outs;  // of one that is divided: what each row gave
    explicit Batch(Rows rows) : rows(std::move(rows)) {}
};

constexpr std::uint32_t partitions = 4;

enum class Kind : int { twice, drop_odd, repeat, sum, keyed_sum, merge, sink, count };

// One operator: its function on rows, its state, and how it is a stage.
struct Op {
    Kind kind;
    std::uint32_t position = 0, outgoing = 0;
    std::vector<std::uint32_t> sources;  // positions; -1 cast: the entry
    Random random{1};
    Stage* parts = nullptr;                       // that hands its output on in parts, of a row each if it may
    std::int64_t total = 0;                       // of sum
    std::int64_t totals[partitions] = {};         // of keyed_sum
    Rows got;                                     // of sink
    std::size_t taken = 0, given = 0;             // of the oracle

    explicit Op(Kind kind) : kind(kind) {}
    bool is_keyed() const { return kind == Kind::keyed_sum; }
    bool is_stateless() const { return kind <= Kind::repeat; }

    static std::uint32_t partition_of(std::int64_t row) {
        return static_cast<std::uint32_t>(row % partitions);
    }
    void of_row(std::int64_t row, Rows& out) {
        switch (kind) {
            case Kind::twice: out.push_back(row * 2 + 1); return;
            case Kind::drop_odd: if (row / 2 % 2 == 0) out.push_back(row); return;
            case Kind::repeat: out.push_back(row); out.push_back(row + 3); return;
            case Kind::sum: total += row % 1000; out.push_back(total); return;
            case Kind::keyed_sum: {
                auto& sum = totals[partition_of(row)];
                sum += row % 1000;
                out.push_back(sum);
                return;
            }
            case Kind::sink: got.push_back(row); return;
            default: out.push_back(row);
        }
    }
    Rows of_round(const std::vector<Rows>& inputs) {
        Rows out;
        for (auto& rows : inputs) {
            for (auto row : rows) of_row(row, out);
            taken += rows.size();
        }
        given += out.size();
        return out;
    }
};

void* process(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
    Op& op = *static_cast<Op*>(self);
    Rows out;
    for (std::size_t i = 0; i < op.sources.size(); ++i) {
        if (inputs[i] == nullptr) continue;
        std::unique_ptr<Batch> batch(static_cast<Batch*>(inputs[i]));
        counts.taken += batch->rows.size();
        for (auto row : batch->rows) {
            op.of_row(row, out);
            if (op.parts == nullptr || out.empty() || !op.parts->may_hand_on_part(serial)) continue;
            counts.given += out.size();
            op.parts->hand_on_part(serial, new Batch(std::exchange(out, {})));
        }
    }
    counts.given += out.size();
    return out.empty() ? nullptr : new Batch(std::move(out));
}

void* pick(void* self, void* output, std::uint32_t edge) {
    Op& op = *static_cast<Op*>(self);
    return edge + 1 == op.outgoing ? output : new Batch(static_cast<Batch*>(output)->rows);
}

void discard(void*, void* output) { delete static_cast<Batch*>(output); }

// A keyed operator's batches are divided by the stage before it.
void* divide(void*, std::int64_t, void** inputs, RowTotals& counts) {
    if (inputs[0] == nullptr) return nullptr;
    auto* batch = static_cast<Batch*>(inputs[0]);
    counts.taken += batch->rows.size(), counts.given += batch->rows.size();
    batch->outs.resize(batch->rows.size());
    auto* division = new Division;
    division->batch = batch;
    division->divide_among(partitions, batch->rows.size());
    for (auto row : batch->rows) division->add_to(Op::partition_of(row));
    return division;
}

void do_sub_batch(void* self, Division& division, std::uint32_t sub_batch, RowTotals& counts) {
    Batch& batch = *static_cast<Batch*>(division.batch);
    for (auto row : division.sub_batch(sub_batch).rows) {
        static_cast<Op*>(self)->of_row(batch.rows[row], batch.outs[row]);
        ++counts.taken, counts.given += batch.outs[row].size();
    }
}

void* gather(void*, Division& division) {
    std::unique_ptr<Batch> batch(static_cast<Batch*>(division.batch));
    delete &division;
    Rows out;
    for (auto& rows : batch->outs) out.insert(out.end(), rows.begin(), rows.end());
    return out.empty() ? nullptr : new Batch(std::move(out));
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
        auto op = std::make_unique<Op>(static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::sink))));
        op->sources.push_back(i == 0 ? entry : source());
        if (op->kind == Kind::merge) op->sources.push_back(source());
        ops.push_back(std::move(op));
    }
    std::vector<int> taken(ops.size());
    for (auto& op : ops)
        for (auto from : op->sources)
            if (from != entry) ++taken[from];
    for (std::uint32_t i = 0; i < size; ++i) {
        if (taken[i] != 0) continue;
        auto sink = std::make_unique<Op>(Kind::sink);
        sink->sources.push_back(i);
        ops.push_back(std::move(sink));
    }
    return ops;
}

struct Parked {
    Parker parker;
    static void wake(void* self) { static_cast<Parked*>(self)->parker.unpark(); }
};

// Where an operator works: a stage, or a member of one, or of a chain.
struct Seat {
    Stage* stage;
    FusedStage* fused;
    std::uint32_t member;
    Chain* chain{nullptr};

    std::pair<std::uint64_t, std::uint64_t> counts() const {  // rows taken and given
        if (fused == nullptr && chain == nullptr) return {stage->taken(), stage->given()};
        const Figures figures = fused != nullptr ? fused->figures_of(member) : chain->figures_of(member);
        return {figures.taken(), figures.given()};
    }
};

void join(Flow& flow, const Seat* from, const Seat& to, std::uint32_t input) {
    if (from != nullptr && from->fused != nullptr && from->fused == to.fused)
        return from->fused->connect_within(from->member, to.member, input);
    if (from != nullptr && from->chain != nullptr && from->chain == to.chain) return;
    if (to.fused != nullptr) input = to.fused->open(to.member, input);
    if (from == nullptr) flow.add_entry(*to.stage, input);
    else if (from->fused != nullptr) from->fused->connect_out(from->member, *to.stage, input);
    else flow.connect(*from->stage, *to.stage, input);
}

// Stages with the structures that ours are measured against, in most runs.
Stage& add_shared(Flow& flow, Pool& pool, const Work& work, std::uint64_t seed) {
    return seed % 2 == 0 ? flow.add_shared(pool, work, all_lanes, 8)
                         : callboard::add_shared<LockedReorderBuffer>(flow, pool, work, all_lanes, 8);
}

template <template <class> class Buffer>
Stage& add_keyed(Flow& flow, Pool& pool, const Work& divider, const Work& work, std::uint64_t seed) {
    switch (seed % 3) {
        case 0: return callboard::add_keyed<HybridQueue, Buffer>(flow, pool, divider, work, all_lanes, 8, partitions);
        case 1: return callboard::add_keyed<PartitionedQueue, Buffer>(flow, pool, divider, work, all_lanes, 8, partitions);
        default: return callboard::add_keyed<SharedQueue, Buffer>(flow, pool, divider, work, all_lanes, 8, partitions);
    }
}

Stage& add_keyed(Flow& flow, Pool& pool, const Work& divider, const Work& work, std::uint64_t seed) {
    return seed % 2 == 0 ? add_keyed<ReorderBuffer>(flow, pool, divider, work, seed)
                         : add_keyed<LockedReorderBuffer>(flow, pool, divider, work, seed);
}

// Which outputs leave in parts: those of stateless and stateful operators, where all behind have one input and are not
// divided.
std::vector<bool> parts_of(const std::vector<std::unique_ptr<Op>>& ops) {
    std::vector<bool> part(ops.size()), behind_take(ops.size(), true);
    for (std::size_t i = ops.size(); i-- != 0;) {
        const Op& op = *ops[i];
        part[i] = behind_take[i] && !op.is_keyed() && op.kind != Kind::merge && op.kind != Kind::sink;
        if (!behind_take[i] || op.is_keyed() || op.kind == Kind::merge)
            for (auto source : op.sources)
                if (source != entry) behind_take[source] = false;
    }
    return part;
}

// Each lane is in one of the pools. With `fuses`, operators that follow each other may be one stage. With `shifts`,
// another thread changes some times which lanes are active.
void run_one(std::uint64_t seed, int lane_count, int pool_count, bool fuses = false, bool shifts = false) {
    Random random(seed);
    auto ops = random_graph(random);
    auto expected = random_graph(*std::make_unique<Random>(seed));
    Flow::Settings settings;
    settings.window = 2u << random.below(3);
    settings.time_slice_ns = 1000 << random.below(8);
    settings.activation_ns = 100'000;
    settings.marker_every = 3;
    settings.tries_lanes = seed % 2 == 0;
    Flow flow(settings);
    std::vector<Pool*> pools;
    for (int i = 0; i < pool_count; ++i) pools.push_back(&flow.add_pool(any_chooser(seed)));
    for (auto& op : ops)
        for (auto source : op->sources)
            if (source != entry) ++ops[source]->outgoing;
    const auto part = parts_of(ops);
    std::vector<Seat> seats;
    std::size_t entries = 0;
    for (auto& op : ops) {
        const auto inputs = static_cast<std::uint32_t>(op->sources.size());
        const Work divider{op.get(), divide, nullptr, discard, nullptr, nullptr};
        const Work work{op.get(), process, op->outgoing > 1 ? pick : nullptr, discard, do_sub_batch, gather};
        Pool& pool = *pools[random.below(static_cast<std::uint32_t>(pool_count))];
        FusedStage* fused = nullptr;
        if (fuses && random.below(3) != 0) {  // those between two members in the order are members, too
            fused = seats.empty() || random.below(3) == 0 ? nullptr : seats.back().fused;
            if (fused == nullptr) fused = &flow.add_fused(pool, all_lanes);
            seats.push_back({fused, fused, fused->add_member(work, inputs)});
        } else if (op->is_stateless() && random.below(4) != 0) {  // a chain, or the next of one
            const auto source = op->sources[0];
            const bool goes_on = source != entry && seats[source].chain != nullptr && ops[source]->outgoing == 1;
            Seat seat = goes_on ? seats[source] : Seat{nullptr, nullptr, 0, &flow.make_chain(8)};
            if (goes_on) ++seat.member;
            else seat.stage = &add_shared(flow, pool, seat.chain->work(), seed);
            seat.chain->add_member(work);
            seats.push_back(seat);
        } else {
            seats.push_back({op->is_keyed()       ? &add_keyed(flow, pool, divider, work, seed)
                             : op->is_stateless() ? &add_shared(flow, pool, work, seed)
                                                  : &flow.add_ordered(pool, work, all_lanes, inputs),
                             nullptr, 0});
        }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
        for (std::uint32_t input = 0; input < ops[i]->sources.size(); ++input) {
            const auto source = ops[i]->sources[input];
            if (source == entry) ++entries;
            join(flow, source == entry ? nullptr : &seats[source], seats[i], input);
        }
    }
    for (auto& seat : seats)
        if (seat.fused != nullptr) seat.fused->finish();
    if (!fuses && pool_count == 1)
        for (std::size_t i = 0; i < ops.size(); ++i)
            if (part[i] && seats[i].chain == nullptr) (ops[i]->parts = seats[i].stage)->gives_parts = true;
    flow.finish_graph();
    std::vector<std::unique_ptr<Parked>> parked;
    for (int i = 0; i < lane_count; ++i) {
        parked.push_back(std::make_unique<Parked>());
        pools[static_cast<std::size_t>(i % pool_count)]->add_lane(all_lanes, Parked::wake, parked.back().get());
    }
    const int rounds = 200;
    std::vector<Rows> input(rounds);
    for (auto& rows : input)
        for (auto count = random.below(5); count != 0; --count) rows.push_back(random.below(100000));
    Atomic<bool> over{false};
    together(lane_count + 1 + shifts, [&](int index) {
        if (index > lane_count) {
            Random lanes(seed + 1);
            for (auto changes = lanes.below(100); changes != 0 && !over.load(acquire); --changes) {
                for (Pool* pool : pools) pool->set_active(1 + lanes.below((1u << lane_count / pool_count) - 1));
                lanes.pause();
            }
            return;
        }
        if (index == lane_count) {
            for (auto& rows : input) {
                while (!flow.has_room())
                    if (!flow.wait_until_done(flow.admitted() - settings.window + 1, patience))
                        check::give_up(__FILE__, __LINE__, "no room: seed " + std::to_string(seed));
                std::vector<void*> batches;
                for (std::size_t i = 0; i < entries; ++i)
                    batches.push_back(rows.empty() ? nullptr : new Batch(rows));
                flow.admit(batches.data());
            }
            if (!flow.wait_until_done(rounds, patience))
                check::give_up(__FILE__, __LINE__, "not done: seed " + std::to_string(seed));
            over.store(true, release);
            for (auto& lane : parked) lane->parker.unpark();
            return;
        }
        Pool& pool = *pools[static_cast<std::size_t>(index % pool_count)];
        const auto number = static_cast<std::uint32_t>(index / pool_count);
        while (!over.load(acquire))
            if (pool.run(number).reason == Pool::Rest::idle)
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
        if (ops[i]->got != expected[i]->got)
            check::fail(__FILE__, __LINE__, "other rows than in sequence: seed " + std::to_string(seed));
        if (seats[i].counts() != std::pair{expected[i]->taken, expected[i]->given})
            check::fail(__FILE__, __LINE__, "other counts than in sequence: seed " + std::to_string(seed));
    }
    CHECK_EQUAL(flow.done(), rounds);
    CHECK_EQUAL(flow.markers().finished().size(), (rounds + 2) / 3u);
}

}  // namespace

TEST("every graph gives the outputs of a sequential run, with any lanes, heuristic and structures") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed)
        for (int lanes : {1, 2, 4}) run_one(seed, lanes, 1);
}

TEST("and so it does in pools of one lane, or of two") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed)
        for (int lanes : {2, 4}) run_one(seed, lanes, 2);
}

TEST("and so it does where operators are fused") {
    for (std::uint64_t seed = 1; seed <= 120; ++seed)
        for (int lanes : {1, 3}) run_one(seed, lanes, lanes, true);
}

TEST("and so it does while lanes are suspended and resumed") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        run_one(seed, 3, 1, false, true);
        run_one(seed, 4, 2, false, true);
    }
}

CHECK_MAIN
