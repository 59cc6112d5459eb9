// The ring of channels, and channels whose ends block, with small and large capacities: on one core and on two. And
// what it costs to select among many channels.
//
//     bench_channel                        all tables
//     bench_channel CAPACITY VALUES        one run of the product's channel on two cores: prints a line of JSON
#ifndef NDEBUG
#define NDEBUG  // as the product is built: a check of who is inside costs more than a value
#endif
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "callboard/channels/kernel/channel.hpp"
#include "callboard/channels/kernel/selection.hpp"
#include "callboard/core/mix.hpp"
#include "callboard/core/threads/spinner.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "../../bench/peers/fast_forward.hpp"
#include "../../bench/peers/lamport.hpp"
#include "../channels.hpp"
#include "bench.hpp"

using namespace callboard;

namespace {

using Number = std::int64_t;
constexpr std::uintptr_t never = INT32_MAX;

// Ends of a bare ring, which spin.
template <class Ring>
struct Bare {
    explicit Bare(Number capacity) : ring(static_cast<std::size_t>(capacity)) {}
    void send(Number value) {
        while (!ring.try_push(value)) relax();
    }
    Number receive() {
        Number value;
        while (!ring.try_pop(value)) relax();
        return value;
    }
    Ring ring;
};

// A thread at one end of a channel: it spins for a while, and then sleeps.
class Blocking {
public:
    template <class Ready>
    void wait_for(Ready&& is_ready, Waitable& place) {
        for (int turn = 0; turn < 64; ++turn) {
            relax();
            if (is_ready()) return;
        }
        if (!spinner_.wait_until(is_ready, 20'000)) sleeping_.wait_for(place);
    }

private:
    Spinner spinner_;
    channels::Sleeping sleeping_;
};

template <class Ordering>
struct Threads {
    explicit Threads(Number capacity) : channel(capacity) {}
    void send(Number value) {
        while (channel.send_nowait(value) != Transfer::done)
            sender.wait_for([this] { return channel.send_ready(); }, channel.sending());
    }
    Number receive() {
        Number value;
        while (channel.receive_nowait(value) != Transfer::done)
            receiver.wait_for([this] { return channel.receive_ready(); }, channel.receiving());
        return value;
    }
    Channel<Number, Ordering> channel;
    alignas(cache_line) Blocking sender;
    alignas(cache_line) Blocking receiver;
};

double per_value(std::int64_t begin, Number values) {
    return static_cast<double>(monotonic_ns() - begin) / static_cast<double>(values);
}

template <class Pipe>
double two_cores(Number capacity, Number values) {
    Pipe pipe(capacity);
    Atomic<int> ready{0};
    Number wrong = 0;
    const auto start = [&] {
        ready.fetch_add(1, acq_rel);
        while (ready.load(acquire) != 2) relax();
    };
    std::thread sender([&, values] {  // each thread counts by itself: nothing but the pipe is shared
        bench::pin(1);
        start();
        for (Number i = 1; i <= values; ++i) pipe.send(i);
    });
    double time = 0;
    std::thread receiver([&, values] {
        bench::pin(0);
        start();
        Number bad = 0;
        const auto begin = monotonic_ns();
        for (Number i = 1; i <= values; ++i) bad += pipe.receive() != i;
        time = per_value(begin, values);
        wrong = bad;
    });
    sender.join(), receiver.join();
    bench::require(wrong == 0, "a value is out of order");
    return time;
}

template <class Pipe>
double one_core(Number capacity, Number values) {
    Pipe pipe(capacity);
    const Number chunk = std::min<Number>(capacity, 64);
    Number wrong = 0;
    const auto begin = monotonic_ns();
    for (Number i = 0; i < values; i += chunk) {
        for (Number j = 1; j <= chunk; ++j) pipe.send(i + j);
        for (Number j = 1; j <= chunk; ++j) wrong += pipe.receive() != i + j;
    }
    bench::require(wrong == 0, "a value is out of order");
    return per_value(begin, values);
}

// Both threads of a short run have a core all the time if they have luck. So of many interleaved runs the fastest tenth
// is told, from the fastest to the median, and other work on the machine changes it little.
std::vector<bench::Sample> fastest_tenth(const std::vector<bench::Candidate>& candidates) {
    constexpr std::size_t runs = 200;
    std::vector<std::vector<double>> times(candidates.size());
    for (std::size_t i = 0; i < runs; ++i)
        for (std::size_t j = 0; j < candidates.size(); ++j) times[j].push_back(candidates[j].run());
    std::vector<bench::Sample> samples;
    for (auto& each : times) {
        std::sort(each.begin(), each.end());
        samples.push_back({each[runs / 10], each[0], each[runs / 2]});
    }
    return samples;
}

void table(const char* title, bool two) {
    std::printf("%s\n\n", title);
    bench::head("capacity", {"ring", "FastForward, null", "Lamport", "channel", "channel, always counted", two ? "channel, always light" : "channel, under a lock"});
    for (const Number capacity : {1, 16, 1024}) {
        const Number values = capacity == 1 ? 5'000 : 60'000;
        const auto run = [=](auto both, auto one, const char* name) {
            return bench::Candidate{name, [=] { return two ? both(capacity, values) : one(capacity, values); }};
        };
#define RUN(type) run(two_cores<type>, one_core<type>, #type)
        bench::row(std::to_string(capacity),
                   fastest_tenth({RUN(Bare<Spsc<Number>>), RUN(Bare<FastForward<Number>>), RUN(Bare<Lamport<Number>>),
                                  RUN(Threads<Concurrent>), RUN(Threads<BasicConcurrent<never>>),
                                  two ? RUN(Threads<BasicConcurrent<0>>) : RUN(Threads<Locked>)}));
    }
    std::printf("\n");
}

// A value goes through one of `count` channels, which a selector finds: always the same, or one after another.
template <class Ordering>
double select(std::size_t count, bool same, Number values) {
    using Pipe = Channel<Number, Ordering>;
    std::vector<std::unique_ptr<Pipe>> channels;
    std::vector<std::unique_ptr<Member>> members;
    Selector selector;
    for (std::size_t i = 0; i < count; ++i) {
        channels.push_back(std::make_unique<Pipe>(16));
        members.push_back(std::make_unique<Member>(channels.back()->receiving(), channels.back().get()));
        selector.add(*members.back());
    }
    Number wrong = 0;
    const auto begin = monotonic_ns();
    for (Number i = 1; i <= values; ++i) {
        Pipe& there = *channels[same ? 7 : random_number(1, static_cast<std::uint64_t>(i)) % count];
        wrong += there.send_nowait(i) != Transfer::done;
        Member* const given = selector.next();
        Number value = 0;
        wrong += given->user != &there || there.receive_nowait(value) != Transfer::done || value != i;
    }
    const double time = per_value(begin, values);
    for (auto& member : members) selector.remove(*member);
    bench::require(wrong == 0, "another channel was found");
    return time;
}

void table_of_selections() {
    constexpr Number values = 10'000;
    std::printf("One thread selects, and takes: ns for a value\n\n");
    bench::head("channels", {"always the same one", "any", "always the same one, under a lock", "any, under a lock"});
    for (const std::size_t count : {10, 1000, 10000}) {
        const auto run = [=](auto of, bool same) {
            return bench::Candidate{"", [=] { return of(count, same, values); }};
        };
        bench::row(std::to_string(count), fastest_tenth({run(select<Concurrent>, true), run(select<Concurrent>, false),
                                                           run(select<Locked>, true), run(select<Locked>, false)}));
    }
}

}  // namespace

int main(int count, char** words) {
    Concurrent::prepare();
    BasicConcurrent<0>::prepare();
    if (count > 2) {
        const Number capacity = std::atoll(words[1]), values = std::atoll(words[2]);
        const double ns = two_cores<Threads<Concurrent>>(capacity, values);
        std::printf("{\"operations\": %lld, \"seconds\": %.9f, \"got\": 1, \"want\": 1}\n",
                    static_cast<long long>(values), ns * static_cast<double>(values) / 1e9);
        return 0;
    }
    table("Two threads on two cores: ns for a value", true);
    table("One thread: ns for a value", false);
    table_of_selections();
}
