// Streams that count in one summary together, while others ask. Lists, errors and keys are plain memory: two owners of
// one bucket or element, or memory that is used again under a reader, are data races. Afterwards the counts add up.
#include <memory>

#include "callboard/frequency/designs/cooperative.hpp"
#include "../bench/peers/cooperative_lossy.hpp"
#include "stress.hpp"
#include "summary_checks.hpp"

using namespace callboard;
using namespace stress;
using namespace summaries;

namespace {

constexpr std::uint64_t seed = 0x51ed2701a3f1c6b5;

struct Load {
    int streams;
    std::uint32_t capacity, throttle;
    std::int64_t numbers;
    int skew;
    std::uint64_t heaviest;
    int calls;
    bool gathers = true;
};

// Counts in a summary from all streams, while somebody asks for at most `capacity` keys. Returns the exact counts.
template <class Sort, class Summary>
std::vector<std::uint64_t> count_in(Summary& summary, const Sort& sort, const Load& load, bool adds_up) {
    std::vector<std::vector<std::uint64_t>> counted(static_cast<std::size_t>(load.streams));
    Atomic<int> counting{load.streams};
    together(load.streams + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == load.streams) {
            while (counting.load(acquire) != 0) {
                const std::size_t most = 1 + random.below(2 * load.capacity);
                const auto answer = summary.ask(most, random.below(2) == 0 ? 0 : 0.01);
                is_sound(sort, answer, std::min<std::size_t>(most, load.capacity), adds_up);
                const auto one = summary.estimate(sort.probe(random.below(static_cast<std::uint32_t>(load.numbers))));
                CHECK((adds_up ? one.count : one.count - one.error) <= summary.total());
                CHECK(summary.size() <= load.capacity);
                std::this_thread::yield();
            }
            return;
        }
        auto& own = counted[static_cast<std::size_t>(index)];
        own.assign(static_cast<std::size_t>(load.numbers), 0);
        std::vector<typename Sort::Keys::Probe> keys;
        std::vector<std::uint64_t> weights;
        for (int call = 0; call < load.calls; ++call) {
            keys.clear();
            weights.clear();
            for (auto left = 1 + random.below(100); left != 0; --left) {
                const std::int64_t number = draw(random.below(1u << 30), 0, load.numbers, load.skew);
                weights.push_back(load.heaviest == 0 ? 1 : 1 + random.below(static_cast<std::uint32_t>(load.heaviest)));
                own[static_cast<std::size_t>(number)] += weights.back();
                keys.push_back(sort.probe(number));
            }
            summary.add(static_cast<unsigned>(index), keys.data(), load.heaviest == 0 ? nullptr : weights.data(),
                        keys.size());
            random.pause();
        }
        counting.fetch_sub(1, release);
    });
    std::vector<std::uint64_t> exact(static_cast<std::size_t>(load.numbers));
    for (const auto& own : counted)
        for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += own[i];
    return exact;
}

template <class Sort>
void count_together(const Load& load) {
    const Sort sort(load.numbers);
    Cooperative<typename Sort::Keys> summary(load.capacity, seed, static_cast<unsigned>(load.streams), load.throttle,
                                              load.gathers);
    holds(sort, summary, count_in(summary, sort, load, true), load.capacity);
}

template <class Sort>
void count_lossily(std::uint64_t width, Load load) {
    const Sort sort(load.numbers);
    load.capacity = static_cast<std::uint32_t>(load.numbers);
    CooperativeLossy<typename Sort::Keys> summary(width, seed, static_cast<unsigned>(load.streams), load.throttle);
    holds_lossy(sort, summary, count_in(summary, sort, load, false), width);
}

}  // namespace

TEST("counts add up and keep their bounds, whatever the capacity: all overwrites collide") {
    for (const std::uint32_t capacity : {1u, 2u, 3u, 10u, 40u})
        count_together<Integers>({4, capacity, 0, 60, 1, 0, 300});
}

TEST("skewed integers, where elements are delegated") { count_together<Integers>({4, 50, 0, 1000, 6, 0, 1000, false}); }

TEST("weights, so that elements go far") { count_together<Integers>({4, 20, 0, 100, 2, 1000, 700}); }

TEST("streams that rest at short queues") { count_together<Integers>({4, 30, 1, 300, 0, 0, 400}); }

TEST("texts whose memory is used again") {
    for (const std::uint32_t capacity : {3u, 30u}) count_together<Texts>({3, capacity, 500, 100, 1, 0, 400});
}

TEST("more counters than keys") { count_together<Texts>({3, 200, 500, 100, 1, 3, 400}); }

TEST("lossy counting, where rounds end while elements are counted") {
    for (const std::uint64_t width : {60u, 500u}) count_lossily<Integers>(width, {4, 0, 0, 300, 2, 0, 400});
    count_lossily<Texts>(300, {3, 0, 500, 100, 1, 3, 400});
}

CHECK_MAIN
