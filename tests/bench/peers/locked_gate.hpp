// The baseline of gates: a lock around everything.
//
// Values that are not ready wait in a heap. Ready ones go into one queue, which all readers go along. A source
// that comes to a later time moves the values that have become ready. The slowest reader takes out the values
// that all have read. It is a peer for measurements.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <mutex>
#include <queue>
#include <vector>

#include "gate.hpp"

namespace callboard {

// gate.hpp has the contract.
template <class Time, class T>
class LockedGate {
public:
    using Value = TimedValue<Time, T>;
    using Entry = GateEntry<Time, T>;

    LockedGate(unsigned sources, unsigned readers, std::size_t window)
        : window_(window), sources_(sources), read_(readers, 0) {}

    std::size_t add_many(unsigned index, const Value* values, std::size_t count) {
        const std::lock_guard<std::mutex> guard(lock_);
        Source& source = sources_[index];
        const std::size_t added = std::min(count, window_ - source.unread);
        for (std::size_t i = 0; i < added; ++i) {
            assert(source.time <= values[i].time && values[i].time < end_of_time<Time>);
            waiting_.push({{values[i].time, index, values[i].value}, source.position++});
            source.time = values[i].time;
        }
        source.unread += added;
        move_ready();
        return added;
    }

    [[nodiscard]] bool try_add(unsigned source, Time time, T value) {
        const Value only{time, value};
        return add_many(source, &only, 1) == 1;
    }

    void come_to(unsigned index, Time time) {
        const std::lock_guard<std::mutex> guard(lock_);
        if (time <= sources_[index].time) return;
        sources_[index].time = time;
        move_ready();
    }

    void end(unsigned source) { come_to(source, end_of_time<Time>); }

    std::size_t next_many(unsigned reader, Entry* entries, std::size_t most) {
        const std::lock_guard<std::mutex> guard(lock_);
        std::size_t& read = read_[reader];
        const std::size_t count = std::min(most, ready_.size() - (read - taken_out_));
        const auto first = ready_.begin() + static_cast<std::ptrdiff_t>(read - taken_out_);
        std::copy_n(first, count, entries);
        read += count;
        const std::size_t slowest = *std::min_element(read_.begin(), read_.end());
        for (; taken_out_ < slowest; ++taken_out_) {
            --sources_[ready_.front().source].unread;
            ready_.pop_front();
        }
        return count;
    }

    [[nodiscard]] bool try_next(unsigned reader, Entry& entry) { return next_many(reader, &entry, 1) == 1; }

private:
    struct Source {
        Time time = begin_of_time<Time>;
        std::size_t position = 0;
        std::size_t unread = 0;  // by the slowest reader
    };
    struct Waiting {
        Entry entry;
        std::size_t position;

        Moment<Time> moment() const { return {entry.time, entry.source}; }
        // std::priority_queue has the greatest on top.
        bool operator<(const Waiting& other) const {
            if (!(other.moment() <= moment())) return false;
            return !(moment() <= other.moment()) || other.position < position;
        }
    };

    void move_ready() {
        Moment<Time> earliest{sources_[0].time, 0};
        for (unsigned i = 1; i < sources_.size(); ++i) {
            const Moment<Time> other{sources_[i].time, i};
            if (other <= earliest) earliest = other;
        }
        for (; !waiting_.empty() && waiting_.top().moment() <= earliest; waiting_.pop())
            ready_.push_back(waiting_.top().entry);
    }

    std::mutex lock_;
    const std::size_t window_;
    std::vector<Source> sources_;
    std::priority_queue<Waiting> waiting_;
    std::deque<Entry> ready_;
    std::size_t taken_out_ = 0;      // of ready_, since the beginning
    std::vector<std::size_t> read_;  // by each reader, since the beginning
};

}  // namespace callboard
