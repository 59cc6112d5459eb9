// The ring of channels, and channels whose ends block, with small and large capacities: on one core and on two.
//
//     bench_channel                        all tables
//     bench_channel CAPACITY VALUES        one run of the product's channel on two cores: prints a line of JSON
#ifndef NDEBUG
#define NDEBUG  // as the product is built: a check of who is inside costs more than a value
#endif
#include <cstring>
#include <memory>
#include <thread>

#include "callboard/channels/kernel/channel.hpp"
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
        while (channel.try_send(value) != Transfer::done)
            sender.wait_for([this] { return channel.send_ready(); }, channel.sending());
    }
    Number receive() {
        Number value;
        while (channel.try_receive(value) != Transfer::done)
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
    std::thread sender([&] {
        bench::pin(1);
        start();
        for (Number i = 1; i <= values; ++i) pipe.send(i);
    });
    double time = 0;
    std::thread receiver([&] {
        bench::pin(0);
        start();
        const auto begin = monotonic_ns();
        for (Number i = 1; i <= values; ++i) wrong += pipe.receive() != i;
        time = per_value(begin, values);
    });
    sender.join(), receiver.join();
    bench::require(wrong == 0, "a value is out of order");
    return time;
}

template <class Pipe>
double one_core(Number capacity, Number values) {
    Pipe pipe(capacity);
    const Number lot = std::min<Number>(capacity, 64);
    Number wrong = 0;
    const auto begin = monotonic_ns();
    for (Number i = 0; i < values; i += lot) {
        for (Number j = 1; j <= lot; ++j) pipe.send(i + j);
        for (Number j = 1; j <= lot; ++j) wrong += pipe.receive() != i + j;
    }
    bench::require(wrong == 0, "a value is out of order");
    return per_value(begin, values);
}

void table(const char* title, bool two) {
    constexpr Number values = 500'000;
    std::printf("%s\n\n", title);
    bench::head("capacity", {"ring", "FastForward, null", "Lamport", "channel", "channel, always counted", two ? "channel, always light" : "channel, under a lock"});
    for (const Number capacity : {1, 16, 1024}) {
        const auto run = [=](auto both, auto one, const char* name) {
            return bench::Candidate{name, [=] { return two ? both(capacity, values) : one(capacity, values); }};
        };
#define RUN(type) run(two_cores<type>, one_core<type>, #type)
        bench::row(std::to_string(capacity),
                   bench::rounds(5, {RUN(Bare<Spsc<Number>>), RUN(Bare<FastForward<Number>>), RUN(Bare<Lamport<Number>>),
                                     RUN(Threads<Concurrent>), RUN(Threads<BasicConcurrent<never>>),
                                     two ? RUN(Threads<BasicConcurrent<0>>) : RUN(Threads<Locked>)}));
    }
    bench::foot();
}

}  // namespace

int main(int count, char** words) {
    if (count > 2) {
        const Number capacity = std::atoll(words[1]), values = std::atoll(words[2]);
        const double ns = two_cores<Threads<Concurrent>>(capacity, values);
        std::printf("{\"operations\": %lld, \"seconds\": %.9f, \"got\": 1, \"want\": 1}\n",
                    static_cast<long long>(values), ns * static_cast<double>(values) / 1e9);
        return 0;
    }
    table("Two threads on two cores: ns for a value", true);
    table("One thread: ns for a value", false);
}
