// A gate without a list: each source writes a ring of its own, and each reader merges all rings by itself.
//
// In ScaleJoin's gate (Gulisano et al. 2015, section V-C; here ScaleGate) the sources merge: each value goes to
// its place in a list that all share, and the sources compete for the links. But sources are in order already, so
// a merge needs only their next values. Here a source touches its own ring only, and readers repeat the merge,
// which costs each a few comparisons for a value. In return each cache line has one writer, no read-modify-write
// is needed, and nothing has to be reclaimed: a slot is written again when all readers are beyond it.
//
//     source 0's ring     1  4  4  7            A reader is at 1, 2 and 4: 1 is first. Then at 4, 2 and 4: 2 is.
//     source 1's ring     2  5                  Then both 4 of source 0, and at 7, 5 and 4 it stops: source 2 is
//     source 2's ring     (has come to 4)       first, and may bring a 4.
//
// A reader keeps for each source the earliest moment at which its next value can be. That is the value's own moment
// if the reader has seen it, else the time to which the source had come at the last look. A tournament says which
// source is first. If that one has a value, it is next. If not, the reader looks again whether there is a value or
// a later time, and if neither, nothing is ready.
//
// Why readers get the ready values, in order.
//   1. The moment that a reader keeps of a source is never later than the source's next value. This is clear for a
//      value that was seen, because a source's times never decrease. To look is to load the time and then the tail.
//      Acquiring the time, the reader sees the tails that were stored before it. So a value that the tail does not
//      show comes after, and is at that time or later.
//   2. Let the first source have a value. By 1., no source brings an earlier one: each other is at a later moment,
//      and by the definition of a moment its source has come there. So the value is ready, and it is the first
//      unread one.
//   3. Let a look at the first source find neither value nor later time. When the time was loaded, that source had
//      come no further, and had no value for this reader: the tail, which only grows, showed none even later. By
//      1., no other source has a value before the next one of this source. So nothing was ready then.
//
// Why a slot is not written under a reader. A source writes value n only below the limit, that is, when all readers
// have stored counts above n - window. They do so after they have copied value n - window.
//
// Progress: wait-free for sources. A reader goes on for as long as values become ready or the first source comes to
// later times, up to `most` values.
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>

#include "callboard/core/atomics.hpp"
#include "gate.hpp"
#include "read_counts.hpp"
#include "callboard/mailbox/ordered/ring.hpp"
#include "tournament.hpp"

namespace callboard {

// gate.hpp has the contract.
template <class Time, class T>
class RingGate {
public:
    using Value = TimedValue<Time, T>;
    using Entry = GateEntry<Time, T>;

    RingGate(unsigned sources, unsigned readers, std::size_t window)
        : sources_(new std::unique_ptr<Source>[sources]),
          readers_(new std::unique_ptr<Reader>[readers]), read_(sources, readers, window) {
        for (unsigned i = 0; i < sources; ++i) sources_[i].reset(new Source(window));
        for (unsigned i = 0; i < readers; ++i) readers_[i].reset(new Reader(sources));
    }

    std::size_t add_many(unsigned index, const Value* values, std::size_t count) {
        Source& source = *sources_[index];
        const std::int64_t tail = source.tail.load(relaxed), wanted = static_cast<std::int64_t>(count);
        if (source.limit - tail < wanted) source.limit = read_.limit(index);
        const std::int64_t added = std::min(wanted, source.limit - tail);
        for (std::int64_t i = 0; i < added; ++i) {
            assert(source.time <= values[i].time && values[i].time < end_of_time<Time>);
            source.time = values[i].time;
            source.slots[tail + i] = values[i];
        }
        if (added != 0) source.tail.store(tail + added, release);  // pairs with look()
        return static_cast<std::size_t>(added);
    }

    [[nodiscard]] bool try_add(unsigned source, Time time, T value) {
        const Value only{time, value};
        return add_many(source, &only, 1) == 1;
    }

    void come_to(unsigned index, Time time) {
        Source& source = *sources_[index];
        if (time <= source.time) return;
        source.time = time;
        source.come_to.store(time, release);  // pairs with look()
    }

    void end(unsigned source) { come_to(source, end_of_time<Time>); }

    std::size_t next_many(unsigned index, Entry* entries, std::size_t most) {
        Reader& reader = *readers_[index];
        Moment<Time> first = reader.order.first();
        std::size_t count = 0;
        while (count != most) {
            const Source& source = *sources_[first.source];
            Lane& lane = reader.lanes[first.source];
            if (lane.head == lane.tail) {
                if (!look(source, lane, first.time)) break;
                first = reader.order.move_first(first.time);
                continue;
            }
            entries[count++] = {first.time, first.source, source.slots[lane.head].value};
            read_.store(index, first.source, ++lane.head);
            if (lane.head != lane.tail) first = reader.order.move_first(source.slots[lane.head].time);
        }
        return count;
    }

    [[nodiscard]] bool try_next(unsigned reader, Entry& entry) { return next_many(reader, &entry, 1) == 1; }

private:
    struct Source {
        explicit Source(std::size_t window) : slots(window) {}
        const Ring<Value> slots;
        alignas(cache_line) Atomic<std::int64_t> tail{0};  // the source writes, readers look
        Atomic<Time> come_to{begin_of_time<Time>};         // by come_to() alone
        alignas(cache_line) std::int64_t limit = 0;        // the source's own
        Time time = begin_of_time<Time>;
    };

    // A reader's view of a source. While there is a value at head, the tournament has its time.
    struct alignas(cache_line) Lane {
        std::int64_t head = 0, tail = 0;
    };
    struct alignas(cache_line) Reader {
        explicit Reader(unsigned sources) : order(sources), lanes(new Lane[sources]) {}
        Tournament<Time> order;
        const std::unique_ptr<Lane[]> lanes;
    };

    // Looks again at a source that had no value at `time`. False: it has none, nor a later time.
    static bool look(const Source& source, Lane& lane, Time& time) {
        // Acquire pairs with come_to(), and with add_many(): in this order, see 1.
        const Time come_to = source.come_to.load(acquire);
        const std::int64_t tail = source.tail.load(acquire);
        if (tail != lane.tail) {
            lane.tail = tail;
            time = source.slots[lane.head].time;
            return true;
        }
        if (come_to <= time) return false;
        time = come_to;
        return true;
    }

    const std::unique_ptr<std::unique_ptr<Source>[]> sources_;
    const std::unique_ptr<std::unique_ptr<Reader>[]> readers_;
    ReadCounts read_;
};

}  // namespace callboard
