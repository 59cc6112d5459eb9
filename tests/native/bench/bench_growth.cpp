// The cost of a backlog, in time and in memory, with each kind of spare nodes; and what spare nodes cost
// that wait in many mailboxes. Every run checks that all messages arrived in order.
#include <sys/wait.h>
#include <thread>

#include "bench.hpp"
#include "mailbox.hpp"
#include "free_lists.hpp"

using callboard::Node;
using callboard::monotonic_ns;
using free_lists::Mailbox;
using free_lists::Progress;
using free_lists::window;

namespace {

constexpr std::int64_t backlog = 1000000;
constexpr int round_count = 7;

double resident_mib() {
    long total = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    bench::require(file != nullptr && std::fscanf(file, "%ld %ld", &total, &resident) == 2, "statm");
    std::fclose(file);
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576.0;
}

// The result of `measure` in a process of its own, so that nothing is left in memory from another.
template <class Result, class Measure>
Result in_a_child(Measure measure) {
    int ends[2];
    Result result{};
    bench::require(pipe(ends) == 0, "pipe");
    const pid_t child = fork();
    bench::require(child >= 0, "fork");
    if (child == 0) {
        result = measure();
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    close(ends[1]);
    bench::require(read(ends[0], &result, sizeof result) == sizeof result, "a child failed");
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return result;
}

// One thread fills a mailbox, and empties it.
template <class Kind>
struct Growth {
    Mailbox<Kind> mailbox;
    typename Kind::Cache sender, receiver;

    double fill() {
        const std::int64_t begin = monotonic_ns();
        for (std::int64_t i = 0; i < backlog; ++i) mailbox.send(sender, i);
        return static_cast<double>(monotonic_ns() - begin) / backlog;
    }

    double empty() {
        const std::int64_t begin = monotonic_ns();
        std::int64_t value;
        for (std::int64_t i = 0; i < backlog; ++i)
            bench::require(mailbox.receive(receiver, value) && value == i, "a message is missing");
        return static_cast<double>(monotonic_ns() - begin) / backlog;
    }
};

// One producer and many actors of one worker, which are sent to in turn. Either each mailbox has a
// list, or all share their worker's, as in LPEL, whose mailboxes are the workers'.
template <class Kind, bool shared>
struct Crowd {
    static constexpr std::size_t boxes = 1000;
    static constexpr std::int64_t burst = 100, all = boxes * burst * 4;
    std::vector<Mailbox<Kind>> mailboxes{boxes};
    typename Kind::List common;

    typename Kind::List& list_of(std::size_t box) { return shared ? common : mailboxes[box].spare; }

    double run() {
        Progress progress;
        std::thread producer([&] {
            bench::pin(1);
            typename Kind::Cache cache;
            for (std::int64_t number = 0, until = window; number < all; ++number) {
                while (number == until) {
                    until = progress.received.load(callboard::relaxed) + window;
                    if (number == until) std::this_thread::yield();
                }
                const auto box = static_cast<std::size_t>(number / burst) % boxes;
                Node* node = cache.take(list_of(box));
                node->integer = number;
                (void)mailboxes[box].tail.push(node);
            }
        });
        typename Kind::Cache cache;
        const std::int64_t begin = monotonic_ns();
        bool in_order = true;
        for (std::int64_t number = 0; number < all;) {
            const auto box = static_cast<std::size_t>(number / burst) % boxes;
            Node* spent = nullptr;
            Node* node = mailboxes[box].head.pop(spent);
            if (node == nullptr) {
                std::this_thread::yield();
                continue;
            }
            in_order &= node->integer == number;
            cache.give(spent, list_of(box));
            if (++number % 128 == 0) progress.received.store(number, callboard::relaxed);
        }
        const std::int64_t end = monotonic_ns();
        producer.join();
        bench::require(in_order, "a message is missing, or out of order");
        return static_cast<double>(end - begin) / static_cast<double>(all);
    }
};

template <class Kind, bool shared>
double crowd_time() {
    return Crowd<Kind, shared>().run();
}

// KiB that spare nodes hold afterwards, for each mailbox.
template <class Kind, bool shared>
double crowd_memory() {
    return in_a_child<double>([] {
        Crowd<Kind, shared> crowd;
        const double before = resident_mib();
        crowd.run();
        return (resident_mib() - before) * 1024 / Crowd<Kind, shared>::boxes;
    });
}

void crowd_table() {
    using free_lists::NoList;
    using free_lists::Batches;
    bench::head("1,000 mailboxes, 100 messages each in turn",
                {"take all, a list for each mailbox", "take all, a list for the worker", "no list, slabs alone"});
    bench::row("ns per message",
               bench::rounds(round_count, {{"", crowd_time<Batches, false>},
                                           {"", crowd_time<Batches, true>},
                                           {"", crowd_time<NoList, false>}}));
    bench::row("KiB kept for each mailbox",
               bench::rounds(round_count, {{"", crowd_memory<Batches, false>},
                                             {"", crowd_memory<Batches, true>},
                                             {"", crowd_memory<NoList, false>}}));
    bench::foot();
}

// Nanoseconds per message, and MiB when the mailbox is full.
struct GrowthResult {
    double fill, empty, refill, peak;
};

template <class Kind>
GrowthResult grow() {
    return in_a_child<GrowthResult>([] {
        GrowthResult result{};
        const double before = resident_mib();
        Growth<Kind> growth;
        result.fill = growth.fill();
        result.peak = resident_mib() - before;
        result.empty = growth.empty();
        result.refill = growth.fill();
        growth.empty();
        return result;
    });
}

template <class... Kinds>
void growth_table() {
    bench::head("backlog of 1 million", {Kinds::name...});
    const auto line = [&](const char* name, double GrowthResult::* field) {
        bench::row(name, bench::rounds(round_count, {{Kinds::name, [=] {
            return grow<Kinds>().*field;
        }}...}));
    };
    line("first fill, ns per message", &GrowthResult::fill);
    line("first emptying, ns per message", &GrowthResult::empty);
    line("second fill, ns per message", &GrowthResult::refill);
    line("memory when full, MiB", &GrowthResult::peak);
    bench::foot();
}

}  // namespace

int main() {
    bench::pin(0);
#if defined(__x86_64__)
    growth_table<free_lists::Counted, free_lists::TakeAll, free_lists::Batches, free_lists::NoList>();
#else
    growth_table<free_lists::TakeAll, free_lists::Batches, free_lists::NoList>();
#endif
    crowd_table();
}
