// The parker's contract, without contention; stress_parker.cpp hunts lost wake-ups.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "callboard/core/threads/parker.hpp"
#include "check.hpp"

using callboard::monotonic_ns;
using callboard::Parker;

static constexpr std::int64_t millisecond = 1000000;

static std::int64_t cpu_time_of_this_thread() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

TEST("an unpark before the park makes it return at once") {
    Parker parker;
    CHECK(!parker.unpark());
    CHECK(parker.park());
}

TEST("unparks do not add up") {
    Parker parker;
    parker.unpark();
    parker.unpark();
    CHECK(parker.park());
    CHECK(!parker.park(0));
}

TEST("a park without an unpark runs out of its time and says so") {
    Parker parker;
    const std::int64_t before = monotonic_ns();
    CHECK(!parker.park(2 * millisecond));
    CHECK(monotonic_ns() - before >= 2 * millisecond);
    CHECK(!parker.is_parked());
}

TEST("a park that ran out of time leaves nothing behind") {
    Parker parker;
    CHECK(!parker.park(0));
    CHECK(!parker.park(0));
    parker.unpark();
    CHECK(parker.park(0));
}

TEST("an unpark wakes a sleeping owner and says so") {
    Parker parker;
    bool notified = false;
    std::thread owner([&] { notified = parker.park(); });
    while (!parker.is_parked()) std::this_thread::yield();
    CHECK(parker.unpark());
    owner.join();
    CHECK(notified);
    CHECK(!parker.is_parked());
}

namespace {

struct WakeFd {
    int descriptor = eventfd(0, EFD_NONBLOCK);
    ~WakeFd() { close(descriptor); }

    // True: a thread has written to it within this time.
    bool is_written(int milliseconds) const {
        pollfd looked_at{descriptor, POLLIN, 0};
        eventfd_t count;
        return poll(&looked_at, 1, milliseconds) == 1 && eventfd_read(descriptor, &count) == 0;
    }
};

}  // namespace

TEST("an unpark writes to the eventfd of an owner that polls descriptors, and says so") {
    Parker parker;
    const WakeFd wake_fd;
    bool was_written = false, notified = false;
    std::thread owner([&] {
        notified = parker.park_by(wake_fd.descriptor, [&] { was_written = wake_fd.is_written(20'000); });
    });
    while (!parker.is_parked()) std::this_thread::yield();
    CHECK(parker.unpark());
    owner.join();
    CHECK(was_written);
    CHECK(notified);
    CHECK(!parker.is_parked());
}

TEST("an unpark before that lets the owner poll nothing, and writes nothing") {
    Parker parker;
    const WakeFd wake_fd;
    bool waited = false;
    CHECK(!parker.unpark());
    CHECK(parker.park_by(wake_fd.descriptor, [&] { waited = true; }));
    CHECK(!waited);
    CHECK(!parker.park_by(wake_fd.descriptor, [&] { waited = true; }));
    CHECK(waited);
    CHECK(!parker.unpark());
    CHECK(!wake_fd.is_written(0));
    CHECK(parker.park());
}

TEST("writes before the unpark are seen after the park") {
    Parker parker;
    int written = 0;  // plain: ThreadSanitizer checks that the parker orders it
    std::thread owner([&] {
        parker.park();
        CHECK_EQUAL(written, 7);
    });
    written = 7;
    parker.unpark();
    owner.join();
}

TEST("a parked thread uses no processor time") {
    Parker parker;
    const std::int64_t before = cpu_time_of_this_thread();
    CHECK(!parker.park(50 * millisecond));
    CHECK(cpu_time_of_this_thread() - before < 10 * millisecond);
}

CHECK_MAIN
