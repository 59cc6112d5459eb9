// Channels between a sender and a receiver that wait for each other, with capacities 0, 1 and 2. A lost wake-up is a
// wait that nobody ends, so the checker finds it.
#include "channel_user.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

// Where the kernel has no barrier, each look is counted.
using PipeWithoutBarrier = Channel<Parcel*, BasicConcurrent<1000>>;

template <class Pipe>
void send(Pipe& channel, User& user, Parcel* parcel) {
    while (channel.send_nowait(parcel) == Transfer::not_yet) user.wait_for(channel.sending());
}

template <class Pipe>
int receive(Pipe& channel, User& user) {
    Parcel* parcel = nullptr;
    for (;;) {
        switch (channel.receive_nowait(parcel)) {
            case Transfer::done: return *parcel;
            case Transfer::ended: return -1;
            case Transfer::not_yet: user.wait_for(channel.receiving());
        }
    }
}

// The receiver's users end with it, so nobody may touch them after their last wait.
template <class Pipe>
void all_arrive(int capacity, int all) {
    Pipe channel(capacity);
    Parcel parcels[3];
    together(
        [&] {
            User sender;
            for (int i = 0; i < all; ++i) {
                parcels[i] = 100 + i;
                send(channel, sender, &parcels[i]);
            }
        },
        [&] {
            User receiver;
            for (int i = 0; i < all; ++i) CHECK(receive(channel, receiver) == 100 + i);
        });
    CHECK(channel.size() == 0 && channel.written() == all && channel.read() == all);
}

}  // namespace

MODEL("room for one: all arrives, and nobody sleeps for ever") { all_arrive<Pipe>(1, 2); }
MODEL("room for two: all arrives, and nobody sleeps for ever") { all_arrive<Pipe>(2, 3); }
MODEL("without a barrier: room for one: all arrives, and nobody sleeps for ever") { all_arrive<PipeWithoutBarrier>(1, 2); }
MODEL("without a barrier: room for two: all arrives, and nobody sleeps for ever") { all_arrive<PipeWithoutBarrier>(2, 3); }

MODEL("a receiver that waits hears of the end, after all that was sent before") {
    Pipe channel(1);
    Parcel parcel;
    together([&] { parcel = 7, (void)channel.send_nowait(&parcel), channel.close_sender(); },
             [&] {
                 User receiver;
                 CHECK(receive(channel, receiver) == 7);
                 CHECK(receive(channel, receiver) == -1);
             });
}

MODEL("a sender that waits sees that the receiver has closed, and its value is there") {
    Pipe channel(1);
    Parcel parcels[2] = {1, 2};
    Plain<int> sent{0};
    together([&] { channel.close_receiver(); },
             [&] {
                 User sender;
                 for (Parcel& parcel : parcels) {
                     Transfer result;
                     while ((result = channel.send_nowait(&parcel)) == Transfer::not_yet) sender.wait_for(channel.sending());
                     sent = sent + (result == Transfer::done);
                 }
             });
    Parcel* left;
    CHECK(sent <= 1);
    for (; sent != 0; sent = sent - 1) CHECK(channel.receive_nowait(left) == Transfer::done);
    CHECK(channel.receive_nowait(left) == Transfer::ended);
}

MODEL("a thread that sees the end sees all that was done before it") {
    Pipe channel(1);
    Parcel parcel;
    Plain<int> done{0};
    together([&] { done = 7, channel.close_receiver(); },
             [&] {
                 if (channel.send_nowait(&parcel) == Transfer::ended) CHECK(done == 7);
             });
}

MODEL("a third thread cancels: both sides hear of it, and each value is received or left") {
    Pipe channel(1);
    Parcel parcels[2] = {1, 2};
    Plain<int> sent{0}, received{0};
    together([&] { channel.cancel(); },
             [&] {
                 User sender;
                 for (Parcel& parcel : parcels) {
                     Transfer result;
                     while ((result = channel.send_nowait(&parcel)) == Transfer::not_yet) sender.wait_for(channel.sending());
                     if (result == Transfer::done) sent = sent + parcel;
                 }
             },
             [&] {
                 User receiver;
                 if (const int value = receive(channel, receiver); value != -1) received = value;
             });
    for (Parcel* left; channel.take_left(left);) received = received + *left;
    CHECK(sent == received);
}

MODEL("a receiver that withdraws has been woken, or nobody touches it any more") {
    Pipe channel(1);
    Parcel parcel;
    together([&] { parcel = 7; CHECK(channel.send_nowait(&parcel) == Transfer::done); },
             [&] {
                 User receiver;
                 Parcel* found = nullptr;
                 if (!channel.receiving().announce(&receiver)) return;
                 if (channel.receiving().withdraw(&receiver)) return;
                 CHECK(channel.receive_nowait(found) == Transfer::done && *found == 7);  // why it was taken out
                 receiver.sleep();
             });
    Parcel* left = nullptr;
    CHECK(channel.written() == 1 && channel.read() + channel.size() == 1);
    if (channel.take_left(left)) CHECK(*left == 7);
}

MODEL("a rendezvous: each value is offered, waited for, and taken") {
    Pipe channel(0);
    Parcel parcels[2];
    Plain<int> asked{0};  // by the receiver, before it takes a value
    together(
        [&] {
            User sender;
            for (int i = 0; i < 2; ++i) {
                parcels[i] = 100 + i;
                CHECK(channel.offer(&parcels[i]) == Transfer::done);
                while (!channel.taken()) sender.wait_for(channel.sending());
                CHECK(asked == 1);
            }
        },
        [&] {
            User receiver;
            asked = 1;
            for (int i = 0; i < 2; ++i) CHECK(receive(channel, receiver) == 100 + i);
        });
    CHECK(channel.read() == 2);
}

MODEL("a rendezvous: an offer is taken, or the sender's again") {
    Pipe channel(0);
    Parcel parcel;
    Plain<int> sent{0}, received{0};
    together(
        [&] {
            parcel = 7;
            Parcel* back = nullptr;
            CHECK(channel.offer(&parcel) == Transfer::done);
            if (!channel.retract(back)) sent = 1;
            else CHECK(back == &parcel);
        },
        [&] {
            Parcel* found = nullptr;
            if (channel.receive_nowait(found) != Transfer::done) return;
            CHECK(*found == 7);
            received = 1;
        });
    CHECK(sent == received);
}

MODEL("a rendezvous: a sender that waits for a receiver, and a receiver that waits, meet") {
    Pipe channel(0);
    Parcel parcel;
    together(
        [&] {
            User sender;
            parcel = 7;
            send(channel, sender, &parcel);
        },
        [&] {
            User receiver;
            CHECK(receive(channel, receiver) == 7);
        });
}
