// Gates: each merges sources, which are in order of time, into one sequence in order of time, and gives all of it
// to each of several readers.
//
// Gulisano et al. 2015 ("ScaleJoin"), section IV-A. All readers see the same sequence, whatever the threads of the
// sources did. So they can divide the work on it without further communication. RingGate is the fastest; ScaleGate
// and LockedGate have the same interface. Joins use none of them: docs/design/gates.md says why.
//
//     Gate<Time, T> gate(sources, readers, window);
//
//     // The thread of `source`, one at a time. Adds the first of these values, as many as there is room for, and
//     // returns how many. There is room while the slowest reader is less than `window` values of this source
//     behind. std::size_t add_many(unsigned source, const TimedValue<Time, T>* values, std::size_t count); bool
//     try_add(unsigned source, Time time, T value); // The same thread. No value before `time` comes from the
//     source any more; end(): none at all. void come_to(unsigned source, Time time); void end(unsigned source);
//
//     // The thread of `reader`, one at a time. The next ready values, `most` at most; returns how many.
//     std::size_t next_many(unsigned reader, GateEntry<Time, T>* entries, std::size_t most);
//     bool try_next(unsigned reader, GateEntry<Time, T>& entry);
//
// A source's times never decrease, never go below the time that it has come to, and are never the end of time; the
// caller ensures this. To come to a time that is past changes nothing. T is small and trivially copyable: a number
// or a pointer.
//
// The order is that of (time, source, position in the source). In the paper, values of one time are in the order of
// their arrival, which depends on chance.
//
// Readiness. A source has come to the time of its latest value, or to the time of its come_to() if that is later,
// and in the end to the end of time. A value (t, s) is ready when no later value can precede it: every source
// before s has come beyond t, and every source after s has come to t. The source s itself needs no check: its later
// values are at t or later, and have a later position. In one line: (t, s) <= (c, i) for each source i, which has
// come to c, where pairs are compared by time and then by source. The paper's definition 2, t < min c, has fewer
// ready values: it lacks those of the time min c whose order is clear.
//
// Why each source has its own window. If all shared one, a fast source could fill it, and a slow one, for which all
// wait, would find no room. With its own window there is always progress: if no source has room, each has a value
// that the slowest reader has not read. Let (t, s) be the first of these. Each other source has one behind that, so
// it has come to a time that makes (t, s) ready.
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

// A value that a source adds.
template <class Time, class T>
struct TimedValue {
    static_assert(std::is_trivially_copyable_v<T>, "several readers take it");
    Time time;
    T value;
};

// A value that a reader gets.
template <class Time, class T>
struct GateEntry {
    Time time;
    unsigned source;
    T value;
};

// A source at a time: the order of values, except for the position in the source.
template <class Time>
struct Moment {
    Time time;
    unsigned source;

    bool operator<=(const Moment& other) const {
        return (time < other.time) | ((time == other.time) & (source <= other.source));  // no branch
    }
};

}  // namespace callboard
