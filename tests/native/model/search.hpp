// Finds every execution of a test, each once.
//
// TruSt (Kokologiannakis et al. 2022, "Truly stateless, optimal dynamic partial order reduction"). A graph grows by one
// event at a time, of the first thread that can go on. A read may return any write that is there. A write may stand
// at any place in the modification order that coherence leaves. The newest is chosen first; each other choice is put
// aside, as a graph of its own. And a read that is there already may return the new write: a revisit. It removes all
// events after that read, except those that led to the write.
//
// Several graphs may lead to the same one by a revisit. It is made from only one of them: the one in which every
// removed event was the first choice. So no run repeats another, and only the graphs that are left are kept.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace model {

class Search {
public:
    virtual ~Search() = default;

    // The next of so many threads that can go on. It is the first, except in naive.hpp.
    virtual bool takes_turns() const { return false; }
    virtual unsigned turn(unsigned) { return 0; }

    // The graphs that are left. Each is the beginning of an execution.
    std::vector<Graph> left{Graph{}};

    // Thread's next event reads: puts each source but the newest aside, and goes on with that.
    // False: the location is not there yet, as far as the thread knows.
    virtual bool read(Graph& graph, int thread, const Event& what) {
        const int first = graph.first_visible(graph.before(thread), what.location);
        if (first < 0) return false;
        const std::vector<Id> order = graph.order_of(what.location);
        for (std::size_t place = static_cast<std::size_t>(first); place + 1 < order.size(); ++place) {
            Graph other = graph;
            const Id read = other.add(thread, what).id;
            finish_read(std::move(other), read, order[place]);
        }
        const Id read = graph.add(thread, what).id;
        graph.set_source(read, order.back());
        if (!graph.at(read).updates) return true;
        revisit(graph, add_update(graph, read));
        return true;
    }

    // The same of a write.
    virtual bool write(Graph& graph, int thread, const Event& what) {
        const int first = graph.first_visible(graph.before(thread), what.location);
        if (first < 0) return false;
        const int newest = static_cast<int>(graph.order_of(what.location).size());
        for (int place = first + 1; place < newest; ++place) {
            if (splits_update(graph, what.location, place)) continue;
            Graph other = graph;
            other.add_write(thread, what, place);
            keep(std::move(other));
        }
        revisit(graph, graph.add_write(thread, what, newest).id);
        return true;
    }

    virtual void choice(Graph& graph, int thread, Event what, unsigned count) {
        for (what.value = 1; what.value < count; ++what.value) {
            left.push_back(graph);
            left.back().add(thread, what);
        }
        what.value = 0;
        graph.add(thread, what);
    }

protected:
    static Id add_update(Graph& graph, Id read) {
        Event write = graph.at(read);
        write.kind = Kind::write;
        write.value = write.updated(write.value);
        const int place = graph.place_of(write.source) + 1;
        write.source = none;
        return graph.add_write(read.thread, write, place).id;
    }

    static bool splits_update(const Graph& graph, Id location, int place) {
        const std::vector<Id>& order = graph.order_of(location);
        const auto at = static_cast<std::size_t>(place);
        return at < order.size() && graph.at(order[at]).updates;
    }

private:
    void keep(Graph&& graph) {
        if (graph.is_sequential()) left.push_back(std::move(graph));
    }

    // A read that is the last event of its thread gets its source; if it updates, its write follows.
    void finish_read(Graph&& graph, Id read, Id source) {
        if (!graph.is_atomic(source) || !graph.set_source(read, source) || !graph.is_sequential()) return;
        if (!graph.at(read).updates) {
            left.push_back(std::move(graph));
            return;
        }
        const Id write = add_update(graph, read);
        // Two updates of one write are no execution, but one of them may read from the other instead.
        revisit(graph, write);
        if (graph.is_atomic(write)) keep(std::move(graph));
    }

    // Lets reads that are there return this write, which is the newest event.
    void revisit(const Graph& graph, Id write) {
        const Event& what = graph.at(write);
        graph.each([&](const Event& read) {
            if (read.kind != Kind::read || read.location != what.location || what.past.has(read.id)) return;
            if (!may_go(graph, read, what)) return;
            Graph other = graph;
            other.cut(read.stamp, what.past);
            if (what.updates) {
                finish_read(std::move(other), read.id, write);
                return;
            }
            std::vector<Id>& order = other.order_of(what.location);
            order.erase(std::find(order.begin(), order.end(), write));
            const int newest = static_cast<int>(order.size());
            for (int place = other.first_visible(what.before, what.location) + 1; place <= newest; ++place) {
                if (splits_update(other, what.location, place)) continue;
                Graph placed = other;
                std::vector<Id>& with = placed.order_of(what.location);
                with.insert(with.begin() + place, write);
                finish_read(std::move(placed), read.id, write);
            }
        });
    }

    // True: each event that a revisit of this read would remove was the first choice.
    static bool may_go(const Graph& graph, const Event& read, const Event& write) {
        bool may = true;
        graph.each([&](const Event& event) {
            if (event.stamp < read.stamp || write.past.has(event.id)) return;
            may = may && is_first_choice(graph, event, write);
        });
        return may;
    }

    // True: the search would choose this event first, in the graph of the events before it and of those that lead to
    // `write`. It returns, or is, their newest write, and none of their reads returns it.
    static bool is_first_choice(const Graph& graph, const Event& event, const Event& write) {
        if (event.kind == Kind::choice) return event.value == 0;
        if (event.kind != Kind::read && event.kind != Kind::write && event.kind != Kind::make) return true;
        const auto was_there = [&](const Event& other) {
            return other.id != write.id && (other.stamp <= event.stamp || write.past.has(other.id));
        };
        if (event.kind != Kind::read) {
            bool is_read = false;
            graph.each([&](const Event& other) {
                is_read = is_read || (other.kind == Kind::read && other.source == event.id && was_there(other));
            });
            if (is_read) return false;
        }
        const Id newest = event.kind == Kind::read ? event.source : event.id;
        const std::vector<Id>& order = graph.order_of(event.location);
        for (auto newer = order.rbegin(); *newer != newest; ++newer)
            if (was_there(graph.at(*newer))) return false;
        return true;
    }
};

}  // namespace model
