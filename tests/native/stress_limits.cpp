// Senders that wait for room in a mailbox of two messages.
#include "callboard/core/parker.hpp"
#include "callboard/mailbox/limits.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

TEST("a sender that waits for room is woken, and nobody gets more than there is") {
    constexpr int senders = 3, messages = 20000;
    constexpr std::int64_t capacity = 2;
    Limits limits(capacity, Overflow::block, 0);
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
        for (int i = 0; i < messages; ++i) {
            while (limits.reserve(1) == 0) {
                const std::int64_t begin = Parker::now();
                limits.wait_for_room(patience);
                if (Parker::now() - begin >= patience)
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

CHECK_MAIN
