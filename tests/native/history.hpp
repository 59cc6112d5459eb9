// Recorded histories: the calls of each thread with their beginnings and ends, and whether one order
// explains them all.
//
// One counter stamps the beginning and the end of every call. Linearizable means (Herlihy and Wing 1990):
// each call can be given a moment between its stamps, and the calls, in the order of these moments, are a
// run of the sequential object. If the answers say which call must come before which, as the serial numbers
// of a queue do, no search is needed. Give each call the earliest moment that its own beginning and the
// calls before it allow. If that is after its end, there is no such order.
//
// The stamps order memory, too, so a missing memory order may not show here. The tests that look for one
// take no stamps.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <vector>

#include "stress.hpp"

namespace history {

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

struct Call {
    std::int64_t value = -1, serial = -1;
    std::int64_t begin = never, end = never;  // a call that is not there is never
    std::int64_t moment = -1;
};

class Clock {
public:
    // Any thread. Each stamp is greater than all that were given before.
    std::int64_t stamp() { return stamps_.fetch_add(1, callboard::acq_rel); }

    // Runs `call()` between two stamps.
    template <class Action>
    Call record(Action action) {
        Call call;
        call.begin = stamp();
        action(call);
        call.end = stamp();
        return call;
    }

private:
    callboard::Atomic<std::int64_t> stamps_{0};
};

// Gives the call the earliest moment after those before it. False: there is none before its end.
inline bool place(Call& call, std::initializer_list<const Call*> before) {
    call.moment = call.begin;
    for (const Call* other : before)
        if (other != nullptr) call.moment = std::max(call.moment, other->moment);
    return call.moment < call.end;
}

// A bounded queue's history: all that was put in and taken out, in the queue's order, and the calls that
// found nothing.
struct Queue {
    std::vector<Call> pushes, pops, nones;
    std::size_t capacity;

    bool linearizable() {
        bool all = true;
        for (std::size_t i = 0; i < pushes.size(); ++i) {
            if (i >= capacity && i - capacity >= pops.size()) return false;
            const Call* const previous = i == 0 ? nullptr : &pushes[i - 1];
            const Call* const made_room = i < capacity ? nullptr : &pops[i - capacity];
            all &= place(pushes[i], {previous, made_room});
            if (i < pops.size()) all &= place(pops[i], {i == 0 ? nullptr : &pops[i - 1], &pushes[i]});
        }
        return all;
    }

    // A pop that found nothing was there at a moment at which all values in the queue had been claimed, up
    // to an incomplete one. That is, for some i, pops 0 to i - 1 had begun and push i had not ended.
    bool nones_are_honest() const {
        return std::all_of(nones.begin(), nones.end(), [this](const Call& none) {
            std::int64_t claimed = -1;  // when the last of the pops before i began
            for (std::size_t i = 0; i <= pushes.size(); ++i) {
                const std::int64_t complete = i < pushes.size() ? pushes[i].end : never;
                if (std::max(none.begin, claimed) < std::min(none.end, complete)) return true;
                if (i == pops.size()) return false;
                claimed = std::max(claimed, pops[i].begin);
            }
            return false;
        });
    }
};

// All threads' calls in one vector, by serial number. Calls without one are moved to `others`.
inline std::vector<Call> by_serial(const std::vector<std::vector<Call>>& logs, std::vector<Call>& others) {
    std::vector<Call> calls;
    for (const auto& log : logs)
        for (const Call& call : log) (call.serial < 0 ? others : calls).push_back(call);
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.serial < b.serial; });
    return calls;
}

// The serial numbers are 0, 1, 2 and so on.
inline bool without_gap(const std::vector<Call>& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i)
        if (calls[i].serial != static_cast<std::int64_t>(i)) return false;
    return true;
}

}  // namespace history
