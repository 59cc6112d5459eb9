// The search that needs no proof: every schedule, and every choice in each. It finds an execution once for each of its
// schedules, so it is for small programs. Search must find the same executions.
#pragma once

#include <string>
#include <vector>

#include "search.hpp"

namespace model {

class NaiveSearch : public Search {
public:
    bool takes_turns() const override { return true; }
    unsigned turn(unsigned count) override { return choose(count); }

    bool read(Graph& graph, int thread, const Event& what) override {
        const int first = graph.first_visible(graph.before(thread), what.location);
        if (first < 0) return false;
        const std::vector<Id> order = graph.order_of(what.location);
        std::vector<Graph> possible;
        for (std::size_t place = static_cast<std::size_t>(first); place < order.size(); ++place) {
            Graph other = graph;
            const Id read = other.add(thread, what).id;
            if (!other.set_source(read, order[place]) || !other.is_sequential()) continue;
            if (other.at(read).updates) {
                if (!other.is_atomic(add_update(other, read)) || !other.is_sequential()) continue;
            }
            possible.push_back(std::move(other));
        }
        graph = possible[choose(static_cast<unsigned>(possible.size()))];
        return true;
    }

    bool write(Graph& graph, int thread, const Event& what) override {
        const int first = graph.first_visible(graph.before(thread), what.location);
        if (first < 0) return false;
        const int newest = static_cast<int>(graph.order_of(what.location).size());
        std::vector<Graph> possible;
        for (int place = first + 1; place <= newest; ++place) {
            if (splits_update(graph, what.location, place)) continue;
            Graph other = graph;
            other.add_write(thread, what, place);
            if (other.is_sequential()) possible.push_back(std::move(other));
        }
        graph = possible[choose(static_cast<unsigned>(possible.size()))];
        return true;
    }

    void choice(Graph& graph, int thread, Event what, unsigned count) override {
        what.value = choose(count);
        graph.add(thread, what);
    }

    // Prepares the next run. False: there is none.
    bool go_on() {
        while (!path_.empty() && path_.back().taken + 1 == path_.back().count) path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().taken;
        at_ = 0;
        left.assign(1, Graph{});
        return true;
    }

private:
    struct Choice {
        unsigned taken, count;
    };

    unsigned choose(unsigned count) {
        if (at_ == path_.size()) path_.push_back({0, count});
        return path_[at_++].taken;
    }

    std::vector<Choice> path_;
    std::size_t at_ = 0;
};

// Two graphs with the same text are the same execution.
inline std::string text_of(const Graph& graph) {
    std::string text;
    const auto say = [&text](Id id) { text += std::to_string(id.thread) + '.' + std::to_string(id.index) + ' '; };
    graph.each([&](const Event& event) {
        say(event.id);
        if (event.kind == Kind::read) text += "of ", say(event.source);
        if (event.kind == Kind::choice) text += "is " + std::to_string(event.value) + ' ';
        if (event.kind != Kind::make) return;
        text += "order ";
        for (const Id id : graph.order_of(event.id)) say(id);
    });
    return text;
}

}  // namespace model
