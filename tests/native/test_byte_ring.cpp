// The contract of the ring of bytes, ends that write nonsense, and processes that die at any instruction.
// stress_byte_ring.cpp has the two threads.
#include <unistd.h>

#include <string>

#include "callboard/core/mix.hpp"
#include "check.hpp"
#include "rings.hpp"
#include "stepping.hpp"

using callboard::RecordHeader;
using namespace rings;
using stepping::after_each_instruction;
using stepping::Shared;

namespace {

std::string text(const RingReader::Record& record) {
    return {reinterpret_cast<const char*>(record.bytes), record.size};
}

bool write(RingWriter& writer, const std::string& text, std::uint32_t kind = 0) {
    unsigned char* const at = writer.reserve(static_cast<std::uint32_t>(text.size()), kind);
    if (at == nullptr) return false;
    std::memcpy(at, text.data(), text.size());
    return true;
}

// Memory that a child shares with its parent.
struct SharedRing {
    static constexpr std::uint64_t capacity = 256;

    RingCounters counters;
    unsigned char bytes[capacity];
};

}  // namespace

TEST("records come out of the ring in order, with their kinds and bytes") {
    ByteRing ring(128);
    CHECK(write(ring.writer, "a", 1));
    CHECK(write(ring.writer, "", 2));
    CHECK(write(ring.writer, "nine char", 3));
    ring.writer.publish();
    RingReader::Record record;
    CHECK(ring.reader.next(record) && text(record) == "a" && record.kind == 1);
    CHECK(ring.reader.next(record) && text(record).empty() && record.kind == 2);
    CHECK(ring.reader.next(record) && text(record) == "nine char" && record.kind == 3);
    CHECK(!ring.reader.next(record));
}

TEST("a record is seen only after it was published") {
    ByteRing ring(128);
    RingReader::Record record;
    CHECK(write(ring.writer, "a"));
    CHECK(!ring.reader.next(record));
    ring.writer.publish();
    CHECK(ring.reader.next(record));
}

TEST("a full ring has no room until the reader has finished with records") {
    ByteRing ring(64);
    for (int i = 0; i < 4; ++i) CHECK(write(ring.writer, "12345678"));
    CHECK(!write(ring.writer, ""));
    ring.writer.publish();
    RingReader::Record record;
    CHECK(ring.reader.next(record));
    CHECK(!write(ring.writer, ""));
    CHECK(ring.reader.finish());
    CHECK(write(ring.writer, "12345678"));
    CHECK(!write(ring.writer, ""));
    CHECK(!ring.writer.is_broken());
}

TEST("the largest record fits into an empty ring at each place") {
    for (const std::uint64_t capacity : {16u, 32u, 64u, 256u}) {
        for (std::uint64_t place = 0; place < capacity; place += RecordHeader::unit) {
            ByteRing ring(capacity);
            RingReader::Record record;
            for (std::uint64_t at = 0; at < place; at += RecordHeader::unit) {
                CHECK(write(ring.writer, ""));
                ring.writer.publish();
                CHECK(ring.reader.next(record));
                CHECK(ring.reader.finish());
            }
            const std::string largest(ring.writer.largest(), 'x');
            CHECK(write(ring.writer, largest));
            ring.writer.publish();
            CHECK(ring.reader.next(record) && text(record) == largest);
        }
    }
}

TEST("records of all sizes arrive whole around and around the ring") {
    for (const std::uint64_t capacity : {32u, 64u, 256u, 1024u}) {
        ByteRing ring(capacity);
        RingReader::Record record;
        std::uint64_t written = 0, read = 0;
        while (read < 5000) {
            while (try_write(ring.writer, written)) ++written;
            ring.writer.publish();
            while (ring.reader.next(record)) CHECK(is_record(record, read++, ring.writer.largest()));
            CHECK(ring.reader.finish());
            CHECK_EQUAL(read, written);
        }
    }
}

TEST("the writer is notified after each quarter of the ring, and when all is read") {
    ByteRing ring(128);
    for (int i = 0; i < 7; ++i) CHECK(write(ring.writer, "12345678"));
    ring.writer.publish();
    RingReader::Record record;
    std::string notified;
    while (ring.reader.next(record)) notified += ring.reader.finish() ? 'y' : 'n';
    CHECK_EQUAL(notified, "nynynyy");
    CHECK(!ring.reader.finish());
}

TEST("a writer's counter that cannot be breaks the ring for its reader") {
    for (const std::uint64_t wrong : {std::uint64_t{8 + 136}, ~std::uint64_t{0}, std::uint64_t{20}, std::uint64_t{0}}) {
        ByteRing ring(128);
        CHECK(write(ring.writer, ""));
        ring.writer.publish();
        RingReader::Record record;
        CHECK(ring.reader.next(record));
        CHECK(ring.reader.finish());
        ring.counters.written.store(wrong, callboard::relaxed);
        CHECK(!ring.reader.next(record));
        CHECK(ring.reader.is_broken());
        ring.counters.written.store(16, callboard::relaxed);
        CHECK(!ring.reader.next(record));
    }
}

TEST("a reader's counter that cannot be breaks the ring for its writer") {
    for (const std::uint64_t wrong : {std::uint64_t{136}, ~std::uint64_t{0}, std::uint64_t{8}}) {
        ByteRing ring(64);
        RingReader::Record record;
        for (int i = 0; i < 8; ++i) CHECK(write(ring.writer, ""));
        ring.writer.publish();
        for (int i = 0; i < 4; ++i) CHECK(ring.reader.next(record));
        CHECK(ring.reader.finish());
        for (int i = 0; i < 4; ++i) CHECK(write(ring.writer, ""));
        ring.writer.publish();
        ring.counters.read.store(wrong, callboard::relaxed);
        CHECK(!write(ring.writer, ""));
        CHECK(ring.writer.is_broken());
    }
}

TEST("a header whose record does not lie in what was written breaks the ring") {
    for (const RecordHeader wrong : {RecordHeader{9, 0}, RecordHeader{~0u, 0}, RecordHeader{~0u - 7, 0},
                                     RecordHeader{0, RecordHeader::filler}}) {
        ByteRing ring(128);
        CHECK(write(ring.writer, "12345678"));
        ring.writer.publish();
        std::memcpy(ring.start(), &wrong, sizeof wrong);
        RingReader::Record record;
        CHECK(!ring.reader.next(record));
        CHECK(ring.reader.is_broken());
    }
}

TEST("whatever the other end writes, no end leaves the ring") {
    std::uint64_t taken = 0;
    const auto random = [&] { return callboard::random_number(7, taken++); };
    for (int round = 0; round < 20'000; ++round) {
        ByteRing ring(64);  // AddressSanitizer guards the memory around it
        RingReader::Record record;
        for (int i = 0; i < 20 && !(ring.reader.is_broken() && ring.writer.is_broken()); ++i) {
            const std::uint64_t number = random();
            if (number % 5 == 0) ring.bytes[number / 8 % 8] = random() >> random() % 64;
            if (number % 7 == 0) ring.counters.written.store(random() % 256 & ~7ull, callboard::relaxed);
            if (number % 11 == 0) ring.counters.read.store(random() % 256, callboard::relaxed);
            if (try_write(ring.writer, number)) ring.writer.publish();
            while (ring.reader.next(record)) {
                const auto* const end = ring.start() + 64;
                CHECK(record.bytes >= ring.start() && record.bytes <= end);
                CHECK(record.size <= static_cast<std::size_t>(end - record.bytes));
            }
            (void)ring.reader.finish();
        }
    }
}

// The third record goes around the end of the ring.
TEST("of a writer that dies at any instruction the reader sees the published records, whole and in order") {
    const Shared<SharedRing> shared;
    RingWriter writer(shared->counters, shared->bytes, shared->capacity);
    RingReader reader(shared->counters, shared->bytes, shared->capacity);
    RingReader::Record record;
    while (writer.reserve(32, 0) != nullptr) writer.publish();
    while (reader.next(record)) (void)reader.finish();
    std::uint64_t seen = 0;
    const auto write_three = [&] {
        for (std::uint64_t number = 1; number <= 3; ++number) {
            if (!try_write(writer, number)) _exit(1);
            writer.publish();
        }
    };
    const int looks = after_each_instruction(write_three, [&] {
        RingReader left = reader;
        std::uint64_t read = 0;
        while (left.next(record)) CHECK(is_record(record, ++read, writer.largest()));
        CHECK(!left.is_broken());
        CHECK(read == seen || read == seen + 1);
        seen = read;
    });
    if (looks != 0) CHECK_EQUAL(seen, 3u);
}

TEST("after the death of a reader at any instruction the writer has the room of the finished records") {
    const Shared<SharedRing> shared;
    RingWriter writer(shared->counters, shared->bytes, shared->capacity);
    RingReader reader(shared->counters, shared->bytes, shared->capacity);
    while (writer.reserve(48, 0) != nullptr) {}
    while (writer.reserve(0, 0) != nullptr) {}
    writer.publish();
    std::uint64_t room = 0;
    const auto read_all = [&] {
        for (RingReader::Record record; reader.next(record);) (void)reader.finish();
    };
    const int looks = after_each_instruction(read_all, [&] {
        RingWriter left = writer;
        for (room = 0; left.reserve(0, 0) != nullptr;) room += RecordHeader::room(0);
        CHECK_EQUAL(room, shared->counters.read.load(callboard::acquire));
        CHECK(!left.is_broken());
    });
    if (looks != 0) CHECK_EQUAL(room, shared->capacity);
}

CHECK_MAIN
