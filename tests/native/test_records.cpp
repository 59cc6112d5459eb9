// Counters and the ring of monitoring records, on one thread; stress_records.cpp has the races.
#include "callboard/core/monitoring/records.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

DispatchRecord record(std::int64_t value) {
    const auto count = static_cast<std::uint64_t>(value);
    return {value, value + 1, count + 2, count + 3, count + 4, value + 5, value + 6, count + 7, state_any, value + 8};
}

bool is_record(const DispatchRecord& read, std::int64_t value) {
    const DispatchRecord expected = record(value);
    return read.time == expected.time && read.spent == expected.spent &&
           read.actor == expected.actor && read.dispatch == expected.dispatch &&
           read.messages == expected.messages && read.queue == expected.queue && read.created == expected.created &&
           read.uses == expected.uses && read.kind == expected.kind && read.began == expected.began;
}

}  // namespace

TEST("a counter adds up") {
    Counter counter;
    CHECK_EQUAL(counter.get(), 0u);
    counter.add(3);
    counter.add(4);
    CHECK_EQUAL(counter.get(), 7u);
}

TEST("idle time is that of all waits, and of one that lasts") {
    IdleTime idle;
    CHECK_EQUAL(idle.get(), 0);
    idle.begin(1'000);
    idle.end(1'250);
    CHECK_EQUAL(idle.get(), 250);
    const std::int64_t begin = monotonic_ns();
    idle.begin(begin);
    const std::int64_t first = idle.get();
    CHECK(first >= 250);
    CHECK(idle.get() >= first);
    idle.end(begin + 50);
    CHECK_EQUAL(idle.get(), 300);
}

TEST("a ring gives back each field of a record") {
    RecordRing ring(4);
    DispatchRecord read{};
    CHECK(!ring.read(0, read));
    ring.write(record(10));
    CHECK(ring.read(0, read));
    CHECK(is_record(read, 10));
    CHECK(!ring.read(1, read));
}

TEST("a count that is too large for its bits is the largest there is") {
    RecordRing ring(4);
    DispatchRecord read{}, large = record(1);
    large.messages = std::uint64_t{1} << 40;
    large.uses = std::uint64_t{1} << 30;
    ring.write(large);
    CHECK(ring.read(0, read));
    CHECK_EQUAL(read.messages, 0xffffffffu);
    CHECK_EQUAL(read.uses, 0xffffffu);
    CHECK_EQUAL(read.kind, state_any);
}

TEST("a full ring keeps the latest records, and refuses overwritten ones") {
    RecordRing ring(4);
    DispatchRecord read{};
    for (int i = 0; i < 11; ++i) ring.write(record(i));
    CHECK_EQUAL(ring.written(), 11u);
    CHECK_EQUAL(ring.capacity(), 4u);
    for (std::uint64_t i = 0; i < 7; ++i) CHECK(!ring.read(i, read));
    for (std::uint64_t i = 7; i < 11; ++i) {
        CHECK(ring.read(i, read));
        CHECK(is_record(read, static_cast<std::int64_t>(i)));
    }
}

CHECK_MAIN
