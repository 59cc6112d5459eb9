// A worker's notes of its dispatches while they are in work: the thesis's ACCNT structure and its list of the
// streams that a dispatch used (Prokesch 2011, sections 4.3.4 and 4.4.4).
//
// The dispatch in work has a record, which grows until its end. It must be complete before the actor's readiness is
// given up, but for its state: whoever runs the actor next has its fields then. So note() takes all that is the
// actor's, and end() needs nothing of it.
//
// A dispatch inside another one has a record of its own: begin() puts the outer one aside, and end() brings it back.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/core/monitoring/records.hpp"

namespace callboard {

// The worker's thread alone, but for the ring, which any thread reads.
class Recorder {
public:
    // `serial` is less than that of each later dispatch, and apart from those of all other workers.
    Recorder(std::uint64_t capacity, std::uint64_t serial) : ring(capacity), last_serial_(serial) {}

    // `began` is the time. Each is followed by its end().
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

    // A part of the dispatch: it began when the last part ended.
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

    // The state in which the actor will be, unless it is ready or has ended.
    void note_state(char state) {
        if (in_work_.record.kind != state_ended) in_work_.record.kind = state;
    }

    // The note of an end, made by its first use in this dispatch; null where no record is wanted. `serial` and `at`
    // are the end's, and say where its note of that dispatch was.
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
    // sender has no record, or sends more than an eighth of the ring has room for.
    bool note_sent(std::uint64_t receiver, std::uint64_t arrow, std::int64_t now) {
        if (!wants_record() || in_work_.sent == ring.capacity() / 8) return false;
        ++in_work_.sent;
        note_message(record_sent, receiver, arrow, now);
        return true;
    }

    // The dispatch takes a sampled message out of its queue. `sender` and `arrow` are 0 where there is none.
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

    // The actor may be another thread's by now. The records of its channels come before that of the dispatch. There
    // are no more of them than a quarter of the ring has room for.
    void end(bool is_ready) {
        DispatchRecord& record = in_work_.record;
        if (record.actor != 0) {
            if (is_ready) note_state(state_ready);
            record.uses = uses_.size() - in_work_.first;
            const std::size_t most = in_work_.first + ring.capacity() / 4;
            for (std::size_t at = in_work_.first; at < uses_.size() && at < most; ++at) ring.write(uses_[at].as_record());
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

    // Whether it is time to take the records out, to lose none: asked after each dispatch, true once for each half of
    // the ring.
    bool is_due() {
        if (__builtin_expect(ring.written() - taken_at_ < ring.capacity() / 2, 1)) return false;
        taken_at_ = ring.written();
        return true;
    }

    RecordRing ring;

private:
    // A record of its own, before that of the dispatch.
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
        DispatchRecord record;     // of actor 0: nobody wants one
        std::uint64_t serial{0};   // no other dispatch of any worker has it; 0: none is in work
        std::size_t first{0};      // where its uses begin
        std::uint64_t sent{0};     // sampled messages
        std::uint64_t taken{0};    // likewise, and dead letters
    };

    std::vector<ChannelUse> uses_;
    InWork in_work_;
    std::vector<InWork> outer_;  // those around it
    std::uint64_t last_serial_;
    std::uint64_t taken_at_{0};
};

}  // namespace callboard
