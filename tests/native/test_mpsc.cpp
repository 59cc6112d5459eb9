// The queue's contract, on one thread; stress_mpsc.cpp has the producers.
#include "callboard/mailbox/mpsc.hpp"
#include "check.hpp"

using callboard::MpscHead;
using callboard::MpscTail;
using callboard::Node;

namespace {

struct Queue {
    Node* const dummy = new Node;
    MpscTail tail;
    MpscHead head{dummy};
    explicit Queue(bool idle) : tail(dummy, idle) {}

    static Node* message(int value) {
        Node* node = new Node;
        node->integer = value;
        return node;
    }

    bool push(int value) { return tail.push(message(value)); }

    int pop() {  // the value, or -1
        Node* spent = nullptr;
        Node* node = head.pop(spent);
        if (node == nullptr) return -1;
        delete spent;
        return static_cast<int>(node->integer);
    }
};

}  // namespace

TEST("messages leave in the order in which they came") {
    Queue queue(false);
    for (int i = 0; i < 5; ++i) CHECK(!queue.push(i));
    for (int i = 0; i < 5; ++i) CHECK_EQUAL(queue.pop(), i);
    CHECK_EQUAL(queue.pop(), -1);
}

TEST("a queue is usable again after it was empty") {
    Queue queue(false);
    for (int i = 0; i < 5; ++i) {
        (void)queue.push(i);
        CHECK_EQUAL(queue.pop(), i);
        CHECK_EQUAL(queue.pop(), -1);
    }
}

TEST("the popped node stays as the dummy, the old dummy is the caller's") {
    Queue queue(false);
    Node* first = Queue::message(1);
    (void)queue.tail.push(first);
    Node* spent = nullptr;
    CHECK(queue.head.pop(spent) == first);
    CHECK(spent == queue.dummy);
    delete spent;
}

TEST("the first message to an idle consumer says that it must be woken, the second does not") {
    Queue queue(true);
    CHECK(queue.tail.is_idle());
    CHECK(queue.push(1));
    CHECK(!queue.tail.is_idle());
    CHECK(!queue.push(2));
    CHECK_EQUAL(queue.pop(), 1);
    CHECK_EQUAL(queue.pop(), 2);
}

TEST("a consumer with a message cannot go idle, one without can") {
    Queue queue(false);
    (void)queue.push(1);
    CHECK(!queue.head.try_idle(queue.tail));
    CHECK_EQUAL(queue.pop(), 1);
    CHECK(queue.head.try_idle(queue.tail));
    CHECK(queue.tail.is_idle());
    CHECK(queue.push(2));
}

TEST("while a push is not linked the consumer finds nothing and cannot go idle") {
    Queue queue(false);
    (void)queue.push(1);
    Node* first = queue.dummy->next.load(callboard::relaxed);
    queue.dummy->next.store(nullptr, callboard::relaxed);  // as if the producer stopped before its link
    CHECK_EQUAL(queue.pop(), -1);
    CHECK(!queue.head.try_idle(queue.tail));
    (void)queue.push(2);  // complete, but behind the missing link
    CHECK_EQUAL(queue.pop(), -1);
    CHECK(!queue.head.try_idle(queue.tail));
    queue.dummy->next.store(first, callboard::release);
    CHECK_EQUAL(queue.pop(), 1);
    CHECK_EQUAL(queue.pop(), 2);
    CHECK(queue.head.try_idle(queue.tail));
}

TEST("a chain arrives whole, in its order, and wakes once") {
    Queue queue(true);
    Node* nodes[3] = {Queue::message(1), Queue::message(2), Queue::message(3)};
    nodes[0]->next.store(nodes[1], callboard::relaxed);
    nodes[1]->next.store(nodes[2], callboard::relaxed);
    nodes[2]->next.store(nodes[0], callboard::relaxed);  // the last link is the queue's to write
    CHECK(queue.tail.push_chain(nodes[0], nodes[2]));
    CHECK(!queue.push(4));
    for (int i = 1; i <= 4; ++i) CHECK_EQUAL(queue.pop(), i);
    CHECK_EQUAL(queue.pop(), -1);
}

TEST("an idle consumer is signalled once, a busy one is not told to wake") {
    Queue queue(true);
    CHECK(queue.tail.signal());
    CHECK(!queue.tail.is_idle());
    CHECK(!queue.tail.signal());
    CHECK(!queue.push(1));
}

TEST("a signalled consumer cannot go idle before it cleared the signal") {
    Queue queue(false);
    CHECK(!queue.tail.signal());
    CHECK(!queue.head.try_idle(queue.tail));
    queue.tail.clear_signal();
    CHECK(queue.head.try_idle(queue.tail));
}

TEST("a message does not hide a signal") {
    Queue queue(false);
    (void)queue.tail.signal();
    CHECK(!queue.push(1));
    CHECK_EQUAL(queue.pop(), 1);
    CHECK(!queue.head.try_idle(queue.tail));
    queue.tail.clear_signal();
    CHECK(queue.head.try_idle(queue.tail));
}

TEST("messages that still wait are freed with the queue") {
    Queue queue(true);  // LeakSanitizer is the check
    (void)queue.push(1);
    (void)queue.push(2);
    CHECK_EQUAL(queue.pop(), 1);
}

CHECK_MAIN
