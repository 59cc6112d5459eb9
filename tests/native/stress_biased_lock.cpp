// One owner, two visitors, plain fields behind the lock: ThreadSanitizer sees a race where the order
// is not there, and the sums show two at a time.
#include "callboard/core/threads/biased_lock.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

void play(bool prepared) {
    Rounds rounds(2000000);
    BiasedLock lock;
    if (prepared) lock.prepare();
    std::int64_t first = 0, second = 0;  // equal outside of the lock
    std::int64_t visits[2] = {0, 0}, turns = 0, unequal = 0;
    together(3, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        const auto change = [&] {
            unequal += first != second;
            ++first;
            for (auto i = random.below(8); i != 0; --i) asm volatile("");
            ++second;
        };
        if (index == 0) {
            for (int round = 1; rounds.go_on(round); ++round) {
                lock.lock();
                change();
                lock.unlock();
                ++turns;
                for (auto i = random.below(16); i != 0; --i) asm volatile("");
            }
            return;
        }
        while (!rounds.over()) {
            if (lock.try_visit()) {
                change();
                lock.leave();
                ++visits[index - 1];
            }
            random.pause();
        }
    });
    CHECK_EQUAL(first, turns + visits[0] + visits[1]);
    CHECK_EQUAL(second, first);
    CHECK_EQUAL(unequal, 0);
    CHECK(visits[0] + visits[1] > 0);
}

}  // namespace

TEST("owner and visitors exclude each other, and see what the others did") { play(true); }

TEST("so they do where the kernel has no barrier for all cores") { play(false); }

CHECK_MAIN
