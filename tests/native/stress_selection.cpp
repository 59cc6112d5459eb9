// Senders that race to wake one user, which waits for all of their channels at a selector, and now and then gives up
// waiting, takes members away, or waits at one channel alone.
#include <memory>

#include "callboard/channels/kernel/channel.hpp"
#include "callboard/channels/kernel/selection.hpp"
#include "channels.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;
using channels::Sleeping;

namespace {

struct Parcel {
    std::int64_t stamped = -1;
};

using Pipe = Channel<Parcel*, BasicConcurrent<1>>;

void send(Pipe& channel, Parcel* parcel) {
    Sleeping user;
    while ((channel.is_rendezvous() ? channel.offer(parcel) : channel.send_nowait(parcel)) != Transfer::done)
        if (!user.wait_for(channel.sending(), patience)) check::give_up(__FILE__, __LINE__, "a sender was not woken");
    while (channel.is_rendezvous() && !channel.taken())
        if (!user.wait_for(channel.sending(), patience)) check::give_up(__FILE__, __LINE__, "an offer was not taken");
}

// A member of the user's selector, which may be made anew.
struct Source {
    explicit Source(std::int64_t capacity) : channel(capacity) {}
    void join(Selector& selector) { selector.add(*(member = std::make_unique<Member>(channel.receiving(), this))); }
    void leave(Selector& selector) {
        selector.remove(*member);
        member = nullptr;
    }
    Pipe channel;
    std::vector<Parcel> parcels;
    std::unique_ptr<Member> member;
    bool has_ended = false;
};

void wait_somehow(Selector& selector, Random& random) {
    Sleeping user;
    const std::uint32_t choice = random.below(8);
    if (choice == 0) {
        if (selector.announce(&user) && !selector.withdraw(&user)) user.park();
    } else if (choice == 1) {
        user.wait_for(selector, 1 + random.below(20000));
    } else if (!user.wait_for(selector, patience)) {
        check::give_up(__FILE__, __LINE__, "a lost wake-up");
    }
}

// The user's other deeds, which a selection must stand: a member is made anew, or waited for beside the selector.
void do_something_else(Source& source, Selector& selector, Random& random) {
    if (source.has_ended) return;
    if (random.below(2) == 0) {
        source.leave(selector);
        random.pause();
        source.join(selector);
    } else {
        Sleeping user;
        user.wait_for(source.channel.receiving(), 1 + random.below(2000));
    }
}

void all_are_heard(int senders, std::int64_t capacity, int most) {
    std::vector<std::unique_ptr<Source>> sources;
    for (int i = 0; i < senders; ++i) {
        sources.push_back(std::make_unique<Source>(capacity));
        sources.back()->parcels.resize(static_cast<std::size_t>(most));
    }
    Ledger ledger(senders);
    std::int64_t vain = 0;
    Atomic<std::int64_t> sent{0};
    together(senders + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index + 4 * capacity));
        if (index < senders) {
            Source& source = *sources[static_cast<std::size_t>(index)];
            const std::int64_t end = monotonic_ns() + longest() / 10;
            int number = 0;
            for (; number < most && (number % 16 != 0 || monotonic_ns() < end); ++number) {
                Parcel& parcel = source.parcels[static_cast<std::size_t>(number)];
                parcel.stamped = stamp(index, number);
                send(source.channel, &parcel);
                random.pause();
            }
            sent.fetch_add(number, relaxed);
            source.channel.close_sender();
            return;
        }
        Selector selector;
        for (auto& source : sources) source->join(selector);
        while (selector.size() != 0) {
            if (random.below(64) == 0)
                do_something_else(*sources[random.below(static_cast<std::uint32_t>(senders))], selector, random);
            Member* const given = selector.next();
            if (given == nullptr) {
                wait_somehow(selector, random);
                continue;
            }
            auto& source = *static_cast<Source*>(given->user);
            Parcel* parcel;
            const Transfer result = source.channel.receive_nowait(parcel);
            if (result == Transfer::done) {
                ledger.receive(parcel->stamped);
            } else if (result == Transfer::ended) {
                source.leave(selector);
                source.has_ended = true;
            } else {
                ++vain;
            }
        }
    });
    CHECK_EQUAL(ledger.wrong(), 0);
    CHECK_EQUAL(ledger.received(), sent.load(relaxed));
    if (capacity != 0) CHECK_EQUAL(vain, 0);  // what is given can be taken, but for an offer that was taken back
    CHECK(ledger.received() > 0);
}

}  // namespace

TEST("every value of every sender is received once and in order, and the user does not sleep for ever") {
    for (const int senders : {1, 2, 3})
        for (const std::int64_t capacity : {0, 1, 2}) all_are_heard(senders, capacity, 5000);
}

// A selector and its members that end while senders are about to wake them.
TEST("a selector may end at any time, and no sender touches it after that") {
    constexpr int senders = 2;
    Rounds rounds(4000);
    std::vector<std::unique_ptr<Source>> sources;
    for (int i = 0; i < senders; ++i) sources.push_back(std::make_unique<Source>(1));
    Parcel parcels[senders];
    Atomic<std::int64_t> sent{0};
    std::int64_t received = 0;
    together(senders + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index < senders) {
            while (!rounds.over()) {
                if (sources[static_cast<std::size_t>(index)]->channel.send_nowait(&parcels[index]) == Transfer::done)
                    sent.fetch_add(1, relaxed);
                random.pause();
            }
            return;
        }
        for (int turn = 1; rounds.go_on(turn); ++turn) {
            auto selector = std::make_unique<Selector>();
            for (auto& source : sources) source->join(*selector);
            Sleeping user;
            for (std::uint32_t takes = random.below(3); takes != 0;) {
                if (Member* const given = selector->next()) {
                    Parcel* parcel;
                    received += static_cast<Source*>(given->user)->channel.receive_nowait(parcel) == Transfer::done;
                    --takes;
                } else if (!user.wait_for(*selector, patience)) {
                    check::give_up(__FILE__, __LINE__, "a lost wake-up");
                }
            }
            for (auto& source : sources) source->leave(*selector);
            random.pause();
        }
    });
    for (auto& source : sources)
        for (Parcel* parcel; source->channel.take_left(parcel);) ++received;
    CHECK_EQUAL(received, sent.load(relaxed));
}

CHECK_MAIN
