// The contract of messages in pieces, whose writer or reader dies at any instruction and has a successor.
#include <unistd.h>

#include <string>
#include <vector>

#include "callboard/mailbox/shared/message_ring.hpp"
#include "check.hpp"
#include "stepping.hpp"

using callboard::MessageReader;
using callboard::MessageRing;
using callboard::MessageWriter;
using callboard::RecordHeader;
using callboard::RingWriter;
using stepping::after_each_instruction;
using stepping::Shared;

namespace {

struct Messages {
    static constexpr std::uint64_t capacity = 256;

    MessageRing ring;
    unsigned char bytes[capacity];
    int received;

    MessageWriter writer() { return {ring, bytes, capacity}; }
    MessageReader reader() { return {ring, bytes, capacity}; }
};

constexpr auto no_wake = [] {};

std::uint64_t send(MessageWriter& writer, const std::string& message, std::uint64_t sent = 0) {
    return writer.send(reinterpret_cast<const unsigned char*>(message.data()), message.size(), sent);
}

// All messages that there are.
std::vector<std::string> receive(MessageReader& reader) {
    std::vector<std::string> messages;
    for (MessageReader::Message message; reader.receive(message, no_wake); reader.finish(no_wake))
        messages.emplace_back(reinterpret_cast<const char*>(message.bytes), message.size);
    return messages;
}

std::string joined(const std::vector<std::string>& messages) {
    std::string text;
    for (const std::string& message : messages) text += message + ';';
    return text;
}

const std::string one(30, 'a'), two(100, 'b'), three(20, 'c');  // the second one has two pieces
const std::vector<std::string> all{one, two, three};

std::vector<std::string> from(std::size_t first) { return {all.begin() + static_cast<long>(first), all.end()}; }

}  // namespace

TEST("a long message arrives in pieces, while it is sent") {
    Shared<Messages> shared;
    MessageWriter writer = shared->writer();
    MessageReader reader = shared->reader();
    const std::string message(1000, 'x');
    std::uint64_t sent = 0;
    std::vector<std::string> came;
    while (sent < message.size()) {
        CHECK(came.empty());
        const std::uint64_t more = send(writer, message, sent);
        CHECK(more > sent);
        sent = more;
        came = receive(reader);
    }
    CHECK_EQUAL(joined(came), message + ';');
}

TEST("a writer without room is woken, and one with room is not") {
    Shared<Messages> shared;
    MessageWriter writer = shared->writer();
    MessageReader reader = shared->reader();
    MessageReader::Message message;
    int wakes = 0;
    const auto wake = [&] { ++wakes; };
    for (int round = 0; round < 3; ++round) {
        while (send(writer, one) == one.size()) {}
        while (reader.receive(message, wake)) reader.finish(wake);
        CHECK_EQUAL(wakes, round + 1);
    }
    CHECK_EQUAL(send(writer, one), one.size());
    CHECK(reader.receive(message, wake));
    reader.finish(wake);
    CHECK_EQUAL(wakes, 3);
}

TEST("a message without its first pieces or its last ones is dropped") {
    Shared<Messages> shared;
    MessageReader reader = shared->reader();
    RingWriter writer(shared->ring.counters, shared->bytes, Messages::capacity);
    const auto write = [&](char byte, std::uint32_t kind) {
        *writer.reserve(1, kind) = static_cast<unsigned char>(byte);
        writer.publish();
    };
    write('a', 0), write('b', MessageRing::last);
    CHECK(receive(reader).empty());
    CHECK(reader.has_dropped());
    write('c', MessageRing::first), write('d', 0);
    CHECK(receive(reader).empty());
    write('e', MessageRing::first), write('f', MessageRing::last);
    CHECK_EQUAL(joined(receive(reader)), "ef;");
    write('g', MessageRing::first);
    write('h', MessageRing::first | MessageRing::last);
    CHECK_EQUAL(joined(receive(reader)), "h;");
    CHECK(!reader.is_broken());
}

TEST("a piece of an unknown kind breaks the ring") {
    Shared<Messages> shared;
    MessageReader reader = shared->reader();
    RingWriter writer(shared->ring.counters, shared->bytes, Messages::capacity);
    CHECK(writer.reserve(1, 4) != nullptr);
    writer.publish();
    CHECK(receive(reader).empty());
    CHECK(reader.is_broken());
}

TEST("counters that cannot be break the ring for a successor") {
    for (const auto& [written, read] : {std::pair<std::uint64_t, std::uint64_t>{8, 16}, {264, 0}, {4, 0}, {~0ull, 8}}) {
        Shared<Messages> shared;
        shared->ring.counters.written.store(written, callboard::relaxed);
        shared->ring.counters.read.store(read, callboard::relaxed);
        MessageWriter writer = shared->writer();
        CHECK(writer.is_broken());
        CHECK_EQUAL(send(writer, one), 0u);
        MessageReader reader = shared->reader();
        CHECK(receive(reader).empty());
        CHECK(reader.is_broken());
    }
}

// The ring's end is in the second message.
TEST("after a writer's death at any instruction come its whole messages, and then those of its successor") {
    Shared<Messages> shared, left;
    MessageWriter writer = shared->writer();
    MessageReader reader = shared->reader();
    CHECK(send(writer, std::string(60, 'x')) == 60 && send(writer, std::string(40, 'x')) == 40);
    CHECK_EQUAL(receive(reader).size(), 2u);
    std::size_t seen = 0;
    const auto send_all = [&] {
        for (const std::string& message : all) if (send(writer, message) != message.size()) _exit(1);
    };
    const int looks = after_each_instruction(send_all, [&] {
        left.copy(shared);
        MessageReader its_reader = left->reader();
        auto came = receive(its_reader);
        CHECK(came.size() == seen || came.size() == seen + 1);
        seen = came.size();
        MessageWriter next = left->writer();
        for (const std::string& message : from(seen)) CHECK_EQUAL(send(next, message), message.size());
        for (const std::string& message : receive(its_reader)) came.push_back(message);
        CHECK_EQUAL(joined(came), joined(all));
    });
    if (looks != 0) CHECK_EQUAL(seen, 3u);
}

TEST("after a reader's death at any instruction its successor has what it had not received") {
    Shared<Messages> shared, left;
    MessageWriter writer = shared->writer();
    MessageReader reader = shared->reader();
    for (const std::string& message : all) CHECK_EQUAL(send(writer, message), message.size());
    const auto receive_all = [&] {
        MessageReader::Message message;
        for (; reader.receive(message, no_wake); ++shared->received) reader.finish(no_wake);
    };
    std::size_t taken = 0;
    const int looks = after_each_instruction(receive_all, [&] {
        left.copy(shared);
        MessageReader next = left->reader();
        const auto came = receive(next);
        taken = all.size() - came.size();
        const auto noted = static_cast<std::size_t>(left->received);
        CHECK(taken == noted || taken == noted + 1);
        CHECK(!next.has_dropped() || taken == noted + 1);
        CHECK_EQUAL(joined(came), joined(from(taken)));
        MessageWriter other = left->writer();
        CHECK_EQUAL(send(other, one), one.size());
        CHECK_EQUAL(joined(receive(next)), one + ';');
    });
    if (looks != 0) CHECK_EQUAL(taken, 3u);
}

CHECK_MAIN
