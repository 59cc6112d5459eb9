// Gates: each merges sources that are in order of time into one sequence in order of time, and hands all of it
// to each of several readers.
//
// Gulisano et al. 2015 ("ScaleJoin"), section IV-A. Readers that all see the same sequence, whatever the threads
// of the sources did, can share out the work on it and need no further word between them. RingGate is the
// fastest; ScaleGate and LockedGate have the same interface. Joins use none of them: docs/design/gates.md says why.
//
//     Gate<Time, T> gate(sources, readers, window);
//
//     // The thread of `source`, one at a time. Adds the first of these values, as many as there is room for, and
//     // returns how many. There is room while the slowest reader is less than `window` values of this source behind.
//     std::size_t add_many(unsigned source, const TimedValue<Time, T>* values, std::size_t count);
//     bool try_add(unsigned source, Time time, T value);
//     // The same thread. No value before `time` comes from it any more, and: none at all.
//     void come_to(unsigned source, Time time);
//     void end(unsigned source);
//
//     // The thread of `reader`, one at a time. The next ready values, `most` at most; returns how many.
//     std::size_t next_many(unsigned reader, GateEntry<Time, T>* entries, std::size_t most);
//     bool try_next(unsigned reader, GateEntry<Time, T>& entry);
//
// A source's times do not go down, nor below what it has come to, and are not the end of time; whoever adds sees to
// that. To come to a time that is past says nothing new. T is small and trivially copyable: a number or a pointer.
//
// The order is that of (time, source, position in the source). In the paper, values of one time stand in the order
// in which they arrived, and so depend on chance.
//
// What is ready. A source has come to the time of its latest value, or to what it said by come_to() if that is
// later, and in the end to the end of time. A value (t, s) is ready when nothing that may still come precedes it:
// every source before s has come beyond t, every source after s has come to t. For s itself there is nothing to
// ask: what it still brings is at t or later, and has a later position. In one line: (t, s) <= (c, i) for each
// source i, which has come to c, where pairs are compared by time and then by source. The paper's definition 2,
// t < min c, has fewer ready values: what it lacks are those of the time min c whose order is clear.
//
// Why the window is a source's own. Were it one for all, a fast source could fill it while a slow one, for which
// all wait, found no room. As it is, nothing stands still: if no source has room, each has a value that the slowest
// reader has not read. Let (t, s) be the first of these. Each other source has one behind that, so it has come to
// a time that makes (t, s) ready.
#pragma once

#include <limits>
#include <type_traits>

namespace callboard {

// Before which nothing is, and at which nothing is.
template <class Time>
inline constexpr Time begin_of_time = std::numeric_limits<Time>::has_infinity
    ? -std::numeric_limits<Time>::infinity() : std::numeric_limits<Time>::lowest();
template <class Time>
inline constexpr Time end_of_time = std::numeric_limits<Time>::has_infinity
    ? std::numeric_limits<Time>::infinity() : std::numeric_limits<Time>::max();

// What a source adds.
template <class Time, class T>
struct TimedValue {
    static_assert(std::is_trivially_copyable_v<T>, "several readers take it");
    Time time;
    T value;
};

// What a reader gets.
template <class Time, class T>
struct GateEntry {
    Time time;
    unsigned source;
    T value;
};

// A source at a time: what the order goes by, but for the position in the source.
template <class Time>
struct Moment {
    Time time;
    unsigned source;

    bool operator<=(const Moment& other) const {
        return (time < other.time) | ((time == other.time) & (source <= other.source));  // no branch
    }
};

}  // namespace callboard
