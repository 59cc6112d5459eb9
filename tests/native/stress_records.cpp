// One thread writes records and raises a counter, and others read: they get whole records, or none.
#include "callboard/core/monitoring/records.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

TEST("a record that is read while the ring is overwritten is whole, and the one asked for") {
    constexpr std::uint64_t rounds = 300'000 / shorter;
    RecordRing ring(4);  // so small that the writer laps its readers all the time
    Atomic<std::uint64_t> whole{0};
    together(3, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (std::uint64_t i = 0; i < rounds; ++i) {
                const auto value = static_cast<std::int64_t>(i);
                ring.write({value, value, i, i, i, value, value, i, state_any, value});
                random.pause();
            }
            return;
        }
        std::uint64_t read_whole = 0;
        for (std::uint64_t end = 0; end < rounds;) {
            end = ring.written();
            for (std::uint64_t i = end < 5 ? 0 : end - 5; i < end; ++i) {
                DispatchRecord read{};
                if (!ring.read(i, read)) continue;
                ++read_whole;
                const auto value = static_cast<std::int64_t>(i);
                const bool good = read.time == value && read.spent == value && read.actor == i &&
                                  read.dispatch == i && read.messages == i && read.queue == value &&
                                  read.created == value && read.uses == i && read.kind == state_any && read.began == value;
                if (!good) return check::fail(__FILE__, __LINE__, "a torn record");
            }
        }
        whole.fetch_add(read_whole, relaxed);
    });
    CHECK(whole.load(relaxed) >= 8);  // at the least, both readers saw the last four at rest
}

TEST("a counter never goes back") {
    constexpr std::uint64_t rounds = 1'000'000 / shorter;
    Counter counter;
    together(2, [&](int index) {
        if (index == 0) {
            for (std::uint64_t i = 0; i < rounds; ++i) counter.add(3);
            return;
        }
        for (std::uint64_t seen = 0, now = 0; seen < 3 * rounds; seen = now) {
            now = counter.get();
            if (now < seen || now % 3 != 0)
                return check::fail(__FILE__, __LINE__, "a counter went back, or was torn");
        }
    });
    CHECK_EQUAL(counter.get(), 3 * rounds);
}

CHECK_MAIN
