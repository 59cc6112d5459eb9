// The packets of a trace for Perfetto, made of monitoring records: protobuf messages, as in its
// protos/perfetto/trace/trace_packet.proto and track_event/track_event.proto.
//
// Packets of one sequence share their names, track and clock. A packet's time counts from that of the packet before. A
// packet that goes back in time, as for a dispatch around another one, has a complete time of the monotonic clock.
//
// Tracks: of the process (1), of events of actors (5), of a sequence (its number * 4 + 2), and for each counted mailbox
// (the actor's number * 4 + 3).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "callboard/scheduling/tracing/protobuf.hpp"
#include "callboard/core/monitoring/records.hpp"

namespace callboard {

// One sequence of packets. One thread at a time.
class TrackEvents {
public:
    explicit TrackEvents(std::uint32_t sequence) : sequence_(sequence) {}

    // Begins a trace: the process, the track of events, and the times of the clocks at one moment.
    void begin_process(std::int64_t pid, std::string_view name, std::int64_t realtime, std::int64_t monotonic,
                       std::int64_t boottime) {
        const auto packet = begin_packet();
        const auto snapshot = out_.begin(packet_clock_snapshot);
        add_clock(clock_realtime, realtime);
        add_clock(clock_monotonic, monotonic);
        add_clock(clock_boottime, boottime);
        out_.number(2, clock_monotonic);  // the one that the trace is shown by
        out_.end(snapshot);
        end_packet(packet);
        const auto process_packet = begin_packet();
        const auto track = out_.begin(packet_track_descriptor);
        out_.number(1, process_track);
        const auto process = out_.begin(3);
        out_.number(1, static_cast<std::uint64_t>(pid));
        out_.text(6, name);
        out_.end(process);
        out_.end(track);
        end_packet(process_packet);
        describe_track(events_track, "failures and dead letters");
        begin_sequence(monotonic, events_track);
    }

    // Begins a worker's track. `tid` is its thread's number, or 0.
    void begin_worker(std::int64_t pid, std::int64_t tid, std::string_view name, std::int64_t now) {
        const std::uint64_t id = std::uint64_t{sequence_} * 4 + 2;
        if (tid == 0) {
            describe_track(id, name);
        } else {
            const auto packet = begin_packet();
            const auto track = out_.begin(packet_track_descriptor);
            out_.number(1, id);
            const auto thread = out_.begin(4);
            out_.number(1, static_cast<std::uint64_t>(pid));
            out_.number(2, static_cast<std::uint64_t>(tid));
            out_.text(5, name);
            out_.end(thread);
            out_.end(track);
            end_packet(packet);
        }
        begin_sequence(now, id);
    }

    // Whether give_name() must name `number`, an actor's or an operator's, before its first event is added.
    bool wants_name(std::uint64_t number) {
        Known& known = known_[number % most_known];
        if (__builtin_expect(known.number == number, 1)) return false;
        const auto found = names_.find(number);
        if (found == names_.end()) return true;
        known = Known{number, found->second, mailboxes_.count(number) != 0};
        return false;
    }

    void give_name(std::uint64_t number, std::string_view name) {
        const auto found = names_.emplace(number, first_name + names_.size());
        intern_name(found.first->second, name);
    }

    // A dispatch or a time slice at a stage, which has a duration, and the mailbox after it.
    void add(const DispatchRecord& record) {
        const bool is_stage = record.kind == record_stage;
        const std::int64_t began = record.began != 0 ? record.began : record.time - record.spent;
        // Most of a trace are these two packets, so they are written at once: all their lengths are one byte.
        unsigned char* to = out_.room(2 * most_of_event);
        Short packet;
        to = begin_short(to, packet, began, slice_begin);
        *to++ = event_category << 3;
        *to++ = is_stage ? category_operator : category_dispatch;
        *to++ = event_name << 3;
        to = ProtobufWriter::varint_to(to, name_of(record.actor));
        if (record.messages != 0) {
            *to++ = event_annotation << 3 | with_length;
            unsigned char* const length = to++;
            *to++ = 1 << 3;
            *to++ = is_stage ? annotation_rows : annotation_messages;
            *to++ = 3 << 3;
            to = ProtobufWriter::varint_to(to, record.messages);
            *length = static_cast<unsigned char>(to - length - 1);
        }
        end_short(packet, to);
        to = begin_short(to, packet, record.time, slice_end);
        end_short(packet, to);
        out_.taken(to);
        if (record.queue >= 0 && !is_stage) add_count(record);
    }

    // Whether the mailbox of a record has no track yet, and must be described first.
    bool wants_mailbox(const DispatchRecord& record) const {
        if (record.queue < 0 || record.kind == record_stage) return false;
        const Known& known = known_[record.actor % most_known];
        if (__builtin_expect(known.number == record.actor && known.has_mailbox, 1)) return false;
        return mailboxes_.find(record.actor) == mailboxes_.end();
    }

    void describe_mailbox(std::uint64_t actor, std::string_view name) {
        mailboxes_.insert(actor);
        known_[actor % most_known].number = 0;  // it is looked up again
        const auto packet = begin_packet();
        const auto track = out_.begin(packet_track_descriptor);
        out_.number(1, actor * 4 + 3);
        out_.text(2, name);
        out_.number(5, process_track);
        out_.end(out_.begin(8));  // its values are counts
        out_.end(track);
        end_packet(packet);
    }

    // The worker was idle, or suspended.
    void add_wait(const DispatchRecord& record) {
        const auto packet = begin_event(record.time - record.spent, slice_begin);
        out_.number(event_category, category_wait);
        out_.number(event_name, record.kind == record_wait ? name_idle : name_suspended);
        end_event(packet);
        end_event(begin_event(record.time, slice_end));
    }

    // A sampled message was sent, or taken out of its queue, at this moment, where arrow `arrow` begins, or ends. 0: it
    // has no arrow.
    void add_message(std::int64_t time, std::uint64_t arrow, bool ends, std::string_view name) {
        const auto packet = begin_event(time, instant);
        out_.number(event_category, category_message);
        out_.text(event_own_name, name);
        if (arrow != 0) out_.fixed(ends ? event_arrow_end : event_arrow, arrow);
        end_event(packet);
    }

    // An event without duration.
    void add_instant(std::int64_t time, std::string_view name) {
        const auto packet = begin_event(time, instant);
        out_.number(event_category, category_event);
        out_.text(event_own_name, name);
        end_event(packet);
    }

    void clear() { out_.clear(); }
    const char* data() const { return out_.data(); }
    std::size_t size() const { return out_.size(); }

private:
    static constexpr std::uint32_t packet_clock_snapshot = 6, packet_timestamp = 8, packet_sequence = 10,
                                   packet_track_event = 11, packet_interned = 12, packet_flags = 13, packet_clock = 58,
                                   packet_defaults = 59, packet_track_descriptor = 60;
    static constexpr std::uint32_t event_category = 3, event_annotation = 4, event_type = 9, event_name = 10,
                                   event_track = 11, event_own_name = 23, event_counter = 30, event_arrow = 47,
                                   event_arrow_end = 48;
    enum EventType : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };
    static constexpr std::uint64_t clock_realtime = 1, clock_monotonic = 3, clock_boottime = 6, clock_of_sequence = 64;
    static constexpr std::uint64_t process_track = 1, events_track = 5;
    static constexpr std::uint64_t name_idle = 1, name_suspended = 2, first_name = 3;
    static constexpr std::uint64_t category_dispatch = 1, category_operator = 2, category_wait = 3, category_event = 4,
                                   category_message = 5;
    static constexpr std::uint64_t annotation_messages = 1, annotation_rows = 2;
    static constexpr std::uint64_t state_cleared = 1, needs_state = 2;

    // Some of the latest actors and operators, by their numbers, so that few events need a look into the tables.
    struct Known {
        std::uint64_t number{0};
        std::uint64_t name{0};
        bool has_mailbox{false};
    };
    static constexpr std::size_t most_known = 256;

    std::uint64_t name_of(std::uint64_t number) const {
        const Known& known = known_[number % most_known];
        return __builtin_expect(known.number == number, 1) ? known.name : names_.at(number);
    }

    struct OpenEvent {
        std::size_t packet, event;
    };

    std::size_t begin_packet() {
        const auto packet = out_.begin(1);
        out_.number(packet_sequence, sequence_);
        return packet;
    }

    void end_packet(std::size_t packet) { out_.end(packet); }

    void add_clock(std::uint64_t clock, std::int64_t time) {
        const auto here = out_.begin(1);
        out_.number(1, clock);
        out_.number(2, static_cast<std::uint64_t>(time));
        if (clock == clock_of_sequence) out_.number(3, 1);  // times count from the last one
        out_.end(here);
    }

    void describe_track(std::uint64_t id, std::string_view name) {
        const auto packet = begin_packet();
        const auto track = out_.begin(packet_track_descriptor);
        out_.number(1, id);
        out_.text(2, name);
        out_.number(5, process_track);
        out_.end(track);
        end_packet(packet);
    }

    // Writes the state that later packets of the sequence rely on.
    void begin_sequence(std::int64_t now, std::uint64_t track) {
        const auto packet = begin_packet();
        out_.number(packet_flags, state_cleared);
        const auto snapshot = out_.begin(packet_clock_snapshot);
        add_clock(clock_monotonic, now);
        add_clock(clock_of_sequence, now);
        out_.end(snapshot);
        const auto defaults = out_.begin(packet_defaults);
        out_.number(58, clock_of_sequence);
        const auto of_events = out_.begin(11);
        out_.number(11, track);
        out_.end(of_events);
        out_.end(defaults);
        const auto interned = out_.begin(packet_interned);
        add_name(1, category_dispatch, "dispatch");
        add_name(1, category_operator, "operator");
        add_name(1, category_wait, "wait");
        add_name(1, category_event, "event");
        add_name(1, category_message, "message");
        add_name(2, name_idle, "idle");
        add_name(2, name_suspended, "suspended");
        add_name(3, annotation_messages, "messages");
        add_name(3, annotation_rows, "rows");
        out_.end(interned);
        end_packet(packet);
        last_ = now;
    }

    void intern_name(std::uint64_t id, std::string_view name) {
        const auto packet = begin_packet();
        out_.number(packet_flags, needs_state);
        const auto interned = out_.begin(packet_interned);
        add_name(2, id, name);
        out_.end(interned);
        end_packet(packet);
    }

    void add_name(std::uint32_t kind, std::uint64_t id, std::string_view name) {
        const auto here = out_.begin(kind);
        out_.number(1, id);
        out_.text(2, name);
        out_.end(here);
    }

    // The lengths of a packet that is short, and of the event in it.
    struct Short {
        unsigned char *packet, *event;
    };
    static constexpr std::uint32_t with_length = 2;      // the wire type of a message
    static constexpr std::size_t most_of_event = 96;     // bytes; the longest has 56

    // As begin_event().
    unsigned char* begin_short(unsigned char* to, Short& packet, std::int64_t time, EventType type) {
        *to++ = 1 << 3 | with_length;
        packet.packet = to++;
        *to++ = packet_sequence << 3;
        to = ProtobufWriter::varint_to(to, sequence_);
        *to++ = packet_flags << 3;
        *to++ = needs_state;
        *to++ = packet_timestamp << 3;
        if (__builtin_expect(time >= last_, 1)) {
            to = ProtobufWriter::varint_to(to, static_cast<std::uint64_t>(time - last_));
            last_ = time;
        } else {
            to = ProtobufWriter::varint_to(to, static_cast<std::uint64_t>(time));
            to = ProtobufWriter::varint_to(to, packet_clock << 3);
            *to++ = clock_monotonic;
        }
        *to++ = packet_track_event << 3 | with_length;
        packet.event = to++;
        *to++ = event_type << 3;
        *to++ = type;
        return to;
    }

    static void end_short(const Short& packet, const unsigned char* to) {
        assert(to - packet.packet <= 127 && "a length of one byte");
        *packet.event = static_cast<unsigned char>(to - packet.event - 1);
        *packet.packet = static_cast<unsigned char>(to - packet.packet - 1);
    }

    OpenEvent begin_event(std::int64_t time, EventType type) {
        const auto packet = begin_packet();
        out_.number(packet_flags, needs_state);
        if (time >= last_) {
            out_.number(packet_timestamp, static_cast<std::uint64_t>(time - last_));
            last_ = time;
        } else {
            out_.number(packet_timestamp, static_cast<std::uint64_t>(time));
            out_.number(packet_clock, clock_monotonic);
        }
        const auto event = out_.begin(packet_track_event);
        out_.number(event_type, type);
        return {packet, event};
    }

    void end_event(OpenEvent open) {
        out_.end(open.event);
        out_.end(open.packet);
    }

    void add_count(const DispatchRecord& record) {
        Short packet;
        unsigned char* to = begin_short(out_.room(most_of_event), packet, record.time, counter);
        *to++ = event_track << 3;
        to = ProtobufWriter::varint_to(to, record.actor * 4 + 3);
        to = ProtobufWriter::varint_to(to, event_counter << 3);
        to = ProtobufWriter::varint_to(to, static_cast<std::uint64_t>(record.queue));
        end_short(packet, to);
        out_.taken(to);
    }

    const std::uint32_t sequence_;
    ProtobufWriter out_;
    std::int64_t last_{0};                                    // the time of the latest packet that is relative
    std::unordered_map<std::uint64_t, std::uint64_t> names_;  // interned, by the numbers of actors and operators
    Known known_[most_known];
    std::unordered_set<std::uint64_t> mailboxes_;             // that have a track
};

}  // namespace callboard
