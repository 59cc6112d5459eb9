// An execution as the C++ memory model sees it: a graph of events, without a schedule.
//
// Each thread has a sequence of events (program order). Each read has a source: the write whose value it returns.
// Each location has a modification order of its writes. Two schedules with the same graph are the same execution:
// every read returned the same value, so the threads did the same.
//
// RC11 says which graphs are executions (Lahav et al. 2017, "Repairing sequential consistency in C/C++11"):
//   coherence    a read does not return a write that is older than one that it must know of, and so on: is_coherent()
//   atomicity    nothing stands between an update's write and the write that the update read
//   seq_cst      the partial order psc has no cycle: is_sequential()
//   no thin air  program order and sources have no cycle: no read returns a value that is written later because of it.
//                (C++ allows that for relaxed operations. It is called load buffering.)
//
// Happens-before is kept in vector clocks: of each thread, how many of its events came before.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <vector>

#include "operations.hpp"

namespace model {

using std::memory_order;

inline constexpr int most_events = 256;

struct Clock {
    std::array<std::uint16_t, most_threads> counts{};
    bool has(Id id) const { return counts[id.thread] > id.index; }
    void add(Id id) { counts[id.thread] = std::max<std::uint16_t>(counts[id.thread], id.index + 1); }
    void join(const Clock& other) {
        for (int i = 0; i < most_threads; ++i) counts[i] = std::max(counts[i], other.counts[i]);
    }
};

struct Event {
    Kind kind{};
    Does does = Does::load;
    bool updates = false;  // the read or the write of an update that was done
    memory_order order = std::memory_order_relaxed;
    memory_order success = std::memory_order_relaxed, failure = std::memory_order_relaxed;  // an update's
    Id id, location, source;
    std::uint32_t stamp = 0;  // when it came into the graph
    std::uint64_t value = 0;  // read or written
    std::uint64_t operand = 0, expected = 0, mask = ~std::uint64_t{0};
    Site site;
    Clock before;     // happens before it, itself included
    Clock past;       // program order and sources lead from there to it, itself included
    Clock passed_on;  // what an acquire that reads it comes after

    bool would_update(std::uint64_t found) const {
        return does != Does::load && (does != Does::compare || found == expected);
    }
    std::uint64_t updated(std::uint64_t found) const {
        switch (does) {
            case Does::add: return (found + operand) & mask;
            case Does::set_bits: return found | operand;
            case Does::keep_bits: return found & operand;
            default: return operand;
        }
    }
};

inline bool acquires(memory_order order) {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}
inline bool releases(memory_order order) {
    return order != std::memory_order_relaxed && order != std::memory_order_acquire;
}

class Graph {
public:
    std::array<std::vector<Event>, most_threads> threads;

    Event& at(Id id) { return threads[id.thread][id.index]; }
    const Event& at(Id id) const { return threads[id.thread][id.index]; }

    template <class Visit>
    void each(Visit&& visit) const {
        for (const std::vector<Event>& events : threads)
            for (const Event& event : events) visit(event);
    }

    int size() const {
        int size = 0;
        for (const std::vector<Event>& events : threads) size += static_cast<int>(events.size());
        return size;
    }

    // The clock before a thread's next event.
    Clock before(int thread) const {
        return threads[thread].empty() ? begin(thread) : threads[thread].back().before;
    }

    // A location's writes, the oldest first.
    const std::vector<Id>& order_of(Id location) const { return find(location).order; }
    std::vector<Id>& order_of(Id location) { return const_cast<Location&>(find(location)).order; }
    int place_of(Id write) const {
        const std::vector<Id>& order = order_of(at(write).location);
        return static_cast<int>(std::find(order.begin(), order.end(), write) - order.begin());
    }

    // The oldest write that a read may return that comes after all this; -1 if the location's making does not.
    int first_visible(const Clock& clock, Id location) const {
        if (!clock.has(location)) return -1;
        const std::vector<Id>& order = order_of(location);
        for (int place = static_cast<int>(order.size()) - 1; place > 0; --place) {
            if (clock.has(order[place]) || was_read(order[place], location, clock)) return place;
        }
        return 0;
    }

    // Adds events at the end of their thread. -----------------------------------------------------------------

    Event& add(int thread, const Event& what) {
        const Clock before = this->before(thread);
        const Clock past = threads[thread].empty() ? begin(thread) : threads[thread].back().past;
        threads[thread].push_back(what);
        Event& event = threads[thread].back();
        event.id = {static_cast<std::uint16_t>(thread), static_cast<std::uint16_t>(threads[thread].size() - 1)};
        event.stamp = stamps_++;
        event.before = before;
        event.past = past;
        event.before.add(event.id);
        event.past.add(event.id);
        return event;
    }

    Id add_location(int thread, const Event& what) {
        Event& event = add(thread, what);
        event.location = event.id;
        locations_.push_back({event.id, {event.id}});
        return event.id;
    }

    // `place` is where it stands in the modification order.
    Event& add_write(int thread, const Event& what, int place) {
        Event& write = add(thread, what);
        std::vector<Id>& order = order_of(write.location);
        order.insert(order.begin() + place, write.id);
        if (releases(write.order)) write.passed_on = write.before;
        else write.passed_on = last_heavy_fence(thread);
        // A release sequence goes on through updates, and through nothing else (as of C++20).
        if (write.updates) write.passed_on.join(at(threads[thread][write.id.index - 1].source).passed_on);
        return write;
    }

    // A read that is the last event of its thread gets its source. False: that is not coherent.
    bool set_source(Id read, Id source) {
        Event& event = at(read);
        const Event& write = at(source);
        event.source = source;
        event.value = write.value;
        event.updates = event.would_update(event.value);
        event.order = event.does == Does::load || event.updates ? event.success : event.failure;
        const bool is_first = read.index == 0;
        event.before = is_first ? begin(read.thread) : threads[read.thread][read.index - 1].before;
        event.past = is_first ? begin(read.thread) : threads[read.thread][read.index - 1].past;
        if (acquires(event.order)) event.before.join(write.passed_on);
        event.past.join(write.past);
        event.before.add(read);
        event.past.add(read);
        return first_visible(event.before, event.location) == place_of(source);
    }

    void add_heavy_fence(int thread, const Event& what) {
        Event& fence = add(thread, what);
        for (const Event& event : threads[thread])
            if (event.kind == Kind::read) fence.before.join(at(event.source).passed_on);
    }

    // Thread 0, when all others have ended: it comes after all that they did, and what they did last.
    void add_join(const Event& what) {
        Event& join = add(0, what);
        for (int thread = 1; thread < most_threads; ++thread) {
            if (threads[thread].empty()) continue;
            const Event& last = threads[thread].back();
            join.before.join(last.before);
            join.past.join(last.past);
            ++join.before.counts[thread];
        }
    }

    // Nothing stands between an update's write and what it read, before this write or after it.
    bool is_atomic(Id write) const {
        const std::vector<Id>& order = order_of(at(write).location);
        const auto place = static_cast<std::size_t>(place_of(write));
        const auto follows = [this](Id older, Id newer) {
            return !at(newer).updates || threads[newer.thread][newer.index - 1u].source == older;
        };
        return (place == 0 || follows(order[place - 1], write)) &&
               (place + 1 == order.size() || follows(write, order[place + 1]));
    }

    // Removes all events that came into the graph after this moment and are not in `kept`.
    void cut(std::uint32_t stamp, const Clock& kept) {
        for (int thread = 0; thread < most_threads; ++thread) {
            std::vector<Event>& events = threads[thread];
            while (!events.empty() && events.back().stamp > stamp && !kept.has(events.back().id)) events.pop_back();
        }
        const auto is_gone = [this](Id id) { return id.index >= threads[id.thread].size(); };
        locations_.erase(std::remove_if(locations_.begin(), locations_.end(),
                                        [&](const Location& location) { return is_gone(location.id); }),
                         locations_.end());
        for (Location& location : locations_)
            location.order.erase(std::remove_if(location.order.begin(), location.order.end(), is_gone),
                                 location.order.end());
    }

    bool is_sequential() const;

private:
    struct Location {
        Id id;
        std::vector<Id> order;
    };

    const Location& find(Id location) const {
        for (const Location& known : locations_)
            if (known.id == location) return known;
        __builtin_trap();
    }

    // The clock before a thread's first event: all that thread 0 did before the fork.
    Clock begin(int thread) const {
        if (thread != 0)
            for (const Event& event : threads[0])
                if (event.kind == Kind::fork) return event.before;
        return {};
    }

    bool was_read(Id write, Id location, const Clock& clock) const {
        for (int thread = 0; thread < most_threads; ++thread) {
            const auto count = std::min<std::size_t>(clock.counts[thread], threads[thread].size());
            for (std::size_t i = 0; i < count; ++i) {
                const Event& event = threads[thread][i];
                if (event.kind == Kind::read && event.location == location && event.source == write) return true;
            }
        }
        return false;
    }

    Clock last_heavy_fence(int thread) const {
        for (auto event = threads[thread].rbegin(); event != threads[thread].rend(); ++event)
            if (event->kind == Kind::heavy_fence) return event->before;
        return {};
    }

    std::vector<Location> locations_;
    std::uint32_t stamps_ = 0;
};

// RC11's psc has no cycle. In its terms, for seq_cst accesses A and fences F:
//     eco = (rf | mo | fr)+      scb = po | po on other locations; hb; po on other locations | hb on one | mo | fr
//     psc = (A | F; hb?); scb; (A | hb?; F)  |  F; (hb | hb; eco; hb); F
// A light fence is an F that is ordered against heavy ones only, as P1202 has it ("Asymmetric fences").
inline bool Graph::is_sequential() const {
    using Set = std::bitset<most_events>;
    std::vector<const Event*> events, strong;
    std::array<int, most_threads> base{};
    for (int thread = 0; thread < most_threads; ++thread) {
        base[thread] = static_cast<int>(events.size());
        for (const Event& event : threads[thread]) {
            events.push_back(&event);
            const bool is_fence = event.kind == Kind::light_fence || event.kind == Kind::heavy_fence;
            const bool is_access = event.kind == Kind::read || event.kind == Kind::write;
            if (is_fence || (is_access && event.order == std::memory_order_seq_cst)) strong.push_back(&event);
        }
    }
    if (strong.size() < 2) return true;

    const auto number = [&](Id id) { return base[id.thread] + id.index; };
    const int count = static_cast<int>(events.size());
    std::vector<Set> hb(count), mo(count), rf(count), fr(count), po_elsewhere(count), hb_here(count), po(count);
    for (int i = 0; i < count; ++i) {
        const Event& later = *events[i];
        for (int thread = 0; thread < most_threads; ++thread) {
            const auto most = std::min<std::size_t>(later.before.counts[thread], threads[thread].size());
            for (std::size_t k = 0; k < most; ++k) {
                const Event& earlier = threads[thread][k];
                if (earlier.id == later.id) continue;
                const int j = number(earlier.id);
                const bool is_here = earlier.location != none && earlier.location == later.location;
                hb[j].set(i);
                if (is_here) hb_here[j].set(i);
                if (thread != later.id.thread) continue;
                po[j].set(i);
                if (!is_here) po_elsewhere[j].set(i);
            }
        }
    }
    for (const Location& location : locations_)
        for (std::size_t i = 0; i < location.order.size(); ++i)
            for (std::size_t k = i + 1; k < location.order.size(); ++k)
                mo[number(location.order[i])].set(number(location.order[k]));
    for (int i = 0; i < count; ++i) {
        if (events[i]->kind != Kind::read) continue;
        const int source = number(events[i]->source);
        rf[source].set(i);
        fr[i] = mo[source];
        if (events[i]->updates) fr[i].reset(i + 1);  // its own write
    }
    const auto step = [&](const Set& from, const std::vector<Set>& relation) {
        Set to;
        for (int i = 0; i < count; ++i)
            if (from[i]) to |= relation[i];
        return to;
    };

    const int heads = static_cast<int>(strong.size());
    std::vector<Set> psc(heads);
    for (int a = 0; a < heads; ++a) {
        const int at = number(strong[a]->id);
        const bool is_fence = strong[a]->kind != Kind::read && strong[a]->kind != Kind::write;
        Set from;
        from.set(at);
        if (is_fence) from |= hb[at];
        Set reached = step(from, po) | step(from, mo) | step(from, fr) | step(from, hb_here) |
                      step(step(step(from, po_elsewhere), hb), po_elsewhere);
        Set by_fence;
        if (is_fence) {
            const Set after = hb[at];
            const Set written = step(after, mo) | step(after, fr);
            by_fence = after | step(after | written, rf) | written;
            by_fence = after | step(by_fence, hb);
        }
        const Set to_fence = reached | step(reached, hb);
        for (int b = 0; b < heads; ++b) {
            if (a == b) continue;
            const bool goes_to_fence = strong[b]->kind != Kind::read && strong[b]->kind != Kind::write;
            const bool is_light = strong[a]->kind == Kind::light_fence || strong[b]->kind == Kind::light_fence;
            const bool is_heavy = strong[a]->kind == Kind::heavy_fence || strong[b]->kind == Kind::heavy_fence;
            if (is_light && !is_heavy) continue;
            const int to = number(strong[b]->id);
            if (goes_to_fence ? to_fence[to] || by_fence[to] : reached[to]) psc[a].set(b);
        }
    }
    for (int k = 0; k < heads; ++k)
        for (int i = 0; i < heads; ++i)
            if (psc[i][k]) psc[i] |= psc[k];
    for (int i = 0; i < heads; ++i)
        if (psc[i][i]) return false;
    return true;
}

}  // namespace model
