// Workers on small hybrid queues, and on their baselines. Each partition's ledger is plain memory: two
// workers in one partition, or one that is not ordered after the last, are data races.
#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"
#include "../bench/peers/partitioned_queue.hpp"
#include "../bench/peers/shared_queue.hpp"
#include "history.hpp"

using callboard::Atomic;
using callboard::HybridQueue;
using callboard::PartitionedQueue;
using callboard::SharedQueue;
using callboard::Worklist;
using namespace stress;

namespace {

// What a partition's worker writes.
struct alignas(callboard::cache_line) Partition {
    std::int64_t next = 0;
    int inside = 0, wrong = 0;
};

struct Case {
    std::uint32_t partitions;
    std::size_t each;
    std::int64_t most;
};

// One producer, skewed: half of all values are of partition 0.
template <class Queue>
void everything_is_served_in_order(Case shape, int workers, std::int64_t all) {
    Queue queue(shape.partitions, shape.each, static_cast<std::uint32_t>(workers));
    std::vector<Partition> partitions(shape.partitions);
    std::vector<std::int64_t> added(shape.partitions, 0);
    Atomic<std::int64_t> left{all};
    together(workers + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == workers) {
            for (std::int64_t i = 0; i < all; ++i) {
                const std::uint32_t to = random.below(2) * random.below(shape.partitions);
                await([&] { return queue.add(to, added[to]); });
                ++added[to];
            }
            return;
        }
        while (left.load(callboard::relaxed) > 0) {
            const bool found = queue.consume_one([&](std::uint32_t which, std::int64_t value) {
                Partition& partition = partitions[which];
                partition.wrong += ++partition.inside != 1 || value != partition.next++;
                random.pause();
                --partition.inside;
                left.fetch_sub(1, callboard::relaxed);
            }, shape.most, static_cast<std::uint32_t>(index));
            if (!found) std::this_thread::yield();
        }
    });
    CHECK_EQUAL(queue.waiting(), 0);
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        CHECK_EQUAL(partitions[i].next, added[i]);
        CHECK_EQUAL(partitions[i].wrong, 0);
    }
}

// In each round a few values are added, and workers take until waiting() says that nothing is there for
// them. When all have stopped, everything has been served.
template <class Queue>
void nothing_stays_behind(Case shape, int workers, int most) {
    Queue queue(shape.partitions, shape.each, static_cast<std::uint32_t>(workers));
    Rounds rounds(most);
    Atomic<std::int64_t> begun{0}, finished{0}, served{0};
    std::int64_t added = 0;
    together(workers, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int round = 1; index != 0 || rounds.go_on(round); ++round) {
            if (index == 0) {
                begun.store(round, callboard::release);
                for (auto i = random.below(4) + 1; i != 0; --i)
                    added += queue.add(random.below(shape.partitions), i);
            } else {
                await([&] { return begun.load(callboard::acquire) >= round || rounds.over(); });
                if (rounds.over()) return;
            }
            do {
                while (queue.consume_one([&](std::uint32_t, std::int64_t) {
                    served.fetch_add(1, callboard::relaxed);
                }, shape.most, static_cast<std::uint32_t>(index))) {}
            } while (queue.waiting() != 0);
            finished.fetch_add(1, callboard::acq_rel);
            if (index != 0) continue;
            await([&] { return finished.load(callboard::acquire) == std::int64_t{round} * workers; });
            if (served.load(callboard::relaxed) == added) continue;
            CHECK(!"a value was left behind");
            rounds.stop();
        }
    });
}

// In each round one thread adds a value and then looks for sleepers, the other goes to sleep and then looks
// for values. One of them must see the other.
template <class Add, class Waiting, class Take>
void nobody_sleeps_beside_work(Add add, Waiting waiting, Take take, int most) {
    Rounds rounds(most);
    Atomic<std::int64_t> begun{0}, finished{0};
    Atomic<bool> asleep{false};
    bool saw_sleeper = false, saw_value = false;
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int round = 1; index != 0 || rounds.go_on(round); ++round) {
            if (index == 0) begun.store(round, callboard::release);
            else await([&] { return begun.load(callboard::acquire) >= round || rounds.over(); });
            if (rounds.over()) return;
            for (auto i = random.below(32); i != 0; --i) callboard::relax();
            if (index == 0) {
                add();
                saw_sleeper = asleep.load(callboard::seq_cst);
            } else {
                asleep.store(true, callboard::seq_cst);
                saw_value = waiting() != 0;
            }
            finished.fetch_add(1, callboard::acq_rel);
            if (index != 0) continue;
            await([&] { return finished.load(callboard::acquire) == std::int64_t{2} * round; });
            take();
            asleep.store(false, callboard::relaxed);
            if (saw_sleeper || saw_value) continue;
            CHECK(!"asleep beside work");
            rounds.stop();
        }
    });
}

template <class Queue>
void nobody_sleeps_beside_a_queue(int most) {
    Queue queue(1, 8);
    nobody_sleeps_beside_work([&] { CHECK(queue.add(0, 1)); }, [&] { return queue.waiting(); }, [&] {
        CHECK(queue.consume_one([](std::uint32_t, std::int64_t) {}));
    }, most);
}

// Each partition's history is that of a queue: a value is taken out between the beginning of a worker's
// call and that of the visit. And who found nothing was there when no more had been added than taken;
// the baselines do not promise that (`honest`), and the shared queue's partitions have a bound in common.
template <class Queue>
void a_history_is_linearizable(Case shape, int workers, std::int64_t all, bool honest) {
    history::Clock clock;
    Queue queue(shape.partitions, shape.each, static_cast<std::uint32_t>(workers));
    std::vector<std::vector<history::Call>> adds(shape.partitions), visits(shape.partitions);
    std::vector<std::vector<history::Call>> takes(static_cast<std::size_t>(workers));
    Atomic<std::int64_t> left{all};
    together(workers + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index) + shape.each);
        for (std::int64_t i = 0; index == workers && i < all;) {
            const std::uint32_t to = random.below(2) * random.below(shape.partitions);
            bool fits = false;
            const history::Call add = clock.record([&](history::Call& call) {
                call.serial = static_cast<std::int64_t>(adds[to].size());
                fits = queue.add(to, call.serial);
            });
            if (fits) adds[to].push_back(add);
            else std::this_thread::yield();
            i += fits;
        }
        while (index < workers && left.load(callboard::relaxed) > 0) {
            takes[static_cast<std::size_t>(index)].push_back(clock.record([&](history::Call& take) {
                const bool found = queue.consume_one([&](std::uint32_t which, std::int64_t value) {
                    history::Call call;
                    call.serial = value;
                    call.begin = take.begin;
                    call.end = clock.stamp();
                    visits[which].push_back(call);
                    random.pause();
                    left.fetch_sub(1, callboard::relaxed);
                }, shape.most, static_cast<std::uint32_t>(index));
                take.serial = found ? 0 : -1;
            }));
            if (random.below(4) == 0) std::this_thread::yield();
        }
    });
    for (std::uint32_t i = 0; i < shape.partitions; ++i) {
        CHECK(history::without_gap(visits[i]));
        const bool common = std::is_same<Queue, SharedQueue<std::int64_t>>::value;
        history::Queue one{adds[i], visits[i], {}, common ? adds[i].size() : shape.each};
        CHECK_EQUAL(one.pushes.size(), one.pops.size());
        CHECK(one.linearizable());
    }
    std::vector<history::Call> nothing;
    const std::vector<history::Call> something = history::by_serial(takes, nothing);
    for (const history::Call& none : nothing) {
        if (!honest) break;
        std::int64_t surplus = 0;
        for (const auto& partition : adds)
            for (const history::Call& add : partition) surplus += add.end < none.begin;
        for (const history::Call& take : something) surplus -= take.begin < none.end;
        CHECK(surplus <= 0);
    }
}

template <class Queue>
void all_of_it(bool honest) {
    for (const Case shape : {Case{1, 2, 1}, Case{3, 1, 2}, Case{5, 8, 16}}) {
        everything_is_served_in_order<Queue>(shape, 2, 4000);
        everything_is_served_in_order<Queue>(shape, 4, 4000);
        for (int round = 0; round < 30; ++round) a_history_is_linearizable<Queue>(shape, 3, 60, honest);
    }
}

}  // namespace

TEST("each partition of a hybrid queue is served in order, by one worker at a time") {
    all_of_it<HybridQueue<std::int64_t>>(true);
}

TEST("each partition of the partitioned queue is served in order, by one worker at a time") {
    all_of_it<PartitionedQueue<std::int64_t>>(false);
}

TEST("each partition of the shared queue is served in order, by one worker at a time") {
    all_of_it<SharedQueue<std::int64_t>>(false);
}

TEST("when workers find nothing more to take, nothing is left behind") {
    for (const Case shape : {Case{1, 8, 1}, Case{2, 8, 2}}) {
        nothing_stays_behind<HybridQueue<std::int64_t>>(shape, 2, 4000);
        nothing_stays_behind<PartitionedQueue<std::int64_t>>(shape, 2, 1000);
        nothing_stays_behind<SharedQueue<std::int64_t>>(shape, 2, 1000);
    }
}

TEST("a producer sees a worker that goes to sleep, or that worker sees the value: no worker sleeps beside work") {
    nobody_sleeps_beside_a_queue<HybridQueue<std::int64_t>>(20000);
    nobody_sleeps_beside_a_queue<PartitionedQueue<std::int64_t>>(2000);
    nobody_sleeps_beside_a_queue<SharedQueue<std::int64_t>>(2000);
    Worklist<int> list(8);
    int value = 0;
    nobody_sleeps_beside_work([&] { CHECK(list.push(1) != list.none); }, [&] { return list.size(); },
                              [&] { CHECK(list.pop(value) != list.none); }, 2000);
}

CHECK_MAIN
