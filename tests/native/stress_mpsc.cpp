// Producers against one consumer that goes idle whenever it can.
#include <algorithm>

#include "callboard/core/threads/parker.hpp"
#include "callboard/mailbox/mpsc.hpp"
#include "stress.hpp"

using callboard::Atomic;
using callboard::FreeList;
using callboard::MpscHead;
using callboard::MpscTail;
using callboard::Node;
using callboard::monotonic_ns;
using callboard::Parker;
using callboard::relaxed;
using namespace stress;

namespace {

constexpr int messages = 150000;  // of each producer

struct Mailbox {
    Node* const dummy = new Node;
    MpscTail tail{dummy, true};
    MpscHead head{dummy};
    FreeList spare;

    // The consumer. Receives what can be popped; answers how much that was.
    int receive(Ledger& ledger, SmallCache& cache) {
        int count = 0;
        Node* spent = nullptr;
        while (Node* node = head.pop(spent)) {
            ledger.receive(node->integer);
            cache.give(spent, spare);
            ++count;
        }
        return count;
    }
};

// Sends numbers 0 to `messages` - 1 in chains of one to `longest`; calls wake() when it must.
template <class Wake>
void produce(Mailbox& mailbox, SmallCache& cache, int producer, int longest, Wake wake) {
    Random random(static_cast<std::uint64_t>(producer));
    for (int number = 0; number < messages;) {
        const int length = static_cast<int>(random.below(static_cast<std::uint32_t>(longest))) + 1;
        Node *first = nullptr, *last = nullptr;
        for (int i = 0; i < length && number < messages; ++i, ++number) {
            Node* node = cache.take(mailbox.spare);
            node->integer = stamp(producer, number);
            if (first == nullptr) first = node;
            else last->next.store(node, callboard::relaxed);
            last = node;
        }
        if (mailbox.tail.push_chain(first, last)) wake();
        random.pause();
    }
}

// A consumer thread that parks when it is idle, and `producers` that unpark it.
void into_a_parking_consumer(int producers, int longest_chain) {
    Mailbox mailbox;
    Parker parker;
    Ledger ledger(producers);
    const std::int64_t all = std::int64_t{producers} * messages;
    together(producers + 1, [&](int index) {
        SmallCache cache;
        if (index < producers) {
            produce(mailbox, cache, index, longest_chain, [&] { parker.unpark(); });
            return;
        }
        for (;;) {  // born idle
            while (mailbox.tail.is_idle()) {
                if (!parker.park(patience)) return check::fail(__FILE__, __LINE__, "a lost wake-up");
            }
            while (!mailbox.head.try_idle(mailbox.tail)) {
                if (mailbox.receive(ledger, cache) == 0) std::this_thread::yield();  // the queue is unlinked
            }
            if (ledger.received() == all) return;
        }
    });
    CHECK_EQUAL(ledger.received(), all);
    CHECK_EQUAL(ledger.wrong(), 0);
    CHECK(mailbox.tail.is_idle());
}

// No consumer thread: whoever is told to wake the consumer runs it, until it goes idle again.
void into_a_consumer_that_moves(int producers, int longest_chain) {
    Mailbox mailbox;
    Ledger ledger(producers);
    int inside = 0, most_inside = 0;  // plain: two consumers at once are a race and a wrong count
    together(producers, [&](int index) {
        SmallCache cache;
        produce(mailbox, cache, index, longest_chain, [&] {
            do {
                most_inside = std::max(most_inside, ++inside);
                if (mailbox.receive(ledger, cache) == 0) std::this_thread::yield();
                --inside;
            } while (!mailbox.head.try_idle(mailbox.tail));
        });
    });
    CHECK_EQUAL(ledger.received(), std::int64_t{producers} * messages);
    CHECK_EQUAL(ledger.wrong(), 0);
    CHECK_EQUAL(most_inside, 1);
    CHECK(mailbox.tail.is_idle());
}

}  // namespace

TEST("a ledger sees a message that is lost, doubled or overtaken") {
    const std::vector<std::vector<int>> histories = {{0, 2}, {0, 0, 1}, {1, 0}};
    for (const std::vector<int>& history : histories) {
        Ledger ledger(1);
        for (int number : history) ledger.receive(stamp(0, number));
        CHECK(ledger.wrong() > 0);
    }
}

TEST("one producer's messages reach a parking consumer once and in order") {
    into_a_parking_consumer(1, 1);
}

TEST("four producers' messages reach a parking consumer once and in order") {
    into_a_parking_consumer(4, 1);
}

TEST("chains reach a parking consumer once and in order") { into_a_parking_consumer(3, 5); }

// Nobody follows who would wake the consumer after all: a consumer that goes idle while the one
// producer is between its two steps sleeps for ever.
TEST("a message is received although no other follows") {
    Rounds rounds(300000);
    Mailbox mailbox;
    Atomic<int> sent{0}, received{0};
    together(2, [&](int index) {
        SmallCache cache;
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (int round = 1; rounds.go_on(round); ++round) {
                sent.store(round, relaxed);
                Node* node = cache.take(mailbox.spare);
                node->integer = round;
                (void)mailbox.tail.push(node);
                const std::int64_t limit = monotonic_ns() + patience;
                await([&] { return received.load(relaxed) == round || monotonic_ns() > limit; });
                if (received.load(relaxed) != round)
                    check::give_up(__FILE__, __LINE__, "a lost wake-up");
                for (auto i = random.below(64); i != 0; --i) asm volatile("");
            }
            return;
        }
        Node* spent = nullptr;
        while (!rounds.over()) {
            await([&] { return !mailbox.tail.is_idle() || rounds.over(); });
            while (Node* node = mailbox.head.pop(spent)) {
                cache.give(spent, mailbox.spare);
                received.store(static_cast<int>(node->integer), relaxed);
                for (auto i = random.below(64); i != 0; --i) asm volatile("");
            }
            (void)mailbox.head.try_idle(mailbox.tail);
        }
    });
    CHECK(sent.load(relaxed) > 0);
    CHECK_EQUAL(received.load(relaxed), sent.load(relaxed));
}

TEST("a consumer that runs wherever it is woken is never in two places") {
    into_a_consumer_that_moves(4, 1);
    into_a_consumer_that_moves(2, 5);
}

CHECK_MAIN
