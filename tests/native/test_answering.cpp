// A stage whose operator waits for answers, which come from this thread or from another one.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "callboard/scheduling/flow/flow.hpp"
#include "check.hpp"
#include "stress.hpp"

using namespace callboard;

namespace {

// Rounds that are in work, by their serials, until somebody answers them.
struct Op {
    AnsweringStage* stage = nullptr;
    std::mutex mutex{};
    std::deque<std::int64_t> work{};       // the lane's
    std::vector<std::int64_t> asked{};     // that wait for an answer
    std::vector<bool> answered{};
    std::vector<std::int64_t> left{};

    static Op& of(void* self) { return *static_cast<Op*>(self); }

    static void* process(void* self, std::int64_t serial, void** inputs, RowTotals&) {
        Op& op = of(self);
        op.work.push_back(serial);
        const std::lock_guard<std::mutex> lock(op.mutex);
        op.answered.resize(static_cast<std::size_t>(serial) + 1, false);
        if (inputs[0] != nullptr) op.asked.push_back(serial);
        else op.answered[static_cast<std::size_t>(serial)] = true;
        return nullptr;
    }
    static bool next(void* self, void** output, RowTotals& counts) {
        Op& op = of(self);
        if (op.work.empty()) return false;
        const std::lock_guard<std::mutex> lock(op.mutex);
        if (!op.answered[static_cast<std::size_t>(op.work.front())]) return false;
        op.left.push_back(op.work.front());
        op.work.pop_front();
        ++counts.taken;
        *output = nullptr;
        return true;
    }
    static void discard(void*, void*) {}

    Work functions() { return {this, process, nullptr, discard, nullptr, nullptr, next}; }

    // Answers one of those that wait. False: none does.
    template <class Choose>
    bool answer(Choose choose) {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            if (asked.empty()) return false;
            const auto at = asked.begin() + static_cast<std::ptrdiff_t>(choose(asked.size()));
            answered[static_cast<std::size_t>(*at)] = true;
            asked.erase(at);
        }
        stage->call();
        return true;
    }
};

int something;

void admit(Flow& flow, bool is_empty) {
    void* batch = is_empty ? nullptr : &something;
    flow.admit(&batch);
}

// Runs a lane when it is woken, as an actor would.
class LaneThread {
public:
    explicit LaneThread(Pool& pool)
        : pool_(pool), number_(pool.add_lane(all_lanes, wake, this)), thread_([this] { run(); }) {}
    ~LaneThread() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

private:
    static void wake(void* self) {
        auto& lane = *static_cast<LaneThread*>(self);
        {
            const std::lock_guard<std::mutex> lock(lane.mutex_);
            lane.is_woken_ = true;
        }
        lane.changed_.notify_all();
    }
    void run() {
        for (;;) {
            {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [this] { return is_woken_ || ends_; });
                if (ends_) return;
                is_woken_ = false;
            }
            while (pool_.run(number_).reason != Pool::Rest::idle) continue;
        }
    }

    Pool& pool_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_woken_{false}, ends_{false};
    std::uint32_t number_;
    std::thread thread_;
};

}  // namespace

TEST("rounds leave in their order, whichever is answered first, and no lane waits for answers") {
    Op op;
    Flow flow(Flow::Settings{});
    Pool& pool = flow.add_pool(nullptr);
    op.stage = &flow.add_answering(pool, op.functions(), all_lanes);
    flow.add_entry(*op.stage, 0);
    flow.finish_graph();
    for (int i = 0; i < 4; ++i) admit(flow, i == 2);
    CHECK(op.stage->waiting() > 0);
    while (pool.step(all_lanes)) continue;
    CHECK_EQUAL(op.stage->waiting(), 0);
    CHECK_EQUAL(op.asked.size(), 3u);
    CHECK(op.answer([](std::size_t count) { return count - 1; }));
    CHECK(op.stage->waiting() > 0);
    while (pool.step(all_lanes)) continue;
    CHECK_EQUAL(op.stage->waiting(), 0);
    CHECK_EQUAL(flow.done(), 0);
    CHECK(op.answer([](std::size_t) { return std::size_t{0}; }));
    while (pool.step(all_lanes)) continue;
    CHECK_EQUAL(flow.done(), 1);
    CHECK(op.answer([](std::size_t) { return std::size_t{0}; }));
    while (pool.step(all_lanes)) continue;
    CHECK_EQUAL(flow.done(), 4);
    CHECK_EQUAL(op.left.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) CHECK_EQUAL(op.left[i], static_cast<std::int64_t>(i));
}

TEST("no answer of another thread is missed") {
    const std::int64_t rounds = 20'000;
    Op op;
    Flow flow(Flow::Settings{});
    Pool& pool = flow.add_pool(nullptr);
    op.stage = &flow.add_answering(pool, op.functions(), all_lanes);
    flow.add_entry(*op.stage, 0);
    flow.finish_graph();
    {
        const LaneThread lane(pool);
        Atomic<bool> ends{false};
        std::thread answering([&] {
            std::mt19937 chance(7);
            while (!ends.load(relaxed))
                if (!op.answer([&](std::size_t count) { return chance() % count; })) std::this_thread::yield();
        });
        for (std::int64_t i = 0; i < rounds; ++i) {
            if (!flow.has_room() && !flow.wait_until_done(flow.admitted() - 100, stress::patience)) break;
            admit(flow, i % 7 == 0);
        }
        CHECK(flow.wait_until_done(rounds, stress::patience));
        ends.store(true, relaxed);
        answering.join();
    }
}

CHECK_MAIN
