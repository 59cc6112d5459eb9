// Inboxes between processes: messages in turn, and one way from several writers, in groups of several sizes. The reader of
// a large group looks at many rings that are empty.
#include <sys/wait.h>

#include "bench.hpp"
#include "inboxes.hpp"

using namespace inboxes;

namespace {

constexpr int round_count = 5, messages = 20'000;
const std::string message(40, 'x');

std::string receive_one(ProcessInbox& inbox) {
    std::string text;
    std::uint32_t process = 0;
    for (;;) {
        const std::uint64_t looked = inbox.look();
        if (receive(inbox, process, text)) return text;
        inbox.wait(looked, -1, -1);
    }
}

// Nanoseconds for each message that this process receives, of `all`, while `writers` others run `write(inbox)`.
template <class Write, class Read>
double measured(std::uint32_t processes, std::uint32_t writers, int all, Write write, Read read) {
    const Group group(processes, 65536);
    for (std::uint32_t own = 1; own <= writers; ++own) {
        if (fork() != 0) continue;
        bench::pin(static_cast<int>(own));
        write(*group.open(own));
        _exit(0);
    }
    bench::pin(0);
    const auto inbox = group.open(0);
    read(*inbox);  // the first message: by now a process has started
    const std::int64_t begin = callboard::monotonic_ns();
    for (int i = 1; i < all; ++i) read(*inbox);
    const auto time = static_cast<double>(callboard::monotonic_ns() - begin);
    for (std::uint32_t own = 1; own <= writers; ++own) {
        int status = 1;
        bench::require(wait(&status) > 0 && status == 0, "a process failed");
    }
    return time / (all - 1);
}

double in_turn(std::uint32_t processes) {
    return measured(processes, 1, messages,
                    [](ProcessInbox& inbox) {
                        for (int i = 0; i < messages; ++i) {
                            send_all(inbox, 0, message);
                            bench::require(receive_one(inbox) == message, "another message");
                        }
                    },
                    [](ProcessInbox& inbox) {
                        bench::require(receive_one(inbox) == message, "another message");
                        send_all(inbox, 1, message);
                    }) / 2;
}

double one_way(std::uint32_t processes, std::uint32_t writers) {
    return measured(processes, writers, messages * static_cast<int>(writers),
                    [](ProcessInbox& inbox) { for (int i = 0; i < messages; ++i) send_all(inbox, 0, message); },
                    [](ProcessInbox& inbox) { bench::require(receive_one(inbox) == message, "another message"); });
}

}  // namespace

int main() {
    bench::head("ns per message of 40 bytes: median (least to most)",
                {"in turn", "one way, 1 writer", "one way, 3 writers"});
    for (const std::uint32_t processes : {4u, 16u, 64u}) {
        bench::row(std::to_string(processes) + " processes",
                   bench::rounds(round_count, {{"in turn", [=] { return in_turn(processes); }},
                                               {"one writer", [=] { return one_way(processes, 1); }},
                                               {"three writers", [=] { return one_way(processes, 3); }}}));
    }
    bench::foot();
}
