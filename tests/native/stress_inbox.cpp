// Threads that send to each other: over rings and an event count in one mapping, where a missing order is a data race,
// and with inboxes, whose rings have an address for each end, as between processes. All sleep when they have nothing to do.
#include <poll.h>

#include <deque>

#include "inboxes.hpp"
#include "stress.hpp"

using callboard::EventCount;
using callboard::MessageReader;
using callboard::MessageRing;
using callboard::MessageWriter;
using namespace inboxes;
using namespace stress;

namespace {

class Eventfd {
public:
    ~Eventfd() { close(file_); }
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

// Waits until `tries()`, and sleeps when it did not.
class Sleeper {
public:
    template <class Tries>
    void until(Tries tries) {
        for (;;) {
            const std::uint64_t looked = events_.look();
            if (tries()) return;
            if (!events_.try_sleep(looked)) continue;
            descriptor_.wait();
            events_.awake();
        }
    }
    void notify() {
        events_.notify([this] { descriptor_.wake(); });
    }

private:
    EventCount events_{};
    Eventfd descriptor_;
};

template <std::uint64_t capacity>
struct OneRing {
    MessageRing ring{};
    alignas(8) unsigned char bytes[capacity] = {};
    MessageWriter writer{ring, bytes, capacity};
    MessageReader reader{ring, bytes, capacity};
    Sleeper room;
};

template <std::uint64_t capacity>
void every_writer_is_heard(int writers, std::uint64_t all) {
    std::deque<OneRing<capacity>> rings(static_cast<std::size_t>(writers));
    Sleeper messages;
    std::uint64_t wrong = 0;
    together(writers + 1, [&](int index) {
        Random random(capacity + static_cast<std::uint64_t>(index));
        if (index < writers) {
            OneRing<capacity>& own = rings[static_cast<std::size_t>(index)];
            for (std::uint64_t number = 0; number < all; ++number) {
                const std::string text = message_of(number);
                std::uint64_t sent = 0;
                own.room.until([&] {
                    const std::uint64_t before = sent;
                    sent = own.writer.send(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sent);
                    if (sent != before) messages.notify();
                    return sent == text.size();
                });
                random.pause();
            }
            return;
        }
        std::vector<std::uint64_t> next(rings.size(), 0);
        for (std::uint64_t received = 0; received < all * next.size();) {
            messages.until([&] {
                const std::uint64_t before = received;
                for (std::size_t i = 0; i < rings.size(); ++i) {
                    const auto wake = [&] { rings[i].room.notify(); };
                    MessageReader::Message message;
                    while (rings[i].reader.receive(message, wake)) {
                        wrong += !is_message({reinterpret_cast<const char*>(message.bytes), message.size}, next[i]++);
                        rings[i].reader.finish(wake);
                        ++received;
                    }
                }
                return received != before;
            });
            random.pause();
        }
    });
    CHECK_EQUAL(wrong, 0u);
}

// Each process sends to all others, and receives while it waits for room.
void all_hear_all(std::uint32_t processes, std::uint64_t capacity, std::uint64_t all) {
    const Group group(processes, capacity);
    callboard::Atomic<std::uint64_t> wrong{0};
    together(static_cast<int>(processes), [&](int index) {
        Random random(capacity + static_cast<std::uint64_t>(index));
        const auto own = static_cast<std::uint32_t>(index);
        const auto inbox = group.open(own);
        std::vector<std::uint64_t> next(processes, 0), number(processes, 0), sent(processes, 0);
        const std::uint64_t total = all * (processes - 1);
        std::uint64_t received = 0, finished = 0;
        while (received < total || finished < total) {
            const std::uint64_t looked = inbox->look();
            const std::uint64_t before = received + finished;
            std::uint32_t process = 0;
            for (std::string text; receive(*inbox, process, text); ++received)
                if (!is_message(text, next[process]++)) wrong.fetch_add(1, callboard::relaxed);
            for (std::uint32_t to = 0; to < processes; ++to) {
                if (to == own || number[to] == all) continue;
                const std::string text = message_of(number[to]);
                sent[to] = send(*inbox, to, text, sent[to]);
                if (sent[to] == text.size()) ++number[to], ++finished, sent[to] = 0;
            }
            random.pause();
            if (received + finished != before) continue;
            const std::int64_t end = callboard::monotonic_ns() + patience;
            inbox->wait(looked, -1, static_cast<int>(patience / 1'000'000) + 1);
            if (callboard::monotonic_ns() >= end) check::give_up(__FILE__, __LINE__, "a wake-up was lost");
        }
    });
    CHECK_EQUAL(wrong.load(callboard::relaxed), 0u);
}

}  // namespace

TEST("messages of several writers in one mapping arrive whole and in order, and no wake-up is lost") {
    every_writer_is_heard<64>(2, 3'000 / shorter);
    every_writer_is_heard<256>(3, 5'000 / shorter);
    every_writer_is_heard<4096>(3, 5'000 / shorter);
}

TEST("messages from all inboxes to all arrive whole and in order, and no wake-up is lost") {
    for (const std::uint64_t capacity : {64u, 256u, 4096u}) all_hear_all(3, capacity, 2'000 / shorter);
    all_hear_all(8, 256, 200 / shorter);
}

CHECK_MAIN
