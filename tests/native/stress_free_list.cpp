// Nodes that wander between mailboxes, with free lists so small that they are empty or full most of the
// time. A node with two owners shows as a data race on its plain fields, as a wrong mark, and as a
// message that was lost.
#include <memory>

#include "callboard/mailbox/mpsc.hpp"
#include "stress.hpp"

using callboard::Atomic;
using callboard::FreeList;
using callboard::MpscHead;
using callboard::MpscTail;
using callboard::Node;
using namespace stress;

namespace {

struct Mailbox {
    Node* const dummy = new Node;
    MpscTail tail{dummy, false};
    MpscHead head{dummy};
    FreeList spare;
};

void send(Mailbox& to, SmallCache& cache, std::int64_t value) {
    Node* node = cache.take(to.spare);
    CHECK(node->flags == 0);  // a spare node is in nobody's hands
    node->flags = 1;
    node->integer = value;
    (void)to.tail.push(node);
}

// True and the value, if there was a message.
bool receive(Mailbox& from, SmallCache& cache, std::int64_t& value) {
    Node* spent = nullptr;
    Node* node = from.head.pop(spent);
    if (node == nullptr) return false;
    CHECK(node->flags == 1);
    node->flags = 0;
    value = node->integer;
    cache.give(spent, from.spare);
    return true;
}

}  // namespace

TEST("no node is in two hands between one receiver and three senders") {
    constexpr int senders = 3, messages = 500000;
    Mailbox mailbox;
    std::int64_t received = 0, sum = 0;
    together(senders + 1, [&](int index) {
        SmallCache cache;
        if (index < senders) {
            Random random(static_cast<std::uint64_t>(index));
            for (int i = 1; i <= messages; ++i) {
                send(mailbox, cache, i);
                random.pause();
            }
            return;
        }
        std::int64_t value;
        while (received < std::int64_t{senders} * messages) {
            if (receive(mailbox, cache, value)) {
                ++received;
                sum += value;
            } else {
                std::this_thread::yield();
            }
        }
    });
    CHECK_EQUAL(sum, std::int64_t{senders} * messages * (messages + 1) / 2);
}

TEST("chains of messages between mailboxes are received chains times hops") {
    constexpr int workers = 4, chains = 64, hops = 20000;
    std::unique_ptr<Mailbox[]> mailboxes(new Mailbox[workers]);
    Atomic<std::int64_t> ended{0};
    Atomic<std::int64_t> received{0};
    together(workers, [&](int index) {
        SmallCache cache;
        Random random(static_cast<std::uint64_t>(index));
        auto anyone = [&]() -> Mailbox& { return mailboxes[random.below(workers)]; };
        for (int i = index; i < chains; i += workers) send(anyone(), cache, hops);
        std::int64_t count = 0, left;
        while (ended.load(callboard::relaxed) < chains) {
            if (!receive(mailboxes[index], cache, left)) {
                std::this_thread::yield();
                continue;
            }
            ++count;
            if (left == 0) ended.fetch_add(1, callboard::relaxed);
            else send(anyone(), cache, left - 1);
        }
        received.fetch_add(count, callboard::relaxed);
    });
    CHECK_EQUAL(received.load(callboard::relaxed), std::int64_t{chains} * (hops + 1));
}

TEST("free lists that are trimmed and end while others send lose no message") {
    constexpr int senders = 2, rounds = 400, messages = 500;
    callboard::Surplus surplus(SmallCache::batch_size);
    Atomic<int> working{senders};
    Atomic<std::int64_t> received{0};
    together(senders + 1, [&](int index) {
        if (index == senders) {  // a worker without work
            while (working.load(callboard::relaxed) != 0) {
                if (!surplus.is_empty()) surplus.free_all();
                std::this_thread::yield();
            }
            return;
        }
        SmallCache cache;
        cache.surplus = &surplus;
        std::int64_t count = 0, value;
        for (int round = 0; round < rounds; ++round) {
            Mailbox mailbox;  // its free list ends in the surplus, or beside a trim
            for (int i = 0; i < messages; ++i) send(mailbox, cache, i);
            while (receive(mailbox, cache, value)) ++count;
            for (int i = 0; i < messages; ++i) send(mailbox, cache, i);
            while (receive(mailbox, cache, value)) ++count;
        }
        received.fetch_add(count, callboard::relaxed);
        working.fetch_add(-1, callboard::relaxed);
    });
    CHECK_EQUAL(received.load(callboard::relaxed), std::int64_t{senders} * rounds * messages * 2);
}

CHECK_MAIN
