// A selector between senders that race to wake its user, and a user that waits, withdraws, and takes members away.
#include "callboard/channels/kernel/selection.hpp"
#include "channel_user.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

// Two channels, and a selector that ends before them: nobody may touch it, or its members, after that.
struct Two {
    explicit Two(int capacity) : channels{Pipe(capacity), Pipe(capacity)} {}

    void bring(int index, int value) {
        parcels[index] = value;
        CHECK(channels[index].send_nowait(&parcels[index]) == Transfer::done);
    }
    int take(void* channel) {
        Parcel* found = nullptr;
        if (static_cast<Pipe*>(channel)->receive_nowait(found) != Transfer::done) return 0;
        return *found;
    }
    int take_left() {
        int left = 0;
        for (Pipe& channel : channels)
            for (Parcel* found; channel.take_left(found);) left += *found;
        return left;
    }

    Pipe channels[2];
    Parcel parcels[2];
};

struct Selected {
    explicit Selected(Two& two)
        : members{Member(two.channels[0].receiving(), &two.channels[0]), Member(two.channels[1].receiving(), &two.channels[1])} {
        for (Member& member : members) selector.add(member);
    }
    ~Selected() {
        for (Member& member : members) selector.remove(member);
    }
    Member* select(User& user) {
        for (;;) {
            if (Member* const member = selector.next()) return member;
            if (selector.announce(&user)) user.sleep();
        }
    }
    Member members[2];
    Selector selector;
};

void two_senders(int capacity) {
    Two two(capacity);
    together([&] { two.bring(0, 1); }, [&] { two.bring(1, 10); },
             [&] {
                 User user;
                 Selected selected(two);
                 int got = 0;
                 while (got != 11) got += two.take(selected.select(user)->user);
             });
    CHECK(two.take_left() == 0);
}

}  // namespace

MODEL("two senders, room for one: the user takes both values, and does not sleep for ever") { two_senders(1); }
MODEL("two senders, room for two: the user takes both values, and does not sleep for ever") { two_senders(2); }

MODEL("one sender that sends twice: a member that was given out is heard again") {
    Two two(2);
    Parcel more;
    together([&] { two.bring(0, 1), more = 10; CHECK(two.channels[0].send_nowait(&more) == Transfer::done); },
             [&] {
                 User user;
                 Selected selected(two);
                 int got = 0;
                 while (got != 11) got += two.take(selected.select(user)->user);
             });
}

MODEL("a user that withdraws takes nothing, and is not touched any more") {
    Two two(1);
    Plain<int> got{0};
    together([&] { two.bring(0, 1); }, [&] { two.bring(1, 10); },
             [&] {
                 Selected selected(two);
                 User user;
                 if (selected.selector.announce(&user) && !selected.selector.withdraw(&user)) user.sleep();
             });
    CHECK(two.take_left() == 11);
}

MODEL("members are removed while senders wake them, and nothing of the selector is touched after that") {
    Two two(1);
    together([&] { two.bring(0, 1); }, [&] { two.bring(1, 10); }, [&] { Selected selected(two); });
    CHECK(two.take_left() == 11);
}

MODEL("a member is removed while its sender wakes it, and the other is still heard") {
    Two two(1);
    together([&] { two.bring(0, 1), two.bring(1, 10); },
             [&] {
                 User user;
                 Selector selector;
                 Member first(two.channels[0].receiving()), second(two.channels[1].receiving());
                 selector.add(first), selector.add(second);
                 selector.remove(first);
                 Member* given;
                 while ((given = selector.next()) == nullptr)
                     if (selector.announce(&user)) user.sleep();
                 CHECK(given == &second && two.take(&two.channels[1]) == 10);
                 selector.remove(second);
             });
}

MODEL("an end wakes a selection") {
    Two two(1);
    together([&] { two.channels[0].close_sender(); }, [&] { two.channels[1].cancel(); },
             [&] {
                 User user;
                 Selected selected(two);
                 CHECK(static_cast<Pipe*>(selected.select(user)->user)->has_ended());
             });
}

MODEL("a selector at a selector: a value wakes the outer one's user") {
    Two two(1);
    together([&] { two.bring(0, 1); },
             [&] {
                 User user;
                 Selected inside(two);
                 Selector outside;
                 Member member(inside.selector);
                 outside.add(member);
                 while (outside.next() == nullptr)
                     if (outside.announce(&user)) user.sleep();
                 CHECK(two.take(inside.selector.next()->user) == 1);
                 outside.remove(member);
             });
}
