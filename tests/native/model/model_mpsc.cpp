// The mailbox's queue. The thread that is told to wake the consumer runs it, until it is idle again.
#include "callboard/mailbox/mpsc.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

// The message of a node: its producer, and its number among that producer's.
struct Message {
    Plain<int> producer, number;
};

Node* node_with(int producer, int number) {
    Node* const node = new Node;
    node->first = new Message{producer, number};
    return node;
}

struct Mailbox {
    Node* const dummy = new Node;
    MpscTail tail{dummy, true};
    MpscHead head{dummy};
    Plain<int> received{0};
    Plain<int> next[3] = {0, 0, 0};

    void send(Node* node) {
        if (tail.push(node)) consume();
    }

    void consume() {
        for (;;) {
            model::begin_attempt();
            if (receive() != 0) continue;
            if (head.try_idle(tail)) return;
            model::end_attempt();  // the queue is unlinked
        }
    }

    int receive() {
        int count = 0;
        Node* spent = nullptr;
        while (Node* const node = head.pop(spent)) {
            auto* const message = static_cast<Message*>(node->first);
            Plain<int>& expected = next[message->producer];
            CHECK(message->number == expected);
            ++expected;
            ++received;
            delete message;
            delete spent;
            ++count;
        }
        return count;
    }

    void end(int sent) {
        CHECK(received == sent);
        CHECK(tail.is_idle());
    }
};

}  // namespace

MODEL("two producers, two messages each: each is received once, and in order") {
    Mailbox box;
    const auto produce = [&box](int producer) {
        for (int number = 0; number < 2; ++number) box.send(node_with(producer, number));
    };
    together([&] { produce(0); }, [&] { produce(1); });
    box.end(4);
}

MODEL("three producers, two messages each: each is received once, and in order") {
    Mailbox box;
    const auto produce = [&box](int producer) {
        for (int number = 0; number < 2; ++number) box.send(node_with(producer, number));
    };
    together([&] { produce(0); }, [&] { produce(1); }, [&] { produce(2); });
    box.end(6);
}

MODEL("a chain of two, and two messages of another: each is received once, and in order") {
    Mailbox box;
    together(
        [&] {
            Node* const first = node_with(0, 0);
            Node* const second = node_with(0, 1);
            first->next.store(second, relaxed);
            if (box.tail.push_chain(first, second)) box.consume();
        },
        [&] {
            for (int number = 0; number < 2; ++number) box.send(node_with(1, number));
        });
    box.end(4);
}

MODEL("a signal is not lost beside pushes") {
    Mailbox box;
    Plain<int> looked{0};
    Atomic<int> elsewhere{0};
    const auto consume = [&] {
        for (;;) {
            model::begin_attempt();
            const bool signalled = box.tail.is_signalled();
            if (signalled) {
                box.tail.clear_signal();
                if (elsewhere.exchange(0, relaxed) != 0) ++looked;
            }
            if (box.receive() != 0 || signalled) continue;
            if (box.head.try_idle(box.tail)) return;
            model::end_attempt();
        }
    };
    together(
        [&] {
            elsewhere.store(1, relaxed);
            if (box.tail.signal()) consume();
        },
        [&] {
            if (box.tail.push(node_with(0, 0))) consume();
        },
        [&] {
            if (box.tail.push(node_with(1, 0))) consume();
        });
    box.end(2);
    CHECK(looked == 1);
}
