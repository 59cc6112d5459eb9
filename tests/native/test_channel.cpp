// The contract of channels, on one thread: the result of each call, and the threads that it wakes. stress_channel.cpp
// has the races.
#include "callboard/channels/kernel/channel.hpp"
#include "channels.hpp"
#include "check.hpp"

using namespace callboard;
using channels::Counting;

namespace {

using Number = std::int64_t;

// Each test under both orderings.
#define TEST_EACH(sentence) TEST_EACH_NAMED(sentence, CHECK_JOIN(each_at_line_, __LINE__))
#define TEST_EACH_NAMED(sentence, name)                     \
    template <class Pipe>                                   \
    void name();                                            \
    TEST(sentence) {                                        \
        name<Channel<Number, Locked>>();                    \
        name<Channel<Number, Concurrent>>();                \
    }                                                       \
    template <class Pipe>                                   \
    void name()

template <class Pipe>
Number receive(Pipe& channel) {
    Number value = -1;
    CHECK(channel.receive_nowait(value) == Transfer::done);
    return value;
}

template <class Pipe>
bool is_empty(Pipe& channel) {
    Number value = -1;
    return channel.receive_nowait(value) == Transfer::not_yet && value == -1;
}

}  // namespace

TEST_EACH("a channel holds exactly as many values as its capacity says, in order, around and around") {
    for (const Number capacity : {1, 2, 3, 5, 16}) {
        Pipe channel(capacity);
        CHECK_EQUAL(channel.capacity(), capacity);
        Number sent = 0, received = 0;
        for (int turn = 0; turn < 4; ++turn) {
            while (channel.send_nowait(sent) == Transfer::done) ++sent;
            CHECK_EQUAL(sent - received, capacity);
            CHECK_EQUAL(channel.size(), capacity);
            CHECK_EQUAL(receive(channel), received++);
            CHECK(channel.send_nowait(sent++) == Transfer::done);
            CHECK(channel.send_nowait(sent) == Transfer::not_yet);
            while (received < sent) CHECK_EQUAL(receive(channel), received++);
            CHECK(is_empty(channel));
        }
        CHECK_EQUAL(channel.written(), sent);
        CHECK_EQUAL(channel.read(), sent);
    }
}

TEST_EACH("peek shows the oldest value and leaves it") {
    Pipe channel(2);
    Number value = -1;
    CHECK(!channel.peek(value));
    CHECK(channel.send_nowait(4) == Transfer::done && channel.send_nowait(5) == Transfer::done);
    CHECK(channel.peek(value) && value == 4);
    CHECK_EQUAL(receive(channel), 4);
    CHECK(channel.peek(value) && value == 5);
    CHECK_EQUAL(channel.size(), 1);
}

TEST_EACH("a receiver that waits is woken once, by the first value") {
    Pipe channel(3);
    Counting receiver;
    CHECK(!channel.receive_ready());
    CHECK(channel.receiving().announce(&receiver));
    CHECK_EQUAL(receiver.woken, 0);
    CHECK(channel.send_nowait(1) == Transfer::done && channel.send_nowait(2) == Transfer::done);
    CHECK_EQUAL(receiver.woken, 1);
    CHECK(channel.receive_ready());
    CHECK(!channel.receiving().withdraw(&receiver));
}

TEST_EACH("a sender that waits is woken once, by the first value that is taken") {
    Pipe channel(2);
    Counting sender;
    CHECK(channel.send_nowait(1) == Transfer::done && channel.send_nowait(2) == Transfer::done);
    CHECK(!channel.send_ready());
    CHECK(channel.sending().announce(&sender));
    receive(channel), receive(channel);
    CHECK_EQUAL(sender.woken, 1);
    CHECK(channel.send_ready());
}

TEST_EACH("who announces itself at a side that is ready is told so, and not woken") {
    Pipe channel(1);
    Counting sender, receiver;
    CHECK(!channel.sending().announce(&sender));
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK(!channel.receiving().announce(&receiver));
    receive(channel);
    CHECK_EQUAL(sender.woken + receiver.woken, 0);
}

TEST_EACH("who withdraws is not woken, and takes nothing") {
    Pipe channel(1);
    Counting receiver;
    CHECK(channel.receiving().announce(&receiver));
    CHECK(channel.receiving().withdraw(&receiver));
    CHECK(!channel.receiving().withdraw(&receiver));
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK_EQUAL(receiver.woken, 0);
    CHECK_EQUAL(receive(channel), 1);
}

TEST_EACH("a second wait at one side wakes the first, and only the second is woken by a value") {
    Pipe channel(1);
    Counting first, second;
    CHECK(channel.receiving().announce(&first));
    CHECK(channel.receiving().announce(&second));
    CHECK_EQUAL(first.woken, 1);
    CHECK(!channel.receiving().withdraw(&first));
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK_EQUAL(first.woken, 1);
    CHECK_EQUAL(second.woken, 1);
}

TEST_EACH("what was sent before the sender closed is received, and then the end") {
    Pipe channel(2);
    Number value = -1;
    CHECK(channel.send_nowait(1) == Transfer::done && channel.send_nowait(2) == Transfer::done);
    CHECK(channel.close_sender());
    CHECK(!channel.close_sender());
    CHECK(channel.send_nowait(3) == Transfer::ended);
    CHECK(channel.is_sender_closed() && !channel.is_receiver_closed() && !channel.is_cancelled());
    CHECK_EQUAL(receive(channel), 1);
    CHECK_EQUAL(receive(channel), 2);
    CHECK(channel.receive_nowait(value) == Transfer::ended && channel.receive_nowait(value) == Transfer::ended);
    CHECK_EQUAL(value, -1);
}

TEST_EACH("when the receiver has closed nothing can be sent, and what is there can be received") {
    Pipe channel(2);
    Number value = -1;
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK(channel.close_receiver());
    CHECK(channel.send_nowait(2) == Transfer::ended);
    CHECK_EQUAL(receive(channel), 1);
    CHECK(channel.receive_nowait(value) == Transfer::ended);
}

TEST_EACH("after a cancellation nothing is received, and what is left can be taken out") {
    for (const Number capacity : {0, 2}) {
        Pipe channel(capacity);
        Number value = -1;
        if (capacity == 0) CHECK(channel.offer(1) == Transfer::done);
        else CHECK(channel.send_nowait(1) == Transfer::done);
        CHECK(channel.cancel());
        CHECK(channel.receive_nowait(value) == Transfer::ended && !channel.peek(value));
        CHECK(channel.send_nowait(2) == Transfer::ended);
        CHECK_EQUAL(value, -1);
        CHECK(channel.take_left(value) && value == 1);
        CHECK(!channel.take_left(value));
    }
}

TEST_EACH("each way to end wakes both sides once, and each side is ready for ever") {
    for (bool (Pipe::*const end)() : {&Pipe::close_sender, &Pipe::close_receiver, &Pipe::cancel}) {
        Pipe empty(1), full(1);
        Counting receiver, sender;
        CHECK(full.send_nowait(1) == Transfer::done);
        CHECK(empty.receiving().announce(&receiver));
        CHECK(full.sending().announce(&sender));
        CHECK((empty.*end)() && (full.*end)());
        CHECK(!(empty.*end)() && !(full.*end)());
        CHECK_EQUAL(receiver.woken, 1);
        CHECK_EQUAL(sender.woken, 1);
        CHECK(empty.receive_ready() && empty.send_ready() && full.receive_ready() && full.send_ready());
        CHECK(!empty.receiving().announce(&receiver) && !full.sending().announce(&sender));
    }
}

TEST_EACH("a full channel that grows wakes its sender, and keeps what waits") {
    Pipe channel(3);
    Counting sender;
    for (int i = 1; i < 5; ++i) {
        (void)channel.send_nowait(i);
        if (i == 1) CHECK_EQUAL(receive(channel), 1);
    }
    CHECK(channel.sending().announce(&sender));
    channel.grow(5);
    CHECK_EQUAL(sender.woken, 1);
    CHECK_EQUAL(channel.capacity(), 5);
    CHECK(channel.send_nowait(5) == Transfer::done && channel.send_nowait(6) == Transfer::done);
    CHECK(channel.send_nowait(7) == Transfer::not_yet);
    for (const int value : {2, 3, 4, 5, 6}) CHECK_EQUAL(receive(channel), value);
    CHECK_EQUAL(channel.written(), 6);
}

TEST_EACH("each value that is there is visited, the oldest first, until a visit says stop") {
    Pipe channel(3);
    for (int i = 1; i <= 4; ++i) {
        (void)channel.send_nowait(i);
        if (i == 1) CHECK_EQUAL(receive(channel), 1);
    }
    Number sum = 0;
    CHECK_EQUAL(channel.for_each([&](Number value) { return sum = 10 * sum + value, 0; }), 0);
    CHECK_EQUAL(sum, 234);
    CHECK_EQUAL(channel.for_each([](Number value) { return value == 3 ? 7 : 0; }), 7);
    for (const int value : {2, 3, 4}) CHECK_EQUAL(receive(channel), value);
    CHECK_EQUAL(channel.for_each([](Number) { return 1; }), 0);

    Pipe rendezvous(0);
    CHECK(rendezvous.offer(5) == Transfer::done);
    CHECK_EQUAL(rendezvous.for_each([](Number value) { return static_cast<int>(value); }), 5);
    CHECK_EQUAL(receive(rendezvous), 5);
    CHECK_EQUAL(rendezvous.for_each([](Number) { return 1; }), 0);
}

TEST_EACH("a rendezvous: an offer is the sender's until it is taken") {
    Pipe channel(0);
    Counting sender, receiver;
    Number value = -1;
    CHECK(channel.receiving().announce(&receiver));
    CHECK(channel.offer(1) == Transfer::done);
    CHECK_EQUAL(receiver.woken, 1);
    CHECK(!channel.taken());
    CHECK(!channel.peek(value));
    CHECK_EQUAL(channel.size(), 0);
    CHECK_EQUAL(channel.written(), 0);
    CHECK(channel.retract(value) && value == 1);
    CHECK(is_empty(channel));
    CHECK(channel.offer(2) == Transfer::done);
    CHECK(channel.sending().announce(&sender));
    CHECK_EQUAL(receive(channel), 2);
    CHECK_EQUAL(sender.woken, 1);
    CHECK(channel.taken());
    CHECK(!channel.retract(value));
    CHECK_EQUAL(channel.written(), 1);
    CHECK_EQUAL(channel.read(), 1);
}

TEST_EACH("a rendezvous: a value is sent at once only to a receiver that waits") {
    Pipe channel(0);
    Counting receiver;
    CHECK(channel.send_nowait(1) == Transfer::not_yet);
    CHECK(!channel.send_ready());
    CHECK(channel.receiving().announce(&receiver));
    CHECK(channel.send_ready());
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK_EQUAL(receiver.woken, 1);
    CHECK(!channel.receiving().withdraw(&receiver));
    CHECK(channel.send_nowait(2) == Transfer::not_yet);
    CHECK(channel.offer(2) == Transfer::not_yet);
    Number value = -1;
    CHECK(!channel.retract(value));
    CHECK_EQUAL(value, -1);
    CHECK_EQUAL(receive(channel), 1);
    CHECK(channel.offer(2) == Transfer::done);
    CHECK_EQUAL(receive(channel), 2);
}

TEST_EACH("a rendezvous: a sender that waits for a receiver is woken when one waits") {
    Pipe channel(0);
    Counting sender, receiver;
    CHECK(channel.sending().announce(&sender));
    CHECK(channel.receiving().announce(&receiver));
    CHECK_EQUAL(sender.woken, 1);
    CHECK_EQUAL(receiver.woken, 0);
    CHECK(channel.send_ready());
}

TEST_EACH("a rendezvous: a sender whose slot is taken is woken even if its receiver never waits") {
    Pipe channel(0);
    Counting sender, receiver;
    CHECK(channel.receiving().announce(&receiver));
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK(channel.offer(2) == Transfer::not_yet);
    CHECK_EQUAL(receive(channel), 1);
    CHECK(!channel.sending().announce(&sender));
    CHECK(channel.offer(2) == Transfer::done);
}

TEST_EACH("a rendezvous: what is handed over is no offer of the sender before, and is seen in the slot") {
    Pipe channel(0);
    Counting receiver;
    Number value = 0;
    CHECK(!channel.peek_slot(value));
    CHECK(channel.offer(1) == Transfer::done);
    CHECK_EQUAL(receive(channel), 1);
    CHECK(channel.receiving().announce(&receiver));
    CHECK(channel.send_nowait(2) == Transfer::done);
    CHECK(!channel.retract(value));
    CHECK(channel.peek_slot(value) && value == 2);
    CHECK_EQUAL(receive(channel), 2);
    CHECK(!channel.send_ready());
    CHECK(channel.receiving().announce(&receiver) && channel.send_nowait(3) == Transfer::done && channel.cancel());
    CHECK(!channel.peek_slot(value));
    CHECK(channel.take_left(value) && value == 3);
}

TEST_EACH("a rendezvous that grows keeps what is offered, and then it is sent") {
    Pipe channel(0);
    Counting sender;
    CHECK(channel.offer(1) == Transfer::done);
    CHECK(channel.sending().announce(&sender));
    channel.grow(2);
    CHECK_EQUAL(sender.woken, 1);
    CHECK(channel.taken());
    CHECK(channel.send_nowait(2) == Transfer::done && channel.send_nowait(3) == Transfer::not_yet);
    CHECK_EQUAL(receive(channel), 1);
    CHECK_EQUAL(receive(channel), 2);
}

CHECK_MAIN
