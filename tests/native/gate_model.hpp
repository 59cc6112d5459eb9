// A gate as it should be: all added values, sorted anew for each question, and the ready ones by definition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../bench/peers/gate.hpp"

using GateValue = callboard::TimedValue<std::int64_t, std::int64_t>;
using Entry = callboard::GateEntry<std::int64_t, std::int64_t>;

namespace callboard {
inline bool operator==(const Entry& one, const Entry& other) {
    return one.time == other.time && one.source == other.source && one.value == other.value;
}
}  // namespace callboard

// As they leave a gate. Each source's are given in its own order.
inline std::vector<Entry> in_order(std::vector<Entry> entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& one, const Entry& other) {
        return one.time != other.time ? one.time < other.time : one.source < other.source;
    });
    return entries;
}

class GateModel {
public:
    GateModel(unsigned sources, unsigned readers, std::size_t window)
        : window_(window), come_to_(sources, callboard::begin_of_time<std::int64_t>), read_(readers, 0) {}

    bool try_add(unsigned source, std::int64_t time, std::int64_t value) {
        if (!has_room(source)) return false;
        entries_.push_back({time, source, value});
        come_to(source, time);
        return true;
    }

    void come_to(unsigned source, std::int64_t time) { come_to_[source] = std::max(come_to_[source], time); }
    void end(unsigned source) { come_to(source, callboard::end_of_time<std::int64_t>); }

    bool try_next(unsigned reader, Entry& entry) {
        if (entries_.size() == read_[reader]) return false;
        const Entry next = in_order(entries_)[read_[reader]];
        for (unsigned source = 0; source < next.source; ++source)
            if (!(next.time < come_to_[source])) return false;
        for (unsigned source = next.source + 1; source < come_to_.size(); ++source)
            if (!(next.time <= come_to_[source])) return false;
        ++read_[reader];
        entry = next;
        return true;
    }

private:
    bool has_room(unsigned source) const {
        const auto is_its = [&](const Entry& entry) { return entry.source == source; };
        const std::vector<Entry> sorted = in_order(entries_);
        const std::size_t slowest = *std::min_element(read_.begin(), read_.end());
        const auto unread = sorted.begin() + static_cast<std::ptrdiff_t>(slowest);
        return static_cast<std::size_t>(std::count_if(unread, sorted.end(), is_its)) < window_;
    }

    std::size_t window_;
    std::vector<Entry> entries_;  // each source's in its own order
    std::vector<std::int64_t> come_to_;
    std::vector<std::size_t> read_;
};
