// The inbox of a process: messages from all other processes of a group, in memory that they share.
//
// It is one ring for each process that writes (message_ring.hpp), and one event count for all of them. The reader looks
// at the rings in turn, and takes at most some messages from one of them before it looks at the next. A process has its
// own inbox and a writer for each other one. It waits for messages and for room in the same place.
//
// Requirements. Any process may end, or be stopped for long, at any instruction. Then no other one waits for it, but for
// room in its own inbox. A message that it wrote in part is never seen. Those that it published are received once, in
// their order.
//
// Why it is right. A ring's memory has one writer and one reader, so all of that is byte_ring.hpp's, and there is nothing
// between two writers but the addition in EventCount::notify(), after which nobody waits for them. A process that ended
// between publishing and notifying leaves messages that nobody announced. So whoever learns of an end calls wake() for
// all other processes, and a wake() is a reason to look at all rings.
//
// Rejected: one ring in which a writer takes room by one addition, and sets a flag in its record when it is whole. The
// reader cannot pass a record without its flag, because its writer may live and complete it. So one writer that is
// stopped stops the inbox for all, until it goes on, and no rule can change that. If the writer is dead, somebody has
// to prove it, find the size of its record, which may not be written yet, and mark it as skipped: each writer has to
// announce its room before it takes it, in shared memory that needs the same care. And each writer's mistakes could
// harm the records of all others. It would have one advantage, less memory: here a group of n processes has n * (n - 1)
// rings. A ring that was never used takes none but a page, and 64 processes with rings of 16 KiB, all used, 63 MiB.
// Rejected: a bit for each ring that has messages. To look at the counters of 63 rings takes less time than a wake-up, and
// a writer would have another place to die in.
//
// The others are not trusted. A process maps its own inbox, its rings in the others, and the event counts. So what it
// writes into its mapping by mistake can break its own rings, whose other ends show who it was: is_broken(). The event
// counts are all that a third process can harm, and then a waiter sleeps for too long, at most until that process ends.
//
// A process that ended may have a successor, with the same number. Messages of the two arrive in their order. Each other
// process calls take_back() before the successor begins.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/shared/event_count.hpp"
#include "callboard/mailbox/shared/event_waiter.hpp"
#include "callboard/mailbox/shared/message_ring.hpp"
#include "callboard/mailbox/shared/shared_mapping.hpp"

namespace callboard {

// Used by one process of a group. One thread at a time receives and waits, and one at a time sends to each process.
class ProcessInbox {
public:
    using Message = MessageReader::Message;

    static constexpr std::uint32_t most_processes = 64;
    static constexpr std::uint32_t turn = 64;  // messages from one process, before those of the next one

    // Bytes of the group's memory, which begins with zeros. `capacity` of a ring is a power of two of at least 64.
    static std::uint64_t memory_of(std::uint32_t processes, std::uint64_t capacity) {
        return page + processes * inbox_size(processes, capacity);
    }

    // Where the ring to a process from another one begins in that memory.
    static std::uint64_t ring_at(std::uint64_t processes, std::uint64_t capacity, std::uint32_t to, std::uint32_t from) {
        return page + to * inbox_size(processes, capacity) + from * ring_size(capacity);
    }

    // `own` is the number of this process. `descriptors` are the eventfds on which the processes sleep, in the order of
    // their numbers. Null: the memory cannot be mapped, or is too small.
    static ProcessInbox* open(int memory, std::uint32_t own, std::uint64_t capacity, std::vector<int> descriptors) {
        std::unique_ptr<ProcessInbox> inbox(new ProcessInbox(own, capacity, std::move(descriptors)));
        return inbox->map(memory) ? inbox.release() : nullptr;
    }
    ProcessInbox(const ProcessInbox&) = delete;

    std::uint32_t processes() const { return static_cast<std::uint32_t>(descriptors_.size()); }
    bool is_other(std::uint32_t process) const { return process < processes() && process != own_; }

    // Sends the message from `sent` bytes on, as far as there is room. Returns how many bytes are sent by then. An
    // empty message must not be sent.
    std::uint64_t send(std::uint32_t process, const unsigned char* message, std::uint64_t size, std::uint64_t sent) {
        assert(is_other(process));
        const std::uint64_t total = others_[process].writer->send(message, size, sent);
        if (total != sent) notify(process);
        return total;
    }

    // The next message, and the process that sent it. Its bytes stay until finish(). False: there is none now.
    bool receive(std::uint32_t& process, Message& message) {
        for (std::uint32_t tried = 0; tried <= processes(); ++tried) {
            if (left_ != 0 && may_have_from(at_) && others_[at_].reader->receive(message, [this] { notify(at_); })) {
                --left_;
                process = at_;
                return true;
            }
            at_ = at_ + 1 == processes() ? 0 : at_ + 1;
            left_ = turn;
        }
        return false;
    }
    void finish() {
        others_[at_].reader->finish([this] { notify(at_); });
    }

    // Before a look for messages, or for room.
    std::uint64_t look() const { return waiter_->look(); }

    // Waits until another process has done something since that look, or `also` is readable or closed, or
    // `milliseconds` have passed if they are not negative.
    void wait(std::uint64_t looked, int also, int milliseconds) { waiter_->wait(looked, also, milliseconds); }

    // Any thread: ends a wait of a process, or its next one.
    void wake(std::uint32_t process) const { EventWaiter::rouse(descriptors_[process]); }

    // A fork of the process does not have the memory.
    bool is_usable() const { return inbox_->is_usable(); }

    // The other process has written what cannot be. Nothing more is sent to it, or received from it.
    bool is_broken(std::uint32_t process) const {
        return others_[process].reader->is_broken() || others_[process].writer->is_broken();
    }
    void mark_broken(std::uint32_t process) { others_[process].reader->mark_broken(); }  // by the thread that receives

    // After the end of a process, and before its successor begins: the messages that it has not received. An empty one
    // stands for a message of which it had received the beginning, but not the end. If one of the two processes has
    // broken their rings, the rings begin anew. By a thread that may receive, and send to that process.
    std::vector<std::string> take_back(std::uint32_t process) {
        Other& other = others_[process];
        std::vector<std::string> messages;
        MessageReader left(*other.there, other.there->bytes(), capacity_);
        const auto wakes_nobody = [] {};
        for (Message message; left.receive(message, wakes_nobody); left.finish(wakes_nobody))
            messages.emplace_back(reinterpret_cast<const char*>(message.bytes), message.size);
        if (left.has_dropped()) messages.emplace(messages.begin());
        if (left.is_broken() || is_broken(process)) {
            other.there->clear();
            other.back->clear();
            other.open_ends(capacity_);
        }
        return messages;
    }

private:
    static constexpr std::uint64_t page = 65536;  // the largest of an operating system

    // In shared memory, for each process.
    struct alignas(cache_line) Events {
        EventCount count;
    };
    static_assert(most_processes * sizeof(Events) <= page);

    // Another process, and both ends of this one to it.
    struct Other {
        std::unique_ptr<SharedMapping> mapping;  // of the ring to it; the ring back is in this process's inbox
        MessageRing *there{nullptr}, *back{nullptr};
        std::optional<MessageWriter> writer;
        std::optional<MessageReader> reader;

        void open_ends(std::uint64_t capacity) {
            writer.emplace(*there, there->bytes(), capacity);
            reader.emplace(*back, back->bytes(), capacity);
        }
    };

    static std::uint64_t ring_size(std::uint64_t capacity) {
        return (MessageRing::memory_of(capacity) + page - 1) / page * page;
    }
    static std::uint64_t inbox_size(std::uint64_t processes, std::uint64_t capacity) {
        return processes * ring_size(capacity);
    }

    ProcessInbox(std::uint32_t own, std::uint64_t capacity, std::vector<int> descriptors)
        : own_(own), capacity_(capacity), descriptors_(std::move(descriptors)), others_(descriptors_.size()) {
        assert(own_ < processes() && processes() <= most_processes);
    }

    bool map(int memory) {
        const std::uint64_t ring = ring_size(capacity_), inbox = inbox_size(processes(), capacity_);
        events_ = SharedMapping::open(memory, page);
        inbox_ = SharedMapping::open(memory, inbox, ring_at(processes(), capacity_, own_, 0));
        if (events_ == nullptr || inbox_ == nullptr) return false;
        for (std::uint32_t process = 0; process < processes(); ++process) {
            if (process == own_) continue;
            Other& other = others_[process];
            other.mapping = SharedMapping::open(memory, ring, ring_at(processes(), capacity_, process, own_));
            if (other.mapping == nullptr) return false;
            other.there = &MessageRing::at(other.mapping->bytes());
            other.back = &MessageRing::at(inbox_->bytes() + process * ring);
            other.open_ends(capacity_);
        }
        events_of(own_).awake();  // one that had this number may have ended in its sleep
        waiter_.emplace(events_of(own_), descriptors_[own_]);
        return true;
    }

    // relaxed: what was published before a notification that look() has seen is known.
    bool may_have_from(std::uint32_t process) const {
        return process != own_ && others_[process].reader->may_have_message();
    }

    EventCount& events_of(std::uint32_t process) const {
        return reinterpret_cast<Events*>(events_->bytes())[process].count;
    }
    void notify(std::uint32_t process) const {
        events_of(process).notify([&] { wake(process); });
    }

    const std::uint32_t own_;
    const std::uint64_t capacity_;
    const std::vector<int> descriptors_;
    std::unique_ptr<SharedMapping> events_, inbox_;
    std::vector<Other> others_;
    std::optional<EventWaiter> waiter_;
    std::uint32_t at_{0}, left_{turn};  // which process's messages are next, and how many of them
};

}  // namespace callboard
