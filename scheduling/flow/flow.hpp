// A flow: the stages of a running stream graph, in pools whose lanes work on them (pool.hpp), and the
// rounds in flight.
//
// Admission. Round k enters when fewer than `window` rounds are in flight: k < done() + window, where
// done() counts the rounds that have left all sinks. So every structure of every stage has room for each
// round (stage.hpp), no lane ever waits for another, and memory is bounded. No shape of graph deadlocks. Take
// the oldest round in flight and the first stage, in topological order, that it has not left. All earlier
// rounds have left that stage, and all stages before it have passed the round on. So the round can be taken
// there, or a lane has it in work.
//
// Departure. Each of s sinks, when it delivers round k, adds one to count k modulo the window. The sink that
// makes it a multiple of s is the last, and adds one to done(). So a round costs a sink the same, whatever the
// number of sinks. A count needs no reset: round k + window enters only when done() > k, so all counts of the
// rounds up to k are full. The last sinks of two rounds may add to done() in either order. done() is still
// right: rounds become full in their order, because each sink delivers in order. So n additions mean that the
// first n rounds have left.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "callboard/core/one_at_a_time.hpp"
#include "callboard/scheduling/flow/answering_stage.hpp"
#include "callboard/scheduling/flow/chain.hpp"
#include "callboard/scheduling/flow/fused_stage.hpp"
#include "callboard/scheduling/flow/keyed_stage.hpp"
#include "callboard/scheduling/flow/latency_markers.hpp"
#include "callboard/scheduling/flow/ordered_stage.hpp"
#include "callboard/scheduling/flow/pool.hpp"
#include "callboard/scheduling/flow/shared_stage.hpp"

namespace callboard {

class Flow final : private SinkObserver, OneAtATime<Producer> {
public:
    struct Settings : TimeSlices {
        std::uint32_t window{256};       // rounds; a power of two
        std::uint32_t marker_every{64};  // one round in this number has its latency measured
        bool tries_lanes{false};         // stages find out whether more than one lane pays
    };

    explicit Flow(Settings settings) : settings(settings), markers_(settings.window, settings.marker_every) {
        assert(settings.window != 0 && (settings.window & (settings.window - 1)) == 0 && "a power of two");
    }
    Flow(const Flow&) = delete;

    // --- construction; one thread, before the first round ------------------------------------------

    // A pool, whose lanes choose among its stages by the chooser; null: they take the latest.
    Pool& add_pool(std::unique_ptr<Chooser> chooser) {
        pools_.push_back(std::make_unique<Pool>(settings, std::move(chooser)));
        return *pools_.back();
    }

    static constexpr std::uint32_t sample_every = 64;  // operators are timed in one round of this number

    // Stages are added in topological order. This one may be of any class, made with `arguments` after its setup.
    template <class Kind, class... Arguments>
    Kind& add(Pool& pool, LaneKinds runs_on, std::uint32_t most_lanes, Arguments&&... arguments) {
        const Stage::Setup setup{pool, *this, static_cast<std::uint32_t>(stages_.size()),
                               static_cast<std::uint32_t>(pool.stages().size()), runs_on, most_lanes,
                               settings.tries_lanes && !settings.one_by_one ? settings.time_slice_ns : 0};
        auto made = std::make_unique<Kind>(setup, std::forward<Arguments>(arguments)...);
        Kind& stage = *made;
        stages_.push_back(std::move(made));
        pool.add(stage);
        return stage;
    }

    Stage& add_shared(Pool& pool, const Work& work, LaneKinds runs_on, std::uint32_t most_lanes) {
        return add<SharedStage<>>(pool, runs_on, most_lanes, work, settings.window);
    }

    Stage& add_ordered(Pool& pool, const Work& work, LaneKinds runs_on, std::uint32_t inputs) {
        return add<OrderedStage>(pool, runs_on, 1, work, inputs, settings.window);
    }

    // A stage whose operator waits for answers: see Work::next.
    AnsweringStage& add_answering(Pool& pool, const Work& work, LaneKinds runs_on) {
        return add<AnsweringStage>(pool, runs_on, 1, work, settings.window);
    }

    // Also adds the stage before it, which divides batches.
    KeyedStage<>& add_keyed(Pool& pool, const Work& divider, const Work& work, LaneKinds runs_on,
                            std::uint32_t most_lanes, std::uint32_t partitions) {
        Stage& before = add_shared(pool, divider, runs_on, most_lanes);
        return add<KeyedStage<>>(pool, runs_on, std::min(partitions, most_lanes), work, before, partitions,
                                 settings.window, settings.one_by_one ? 0 : sample_every);
    }

    // Its members and their edges are added to it.
    FusedStage& add_fused(Pool& pool, LaneKinds runs_on) {
        return add<FusedStage>(pool, runs_on, 1, settings.window, settings.one_by_one ? 0 : sample_every);
    }

    // The work of a stage, to which members are added.
    Chain& make_chain(std::uint32_t most_lanes) {
        chains_.push_back(std::make_unique<Chain>(most_lanes, sample_every));
        return *chains_.back();
    }

    void connect(Stage& from, Stage& to, std::uint32_t input) { from.connect(to.entrance(), input); }

    // An entry of the graph. Batches for all entries are admitted together, in the order of these calls.
    void add_entry(Stage& to, std::uint32_t input) {
        to.mark_beginnings(markers_);
        entries_.push_back({&to.entrance(), input});
    }

    // After all of these. A stage without edges is a sink.
    void finish_graph() {
        for (auto& stage : stages_) sinks_ += stage->is_sink();
        if (sinks_ > 1) departures_ = std::make_unique<Atomic<std::uint64_t>[]>(settings.window);
        for (auto& pool : pools_) pool->finish(stages_);
    }

    // --- senders; one at a time --------------------------------------------------------------------

    std::int64_t admitted() const { return admitted_.load(relaxed); }
    bool has_room() const { return admitted() < done() + settings.window; }

    // Only if there is room. Takes a batch for each of the entries' edges; null: empty.
    void admit(void** batches) {
        const Alone<Producer> alone(*this);
        assert(has_room());
        const auto serial = admitted();
        markers_.arrived(serial);
        admitted_.store(serial + 1, relaxed);
        for (std::size_t i = 0; i < entries_.size(); ++i)
            entries_[i].to->put(entries_[i].input, serial, batches[i]);
    }

    // Rounds that have left all sinks. Sequentially consistent: see wait_until_done().
    std::int64_t done() const { return done_.load(seq_cst); }

    // Any thread. Waits, without using the processor, until done() is at least `rounds`, or
    // `nanoseconds` are over.
    bool wait_until_done(std::int64_t rounds, std::int64_t nanoseconds) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            // Then it looks at done(). The thread by which a round leaves changes that and then looks
            // at `wanted_`. All of it is sequentially consistent, so one of the two sees the other.
            if (rounds < wanted_.load(relaxed)) wanted_.store(rounds, seq_cst);
            if (done() >= rounds) return true;
            if (left_.wait_until(lock, deadline) == std::cv_status::timeout) return done() >= rounds;
        }
    }

    // --- the end -----------------------------------------------------------------------------------

    // One thread, when no lane runs and no stage rests: works on all rounds in flight. It wakes no lanes,
    // because they may have ended.
    void drain() {
        for (auto& pool : pools_) pool->retire_lanes();
        for (bool worked = true; worked;) {
            worked = false;
            for (auto& pool : pools_)
                while (pool->step(all_lanes)) worked = true;
        }
    }

    const Stages& stages() const { return stages_; }
    LatencyMarkers& markers() { return markers_; }
    const Settings settings;

private:
    bool is_oldest(std::int64_t serial) const override { return done() == serial; }

    std::int64_t now() const override { return settings.now(); }

    void round_left(std::int64_t serial) override {
        if (sinks_ > 1) {
            // Release: the actions of this sink. Acquire: those of the sinks that added before.
            Atomic<std::uint64_t>& departures = departures_[serial & (settings.window - 1)];
            if ((departures.fetch_add(1, acq_rel) + 1) % sinks_ != 0) return;
        }
        // Pairs with wait_until_done(), and with senders, which may reuse the round's room.
        const auto done = done_.fetch_add(1, seq_cst) + 1;
        markers_.left(done);
        if (done < wanted_.load(seq_cst)) return;
        std::lock_guard<std::mutex> lock(mutex_);
        wanted_.store(INT64_MAX, relaxed);  // a thread that waits for more sets it again
        left_.notify_all();
    }

    LatencyMarkers markers_;
    Stages stages_;
    std::vector<std::unique_ptr<Chain>> chains_;
    std::vector<std::unique_ptr<Pool>> pools_;
    std::vector<Stage::Edge> entries_;
    std::uint64_t sinks_{0};
    std::unique_ptr<Atomic<std::uint64_t>[]> departures_;  // of the rounds in flight, from sinks
    alignas(cache_line) Atomic<std::int64_t> admitted_{0};
    alignas(cache_line) Atomic<std::int64_t> done_{0};
    alignas(cache_line) Atomic<std::int64_t> wanted_{INT64_MAX};  // the least that a thread waits for
    std::mutex mutex_;
    std::condition_variable left_;
};

}  // namespace callboard
