// The bytes of traces. tests/observing reads whole traces by Perfetto's own schema.
#include "callboard/scheduling/tracing/track_events.hpp"

#include <string>

#include "callboard/scheduling/tracing/protobuf.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

std::string bytes_of(const ProtobufWriter& writer) { return {writer.data(), writer.size()}; }

}  // namespace

TEST("a number is its tag and seven bits a byte, the lowest first") {
    ProtobufWriter writer;
    writer.number(1, 150);  // the example of the format's documentation
    CHECK_EQUAL(bytes_of(writer), std::string("\x08\x96\x01"));
    writer.clear();
    writer.number(16, 0);
    CHECK_EQUAL(bytes_of(writer), std::string("\x80\x01\x00", 3));
    writer.clear();
    writer.number(1, ~std::uint64_t{0});
    CHECK_EQUAL(bytes_of(writer), std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

TEST("a text has its length before it") {
    ProtobufWriter writer;
    writer.text(2, "testing");
    writer.text(2, "");
    CHECK_EQUAL(bytes_of(writer), std::string("\x12\x07testing\x12\x00", 11));
}

TEST("a message inside another one has its length before it, however long it is") {
    ProtobufWriter writer;
    const auto outer = writer.begin(3);
    const auto inner = writer.begin(1);
    writer.number(1, 5);
    writer.end(inner);
    writer.text(2, std::string(200, 'x'));
    writer.end(outer);
    const std::string text = "\x0a\x02\x08\x05\x12\xc8\x01" + std::string(200, 'x');
    CHECK_EQUAL(bytes_of(writer), "\x1a\xcf\x01" + text);
    writer.clear();
    writer.end(writer.begin(3));
    CHECK_EQUAL(bytes_of(writer), std::string("\x1a\x00", 2));
}

TEST("an event after the last one says how much later it is, one before it its whole time") {
    TrackEvents track(7);
    track.begin_worker(1, 0, "worker", 1'000'000'000);
    track.give_name(4, "/actor");
    track.clear();
    DispatchRecord record;
    record.actor = 4;
    record.began = 1'000'000'005;
    record.time = 1'000'000'010;
    track.add(record);
    // The sequence, the need for its state, the time; then the kind of event, and what it is.
    CHECK_EQUAL(std::string(track.data(), track.size()),
                std::string("\x0a\x0e\x50\x07\x68\x02\x40\x05\x5a\x06\x48\x01\x18\x01\x50\x03"
                            "\x0a\x0a\x50\x07\x68\x02\x40\x05\x5a\x02\x48\x02"));
    track.clear();
    record.began = 1'000'000'000;
    track.add(record);
    CHECK_EQUAL(std::string(track.data(), 13),
                std::string("\x0a\x15\x50\x07\x68\x02\x40\x80\x94\xeb\xdc\x03\xd0"));
}

TEST("an arrow has a number of eight bytes, where it begins and where it ends") {
    TrackEvents track(7);
    track.begin_worker(1, 0, "worker", 1'000'000'000);
    for (const bool ends : {false, true}) {
        track.clear();
        track.add_message(1'000'000'005, 258, ends, "x");
        const std::string field = ends ? "\x81\x03" : "\xf9\x02";  // 48 and 47, as fixed64
        const std::string bytes(track.data(), track.size());
        CHECK_EQUAL(bytes.substr(bytes.size() - 10), field + std::string("\x02\x01\0\0\0\0\0\0", 8));
    }
    track.clear();
    track.add_message(1'000'000'005, 0, false, "x");
    CHECK_EQUAL(std::string(track.data(), track.size()).back(), 'x');
}

CHECK_MAIN
