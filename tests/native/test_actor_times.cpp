// Histograms of times: their buckets, and the histograms that each worker adds to.
#include "callboard/core/monitoring/actor_times.hpp"

#include <thread>
#include <vector>

#include "check.hpp"

using callboard::ActorTimes;
using callboard::TimeHistogram;

namespace {

std::uint64_t handled(const ActorTimes& times) {
    std::uint64_t all = 0;
    for (std::size_t bucket = 0; bucket < TimeHistogram::buckets; ++bucket) all += times.handled(bucket);
    return all;
}

}  // namespace

TEST("a time is in the bucket with the least bound that it does not exceed") {
    std::uint64_t lower = 0;
    for (std::size_t bucket = 0; bucket < TimeHistogram::buckets; ++bucket) {
        const std::uint64_t bound = TimeHistogram::bound_of(bucket);
        CHECK(bound > lower);
        CHECK_EQUAL(TimeHistogram::bucket_of(lower + 1), bucket);
        CHECK_EQUAL(TimeHistogram::bucket_of(bound), bucket);
        CHECK(bound <= 8 || 8 * (bound - lower) <= lower);  // 12.5%
        lower = bound;
    }
    CHECK_EQUAL(TimeHistogram::bucket_of(0), 0u);
    CHECK_EQUAL(TimeHistogram::bucket_of(lower + 1), TimeHistogram::buckets - 1);
    CHECK_EQUAL(TimeHistogram::bucket_of(~std::uint64_t{0}), TimeHistogram::buckets - 1);
}

TEST("powers of two are bounds, so that counts up to them are exact") {
    for (int power = 0; power < 40; ++power) {
        const std::uint64_t bound = std::uint64_t{1} << power;
        CHECK_EQUAL(TimeHistogram::bound_of(TimeHistogram::bucket_of(bound)), bound);
    }
}

TEST("the messages of a dispatch count with its mean, and their sum is its time") {
    ActorTimes times(2);
    times.note_handled(0, 1000, 10);
    times.note_handled(1, 7, 1);
    times.note_handled(0, std::int64_t{10'000'000'000}, 2);
    times.note_waited(1, -5);
    CHECK_EQUAL(times.handled(TimeHistogram::bucket_of(100)), 10u);
    CHECK_EQUAL(times.handled(TimeHistogram::bucket_of(7)), 1u);
    CHECK_EQUAL(times.handled(TimeHistogram::bucket_of(5'000'000'000)), 2u);
    CHECK_EQUAL(times.handled_ns(), 10'000'001'007u);
    CHECK_EQUAL(times.waited(0), 1u);
    CHECK_EQUAL(times.waited_ns(), 0u);
}

TEST("an actor's own times are its class's, too") {
    ActorTimes of_class(1);
    ActorTimes own(of_class.workers(), &of_class);
    own.note_handled(0, 50, 1);
    of_class.note_handled(0, 60, 1);
    own.note_waited(0, 70);
    CHECK_EQUAL(handled(own), 1u);
    CHECK_EQUAL(handled(of_class), 2u);
    CHECK_EQUAL(of_class.waited_ns(), 70u);
}

TEST("dedicated workers share a place, and lose nothing of each other") {
    constexpr int threads = 4, each = 20'000;
    ActorTimes times(3);
    std::vector<std::thread> dedicated;
    for (int i = 0; i < threads; ++i)
        dedicated.emplace_back([&] {
            for (int n = 0; n < each; ++n) times.note_handled(3, 100, 1);
        });
    for (std::thread& one : dedicated) one.join();
    CHECK_EQUAL(handled(times), static_cast<std::uint64_t>(threads * each));
    CHECK_EQUAL(times.handled_ns(), static_cast<std::uint64_t>(threads * each * 100));
}

CHECK_MAIN
