// Latency markers: the times when every n-th round arrived, was begun and left (Prasaad et al. 2018, section 7).
//
// A round's number is its marker: no data travels with it. The newest `Times` of finished rounds are kept for
// readers.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"

namespace callboard {

class LatencyMarkers {
public:
    struct Times {
        std::int64_t serial;
        std::int64_t arrived, begun, left;  // monotonic ns
    };

    // One of `every` rounds is measured; 0: none.
    LatencyMarkers(std::uint32_t window, std::uint32_t every)
        : every_(every), slots_(window / (every ? every : 1) + 2) {}

    // The sender.
    void arrived(std::int64_t serial) {
        if (!is_marked(serial)) return;
        Slot& slot = slot_of(serial);
        slot.begun.store(0, relaxed);
        slot.arrived.store(monotonic_ns(), relaxed);
    }

    // A lane that takes the round at a stage that an entry leads to; the first call counts.
    void begun(std::int64_t serial) {
        if (!is_marked(serial)) return;
        std::int64_t nothing = 0;
        Slot& slot = slot_of(serial);
        if (slot.begun.load(relaxed) == 0) slot.begun.compare_exchange_strong(nothing, monotonic_ns(), relaxed);
    }

    // Any thread: rounds before `done` have left the graph.
    void left(std::int64_t done) {
        if (every_ == 0 || done <= next_.load(relaxed)) return;
        std::lock_guard<std::mutex> lock(mutex_);
        const std::int64_t now = monotonic_ns();
        for (auto serial = next_.load(relaxed); serial < done; serial += every_) {
            assert(is_marked(serial));
            Slot& slot = slot_of(serial);
            const Times times{serial, slot.arrived.load(relaxed), slot.begun.load(relaxed), now};
            if (finished_.size() < kept) finished_.push_back(times);
            else finished_[(serial / every_) % kept] = times;
            next_.store(serial + every_, relaxed);
        }
    }

    std::vector<Times> finished() {
        std::lock_guard<std::mutex> lock(mutex_);
        return finished_;
    }

    // The latest `most` of them.
    std::vector<Times> latest(std::size_t most) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (finished_.size() <= most) return finished_;
        std::vector<Times> found;
        std::size_t at = finished_.size() == kept ? static_cast<std::size_t>(next_.load(relaxed) / every_) % kept : 0;
        at += finished_.size() - most;
        for (; most != 0; --most, ++at) found.push_back(finished_[at % finished_.size()]);
        return found;
    }

private:
    static constexpr std::size_t kept = 65536;
    struct Slot {
        Atomic<std::int64_t> arrived{0}, begun{0};
    };

    bool is_marked(std::int64_t serial) const { return every_ != 0 && serial % every_ == 0; }
    Slot& slot_of(std::int64_t serial) { return slots_[(serial / every_) % slots_.size()]; }

    const std::uint32_t every_;
    std::vector<Slot> slots_;
    Atomic<std::int64_t> next_{0};  // the first marked round that has not left
    std::mutex mutex_;
    std::vector<Times> finished_;
};

}  // namespace callboard
