// A stage: one operator of a stream graph, as the scheduler sees it. Where its input waits, how many
// lanes work on it, what it costs, and how its output leaves in order.
//
// Prasaad et al. 2018, sections 2.2 and 5. Each round, a batch with its serial number, passes each
// stage once, empty or not, and leaves it in order. So a stage's n-th round is round n everywhere,
// and stages with several inputs find the parts of a round by taking one batch from each.
//
//   parallel     stateless: a ring that any number of lanes take from, and a reorder buffer
//   serial       stateful, or one lane is all there is: a ring for each input, one lane at a time,
//                output in the order of input
//   partitioned  stateful by key: a hybrid queue, one lane to a partition, and a reorder buffer
//
// Room. At most `window` rounds are between the senders and the last sink (flow.hpp), and every
// structure here has room for as many. So nothing that is pushed in a graph finds it full.
//
// Rules:
//   1. enter() gives a lane the right to take input; of a serial stage to one lane at a time, so the
//      consumer's ends of its rings, and the operator's state, pass from lane to lane by `lanes`.
//   2. A lane that finds that something waits may still find the queue empty (another lane was first),
//      and looks elsewhere.
//   3. deliver() is called by one thread at a time, in order: by the one lane of a serial stage,
//      within the reorder buffer's exit section of the others.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/scheduling/flow/estimates.hpp"
#include "callboard/scheduling/flow/markers.hpp"
#include "callboard/scheduling/flow/structures.hpp"

namespace callboard {

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
    bool (*part)(void* self, std::uint32_t partition, std::int64_t serial, void* batch,
                 Tally& tally){nullptr};
    // The output of a batch whose parts are done.
    void* (*gather)(void* self, std::int64_t serial, void* batch){nullptr};
};

enum class StageKind : std::uint8_t { parallel, serial, partitioned };

// The kinds of lanes, and sets of them: those that have no interpreter, and those that have it.
using LaneKinds = std::uint8_t;
inline constexpr LaneKinds native_lanes = 1, python_lanes = 2, all_lanes = 3;

class Stage : public Estimates {
public:
    struct Edge {
        Stage* to;
        std::uint32_t input;
    };

    Stage(StageKind kind, LaneKinds runs_on, std::uint32_t inputs, std::uint32_t partitions,
          std::uint32_t window, Operator what, Reordering reordering = Reordering::non_blocking,
          Partitioning partitioning = Partitioning::hybrid)
        : kind(kind), runs_on(runs_on), what(what) {
        if (kind == StageKind::parallel) shared_ = std::make_unique<Spmc<void*>>(window);
        if (kind == StageKind::serial)
            for (std::uint32_t i = 0; i < inputs; ++i) inputs_.push_back(std::make_unique<Input>(window));
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
    bool divides{false};              // it only finds out which partitions of the next stage a round concerns

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
        if (kind == StageKind::parallel) return shared_->size();
        if (kind == StageKind::partitioned)
            return std::visit([](auto& queue) { return queue->waiting(); }, by_key_);
        std::int64_t least = inputs_[0]->brought.load(seq_cst);
        for (std::size_t i = 1; i < inputs_.size(); ++i) {
            const auto here = inputs_[i]->brought.load(seq_cst);
            if (here < least) least = here;
        }
        return least - next_.load(relaxed);
    }

    // --- rounds ------------------------------------------------------------------------------------

    // One thread at a time and in order, for each input. The round's batch is the stage's. What waits from
    // now on is seen by an idle lane's last look (Flow::run()), and announced to idle lanes.
    void put(std::uint32_t input, std::int64_t serial, void* batch) {
        switch (kind) {
            case StageKind::parallel: put_to_any(batch); break;
            case StageKind::serial:
                if (batch == nullptr && pass_empty(serial)) return;
                put_in_ring(*inputs_[input], serial, batch);
                break;
            case StageKind::partitioned: put_in_parts(serial, batch);
        }
        after_put(flow, *this);
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

    // Of a sink: how many rounds have left it.
    std::int64_t delivered() const { return delivered_.load(seq_cst); }

    // --- for heuristics ------------------------------------------------------------------------------

    // Rows that wait, estimated.
    double queued() const {
        const auto units = waiting();
        const double rows = rows_per_unit();
        return static_cast<double>(units < 0 ? 0 : units) * (rows > 1.0 ? rows : 1.0);
    }

    // Before this time, in monotonic ns, the operator wants no input (throttling).
    void rest_until(std::int64_t time) { not_before_.store(time, relaxed); }
    std::int64_t not_before() const { return not_before_.load(relaxed); }

    // Set before the first round. Called after each delivery, by who delivers.
    void (*after_delivery)(void* flow){nullptr};
    void (*after_put)(void* flow, Stage&){nullptr};
    void* flow{nullptr};
    Markers* markers{nullptr};  // of a stage that begins with rounds as they came in

private:
    struct Input {
        explicit Input(std::uint32_t window) : ring(window) {}
        alignas(cache_line) Atomic<std::int64_t> brought{0};  // rounds, in all; who puts
        Spsc<void*> ring;
    };
    struct Part {
        std::int64_t serial{0};
        void* batch{nullptr};
    };

    // Admission leaves room for what comes: see `window` above.
    void put_to_any(void* batch) {
        [[maybe_unused]] const bool fits = shared_->try_push(batch);
        assert(fits);
    }

    void put_in_ring(Input& to, std::int64_t serial, void* batch) {
        [[maybe_unused]] const bool fits = to.ring.try_push(batch);
        assert(fits);
        to.brought.store(serial + 1, seq_cst);
    }

    // Who puts an empty round into a serial stage that has nothing to do lets it pass: no lane is woken for
    // it, nor the interpreter wanted. Nothing comes meanwhile, as one thread puts at a time.
    bool pass_empty(std::int64_t serial) {
        if (inputs_.size() != 1 || waiting() > 0 || !enter()) return false;
        const bool is_next = waiting() <= 0;
        if (is_next) {
            if (markers != nullptr) markers->begun(serial);
            next_.store(serial + 1, relaxed);
            inputs_[0]->brought.store(serial + 1, relaxed);
            deliver(nullptr);
        }
        leave();
        return is_next;
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

    // Several short rounds at once: each claim, and each change of hands in the reorder buffer, costs
    // cache misses. Not more than half of what waits, so that other lanes find some.
    bool work_on_any(Tally& tally) {
        void* rounds[most_at_once];
        std::int64_t first;
        const auto count = shared_->try_pop(rounds, at_once(), first);
        for (std::int64_t i = 0; i < count; ++i) {
            if (markers != nullptr) markers->begun(first + i);
            send(first + i, what.process(what.self, first + i, &rounds[i], tally));
        }
        return count != 0;
    }

    std::int64_t at_once() const {
        const double round_ns = cost_ns() * rows_per_unit();
        if (round_ns <= 0 || round_ns >= worth_ns) return 1;
        const auto most = static_cast<std::int64_t>(worth_ns / round_ns) + 1;
        const auto half = (shared_->size() + 1) / 2;
        return std::max<std::int64_t>(1, std::min({most, half, most_at_once}));
    }

    bool work_in_order(Tally& tally) {
        if (waiting() <= 0 || rests()) return false;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            [[maybe_unused]] const bool found = inputs_[i]->ring.try_pop(scratch_[i]);
            assert(found);
        }
        const auto serial = next_.load(relaxed);
        next_.store(serial + 1, relaxed);
        if (markers != nullptr) markers->begun(serial);
        deliver(what.process(what.self, serial, scratch_.data(), tally));
        return true;
    }

    // The round before may have made the operator rest.
    bool rests() const {
        const auto until = not_before();
        return until != 0 && monotonic_ns() < until;
    }

    void work_on_part(std::uint32_t partition, Part& part, Tally& tally) {
        if (markers != nullptr) markers->begun(part.serial);
        if (what.part(what.self, partition, part.serial, part.batch, tally))
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
        }
        if (edges.empty() && output != nullptr) what.discard(what.self, output);
        // Of a sink, sequentially consistent: a sender that waits for room looks at this after it says so.
        if (edges.empty()) delivered_.store(serial + 1, seq_cst);
        else delivered_.store(serial + 1, relaxed);
        if (after_delivery != nullptr) after_delivery(flow);
    }

    static constexpr double worth_ns = 2000;  // of work, for a claim
    static constexpr std::int64_t most_at_once = 16;

    std::vector<std::unique_ptr<Input>> inputs_;  // of a serial stage
    std::unique_ptr<Spmc<void*>> shared_;
    AnyPartitionedQueue<Part> by_key_;
    AnyReorderBuffer<void*> ordered_;
    std::vector<std::uint32_t> concerned_;  // of who puts
    std::vector<void*> scratch_;            // of the one lane of a serial stage

    alignas(cache_line) Atomic<std::uint32_t> lanes_{0};
    alignas(cache_line) Atomic<std::int64_t> next_{0};  // the round that the one lane takes next
    alignas(cache_line) Atomic<std::int64_t> delivered_{0};
    Atomic<std::int64_t> not_before_{0};
};

}  // namespace callboard
