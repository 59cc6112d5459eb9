// A group of processes with inboxes: its memory, its eventfds, and messages that tell who sent them.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "callboard/mailbox/shared/inbox.hpp"
#include "check.hpp"

namespace inboxes {

using callboard::ProcessInbox;

class Group {
public:
    Group(std::uint32_t processes, std::uint64_t capacity)
        : capacity(capacity), memory_(static_cast<int>(syscall(SYS_memfd_create, "inboxes", 0))) {
        CHECK(ftruncate(memory_, static_cast<off_t>(ProcessInbox::memory_of(processes, capacity))) == 0);
        while (descriptors.size() < processes) descriptors.push_back(eventfd(0, EFD_NONBLOCK));
    }
    ~Group() {
        for (const int descriptor : descriptors) close(descriptor);
        close(memory_);
    }
    Group(const Group&) = delete;

    std::unique_ptr<ProcessInbox> open(std::uint32_t own) const {
        std::unique_ptr<ProcessInbox> inbox(ProcessInbox::open(memory_, own, capacity, descriptors));
        CHECK(inbox != nullptr);
        return inbox;
    }

    // Writes what cannot be, as often as `bytes`, into the ring to a process from another one.
    void scribble(std::uint32_t to, std::uint32_t from, unsigned char byte) const {
        const auto at = static_cast<off_t>(ProcessInbox::ring_at(descriptors.size(), capacity, to, from));
        const std::vector<unsigned char> bytes(callboard::MessageRing::memory_of(capacity), byte);
        CHECK(pwrite(memory_, bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size()));
    }

    const std::uint64_t capacity;
    std::vector<int> descriptors;

private:
    const int memory_;
};

// The message of a number: its size and its bytes follow from it. Some are longer than a piece.
inline std::string message_of(std::uint64_t number) {
    std::string message(8 + number * 37 % 190, static_cast<char>(number * 31));
    std::memcpy(&message[0], &number, 8);
    return message;
}
inline bool is_message(const std::string& message, std::uint64_t number) { return message == message_of(number); }

inline std::uint64_t send(ProcessInbox& inbox, std::uint32_t process, const std::string& message, std::uint64_t sent = 0) {
    return inbox.send(process, reinterpret_cast<const unsigned char*>(message.data()), message.size(), sent);
}

// False: there is none now.
inline bool receive(ProcessInbox& inbox, std::uint32_t& process, std::string& text) {
    ProcessInbox::Message message;
    if (!inbox.receive(process, message)) return false;
    text.assign(reinterpret_cast<const char*>(message.bytes), message.size);
    inbox.finish();
    return true;
}

// Sends the whole message, and waits for room.
inline void send_all(ProcessInbox& inbox, std::uint32_t process, const std::string& message) {
    for (std::uint64_t sent = 0;;) {
        const std::uint64_t looked = inbox.look();
        if ((sent = send(inbox, process, message, sent)) == message.size()) return;
        inbox.wait(looked, -1, -1);
    }
}

// Waits for the next message. False: it did not come.
inline bool await(ProcessInbox& inbox, std::uint32_t& process, std::string& text, int milliseconds) {
    for (int tries = 0; tries < 100; ++tries) {
        const std::uint64_t looked = inbox.look();
        if (receive(inbox, process, text)) return true;
        inbox.wait(looked, -1, milliseconds / 100 + 1);
    }
    return receive(inbox, process, text);
}

}  // namespace inboxes
