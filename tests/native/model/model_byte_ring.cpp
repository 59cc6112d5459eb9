// The ring of bytes between two processes, with room for two and for four units, and the sleep of a process that waits.
#include "callboard/mailbox/shared/byte_ring.hpp"
#include "callboard/mailbox/shared/event_count.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

constexpr std::uint64_t unit = RecordHeader::unit;

// A ring of units, each with a plain value beside it: a record's bytes are those values.
template <int units>
struct Ring {
    RingCounters counters;
    alignas(8) unsigned char bytes[units * unit] = {};
    Plain<int> values[units];
    RingWriter writer{counters, bytes, units * unit};
    RingReader reader{counters, bytes, units * unit};

    bool try_write(int value, std::uint32_t size = 0) {
        unsigned char* const at = writer.reserve(size, static_cast<std::uint32_t>(value));
        if (at == nullptr) return false;
        for (std::uint64_t i = 0; i < RecordHeader::room(size) / unit; ++i) values[(at - bytes) / 8 - 1 + i] = value;
        return true;
    }
    bool try_read(int value, std::uint32_t size = 0) {
        RingReader::Record record;
        if (!reader.next(record)) return false;
        CHECK(record.size == size && record.kind == static_cast<std::uint32_t>(value));
        for (std::uint64_t i = 0; i < RecordHeader::room(size) / unit; ++i)
            CHECK(values[(record.bytes - bytes) / 8 - 1 + i] == value);
        return true;
    }
};

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

// A process that waits, and the descriptor on which it sleeps.
class Waiter {
public:
    template <class Tries>
    void wait_until(Tries tries) {
        for (;;) {
            const auto looked = events.look();
            if (tries()) return;
            if (!events.try_sleep(looked)) continue;
            model::await([&] { return wakes_.load(relaxed) != seen_; });
            seen_ = wakes_.load(relaxed);
        }
    }
    void notify() {
        if (events.notify()) wakes_.fetch_add(1, relaxed);
    }

    EventCount events;

private:
    Atomic<int> wakes_{0};
    int seen_ = 0;
};

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
