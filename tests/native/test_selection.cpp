// The contract of selectors, by one thread: the member that is returned, and the users that are woken.
// stress_selection.cpp has the threads.
#include <memory>
#include <vector>

#include "callboard/channels/kernel/channel.hpp"
#include "callboard/channels/kernel/selection.hpp"
#include "channels.hpp"
#include "check.hpp"

using namespace callboard;
using channels::Counting;

namespace {

using Number = std::int64_t;
using Pipe = Channel<Number, Locked>;

// Receivers' sides, all in one selector.
struct Selected {
    Selected(int count, Number capacity = 4) {
        for (int i = 0; i < count; ++i) {
            channels.push_back(std::make_unique<Pipe>(capacity));
            members.push_back(std::make_unique<Member>(channels.back()->receiving()));
            selector.add(*members.back());
        }
    }
    ~Selected() {
        for (auto& member : members)
            if (member) selector.remove(*member);
    }

    void send(int index) { CHECK(channels[at(index)]->send_nowait(1) == Transfer::done); }
    void take(int index) {
        Number value;
        CHECK(channels[at(index)]->receive_nowait(value) == Transfer::done);
    }
    // -1: none.
    int next() {
        Member* const given = selector.next();
        for (std::size_t i = 0; i < members.size(); ++i)
            if (given == members[i].get() && given != nullptr) return static_cast<int>(i);
        return -1;
    }
    static std::size_t at(int index) { return static_cast<std::size_t>(index); }

    std::vector<std::unique_ptr<Pipe>> channels;
    std::vector<std::unique_ptr<Member>> members;
    Selector selector;
};

}  // namespace

TEST("the channels that have something are given, those that have nothing are not") {
    Selected many(5);
    CHECK_EQUAL(many.next(), -1);
    many.send(3), many.send(1);
    CHECK_EQUAL(many.next(), 3);
    CHECK_EQUAL(many.next(), 1);
    many.take(3), many.take(1);
    CHECK_EQUAL(many.next(), -1);
    CHECK_EQUAL(many.selector.size(), 5);
}

TEST("a selection takes nothing, and gives a channel again, in turn, until its value is taken") {
    Selected many(3);
    many.send(0), many.send(1), many.send(2);
    for (int turn = 0; turn < 4; ++turn)
        for (const int index : {0, 1, 2}) CHECK_EQUAL(many.next(), index);
    for (const int index : {0, 1, 2}) CHECK_EQUAL(many.channels[Selected::at(index)]->size(), 1);
}

TEST("a channel that always has something keeps no other from its turn") {
    Selected many(3);
    many.send(0), many.send(0);
    CHECK_EQUAL(many.next(), 0);
    many.take(0), many.send(2);
    CHECK_EQUAL(many.next(), 2);
    many.send(1);
    CHECK_EQUAL(many.next(), 0);
    CHECK_EQUAL(many.next(), 1);
    CHECK_EQUAL(many.next(), 2);
}

TEST("a channel that was emptied before its turn is passed by, and given again later") {
    Selected many(2);
    many.send(0), many.send(1);
    CHECK_EQUAL(many.next(), 0);
    many.take(1);
    CHECK_EQUAL(many.next(), 0);
    many.take(0);
    CHECK_EQUAL(many.next(), -1);
    many.send(1);
    CHECK_EQUAL(many.next(), 1);
}

TEST("a thread that waits for a selector is woken once, by the first of many values") {
    Selected many(3);
    Counting user;
    CHECK_EQUAL(many.next(), -1);
    CHECK(many.selector.announce(&user));
    CHECK_EQUAL(user.woken, 0);
    many.send(2), many.send(0), many.send(2);
    CHECK_EQUAL(user.woken, 1);
    CHECK_EQUAL(many.next(), 2);
    CHECK_EQUAL(many.next(), 0);
    CHECK(!many.selector.announce(&user));
}

TEST("a thread that withdraws from a selector is not woken, and nothing is lost") {
    Selected many(2);
    Counting user;
    CHECK(many.selector.announce(&user));
    CHECK(many.selector.withdraw(&user));
    CHECK(!many.selector.withdraw(&user));
    many.send(1);
    CHECK_EQUAL(user.woken, 0);
    CHECK(!many.selector.withdraw(&user));
    CHECK_EQUAL(many.next(), 1);
}

TEST("a member that was given out is armed again before anybody waits") {
    Selected many(1);
    Counting user;
    many.send(0);
    CHECK_EQUAL(many.next(), 0);
    many.take(0);
    CHECK(many.selector.announce(&user));
    many.send(0);
    CHECK_EQUAL(user.woken, 1);
    CHECK_EQUAL(many.next(), 0);
}

TEST("an end is ready") {
    Selected many(2);
    Counting user;
    CHECK(many.selector.announce(&user));
    CHECK(many.channels[1]->close_sender());
    CHECK_EQUAL(user.woken, 1);
    CHECK_EQUAL(many.next(), 1);
    CHECK_EQUAL(many.next(), 1);
}

TEST("members may come and go while the user waits") {
    Selected many(2);
    Counting user;
    Pipe other(1);
    CHECK(other.send_nowait(1) == Transfer::done);
    CHECK(many.selector.announce(&user));
    {
        Member late(other.receiving());
        many.selector.add(late);
        CHECK_EQUAL(user.woken, 1);
        CHECK_EQUAL(many.selector.size(), 3);
        many.selector.remove(late);
    }
    CHECK_EQUAL(many.next(), -1);
    CHECK(many.selector.announce(&user));
    many.selector.remove(*many.members[0]);
    many.members[0] = nullptr;
    many.send(0);
    CHECK_EQUAL(user.woken, 1);
    many.send(1);
    CHECK_EQUAL(user.woken, 2);
    CHECK_EQUAL(many.next(), 1);
}

TEST("a member can be removed wherever it is: armed, come, in the list, or given") {
    Selected many(6);
    for (const int index : {1, 2, 3, 4}) many.send(index);
    CHECK_EQUAL(many.next(), 1);
    CHECK_EQUAL(many.next(), 2);
    many.send(5);
    for (const int index : {0, 2, 3, 5}) {
        many.selector.remove(*many.members[Selected::at(index)]);
        many.members[Selected::at(index)] = nullptr;
    }
    CHECK_EQUAL(many.selector.size(), 2);
    CHECK_EQUAL(many.next(), 4);
    CHECK_EQUAL(many.next(), 1);
    many.take(4), many.take(1);
    CHECK_EQUAL(many.next(), -1);
    many.send(4);
    CHECK_EQUAL(many.next(), 4);
}

TEST("a wait at a channel beside its selector wakes the member, and the selector gets it again") {
    Selected many(1);
    Counting direct, user;
    CHECK_EQUAL(many.next(), -1);
    CHECK(many.channels[0]->receiving().announce(&direct));
    many.send(0);
    CHECK_EQUAL(direct.woken, 1);
    many.take(0);
    CHECK_EQUAL(many.next(), -1);
    CHECK(many.selector.announce(&user));
    many.send(0);
    CHECK_EQUAL(user.woken, 1);
    CHECK_EQUAL(direct.woken, 1);
}

TEST("senders are ready when there is room, beside receivers") {
    Pipe full(1), empty(1);
    CHECK(full.send_nowait(1) == Transfer::done);
    Member sender(full.sending()), receiver(empty.receiving());
    Selector selector;
    Counting user;
    selector.add(sender), selector.add(receiver);
    CHECK(selector.announce(&user));
    Number value;
    CHECK(full.receive_nowait(value) == Transfer::done);
    CHECK_EQUAL(user.woken, 1);
    CHECK(selector.next() == &sender);
    CHECK(empty.send_nowait(1) == Transfer::done);
    CHECK(selector.next() == &receiver);
    CHECK(selector.next() == &sender);
    selector.remove(sender), selector.remove(receiver);
}

TEST("two selectors meet at a rendezvous: the sender's is ready when the receiver's waits") {
    Pipe channel(0);
    Member sender(channel.sending()), receiver(channel.receiving());
    Selector senders, receivers;
    Counting one, other;
    senders.add(sender);
    CHECK(senders.announce(&one));
    receivers.add(receiver);
    CHECK_EQUAL(one.woken, 1);
    CHECK(receivers.announce(&other));
    CHECK(senders.next() == &sender);
    CHECK(channel.send_nowait(1) == Transfer::done);
    CHECK_EQUAL(other.woken, 1);
    CHECK(receivers.next() == &receiver);
    senders.remove(sender), receivers.remove(receiver);
}

TEST("a selector can be waited for at another one") {
    Selected inside(2);
    Selector outside;
    Member member(inside.selector);
    Counting user;
    outside.add(member);
    CHECK(outside.announce(&user));
    inside.send(1);
    CHECK_EQUAL(user.woken, 1);
    CHECK(outside.next() == &member);
    CHECK_EQUAL(inside.next(), 1);
    inside.take(1);
    CHECK(outside.next() == nullptr);
    CHECK(outside.announce(&user));
    inside.send(0);
    CHECK_EQUAL(user.woken, 2);
    CHECK(outside.next() == &member);
    outside.remove(member);
}

TEST("a selection costs the same beside many channels that have nothing") {
    // By counting what is looked at: no member is looked at that did not come.
    struct Watched : Waitable {
        bool is_ready() override { return ++looks, ready; }
        bool announce(Wakeable* who) override { return ++looks, waits = who, true; }
        bool withdraw(Wakeable*) override { return true; }
        void come() { ready = true, waits->wake(waits); }
        int looks = 0;
        bool ready = false;
        Wakeable* waits = nullptr;
    };
    constexpr int all = 1000;
    std::vector<Watched> places(all);
    std::vector<std::unique_ptr<Member>> members;
    Selector selector;
    for (auto& place : places) {
        members.push_back(std::make_unique<Member>(place));
        selector.add(*members.back());
        place.looks = 0;
    }
    for (int turn = 0; turn < 3; ++turn) {
        places[7].come();
        CHECK(selector.next() == members[7].get());
        places[7].ready = false;
        CHECK(selector.next() == nullptr);
    }
    int looks = 0;
    for (const auto& place : places) looks += place.looks;
    CHECK_EQUAL(looks, places[7].looks);
    CHECK(looks <= 9);
    for (auto& member : members) selector.remove(*member);
}

CHECK_MAIN
