// Wake-ups at the edges of a park: its beginning, its end, its time limit. A park that exceeds its limit,
// although another thread has posted and unparked, is a lost wake-up.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "callboard/core/threads/parker.hpp"
#include "stress.hpp"

using callboard::Atomic;
using callboard::Parker;
using callboard::relaxed;
using namespace stress;

namespace {

struct alignas(callboard::cache_line) Counter {
    Atomic<int> value{0};
};

}  // namespace

// The parker once ended a notified park with a plain store. An unpark between the owner's failed
// compare-and-swap and that store was erased, and what it announced not seen. It took two unparks
// around one post, and some hundred thousand rounds.
TEST("an unpark that meets the end of a park is not lost") {
    Rounds rounds(500000);
    Parker parker;
    Counter posted, seen;
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (int round = 1; rounds.go_on(round); ++round) {
                parker.unpark();
                for (auto i = random.below(32); i != 0; --i) asm volatile("");
                posted.value.store(round, relaxed);
                parker.unpark();
                await([&] { return seen.value.load(relaxed) == round || rounds.over(); });
            }
            parker.unpark();
            return;
        }
        while (!rounds.over()) {
            for (auto i = random.below(256); i != 0; --i) asm volatile("");
            const bool woken = parker.park(patience);
            const int now = posted.value.load(relaxed);
            if (!woken && now != seen.value.load(relaxed)) {
                check::fail(__FILE__, __LINE__, "a lost wake-up");
                rounds.stop();
            }
            seen.value.store(now, relaxed);
        }
    });
    CHECK(posted.value.load(relaxed) > 0);
}

TEST("four threads wake one, and each is answered") {
    constexpr int wakers = 4;
    Parker parker;
    Counter posted[wakers], seen[wakers];
    Atomic<int> left{wakers};
    together(wakers + 1, [&](int index) {
        if (index < wakers) {
            Rounds rounds(5000);
            for (int round = 1; rounds.go_on(round); ++round) {
                posted[index].value.store(round, relaxed);
                parker.unpark();
                await([&] { return seen[index].value.load(relaxed) == round; });
            }
            left.fetch_sub(1, relaxed);
            parker.unpark();
            return;
        }
        while (left.load(relaxed) != 0) {
            if (!parker.park(patience)) check::give_up(__FILE__, __LINE__, "a lost wake-up");
            for (int i = 0; i < wakers; ++i)
                seen[i].value.store(posted[i].value.load(relaxed), relaxed);
        }
    });
    for (const Counter& counter : posted) CHECK(counter.value.load(relaxed) > 0);
}

TEST("two threads that wake each other in turn never both sleep") {
    Rounds rounds(5000);
    Parker parkers[2];
    int turn = 0, counted[2] = {0, 0};  // plain: the parkers alone order them
    together(2, [&](int me) {
        for (int round = 1;; ++round) {
            if (me == 1 || round != 1) {
                if (!parkers[me].park(patience)) check::give_up(__FILE__, __LINE__, "a lost wake-up");
            }
            if (me == 1 && rounds.over()) return;
            CHECK_EQUAL(turn, me);
            turn = 1 - me;
            ++counted[me];
            const bool last = me == 0 && !rounds.go_on(round);
            parkers[1 - me].unpark();
            if (last) return;
        }
    });
    CHECK(counted[1] > 0);
    CHECK_EQUAL(counted[0], counted[1] + 1);  // the last turn was not returned
}

TEST("an unpark that meets the end of the time is neither lost nor doubled") {
    Rounds rounds(20000);
    Parker parker;
    Counter done;
    int sent = 0, woken = 0;
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {  // each unpark waits until the one before was noticed
            for (; rounds.go_on(sent + 1);) {
                ++sent;
                parker.unpark();
                await([&] { return done.value.load(callboard::acquire) == sent; });
            }
            return;
        }
        while (!rounds.over()) {
            if (parker.park(random.below(2000))) done.value.store(++woken, callboard::release);
        }
    });
    CHECK(sent > 0);
    CHECK_EQUAL(woken, sent);
    CHECK(!parker.park(0));
}

TEST("an owner that sleeps in either way gets each unpark, by a futex or by its eventfd") {
    Rounds rounds(20000);
    Parker parker;
    Counter posted, seen;
    const int wake_fd = eventfd(0, EFD_NONBLOCK);
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (int round = 1; rounds.go_on(round); ++round) {
                for (auto i = random.below(256); i != 0; --i) asm volatile("");
                posted.value.store(round, relaxed);
                parker.unpark();
                await([&] { return seen.value.load(relaxed) == round || rounds.over(); });
            }
            parker.unpark();
            return;
        }
        const auto listen = [&] {
            pollfd looked_at{wake_fd, POLLIN, 0};
            eventfd_t count;
            if (poll(&looked_at, 1, static_cast<int>(patience / 1'000'000)) == 1) eventfd_read(wake_fd, &count);
        };
        while (!rounds.over()) {
            for (auto i = random.below(256); i != 0; --i) asm volatile("");
            // An eventfd that is written late wakes the owner for nothing; no wait lasts long.
            const std::int64_t begin = callboard::monotonic_ns();
            if (random.below(2) != 0) parker.park(patience);
            else parker.park_by(wake_fd, listen);
            const int now = posted.value.load(relaxed);
            if (callboard::monotonic_ns() - begin >= patience && now != seen.value.load(relaxed)) {
                check::fail(__FILE__, __LINE__, "a lost wake-up");
                rounds.stop();
            }
            seen.value.store(now, relaxed);
        }
    });
    CHECK(posted.value.load(relaxed) > 0);
    close(wake_fd);
}

CHECK_MAIN
