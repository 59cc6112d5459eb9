// The contract of inboxes, and processes that are killed or stopped at random. stress_inbox.cpp has the threads,
// test_message_ring.cpp deaths at each instruction.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "callboard/core/clock.hpp"
#include "callboard/core/mix.hpp"
#include "inboxes.hpp"
#include "stepping.hpp"

using namespace inboxes;

namespace {

constexpr int patience = 60'000;  // milliseconds

// A child that runs `body`, and dies with its parent.
template <class Body>
pid_t start(Body body) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    body();
    _exit(0);
}

void kill_now(pid_t child) {
    kill(child, SIGKILL);
    CHECK(waitpid(child, nullptr, 0) == child);
}

// A time of up to 100 microseconds, in which a process gets anywhere.
void let_run(std::uint64_t random) {
    const std::int64_t end = callboard::monotonic_ns() + static_cast<std::int64_t>(random % 100'000);
    while (callboard::monotonic_ns() < end) callboard::relax();
}

struct Told {
    callboard::Atomic<std::uint64_t> numbers[4];  // by each process, of what it has sent or received
};

}  // namespace

TEST("the messages of each process come in their order, with its number") {
    const Group group(3, 1024);
    const auto first = group.open(0), second = group.open(1), third = group.open(2);
    std::string text;
    std::uint32_t process = 9;
    CHECK(!receive(*first, process, text));
    for (const char* const message : {"a", "b"}) CHECK(send(*second, 0, message) == 1 && send(*third, 0, message) == 1);
    std::string came;
    while (receive(*first, process, text)) came += std::to_string(process) + text;
    CHECK(came == "1a1b2a2b");
    CHECK(send(*first, 2, "c") == 1);
    CHECK(!receive(*second, process, text));
    CHECK(receive(*third, process, text) && process == 0 && text == "c");
}

TEST("a process that sends without end does not keep others from being heard") {
    const Group group(4, 1024);
    const auto reader = group.open(0), flood = group.open(2), other = group.open(1), last = group.open(3);
    std::string text;
    std::uint32_t process = 9;
    while (send(*flood, 0, "flood") == 5) {}
    CHECK(receive(*reader, process, text) && process == 2);
    CHECK(send(*other, 0, "other") == 5 && send(*last, 0, "last") == 4);
    std::uint32_t before = 0, heard = 0;
    while (heard < 2 && before < 1000 && receive(*reader, process, text)) {
        (process == 2 ? before : heard) += 1;
        if (process == 2) CHECK(send(*flood, 0, "flood") == 5);
    }
    CHECK_EQUAL(heard, 2u);
    CHECK(before < 2 * ProcessInbox::turn);
    for (std::uint32_t i = 0; i < 3 * ProcessInbox::turn; ++i) {
        CHECK(receive(*reader, process, text) && process == 2);
        CHECK(send(*flood, 0, "flood") == 5);
    }
}

TEST("a process that writes nonsense breaks its own rings, and its successor begins with new ones") {
    for (const unsigned char byte : {1, 8, 255}) {
        const Group group(3, 256);
        const auto reader = group.open(0), good = group.open(2);
        auto bad = group.open(1);
        std::string text;
        std::uint32_t process = 9;
        CHECK(send(*bad, 0, "lost") == 4 && send(*reader, 1, "lost") == 4 && send(*good, 0, "good") == 4);
        group.scribble(0, 1, byte);
        group.scribble(1, 0, byte);
        CHECK(receive(*reader, process, text) && process == 2 && text == "good");
        CHECK(!receive(*reader, process, text));
        CHECK(reader->is_broken(1) && !reader->is_broken(2));
        bad.reset();
        CHECK(reader->take_back(1).empty());
        CHECK(!reader->is_broken(1));
        bad = group.open(1);
        CHECK(send(*bad, 0, "a") == 1 && receive(*reader, process, text) && process == 1 && text == "a");
        CHECK(send(*reader, 1, "b") == 1 && receive(*bad, process, text) && process == 0 && text == "b");
    }
}

TEST("what a process had not received is taken back, and its successor does not have it") {
    const Group group(2, 256);
    const auto sender = group.open(0);
    auto receiver = group.open(1);
    std::string text, longest(100, 'x');
    std::uint32_t process = 9;
    for (const char* const message : {"a", "b", "c"}) CHECK(send(*sender, 1, message) == 1);
    CHECK(receive(*receiver, process, text) && text == "a");
    CHECK(send(*receiver, 0, "published") == 9);
    receiver.reset();
    auto back = sender->take_back(1);
    CHECK(back.size() == 2 && back[0] == "b" && back[1] == "c");
    CHECK(sender->take_back(1).empty());
    receiver = group.open(1);
    CHECK(!receive(*receiver, process, text));
    CHECK(send(*receiver, 0, "next") == 4);
    CHECK(receive(*sender, process, text) && text == "published");
    CHECK(receive(*sender, process, text) && text == "next");
    CHECK_EQUAL(send(*sender, 1, longest), longest.size());
    const auto sent = send(*sender, 1, std::string(500, 'y'));  // a part, which is no message yet
    CHECK(sent > 0 && sent < 500);
    back = sender->take_back(1);
    CHECK(back.size() == 1 && back[0] == longest);
    // The rest of a message, as after a process that had received its beginning.
    CHECK_EQUAL(send(*sender, 1, longest, 50), longest.size());
    CHECK(send(*sender, 1, "z") == 1);
    back = sender->take_back(1);
    CHECK(back.size() == 2 && back[0].empty() && back[1] == "z");
}

TEST("memory that is too small is not mapped") {
    const Group group(2, 64);
    CHECK(std::unique_ptr<ProcessInbox>(ProcessInbox::open(-1, 0, 64, group.descriptors)) == nullptr);
    const int small = static_cast<int>(syscall(SYS_memfd_create, "small", 0));
    CHECK(ftruncate(small, static_cast<off_t>(ProcessInbox::memory_of(2, 64) - 1)) == 0);
    CHECK(std::unique_ptr<ProcessInbox>(ProcessInbox::open(small, 1, 64, group.descriptors)) == nullptr);
    close(small);
}

TEST("of writers that are killed at any time, what they have published comes once, whole, and before their successors'") {
    const Group group(3, 512);
    const stepping::Shared<Told> told;
    const auto reader = group.open(0);
    pid_t children[3] = {};
    std::uint64_t received[3] = {}, taken = 0;
    const auto random = [&] { return callboard::random_number(11, taken++); };
    const auto launch = [&](std::uint32_t own) {
        received[own] = 0;
        told->numbers[own].store(0, callboard::relaxed);
        children[own] = start([&] {
            const auto inbox = group.open(own);
            for (std::uint64_t number = 0;; told->numbers[own].store(++number, callboard::relaxed))
                send_all(*inbox, 0, message_of(number));
        });
    };
    const auto take = [&](const std::string& text, std::uint32_t process) {
        CHECK(is_message(text, received[process]));
        ++received[process];
    };
    for (const std::uint32_t own : {1u, 2u}) launch(own);
    std::uint32_t process = 0;
    std::string text;
    for (int kills = 0; kills < 1000; ++kills) {
        const auto victim = static_cast<std::uint32_t>(1 + random() % 2);
        const std::uint64_t enough = received[victim] + 1 + random() % 20;
        while (received[victim] < enough) {
            if (!await(*reader, process, text, patience)) check::give_up(__FILE__, __LINE__, "a message is lost");
            take(text, process);
        }
        let_run(random());
        kill_now(children[victim]);
        // The other one goes on for ever.
        for (std::uint32_t others = 0; others < 2 * ProcessInbox::turn && receive(*reader, process, text);) {
            take(text, process);
            others = process == victim ? 0 : others + 1;
        }
        const std::uint64_t known = told->numbers[victim].load(callboard::relaxed);
        CHECK(received[victim] == known || received[victim] == known + 1);
        CHECK(!reader->is_broken(victim));
        launch(victim);
    }
    for (const std::uint32_t own : {1u, 2u}) kill_now(children[own]);
}

TEST("of what is sent to readers that are killed at any time, each message is received or taken back") {
    const Group group(2, 512);
    const stepping::Shared<Told> told;
    const auto writer = group.open(0);
    auto& noted = told->numbers[1];
    std::uint64_t random_taken = 0, number = 0;
    const auto random = [&] { return callboard::random_number(13, random_taken++); };
    for (int kills = 0; kills < 500; ++kills) {
        const std::uint64_t first = number;
        noted.store(first, callboard::relaxed);
        const pid_t child = start([&] {
            const auto inbox = group.open(1);
            std::uint32_t process = 0;
            std::string text;
            for (std::uint64_t next = first;; noted.store(++next, callboard::relaxed)) {
                if (!await(*inbox, process, text, patience) || !is_message(text, next)) _exit(1);
            }
        });
        const std::uint64_t enough = first + 20 + random() % 50;
        while (number < enough) send_all(*writer, 1, message_of(number++));
        std::uint64_t sent = 0;
        do sent = send(*writer, 1, message_of(number)); while (sent == message_of(number++).size());
        --number;  // not as a whole
        let_run(random());
        kill_now(child);
        const auto back = writer->take_back(1);
        const bool was_cut = !back.empty() && back[0].empty();
        const std::uint64_t whole = back.size() - was_cut, received = number - whole - was_cut;
        const std::uint64_t known = noted.load(callboard::relaxed);
        CHECK(received == known || (received == known + 1 && !was_cut));
        for (std::uint64_t i = 0; i < whole; ++i) CHECK(is_message(back[was_cut + i], number - whole + i));
    }
}

TEST("a writer that is stopped at any time keeps no other one from being heard") {
    const Group group(3, 512);
    const stepping::Shared<Told> told;
    const auto reader = group.open(0);
    const auto send_for_ever = [&](std::uint32_t own) {
        return start([&, own] {
            const auto inbox = group.open(own);
            for (std::uint64_t number = 0;; ++number) send_all(*inbox, 0, message_of(number));
        });
    };
    const pid_t stopped = send_for_ever(1), other = send_for_ever(2);
    std::uint64_t received[3] = {}, taken = 0;
    std::uint32_t process = 0;
    std::string text;
    for (int stops = 0; stops < 200; ++stops) {
        let_run(callboard::random_number(17, taken++));
        kill(stopped, SIGSTOP);
        for (const std::uint64_t enough = received[2] + 50; received[2] < enough;) {
            if (!await(*reader, process, text, patience)) check::give_up(__FILE__, __LINE__, "a message is lost");
            CHECK(is_message(text, received[process]));
            ++received[process];
        }
        kill(stopped, SIGCONT);
    }
    kill_now(stopped);
    kill_now(other);
}

CHECK_MAIN
