// Two threads at the two ends of small rings: in one mapping, where a missing order is a data race, and in two mappings
// of the same memory, as two processes have. A reader or a writer that finds nothing to do sleeps on a descriptor.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "callboard/mailbox/shared/event_count.hpp"
#include "rings.hpp"
#include "stress.hpp"

using callboard::EventCount;
using namespace rings;
using namespace stress;

namespace {

constexpr std::uint64_t largest_capacity = 4096;

struct Region {
    RingCounters counters;
    EventCount records, room;
    alignas(8) unsigned char bytes[largest_capacity];
};

// Memory with two addresses, as two processes have it.
class TwoMappings {
public:
    explicit TwoMappings(bool two) {
        const int file = static_cast<int>(syscall(SYS_memfd_create, "ring", 0));
        CHECK(file >= 0 && ftruncate(file, sizeof(Region)) == 0);
        first_ = new (map(file)) Region{};
        second_ = two ? static_cast<Region*>(map(file)) : first_;
        close(file);
    }
    ~TwoMappings() {
        if (second_ != first_) munmap(second_, sizeof(Region));
        munmap(first_, sizeof(Region));
    }
    Region& writers() { return *first_; }
    Region& readers() { return *second_; }

private:
    static void* map(int file) { return mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); }

    Region *first_, *second_;
};

class Descriptor {
public:
    ~Descriptor() { close(file_); }
    void wake() { CHECK(eventfd_write(file_, 1) == 0); }
    void wait() {
        pollfd polled{file_, POLLIN, 0};
        if (poll(&polled, 1, static_cast<int>(patience / 1'000'000)) != 1)
            check::give_up(__FILE__, __LINE__, "a wake-up was lost");
        eventfd_t count;
        CHECK(eventfd_read(file_, &count) == 0);
    }

private:
    const int file_ = eventfd(0, 0);
};

// Until `tries()`: it sleeps when it did not, until it is notified.
template <class Tries>
void until(EventCount& events, Descriptor& descriptor, Tries tries) {
    for (;;) {
        const std::uint64_t looked = events.look();
        if (tries()) return;
        if (events.try_sleep(looked)) descriptor.wait();
    }
}

void everything_arrives(bool two, std::uint64_t capacity, std::uint64_t all) {
    TwoMappings memory(two);
    Descriptor records, room;
    std::uint64_t wrong = 0;
    together(2, [&](int index) {
        Random random(capacity + static_cast<std::uint64_t>(index));
        if (index == 0) {
            Region& region = memory.writers();
            RingWriter writer(region.counters, region.bytes, capacity);
            const auto publish = [&] {
                writer.publish();
                region.records.notify([&] { records.wake(); });
            };
            for (std::uint64_t number = 0; number < all; ++number) {
                if (!try_write(writer, number)) {
                    publish();
                    until(region.room, room, [&] { return try_write(writer, number); });
                }
                if (random.below(3) != 0) publish();
                random.pause();
            }
            publish();
        } else {
            Region& region = memory.readers();
            RingReader reader(region.counters, region.bytes, capacity);
            RingReader::Record record;
            for (std::uint64_t number = 0; number < all; ++number) {
                until(region.records, records, [&] { return reader.next(record); });
                wrong += !is_record(record, number, capacity / 2 - callboard::RecordHeader::unit);
                if (reader.finish()) region.room.notify([&] { room.wake(); });
                random.pause();
            }
            CHECK(!reader.is_broken() && !reader.next(record));
        }
    });
    CHECK_EQUAL(wrong, 0u);
}

}  // namespace

TEST("records of a ring in one mapping arrive whole and in order, and no wake-up is lost") {
    for (const std::uint64_t capacity : {16u, 64u, 1024u}) everything_arrives(false, capacity, 20'000);
}

TEST("records of a ring in two mappings arrive whole and in order, and no wake-up is lost") {
    for (const std::uint64_t capacity : {16u, 64u, 4096u}) everything_arrives(true, capacity, 20'000);
}

CHECK_MAIN
