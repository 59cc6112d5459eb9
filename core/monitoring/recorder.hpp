// A worker's records of its dispatches: the ACCNT structure and the list of streams that a dispatch used, of
// Prokesch 2011, sections 4.3.4 and 4.4.4.
//
// The present dispatch has a record, which grows until its end. Except for the state, it must be complete before the
// worker gives up the actor's readiness: after that, the actor's fields belong to its next runner. So note() copies
// all that it needs of the actor, and end() reads nothing of it.
//
// A dispatch inside another one has its own record: begin() saves the outer one, and end() restores it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/core/monitoring/records.hpp"

namespace callboard {

// For the worker's thread alone, except for the ring, which any thread reads.
class Recorder {
public:
    // `serial` is less than the serial numbers of all dispatches, which no other worker's dispatches have.
    Recorder(std::uint64_t capacity, std::uint64_t serial) : ring(capacity), last_serial_(serial) {}

    // `began` is the time. Each call is followed by one of end().
    void begin(std::uint64_t actor, std::int64_t began) {
        if (__builtin_expect(in_work_.serial != 0, 0)) outer_.push_back(in_work_);
        in_work_.record = DispatchRecord{};
        in_work_.record.actor = actor;
        in_work_.record.began = began;
        in_work_.serial = ++last_serial_;
        in_work_.first = uses_.size();
        in_work_.sent = in_work_.taken = 0;
    }

    bool wants_record() const { return in_work_.record.actor != 0; }

    // Adds a part of the dispatch, which began when the last part ended.
    void note(std::int64_t now, std::int64_t spent, std::uint64_t messages) {
        in_work_.record.time = now;
        in_work_.record.spent += spent;
        in_work_.record.messages += messages;
    }

    void note_actor(std::uint64_t dispatch, std::int64_t created, std::int64_t queue) {
        in_work_.record.dispatch = dispatch;
        in_work_.record.created = created;
        in_work_.record.queue = queue;
    }

    // Notes the actor's state after the dispatch, unless it is ready or has ended.
    void note_state(char state) {
        if (in_work_.record.kind != state_ended) in_work_.record.kind = state;
    }

    // The record of a channel's end, made by its first use in this dispatch; null if the dispatch has no record.
    // `serial` and `at` belong to the end, and say where its record in that dispatch was.
    ChannelUse* use(std::uint64_t& serial, std::uint32_t& at, bool& is_new) {
        if (!wants_record()) return nullptr;
        is_new = serial != in_work_.serial;
        if (is_new) {
            serial = in_work_.serial;
            at = static_cast<std::uint32_t>(uses_.size());
            uses_.emplace_back();
        }
        assert(at >= in_work_.first && at < uses_.size());
        return &uses_[at];
    }

    // The dispatch sends a sampled message, which is arrow `arrow` of the trace. False: it has no arrow, because the
    // sender has no record, or has used up an eighth of the ring.
    bool note_sent(std::uint64_t receiver, std::uint64_t arrow, std::int64_t now) {
        if (!wants_record() || in_work_.sent == ring.capacity() / 8) return false;
        ++in_work_.sent;
        note_message(record_sent, receiver, arrow, now);
        return true;
    }

    // The dispatch takes a sampled message out of its queue. A `sender` or `arrow` of 0: there is none.
    void note_taken(std::uint64_t sender, std::uint64_t arrow, std::int64_t now) {
        if (!wants_record() || in_work_.taken == ring.capacity() / 8) return;
        ++in_work_.taken;
        note_message(record_taken, sender, arrow, now);
    }

    // This thread makes a dead letter of a sampled message.
    void note_lost(std::uint64_t sender, std::uint64_t arrow, std::int64_t now) {
        if (in_work_.taken == ring.capacity() / 8) return;
        ++in_work_.taken;
        note_message(record_lost, sender, arrow, now);
    }

    // Another thread may run the actor by now. The records of its channels come before that of the dispatch, and fill
    // at most a quarter of the ring.
    void end(bool is_ready) {
        DispatchRecord& record = in_work_.record;
        if (record.actor != 0) {
            if (is_ready) note_state(state_ready);
            record.uses = uses_.size() - in_work_.first;
            const std::size_t most = in_work_.first + ring.capacity() / 4;
            for (std::size_t at = in_work_.first; at < uses_.size() && at < most; ++at)
                ring.write(uses_[at].as_record());
            ring.write(record);
        }
        if (__builtin_expect(uses_.size() != in_work_.first, 0)) uses_.resize(in_work_.first);
        if (__builtin_expect(outer_.empty(), 1)) {
            in_work_.serial = 0;
            in_work_.record.actor = 0;
            return;
        }
        in_work_ = outer_.back();
        outer_.pop_back();
    }

    // Whether it is time to take the records out, before any are lost. Asked after each dispatch; true once for each
    // half of the ring.
    bool is_due() {
        if (__builtin_expect(ring.written() - taken_at_ < ring.capacity() / 2, 1)) return false;
        taken_at_ = ring.written();
        return true;
    }

    RecordRing ring;

private:
    // Writes a record, before that of the dispatch.
    void note_message(char kind, std::uint64_t other, std::uint64_t arrow, std::int64_t now) {
        DispatchRecord record;
        record.kind = kind;
        record.time = now;
        record.actor = in_work_.record.actor;
        record.dispatch = arrow;
        record.created = static_cast<std::int64_t>(other);
        ring.write(record);
    }

    struct InWork {
        DispatchRecord record;     // of actor 0: it is not written
        std::uint64_t serial{0};   // of this dispatch alone, among all workers; 0: there is no dispatch
        std::size_t first{0};      // where its uses begin
        std::uint64_t sent{0};     // sampled messages
        std::uint64_t taken{0};    // likewise, and dead letters
    };

    std::vector<ChannelUse> uses_;
    InWork in_work_;
    std::vector<InWork> outer_;  // the dispatches around it
    std::uint64_t last_serial_;
    std::uint64_t taken_at_{0};
};

}  // namespace callboard
