// Spare nodes three ways, under the queue that they serve. Every run checks that all messages
// arrived, each producer's in its order.
//
// Producers keep at most `window` messages each under way, so that the lists are at their work and
// not the allocator at growth, which bench_growth.cpp is about.
#include <thread>

#include "bench.hpp"
#include "mailbox.hpp"
#include "free_lists.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;
using free_lists::Mailbox;
using free_lists::Progress;
using free_lists::window;

namespace {

constexpr std::int64_t all_messages = 1000000;  // of a run, divided among the producers
constexpr int round_count = 15;

template <class Kind>
double across_threads(int producers) {
    Mailbox<Kind> mailbox;
    std::vector<Progress> progress(static_cast<std::size_t>(producers));
    const std::int64_t each = all_messages / producers;
    Atomic<int> waiting{producers + 1};
    std::vector<std::thread> threads;
    for (int producer = 0; producer < producers; ++producer) {
        threads.emplace_back([&, producer] {
            bench::pin(producer + 1);
            typename Kind::Cache cache;
            const Atomic<std::int64_t>& received = progress[static_cast<std::size_t>(producer)].received;
            waiting.fetch_sub(1, callboard::relaxed);
            while (waiting.load(callboard::relaxed) != 0) std::this_thread::yield();
            std::int64_t until = window;
            for (std::int64_t number = 0; number < each; ++number) {
                while (number == until) {
                    until = received.load(callboard::relaxed) + window;
                    if (number == until) std::this_thread::yield();
                }
                mailbox.send(cache, std::int64_t{producer} << 32 | number);
            }
        });
    }
    typename Kind::Cache cache;
    std::vector<std::int64_t> next(static_cast<std::size_t>(producers), 0);
    bool in_order = true;
    waiting.fetch_sub(1, callboard::relaxed);
    while (waiting.load(callboard::relaxed) != 0) std::this_thread::yield();
    const std::int64_t begin = monotonic_ns();
    std::int64_t value;
    for (std::int64_t left = each * producers; left != 0;) {
        if (!mailbox.receive(cache, value)) {
            std::this_thread::yield();
            continue;
        }
        const auto producer = static_cast<std::size_t>(value >> 32);
        in_order &= next[producer] == (value & 0xffffffff);
        if (++next[producer] % 128 == 0)
            progress[producer].received.store(next[producer], callboard::relaxed);
        if (next[producer] == each) progress[producer].received.store(each, callboard::relaxed);
        --left;
    }
    const std::int64_t end = monotonic_ns();
    for (std::thread& thread : threads) thread.join();
    bench::require(in_order, "a producer's messages are out of order");
    for (std::int64_t count : next) bench::require(count == each, "a message is missing");
    return static_cast<double>(end - begin) / static_cast<double>(each * producers);
}

// Actors on one worker: the thread that consumes is the thread that sends.
template <class Kind>
double on_one_thread() {
    constexpr std::size_t boxes = 16;
    std::vector<Mailbox<Kind>> mailboxes(boxes);
    typename Kind::Cache cache;
    for (auto& mailbox : mailboxes) mailbox.send(cache, 0);
    std::int64_t hops = 0, value = 0;
    const std::int64_t begin = monotonic_ns();
    while (hops < all_messages) {
        for (std::size_t box = 0; box < boxes; ++box, ++hops) {
            bench::require(mailboxes[box].receive(cache, value), "a message is missing");
            mailboxes[(box + 1) % boxes].send(cache, value + 1);
        }
    }
    const std::int64_t end = monotonic_ns();
    std::int64_t sum = 0;
    for (auto& mailbox : mailboxes)
        while (mailbox.receive(cache, value)) sum += value;
    bench::require(sum == hops, "a hop was lost");
    return static_cast<double>(end - begin) / static_cast<double>(hops);
}

template <class... Kinds>
void table() {
    bench::head("ns per message: median (least to most)", {Kinds::name...});
    bench::row("one thread, 16 mailboxes",
               bench::rounds(round_count, {{Kinds::name, on_one_thread<Kinds>}...}));
    for (int producers : {1, 2, 4}) {
        bench::row(std::to_string(producers) + (producers == 1 ? " producer" : " producers"),
                   bench::rounds(round_count, {{Kinds::name, [=] {
                       return across_threads<Kinds>(producers);
                   }}...}));
    }
    bench::foot();
}

}  // namespace

int main() {
    bench::pin(0);
#if defined(__x86_64__)
    table<free_lists::Counted, free_lists::TakeAll, free_lists::Batches, free_lists::NoList>();
#else
    table<free_lists::TakeAll, free_lists::Batches, free_lists::NoList>();
#endif
}
