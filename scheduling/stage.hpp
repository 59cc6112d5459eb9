// A stage: one operator of a stream graph, as the scheduler sees it. Where its input waits, how many
// lanes work on it, what it costs, and how its output leaves in order.
//
// Prasaad et al. 2018, sections 2.2 and 5. Each round, a batch with its serial number, passes each
// stage once, empty or not, and leaves it in order. So a stage's n-th round is round n everywhere,
// and stages with several inputs find the parts of a round by taking one batch from each.
//
//   parallel     stateless: a worklist that any number of lanes take from, and a reorder buffer
//   serial       stateful: a ring for each input, one lane at a time, output in the order of input
//   partitioned  stateful by key: a hybrid queue, one lane to a partition, and a reorder buffer
//
// Room. At most `window` rounds are between the senders and the last sink (flow.hpp), and every
// structure here has room for as many. So nothing that is pushed in a graph finds it full.
//
// Rules:
//   1. enter() gives a lane the right to take input; of a serial stage to one lane at a time, so the
//      consumer's ends of its rings, and the operator's state, pass from lane to lane by `lanes`.
//   2. `waiting` counts after the push and before the pop. A lane that finds it positive may still
//      find the queue empty (another lane was first), and looks elsewhere.
//   3. deliver() is called by one thread at a time, in order: by the one lane of a serial stage,
//      within the reorder buffer's exit section of the others.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "callboard/mailbox/spsc.hpp"
#include "callboard/mailbox/worklist.hpp"
#include "callboard/scheduling/markers.hpp"
#include "callboard/scheduling/structures.hpp"

namespace callboard {

// What a round did, for the estimates.
struct Tally {
    std::uint64_t taken{0};  // rows
    std::uint64_t given{0};
};

// What a stage does with batches, which are opaque here. A null batch is an empty one. Functions own
// what they are given and give away what they answer.
struct Operator {
    void* self{nullptr};
    // One round; a batch for each input.
    void* (*process)(void* self, std::int64_t serial, void** inputs, Tally& tally){nullptr};
    // The batch for the outgoing edge `edge` of an output; asked for each in turn, the last one takes
    // the output itself. Null where there is one edge, which gets the output as it is.
    void* (*pick)(void* self, void* output, std::uint32_t edge){nullptr};
    // Lets an output go that nobody is to get.
    void (*discard)(void* self, void* output){nullptr};
    // Of partitioned stages. Writes the partitions that a batch concerns, at most as many as there
    // are, and answers their number.
    std::uint32_t (*split)(void* self, void* batch, std::uint32_t* partitions){nullptr};
    // The part of a batch that concerns a partition. True: it was the last of the batch's parts.
    bool (*part)(void* self, std::uint32_t partition, void* batch, Tally& tally){nullptr};
    // The output of a batch whose parts are done.
    void* (*gather)(void* self, std::int64_t serial, void* batch){nullptr};
};

enum class StageKind : std::uint8_t { parallel, serial, partitioned };

// The kinds of lanes, and sets of them: those that have no interpreter, and those that have it.
using LaneKinds = std::uint8_t;
inline constexpr LaneKinds native_lanes = 1, python_lanes = 2, all_lanes = 3;

class Stage {
public:
    struct Edge {
        Stage* to;
        std::uint32_t input;
    };

    Stage(StageKind kind, LaneKinds runs_on, std::uint32_t inputs, std::uint32_t partitions,
          std::uint32_t window, Operator what, Reordering reordering = Reordering::non_blocking,
          Partitioning partitioning = Partitioning::hybrid)
        : kind(kind), runs_on(runs_on), what(what) {
        for (std::uint32_t i = 0; i < inputs; ++i) inputs_.push_back(std::make_unique<Input>(window, kind));
        if (kind == StageKind::parallel) worklist_ = std::make_unique<Worklist<void*>>(window);
        if (kind == StageKind::partitioned) {
            by_key_ = make_partitioned_queue<Part>(partitioning, partitions, window);
            concerned_.resize(partitions);
        }
        // Twice the window, because the buffer tells late what has left it.
        if (kind != StageKind::serial) ordered_ = make_reorder_buffer<void*>(reordering, 2 * window);
        scratch_.resize(inputs);
    }

    // --- the graph, fixed before the first round --------------------------------------------------
    const StageKind kind;
    const LaneKinds runs_on;
    Operator what;
    std::uint32_t position{0};        // from the entries on; a later stage has a higher one
    std::uint32_t most_lanes{1};      // that may work on it at a time
    std::vector<Edge> edges;

    // --- lanes -------------------------------------------------------------------------------------

    // Any lane. False: as many lanes as may are at work here. Acquire pairs with the release in leave().
    bool enter() {
        auto lanes = lanes_.load(relaxed);
        do {
            if (lanes >= most_lanes) return false;
        } while (!lanes_.compare_exchange_weak(lanes, lanes + 1, acquire, relaxed));
        return true;
    }

    // Sequentially consistent, as is the lane's next look at `waiting`: a round that another lane left
    // alone because this one was here is either seen by this one, or was seen to be free.
    void leave() { lanes_.fetch_sub(1, seq_cst); }

    std::uint32_t lanes() const { return lanes_.load(seq_cst); }

    // Rounds (parts of rounds, where partitioned) that can be taken: the least of all inputs.
    std::int64_t waiting() const {
        if (kind == StageKind::partitioned)
            return std::visit([](auto& queue) { return queue->waiting(); }, by_key_);
        std::int64_t least = inputs_[0]->waiting.load(seq_cst);
        for (std::size_t i = 1; i < inputs_.size(); ++i) {
            const auto here = inputs_[i]->waiting.load(seq_cst);
            if (here < least) least = here;
        }
        return least;
    }

    // --- rounds ------------------------------------------------------------------------------------

    // One thread at a time and in order, for each input. The round's batch is the stage's.
    void put(std::uint32_t input, std::int64_t serial, void* batch) {
        Input& to = *inputs_[input];
        switch (kind) {
            case StageKind::parallel: put_to_any(batch); break;
            case StageKind::serial: put_in_ring(to, batch); break;
            case StageKind::partitioned: put_in_parts(serial, batch); return;
        }
        to.waiting.fetch_add(1, seq_cst);  // pairs with an idle lane's last look: Flow::run()
    }

    // A lane that entered. Takes rounds, processes them and sends their output, until it has taken
    // `rows` rows, or nothing is there. A round counts as a row, too. Answers how many rounds.
    std::int64_t work(Tally& tally, double rows) {
        std::int64_t rounds = 0;
        const auto go_on = [&] { return static_cast<double>(rounds) + static_cast<double>(tally.taken) < rows; };
        switch (kind) {
            case StageKind::parallel:
                while (go_on() && work_on_any(tally)) ++rounds;
                break;
            case StageKind::serial:
                while (go_on() && work_in_order(tally)) ++rounds;
                break;
            case StageKind::partitioned:
                std::visit([&](auto& queue) {
                    while (go_on() && queue->consume_one([&](std::uint32_t partition, Part& part) {
                        work_on_part(partition, part, tally);
                        ++rounds;
                    })) {}
                }, by_key_);
        }
        return rounds;
    }

    // How many rounds have left the stage. Acquire pairs with deliver(): they are at the next stages.
    std::int64_t delivered() const { return delivered_.load(seq_cst); }

    // --- estimates (section 2.2): what a row costs, how many it gives --------------------------------

    // After a lane's slice. Lanes that race lose one measurement, which does no harm.
    void note(const Tally& tally, std::int64_t rounds, std::int64_t spent_ns) {
        busy_ns_.fetch_add(spent_ns, relaxed);
        slice_ns_.fetch_add(spent_ns, relaxed);
        taken_.fetch_add(tally.taken, relaxed);
        given_.fetch_add(tally.given, relaxed);
        rounds_.fetch_add(rounds, relaxed);
        if (tally.taken == 0) return;
        const double rows = static_cast<double>(tally.taken);
        approach(cost_ns_, static_cast<double>(spent_ns) / rows);
        approach(selectivity_, static_cast<double>(tally.given) / rows);
        approach(rows_per_unit_, rows / static_cast<double>(rounds));
    }

    double cost_ns() const { return cost_ns_.load(relaxed); }  // of a row; 0: not known yet
    double selectivity() const { return taken() == 0 ? 1.0 : selectivity_.load(relaxed); }
    double queued() const {                                    // rows, estimated
        const auto units = waiting();
        const double rows = rows_per_unit_.load(relaxed);
        return static_cast<double>(units < 0 ? 0 : units) * (rows > 1.0 ? rows : 1.0);
    }
    double rows_per_unit() const { return rows_per_unit_.load(relaxed); }
    std::uint64_t taken() const { return taken_.load(relaxed); }
    std::uint64_t given() const { return given_.load(relaxed); }
    std::int64_t busy_ns() const { return busy_ns_.load(relaxed); }

    // Worker time in the current window of CT (section 6.4).
    std::int64_t slice_ns() const { return slice_ns_.load(relaxed); }
    void begin_window() { slice_ns_.store(0, relaxed); }

    // Before this time, in monotonic ns, the operator wants no input (throttling).
    void rest_until(std::int64_t time) { not_before_.store(time, relaxed); }
    std::int64_t not_before() const { return not_before_.load(relaxed); }

    // Set before the first round. Called after each delivery, by who delivers.
    void (*after_delivery)(void* flow){nullptr};
    void (*after_put)(void* flow, Stage&){nullptr};
    void* flow{nullptr};
    Markers* markers{nullptr};  // of a stage that an entry leads to

private:
    struct Input {
        Input(std::uint32_t window, StageKind kind) : ring(kind == StageKind::serial ? window : 1) {}
        alignas(cache_line) Atomic<std::int64_t> waiting{0};
        Spsc<void*> ring;
    };
    struct Part {
        std::int64_t serial{0};
        void* batch{nullptr};
    };

    // Admission leaves room for what comes: see `window` above.
    void put_to_any(void* batch) {
        [[maybe_unused]] const auto serial = worklist_->push(batch);
        assert(serial != Worklist<void*>::none);
    }

    void put_in_ring(Input& to, void* batch) {
        [[maybe_unused]] const bool fits = to.ring.try_push(batch);
        assert(fits);
    }

    void put_in_parts(std::int64_t serial, void* batch) {
        const auto count = batch == nullptr ? 0 : what.split(what.self, batch, concerned_.data());
        if (count == 0) send(serial, batch == nullptr ? nullptr : what.gather(what.self, serial, batch));
        for (std::uint32_t i = 0; i < count; ++i) {
            [[maybe_unused]] const bool fits = std::visit(
                [&](auto& queue) { return queue->add(concerned_[i], Part{serial, batch}); }, by_key_);
            assert(fits);
        }
    }

    bool work_on_any(Tally& tally) {
        void* input;
        const auto serial = worklist_->pop(input);
        if (serial == Worklist<void*>::none) return false;
        inputs_[0]->waiting.fetch_sub(1, relaxed);
        if (markers != nullptr) markers->begun(serial);
        send(serial, what.process(what.self, serial, &input, tally));
        return true;
    }

    bool work_in_order(Tally& tally) {
        if (waiting() <= 0) return false;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            [[maybe_unused]] const bool found = inputs_[i]->ring.try_pop(scratch_[i]);
            assert(found);
            inputs_[i]->waiting.fetch_sub(1, relaxed);
        }
        const auto serial = next_++;
        if (markers != nullptr) markers->begun(serial);
        deliver(what.process(what.self, serial, scratch_.data(), tally));
        return true;
    }

    void work_on_part(std::uint32_t partition, Part& part, Tally& tally) {
        if (what.part(what.self, partition, part.batch, tally))
            send(part.serial, what.gather(what.self, part.serial, part.batch));
    }

    // The window leaves room for every serial number in flight, so the buffer takes it.
    void send(std::int64_t serial, void* output) {
        [[maybe_unused]] const bool fits = std::visit([&](auto& buffer) {
            return buffer->send(serial, std::move(output), [this](void* ready) { deliver(ready); });
        }, ordered_);
        assert(fits);
    }

    void deliver(void* output) {
        const auto serial = delivered_.load(relaxed);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            void* batch = output;
            if (output != nullptr && what.pick != nullptr)
                batch = what.pick(what.self, output, static_cast<std::uint32_t>(i));
            edges[i].to->put(edges[i].input, serial, batch);
            edges[i].to->after_put(edges[i].to->flow, *edges[i].to);
        }
        if (edges.empty() && output != nullptr) what.discard(what.self, output);
        // Sequentially consistent: a sender that waits for room looks at this after it says so.
        delivered_.store(serial + 1, seq_cst);
        if (after_delivery != nullptr) after_delivery(flow);
    }

    static void approach(Atomic<double>& estimate, double measured) {
        const double before = estimate.load(relaxed);
        estimate.store(before == 0.0 ? measured : before + (measured - before) / 8, relaxed);
    }

    std::vector<std::unique_ptr<Input>> inputs_;
    std::unique_ptr<Worklist<void*>> worklist_;
    AnyPartitionedQueue<Part> by_key_;
    AnyReorderBuffer<void*> ordered_;
    std::vector<std::uint32_t> concerned_;  // of who puts
    std::vector<void*> scratch_;            // of the one lane of a serial stage
    std::int64_t next_{0};

    alignas(cache_line) Atomic<std::uint32_t> lanes_{0};
    alignas(cache_line) Atomic<std::int64_t> delivered_{0};
    alignas(cache_line) Atomic<std::uint64_t> taken_{0};
    Atomic<std::uint64_t> given_{0};
    Atomic<std::int64_t> rounds_{0}, busy_ns_{0}, slice_ns_{0}, not_before_{0};
    Atomic<double> cost_ns_{0}, selectivity_{0}, rows_per_unit_{0};
};

}  // namespace callboard
