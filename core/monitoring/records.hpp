// Monitoring records: fixed-size, written by one worker into its ring, read by any thread.
//
// The hot path writes; text, JSON and tables are made elsewhere (Prokesch 2011, section 5.4.3, whose
// log lines a record can be turned into).
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

// A count that one thread raises and any thread reads. It costs its writer no more than a plain
// variable. A reader may see it a little late, but never torn. The writer may change, if each comes
// after the last.
class Counter {
public:
    // The writer. Not a read-modify-write: there is one writer.
    void add(std::uint64_t amount) {
        assert(amount >> 63 == 0 && "a count only grows");
        count_.store(get() + amount, relaxed);
    }

    // Any thread.
    std::uint64_t get() const { return count_.load(relaxed); }

private:
    Atomic<std::uint64_t> count_{0};
};

// The idle time of a thread, in nanoseconds. It is one word, so that a reader counts each wait
// exactly once. The word is the sum so far. While a wait lasts, it is the sum minus the time at which
// the wait began, which is negative.
class IdleTime {
public:
    // The thread itself, alternately.
    void begin(std::int64_t now) {
        assert(word_.load(relaxed) >= 0 && "the last wait has ended");
        word_.store(word_.load(relaxed) - now, release);
    }
    void end(std::int64_t now) {
        assert(word_.load(relaxed) < 0 && "a wait has begun");
        word_.store(word_.load(relaxed) + now, release);
    }

    // Any thread. Acquire pairs with the release in begin(): the clock is read after it, and is later.
    std::int64_t get() const {
        const std::int64_t word = word_.load(acquire);
        return word < 0 ? word + monotonic_ns() : word;
    }

private:
    Atomic<std::int64_t> word_{0};
};

// The kinds of records: a dispatch, by the state in which it left its actor, and the others.
inline constexpr char state_ended = 'Z', state_ready = 'R', state_input = 'i', state_output = 'o', state_any = 'a';
inline constexpr char record_wait = 'w', record_suspension = 's', record_exit = 'x';  // of a worker
inline constexpr char record_use = 'u';                                               // of a channel
inline constexpr char record_stage = 'S';                                             // of a stage
inline constexpr char record_sent = 'f', record_taken = 't', record_lost = 'd';       // of a sampled message

// A dispatch of an actor; a wait or the end of the worker (actor 0); a channel that the dispatch used whose record
// comes next (see ChannelUse); a time slice at a stage of a stream graph, within a dispatch; or a sampled message that
// the dispatch sent, took or made a dead letter of (see Recorder).
//
// In the record of a channel's use five of the words have other names.
struct DispatchRecord {
    union {
        std::int64_t time{0};  // monotonic ns, at the end
        std::int64_t channel;  // its number
    };
    union {
        std::int64_t spent{0};  // ns
        std::int64_t moved;     // values that went through the end, ever
    };
    union {
        std::uint64_t actor{0};  // its number
        std::uint64_t mode;      // of the end
    };
    union {
        std::uint64_t dispatch{0};  // its count of dispatches
        std::uint64_t state;        // of the end
    };
    union {
        std::uint64_t messages{0};  // in this dispatch
        std::uint64_t happened;     // the bits use_*
    };
    std::int64_t queue{-1};     // messages that wait, -1: not counted
    std::int64_t created{0};    // monotonic ns, of the actor
    std::uint64_t uses{0};      // the number of channels that it used
    char kind{state_input};
    std::int64_t began{0};      // monotonic ns; 0: `spent` before its end
};

// All that one dispatch did with one end of a channel.
struct ChannelUse {
    std::int64_t channel{0};   // its number
    std::uint64_t moved{0};    // values that went through this end, ever
    char mode{'r'};            // r, w
    char state{'I'};           // O opened, I in use, C closed, R replaced
    bool has_blocked{false};   // the actor waits there
    bool has_woken{false};     // it woke another user of the channel
    bool has_moved{false};     // values went through it

    static constexpr std::uint64_t use_blocked = 1, use_woke = 2, use_moved = 4;

    DispatchRecord as_record() const {
        DispatchRecord record;
        record.channel = channel;
        record.moved = static_cast<std::int64_t>(moved);
        record.mode = static_cast<std::uint64_t>(mode);
        record.state = static_cast<std::uint64_t>(state);
        record.happened = (has_blocked ? use_blocked : 0) | (has_woken ? use_woke : 0) | (has_moved ? use_moved : 0);
        record.kind = record_use;
        return record;
    }

    static ChannelUse of(const DispatchRecord& record) {
        ChannelUse use;
        use.channel = record.channel;
        use.moved = static_cast<std::uint64_t>(record.moved);
        use.mode = static_cast<char>(record.mode);
        use.state = static_cast<char>(record.state);
        use.has_blocked = record.happened & use_blocked;
        use.has_woken = record.happened & use_woke;
        use.has_moved = record.happened & use_moved;
        return use;
    }
};

// The latest records of one worker. Writing is wait-free, and never waits for a reader.
//
// Why a reader gets the record it asked for, or false. It saw written() beyond the number, so it sees
// that record's words as stored: each word that it loads is that record's or a later one's. A later
// one's word was stored with release after begun_ had gone beyond `number + capacity`. The reader's
// acquire of that word orders the store of begun_ before the reader's last load, which sees it and
// refuses. The rejected alternative, plain words between two fences, is faster on aarch64, but
// ThreadSanitizer does not see fences.
class RecordRing : OneAtATime<Producer> {
public:
    explicit RecordRing(std::uint64_t capacity)  // a power of two
        : mask_(capacity - 1), words_(new Atomic<std::int64_t>[capacity * words]()) {
        assert(capacity != 0 && (capacity & mask_) == 0 && "a power of two");
    }

    // The worker. Overwrites the oldest record when the ring is full.
    void write(const DispatchRecord& record) {
        const Alone<Producer> alone(*this);
        const std::uint64_t at = written_.load(relaxed);
        assert(begun_.load(relaxed) == at && "the last record is whole");
        begun_.store(at + 1, relaxed);
        auto* slot = &words_[(at & mask_) * words];
        // Release on each word pairs with read(): a reader of the word also sees that begun_ has
        // moved on.
        slot[0].store(record.time, release);
        slot[1].store(record.spent, release);
        slot[2].store(static_cast<std::int64_t>(record.actor), release);
        slot[3].store(static_cast<std::int64_t>(record.dispatch), release);
        slot[4].store(static_cast<std::int64_t>(packed(record)), release);
        slot[5].store(record.queue, release);
        slot[6].store(record.created, release);
        slot[7].store(record.began, release);
        written_.store(at + 1, release);  // pairs with written()
    }

    // Any thread. How many records were ever written.
    std::uint64_t written() const { return written_.load(acquire); }

    // Any thread. The record with this number, counted from 0; false if it was overwritten.
    bool read(std::uint64_t number, DispatchRecord& record) const {
        if (number >= written()) return false;
        const auto* slot = &words_[(number & mask_) * words];
        record.time = slot[0].load(acquire);
        record.spent = slot[1].load(acquire);
        record.actor = static_cast<std::uint64_t>(slot[2].load(acquire));
        record.dispatch = static_cast<std::uint64_t>(slot[3].load(acquire));
        const auto counts = static_cast<std::uint64_t>(slot[4].load(acquire));
        record.queue = slot[5].load(acquire);
        record.created = slot[6].load(acquire);
        record.began = slot[7].load(acquire);
        record.messages = counts >> 32;
        record.uses = counts >> 8 & most_uses;
        record.kind = static_cast<char>(counts & 0xff);
        return begun_.load(relaxed) <= number + mask_ + 1;
    }

    std::uint64_t capacity() const { return mask_ + 1; }

private:
    static constexpr std::uint64_t words = 8;  // a cache line
    static constexpr std::uint64_t most_messages = 0xffffffff, most_uses = 0xffffff;

    // The counts, which need no word each, and the kind.
    static std::uint64_t packed(const DispatchRecord& record) {
        const std::uint64_t messages = record.messages < most_messages ? record.messages : most_messages;
        const std::uint64_t uses = record.uses < most_uses ? record.uses : most_uses;
        return messages << 32 | uses << 8 | static_cast<unsigned char>(record.kind);
    }

    const std::uint64_t mask_;
    std::unique_ptr<Atomic<std::int64_t>[]> words_;
    alignas(cache_line) Atomic<std::uint64_t> begun_{0};
    Atomic<std::uint64_t> written_{0};
};

}  // namespace callboard
