// Senders that wait for room in a mailbox of two messages.
#include "callboard/core/threads/parker.hpp"
#include "callboard/mailbox/limits.hpp"
#include "callboard/scheduling/dispatching.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

TEST("a sender that waits for room is woken, and nobody gets more than there is") {
    constexpr int senders = 3, messages = 20000;
    constexpr std::int64_t capacity = 2;
    Limits limits(capacity, 0);
    Atomic<int> sent{0};  // what a queue would hold
    Atomic<std::int64_t> most{0};
    together(senders + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == senders) {
            for (int received = 0; received < senders * messages;) {
                await([&] { return sent.load(relaxed) != 0; });
                const int taken = sent.exchange(0, relaxed);
                received += taken;
                random.pause();
                limits.give_back(taken);
            }
            return;
        }
        Parker parker;
        for (int i = 0; i < messages; ++i) {
            while (limits.reserve(1) == 0) {
                const std::int64_t begin = monotonic_ns();
                limits.wait_for_room(parker, patience);
                if (monotonic_ns() - begin >= patience)
                    check::give_up(__FILE__, __LINE__, "a lost wake-up");
            }
            const std::int64_t count = limits.count();
            if (count > most.load(relaxed)) most.store(count, relaxed);
            sent.fetch_add(1, relaxed);
        }
    });
    CHECK_EQUAL(limits.count(), 0);
    CHECK(most.load(relaxed) <= capacity);
    CHECK(most.load(relaxed) > 0);
}

// A worker waits in the middle of a dispatch; the receiver is one that must run on this worker, and is
// announced to its inbox by a third thread. If either wake-up is lost, all three stand still.
TEST("a worker that waits for room is woken by room and by its inbox, whichever comes") {
    struct Flagged {
        static Outcome run(Cell*, Context*, std::uint32_t) { return Outcome::done; }
        Cell cell{run, nullptr, 0};
    };
    Rounds rounds(20000);
    TeamState team;
    Worker worker;
    worker.team = &team;
    Flagged receiver;
    Limits limits(1, 0);
    Atomic<int> sent{0};
    together(3, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            Context context;
            context.worker = &worker;
            for (int round = 1; rounds.go_on(round); ++round) {
                while (limits.reserve(1) == 0) {
                    if (!worker.inbox.is_empty()) {
                        worker.inbox.take_all();
                        limits.give_back(1);  // the receiver ran here, within the dispatch that waits
                        continue;
                    }
                    const std::int64_t begin = monotonic_ns();
                    if (random.below(2)) limits.wait_for_room(worker.parker, patience);
                    else wait_for_room(limits, &context, patience);
                    if (monotonic_ns() - begin >= patience)
                        check::give_up(__FILE__, __LINE__, "a lost wake-up");
                }
                sent.store(round, callboard::release);
            }
            return;
        }
        // One of the other two makes room for each message, in turn: by an announcement, or itself.
        for (int round = 1; !rounds.over(); ++round) {
            if (round % 2 != index - 1) continue;
            await([&] { return sent.load(callboard::acquire) >= round || rounds.over(); });
            random.pause();
            if (rounds.over()) return;
            if (index == 1) worker.wake(&receiver.cell);
            else limits.give_back(1);
        }
    });
    CHECK(sent.load(relaxed) > 0);
}

CHECK_MAIN
