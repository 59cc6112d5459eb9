// A stage: one operator of a stream graph, or several, as the scheduler sees it. It knows the lanes that work on it,
// its cost, and where its output goes, in order.
//
// Prasaad et al. 2018, sections 2.2 and 5. Each round, a batch with its serial number, passes each
// stage once, empty or not, and leaves it in order. So a stage's n-th round is round n everywhere,
// and stages with several inputs find the parts of a round by taking one batch from each.
//
// The kinds of stages differ in where input waits and how output gets into order:
//
//   SharedStage   stateless: any number of lanes, each on different rounds    (shared_stage.hpp)
//                 or several such operators in a row, as a Chain            (chain.hpp)
//   OrderedStage  stateful: one lane at a time, rounds in order               (ordered_stage.hpp)
//   KeyedStage    stateful by key: one lane for a partition                   (keyed_stage.hpp)
//   FusedStage    several operators, one lane at a time, as plain calls       (fused_stage.hpp)
//   AnsweringStage  waits for answers from elsewhere, and no lane with it     (answering_stage.hpp)
//
// Room. At most `window` rounds are between the senders and the last sink (flow.hpp), and every
// structure has room for as many. So a push in a graph always finds room.
//
// Rules:
//   1. enter() gives a lane the right to take input. An ordered stage gives it to one lane at a time.
//      So the consumer's ends of its rings, and the operator's state, pass from lane to lane by
//      `lanes_`.
//   2. A lane that sees that input waits may still find the queue empty (another lane was faster). Then
//      it looks elsewhere.
//   3. deliver() is called by one thread at a time, in order. That is the one lane of an ordered
//      stage, and in other stages the thread that sends the reorder buffer's outputs.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/scheduling/flow/estimates.hpp"
#include "callboard/scheduling/flow/keyed_division.hpp"
#include "callboard/scheduling/flow/lane_trials.hpp"
#include "callboard/scheduling/flow/latency_markers.hpp"

namespace callboard {

// The work of a stage on batches, which are opaque here. A null batch is empty. Functions own
// their arguments and give away their results.
struct Work {
    void* self{nullptr};
    // One round; a batch for each input.
    void* (*process)(void* self, std::int64_t serial, void** inputs, RowTotals& counts){nullptr};
    // The batch for the outgoing edge `edge` of an output; called for each in turn; the last call takes
    // the output itself. Null if there is one edge, which gets the output unchanged.
    void* (*pick)(void* self, void* output, std::uint32_t edge){nullptr};
    // Frees an output that has no receiver.
    void (*discard)(void* self, void* output){nullptr};
    // For keyed stages, whose batches are Divisions: processes one sub-batch, whose batch the stage keeps.
    void (*process_sub_batch)(void* self, Division& division, std::uint32_t sub_batch, RowTotals& counts){nullptr};
    // The output of a batch whose sub-batches are done.
    void* (*gather)(void* self, Division& division){nullptr};
    // For answering stages, whose process() begins a round and returns nothing: continues the begun rounds. True: the
    // earliest of them is finished, and `output` is its output.
    bool (*next)(void* self, void** output, RowTotals& counts){nullptr};
};

// The kinds of lanes, and sets of kinds: those that have no interpreter, and those that have it.
using LaneKinds = std::uint8_t;
inline constexpr LaneKinds native_lanes = 1, python_lanes = 2, all_lanes = 3;

class Stage;

// A stage tells its pool here that input waits. Called by the thread that put it.
class StageObserver {
public:
    virtual void something_waits(Stage& stage) = 0;
    // For a thread in the middle of the stage's operator: works on a later stage. False: nothing waits there.
    virtual bool work_behind(const Stage& stage) = 0;

protected:
    ~StageObserver() = default;
};

// A sink tells the flow here which rounds leave. Called by the thread that delivers, in the order of
// rounds.
class SinkObserver {
public:
    virtual void round_left(std::int64_t serial) = 0;
    // All earlier rounds have left. Acquires the work on these.
    virtual bool is_oldest(std::int64_t serial) const = 0;
    // The time, for estimates; 0 where no clock is read.
    virtual std::int64_t now() const = 0;

protected:
    ~SinkObserver() = default;
};

class Stage : public Estimates, OneAtATime<Producer> {
public:
    struct Edge {
        Stage* to;
        std::uint32_t input;
    };
    struct Setup {
        StageObserver& pool;
        SinkObserver& flow;
        std::uint32_t position;    // from the entries on; a later stage has a higher one
        std::uint32_t place;       // the same, among the stages of its pool
        LaneKinds runs_on;
        std::uint32_t most_lanes;  // that may work on it at a time
        std::int64_t tried_ns{0};  // a time slice, if trials find out whether several lanes pay; else 0
    };

    Stage(const Setup& setup, const Work& work)
        : position(setup.position), place(setup.place), runs_on(setup.runs_on), most_lanes(setup.most_lanes),
          work_(work), pool_(setup.pool), flow_(setup.flow) {
        if (setup.tried_ns != 0 && most_lanes > 1) trials_ = std::make_unique<LaneTrials>(setup.tried_ns);
        assert(runs_on != 0 && runs_on <= all_lanes && most_lanes != 0);
    }
    Stage(const Stage&) = delete;
    virtual ~Stage() = default;

    // --- the graph, fixed before the first round ---------------------------------------------------

    const std::uint32_t position;
    const std::uint32_t place;
    const LaneKinds runs_on;
    bool gives_parts{false};  // its output may leave in parts
    const std::uint32_t most_lanes;

    std::uint64_t number{0};  // its name in monitoring records

    // The stage that input for this one goes to.
    virtual Stage& entrance() { return *this; }

    void connect(Stage& to, std::uint32_t input) { edges_.push_back({&to, input}); }
    const std::vector<Edge>& edges() const { return edges_; }

    // Rounds leave the flow here, each once, in order.
    virtual bool is_sink() const { return edges_.empty(); }

    // Rounds begin here, as they came in.
    void mark_beginnings(LatencyMarkers& markers) { markers_ = &markers; }

    // --- admission of lanes ------------------------------------------------------------------------

    // Any lane. False: no more lanes may work here. Acquire pairs with the release in leave(). Sequentially
    // consistent, as are a cancel and a later look at lanes(): a lane that this look misses sees the cancel.
    bool enter() {
        auto lanes = lanes_.load(relaxed);
        const auto most = is_for_one() ? 1 : most_lanes;
        do {
            assert(lanes <= most_lanes);
            if (lanes >= most) return false;
        } while (!lanes_.compare_exchange_weak(lanes, lanes + 1, seq_cst, relaxed));
        return true;
    }

    // Sequentially consistent, as is the lane's next look at `waiting`. Suppose that another lane left a round
    // alone because this lane was here. Either this lane sees the round, or the other saw that the stage was
    // free.
    void leave() {
        assert(lanes_.load(relaxed) != 0 && "a lane that leaves has entered");
        lanes_.fetch_sub(1, seq_cst);
    }

    std::uint32_t lanes() const { return lanes_.load(seq_cst); }
    bool has_room_for_lane() const { return lanes() < (is_for_one() ? 1 : most_lanes); }

    // The trials of one lane against several; null: there is one lane, or there are no trials.
    LaneTrials* trials() const { return trials_.get(); }
    bool is_for_one() const { return trials_ != nullptr && trials_->is_for_one(); }

    // Before this time, in monotonic ns, the operator takes no input (throttling). Sequentially consistent, as
    // a cancel is: a lane that does not see one yet has set its time before the cancel takes it back.
    void rest_until(std::int64_t time) { not_before_.store(time, seq_cst); }
    std::int64_t not_before() const { return not_before_.load(relaxed); }

    // --- rounds ------------------------------------------------------------------------------------

    // Rounds (sub-batches of rounds, where keyed) that can be taken: the minimum over all inputs.
    virtual std::int64_t waiting() const = 0;

    // One thread at a time and in order, for each input. The stage owns the round's batch. A round that
    // waits from now on is announced, after a sequentially consistent look at waiting() can see it.
    virtual void put(std::uint32_t input, std::int64_t serial, void* batch) = 0;

    // For a lane that entered. Takes rounds, processes them and sends their output, until it has taken
    // `rows` rows, or nothing is left. A round counts as a row, too. Returns the number of rounds. A thread that is
    // not a lane counts as lane 0.
    virtual std::int64_t work(RowTotals& counts, double rows, std::uint32_t lane) = 0;

    // --- outputs that leave in parts ---------------------------------------------------------------
    //
    // One row may give more outputs than memory should hold. Then the operator, in the middle of the round, passes on
    // parts of its output. A part passes the later stages by plain calls, on the thread that made it. So these stages
    // must have no other round: all earlier rounds must have left the flow, and later ones come behind this stage. The
    // rest of the output leaves with the round, perhaps empty. So the round passes each stage once, like any other.
    //
    // The later stages have one input, and process rounds as they come. They run on the same lanes.

    // By the operator in the middle of this round. False: not now, so the part has to grow. It does not wait, as an
    // earlier round may need the lane's thread. True: hand_on_part() follows.
    bool may_hand_on_part(std::int64_t serial) {
        const auto begin = flow_.now();
        bool is_oldest = flow_.is_oldest(serial);
        while (!is_oldest && pool_.work_behind(*this)) is_oldest = flow_.is_oldest(serial);
        note_elsewhere(flow_.now() - begin, most_lanes == 1);
        return is_oldest && enter_behind();
    }

    // `output` is like that of Work::process.
    void hand_on_part(std::int64_t serial, void* output) {
        const auto begin = flow_.now();
        if (output != nullptr) deliver_part(serial, output);
        leave_behind();
        note_elsewhere(flow_.now() - begin, most_lanes == 1);
    }

    // Rows that wait, estimated.
    double queued() const {
        const auto units = waiting();
        const double rows = rows_per_unit();
        return static_cast<double>(units < 0 ? 0 : units) * (rows > 1.0 ? rows : 1.0);
    }

protected:
    // Whether work() has taken less than `rows` so far, and continues.
    static bool is_less(std::int64_t rounds, const RowTotals& counts, double rows) {
        return static_cast<double>(rounds) + static_cast<double>(counts.taken) < rows;
    }

    void deliver(void* output) {
        const Alone<Producer> alone(*this);  // rule 3
        const auto serial = delivered_++;
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            void* batch = output;
            if (output != nullptr && work_.pick != nullptr)
                batch = work_.pick(work_.self, output, static_cast<std::uint32_t>(i));
            edges_[i].to->put(edges_[i].input, serial, batch);
        }
        if (!edges_.empty()) return;
        if (output != nullptr) work_.discard(work_.self, output);
        leave_flow(serial);
    }

    // The previous round may have made the operator rest.
    bool rests() const {
        const auto until = not_before();
        return until != 0 && monotonic_ns() < until;
    }

    // Enters all later stages, or none: a lane that has passed on its last round may still be there.
    bool enter_behind() {
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            Stage& to = *edges_[i].to;
            if (to.enter()) {
                if (to.enter_behind()) continue;
                to.leave();
            }
            while (i-- != 0) edges_[i].to->leave_with_those_behind();
            return false;
        }
        return true;
    }
    void leave_behind() {
        for (const Edge& edge : edges_) edge.to->leave_with_those_behind();
    }
    void leave_with_those_behind() {
        leave_behind();
        leave();
    }

    // The previous round has left. So the thread that delivered it has nothing left to do, but may still be there.
    void deliver_part(std::int64_t serial, void* output) {
        assert(delivered_ == serial && "all rounds before have left");
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            void* batch = output;
            if (work_.pick != nullptr) batch = work_.pick(work_.self, output, static_cast<std::uint32_t>(i));
            if (batch != nullptr) edges_[i].to->take_part(serial, batch);
        }
        if (edges_.empty()) work_.discard(work_.self, output);
    }

    void take_part(std::int64_t serial, void* batch) {
        RowTotals counts;
        const auto begin = flow_.now();
        void* const output = work_.process(work_.self, serial, &batch, counts);
        note(counts, 1, flow_.now() - begin, most_lanes == 1);
        if (output != nullptr) deliver_part(serial, output);
    }

    // A thread that puts an empty round into an idle stage lets it pass: this wakes no lane and needs no interpreter.
    // In a row of such stages each put is within the last one's. So the depth is limited, and a lane takes over before
    // the thread's stack overflows.
    static constexpr int most_depth = 256;
    static inline thread_local int depth = 0;

    void leave_flow(std::int64_t serial) { flow_.round_left(serial); }

    void announce() { pool_.something_waits(*this); }

    void note_beginning(std::int64_t serial) {
        if (markers_ != nullptr) markers_->begun(serial);
    }

    const Work work_;

private:
    StageObserver& pool_;
    SinkObserver& flow_;
    LatencyMarkers* markers_{nullptr};
    std::vector<Edge> edges_;
    std::unique_ptr<LaneTrials> trials_;
    // The number of lanes. In large graphs a stage costs its cache lines, so it has only as many as needed.
    alignas(cache_line) Atomic<std::uint32_t> lanes_{0};
    Atomic<std::int64_t> not_before_{0};
    std::int64_t delivered_{0};  // rounds; written by the thread that delivers
};

using Stages = std::vector<std::unique_ptr<Stage>>;

// The outputs of a stage's rounds, which leave in the order of their serial numbers. `Buffer` is a reorder buffer
// (mailbox/ordered/reorder.hpp).
template <template <class> class Buffer>
class RoundsInOrder {
public:
    // Twice the window, because the buffer announces late which rounds have left it. So it has room for every round.
    explicit RoundsInOrder(std::uint32_t window) : buffer_(2 * window) {}

    template <class Sink>
    void send(std::int64_t serial, void* output, Sink&& sink) {
        [[maybe_unused]] const bool fits = buffer_.send(serial, std::move(output), sink);
        assert(fits);
    }

private:
    Buffer<void*> buffer_;
};

}  // namespace callboard
