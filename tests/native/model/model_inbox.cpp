// Rings with several writers and one reader, which wait for messages and for room, and of which each may die at any
// operation. A ring's successors, and what keeps a dead writer from taking the wake-ups of others.
#include "byte_rings.hpp"
#include "callboard/mailbox/shared/message_ring.hpp"
#include "model.hpp"
#include "waiter.hpp"

using namespace callboard;
using model::dies;
using model::Ring;
using model::together;
using model::Waiter;

namespace {

// The operations of a writer with one record, and of a notification that wakes a sleeper.
constexpr unsigned publishing = 1, notifying = 4;

template <int units>
void write(Ring<units>& ring, int value) {
    CHECK(ring.try_write(value));
    ring.writer.publish();
}

}  // namespace

MODEL("a writer that dies at any operation neither hides the record of another one, nor its wake-up") {
    Ring<2> first, second;
    Waiter waiter;
    together([&] { dies(publishing + notifying, [&] { write(first, 7), waiter.notify(); }); },
             [&] { write(second, 8), waiter.notify(); },
             [&] { waiter.wait_until([&] { return second.reader.may_have_next() && second.try_read(8); }); });
}

MODEL("who learns of a writer's end has what it had published, and nothing else") {
    Ring<2> ring;
    Atomic<int> ended{0};
    bool has_published = false;
    together(
        [&] {
            dies(publishing, [&] { write(ring, 7), has_published = true; });
            ended.store(1, release);  // as the kernel does
        },
        [&] {
            model::await([&] { return ended.load(acquire) != 0; });
            CHECK(ring.try_read(7) == has_published);
        });
}

MODEL("the records of a writer that dies at any operation come before those of its successor") {
    Ring<4> ring;
    int published = 0, before = 0;
    together(
        [&] {
            dies(3, [&] { for (; published < 3; ++published) write(ring, published); });
            RingWriter next = ring.next_writer();
            for (int i = 10; i < 12; ++i) {
                model::await([&] { return ring.try_write(next, i); });
                next.publish();
            }
        },
        [&] {
            for (int next = 0; next < 12; ++next) {
                model::await([&] { return ring.try_read_any(); });
                if (ring.value == 10) before = next, next = 10;
                CHECK(ring.value == next);
                (void)ring.reader.finish();
            }
        });
    CHECK(before == published);
}

MODEL("a reader's successor has each record that the reader had not finished, whatever its last operation was") {
    Ring<2> ring;
    together(
        [&] {
            for (int i = 0; i < 3; ++i) {
                model::await([&] { return ring.try_write(i); });
                ring.writer.publish();
            }
        },
        [&] {
            int finished = 0;
            dies(4, [&] {
                while (finished < 2 && ring.try_read(finished)) (void)ring.reader.finish(), ++finished;
            });
            RingReader next = ring.next_reader();
            for (; finished < 3; ++finished) {
                model::await([&] { return ring.try_read(next, finished); });
                (void)next.finish();
            }
        });
    CHECK(!ring.writer.is_broken());
}

MODEL("a writer that finds no room is woken when there is some, or sees it") {
    constexpr std::uint64_t capacity = 64;
    MessageRing shared;
    alignas(8) unsigned char bytes[capacity] = {};
    MessageWriter writer(shared, bytes, capacity);
    MessageReader reader(shared, bytes, capacity);
    Waiter waits_for_room, waits_for_messages;
    const auto wake_writer = [&] { waits_for_room.notify(); };
    const unsigned char sent[16] = {};
    together(
        [&] {
            for (int i = 0; i < 3; ++i) {
                waits_for_room.wait_until([&] { return writer.send(sent, sizeof sent, 0) == sizeof sent; });
                waits_for_messages.notify();
            }
        },
        [&] {
            MessageReader::Message message;
            for (int i = 0; i < 3; ++i) {
                waits_for_messages.wait_until([&] { return reader.receive(message, wake_writer); });
                CHECK(message.size == sizeof sent);
                reader.finish(wake_writer);
            }
        });
}
