// What a row costs a stage and how many it gives, estimated while the stage works.
//
// Prasaad et al. 2018, section 2.2. Any lane writes after a slice, any thread reads. Counts are exact. Of what is
// estimated, lanes that race lose one measurement, which does no harm.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

// What some rounds did.
struct RowCounts {
    std::uint64_t taken{0};  // rows
    std::uint64_t given{0};
};

// `alone`: nobody else writes, so nothing needs to be added at once.
template <class T>
void add(Atomic<T>& sum, T more, bool alone) {
    if (alone) sum.store(sum.load(relaxed) + more, relaxed);
    else sum.fetch_add(more, relaxed);
}

class Estimates {
public:
    // After a lane's slice. `alone`: no other lane works here.
    void note(const RowCounts& rows_of, std::int64_t rounds, std::int64_t spent_ns, bool alone) {
        add(busy_ns_, spent_ns, alone);
        add(taken_, rows_of.taken, alone);
        add(given_, rows_of.given, alone);
        if (rows_of.taken == 0) return;
        const double rows = static_cast<double>(rows_of.taken);
        approach(cost_ns_, static_cast<double>(spent_ns) / rows);
        approach(selectivity_, static_cast<double>(rows_of.given) / rows);
        approach(rows_per_unit_, rows / static_cast<double>(rounds));
    }

    double cost_ns() const { return cost_ns_.load(relaxed); }  // of a row; 0: not known yet
    double selectivity() const { return taken() == 0 ? 1.0 : selectivity_.load(relaxed); }
    double rows_per_unit() const { return rows_per_unit_.load(relaxed); }  // round, or part of one
    std::uint64_t taken() const { return taken_.load(relaxed); }
    std::uint64_t given() const { return given_.load(relaxed); }
    std::int64_t busy_ns() const { return busy_ns_.load(relaxed); }

    // Worker time in the current window of CT (section 6.4). A stage begins a window when it is first looked at in
    // it; nobody works on it before that.
    std::int64_t slice_ns() const { return busy_ns() - busy_before_.load(relaxed); }
    void begin_window(std::int64_t begin) {
        if (window_begin_.load(relaxed) == begin) return;
        window_begin_.store(begin, relaxed);
        busy_before_.store(busy_ns(), relaxed);
    }

private:
    static void approach(Atomic<double>& estimate, double measured) {
        const double before = estimate.load(relaxed);
        estimate.store(before == 0.0 ? measured : before + (measured - before) / 8, relaxed);
    }

    alignas(cache_line) Atomic<std::uint64_t> taken_{0};
    Atomic<std::uint64_t> given_{0};
    Atomic<std::int64_t> busy_ns_{0}, busy_before_{0}, window_begin_{0};
    Atomic<double> cost_ns_{0}, selectivity_{0}, rows_per_unit_{0};
};

// What one of several operators did that are one stage: rows exactly, time by samples, as two looks at the clock
// cost more than most operators' rounds. Any lane writes, any thread reads.
class Figures {
public:
    std::uint64_t taken() const { return taken_.load(relaxed); }
    std::uint64_t given() const { return given_.load(relaxed); }
    double selectivity() const {
        return taken() == 0 ? 1.0 : static_cast<double>(given()) / static_cast<double>(taken());
    }
    double cost_ns() const {  // of a row; 0: not known yet
        const auto rows = sampled_rows_.load(relaxed);
        return rows == 0 ? 0.0 : static_cast<double>(sampled_ns_.load(relaxed)) / static_cast<double>(rows);
    }
    std::int64_t busy_ns() const { return static_cast<std::int64_t>(cost_ns() * static_cast<double>(taken())); }

    // `alone`: no other lane works here.
    void count(const RowCounts& rows, bool alone) {
        add(taken_, rows.taken, alone);
        add(given_, rows.given, alone);
    }
    void sample(const RowCounts& rows, std::int64_t spent_ns, bool alone) {
        add(sampled_rows_, rows.taken, alone);
        add(sampled_ns_, static_cast<std::uint64_t>(spent_ns), alone);
    }

private:
    Atomic<std::uint64_t> taken_{0}, given_{0}, sampled_rows_{0}, sampled_ns_{0};
};

}  // namespace callboard
