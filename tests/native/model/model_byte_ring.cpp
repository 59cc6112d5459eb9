// The ring of bytes between two processes, with room for two and for four units, and the sleep of a process that waits.
#include "byte_rings.hpp"
#include "model.hpp"
#include "waiter.hpp"

using namespace callboard;
using model::Ring;
using model::together;
using model::Waiter;

namespace {

template <int units>
void each_arrives(int all) {
    Ring<units> ring;
    together(
        [&] {
            for (int i = 0; i < all; ++i) {
                model::await([&] { return ring.try_write(i); });
                ring.writer.publish();
            }
        },
        [&] {
            for (int i = 0; i < all; ++i) {
                model::await([&] { return ring.try_read(i); });
                (void)ring.reader.finish();
            }
        });
    CHECK(!ring.writer.is_broken() && !ring.reader.is_broken());
}

}  // namespace

MODEL("room for two units: each record arrives once, and in order") { each_arrives<2>(4); }
MODEL("room for four units: each record arrives once, and in order") { each_arrives<4>(5); }

MODEL("a record that goes around the end arrives whole, after a filler") {
    Ring<4> ring;
    const auto size = [](int i) { return i == 3 ? 8u : 0u; };
    together(
        [&] {
            for (int i = 0; i < 4; ++i) {
                model::await([&] { return ring.try_write(i, size(i)); });
                ring.writer.publish();
            }
        },
        [&] {
            for (int i = 0; i < 4; ++i) {
                model::await([&] { return ring.try_read(i, size(i)); });
                (void)ring.reader.finish();
            }
        });
}

MODEL("records that are published together arrive together, and their room comes back together") {
    Ring<2> ring;
    together(
        [&] {
            CHECK(ring.try_write(0) && ring.try_write(1));
            ring.writer.publish();
            model::await([&] { return ring.try_write(2); });
            CHECK(ring.try_write(3));
        },
        [&] {
            model::await([&] { return ring.try_read(0); });
            CHECK(ring.try_read(1));
            CHECK(ring.reader.finish());
        });
}

MODEL("a reader that sleeps is woken by each record, or sees it") {
    Ring<2> ring;
    Waiter waiter;
    together(
        [&] {
            for (int i = 0; i < 2; ++i) {
                CHECK(ring.try_write(i));
                ring.writer.publish();
                waiter.notify();
            }
        },
        [&] {
            for (int i = 0; i < 2; ++i) waiter.wait_until([&] { return ring.try_read(i); });
        });
}

MODEL("a reader that is notified by two writers of two rings sees both") {
    Ring<2> first, second;
    Waiter waiter;
    const auto write = [&](Ring<2>& ring) {
        CHECK(ring.try_write(7));
        ring.writer.publish();
        waiter.notify();
    };
    together([&] { write(first); }, [&] { write(second); },
             [&] {
                 bool saw_first = false, saw_second = false;
                 waiter.wait_until([&] {
                     saw_first = saw_first || first.try_read(7);
                     saw_second = saw_second || second.try_read(7);
                     return saw_first && saw_second;
                 });
             });
}

MODEL("a waiter that woke by itself is woken again, or sees the record") {
    Ring<2> ring;
    Waiter waiter;
    together(
        [&] {
            CHECK(ring.try_write(7));
            ring.writer.publish();
            waiter.notify();
        },
        [&] {
            if (waiter.events.try_sleep(waiter.events.look())) waiter.events.awake();
            waiter.wait_until([&] { return ring.try_read(7); });
        });
}
