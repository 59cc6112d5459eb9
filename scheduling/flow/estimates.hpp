// The cost and the selectivity of a stage, estimated while it works.
//
// Prasaad et al. 2018, section 2.2. Any lane writes after a time slice, and any thread reads. Counts are exact. When
// lanes race, the estimates lose one measurement, which does no harm.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/mix.hpp"
#include "callboard/core/monitoring/records.hpp"

namespace callboard {

// The rows of some rounds.
struct RowTotals {
    std::uint64_t taken{0};  // rows
    std::uint64_t given{0};
};

class Estimates {
public:
    // After a lane's time slice. `alone`: no other lane works here, so additions need not be atomic.
    void note(const RowTotals& rows_of, std::int64_t rounds, std::int64_t spent_ns, bool alone) {
        assert(spent_ns >= 0 && (rounds > 0 || rows_of.taken == 0));
        add(busy_ns_, spent_ns, alone);
        add(taken_, rows_of.taken, alone);
        add(given_, rows_of.given, alone);
        if (rows_of.taken == 0) return;
        if (!is_counted_.load(relaxed)) estimate(rows_of, spent_ns);
        approach(rows_per_unit_, static_cast<double>(rows_of.taken) / static_cast<double>(rounds));
    }

    // Any thread: adds time and rows that another process has counted, in place of those counted `here`. From then on
    // only such counts change the estimates of cost and selectivity.
    void note_counted(const RowTotals& here, const RowTotals& rows_of, std::int64_t spent_ns) {
        assert(spent_ns >= 0);
        if (!is_counted_.exchange(true, relaxed)) {  // what the lanes found is not of these rows
            cost_ns_.store(0.0, relaxed);
            selectivity_.store(0.0, relaxed);
        }
        add(busy_ns_, spent_ns, false);
        add(taken_, rows_of.taken - here.taken, false);  // modulo 2^64: it may be less
        add(given_, rows_of.given - here.given, false);
        if (rows_of.taken != 0) estimate(rows_of, spent_ns);
    }

    // Subtracts the part of a time slice that belongs to other stages.
    void note_elsewhere(std::int64_t spent_ns, bool alone) { add(busy_ns_, -spent_ns, alone); }

    double cost_ns() const { return cost_ns_.load(relaxed); }  // of a row; 0: not known yet
    double selectivity() const { return taken() == 0 ? 1.0 : selectivity_.load(relaxed); }
    double rows_per_unit() const { return rows_per_unit_.load(relaxed); }  // round, or part of one
    std::uint64_t taken() const { return taken_.load(relaxed); }
    std::uint64_t given() const { return given_.load(relaxed); }
    std::int64_t busy_ns() const { return busy_ns_.load(relaxed); }

    // Worker time in the current window of CT (section 6.4). A stage begins a window when it is first looked at in
    // it; no lane works on it before that.
    std::int64_t window_ns() const { return busy_ns() - busy_before_.load(relaxed); }
    void begin_window(std::int64_t begin) {
        if (window_begin_.load(relaxed) == begin) return;
        window_begin_.store(begin, relaxed);
        busy_before_.store(busy_ns(), relaxed);
    }

private:
    template <class T>
    static void add(Atomic<T>& sum, T more, bool alone) {
        if (alone) sum.store(sum.load(relaxed) + more, relaxed);
        else sum.fetch_add(more, relaxed);
    }

    void estimate(const RowTotals& rows_of, std::int64_t spent_ns) {
        const double rows = static_cast<double>(rows_of.taken);
        approach(cost_ns_, static_cast<double>(spent_ns) / rows);
        approach(selectivity_, static_cast<double>(rows_of.given) / rows);
    }

    static void approach(Atomic<double>& estimate, double measured) {
        const double before = estimate.load(relaxed);
        estimate.store(before == 0.0 ? measured : before + (measured - before) / 8, relaxed);
    }

    alignas(cache_line) Atomic<std::uint64_t> taken_{0};
    Atomic<std::uint64_t> given_{0};
    Atomic<std::int64_t> busy_ns_{0}, busy_before_{0}, window_begin_{0};
    Atomic<double> cost_ns_{0}, selectivity_{0}, rows_per_unit_{0};
    Atomic<bool> is_counted_{false};  // by another process
};

// The figures of one operator of a stage that has several, or its figures on one lane. Rows are exact. Time is
// sampled, because two readings of the clock cost more than most operators' rounds. One thread at a time writes.
class Figure {
public:
    void count(const RowTotals& rows) {
        taken_.add(rows.taken);
        given_.add(rows.given);
    }
    void sample(const RowTotals& rows, std::int64_t spent_ns) {
        if (rows.taken == 0) return;
        sampled_rows_.add(rows.taken);
        sampled_ns_.add(static_cast<std::uint64_t>(spent_ns));
    }
    bool has_sample() const { return sampled_rows_.get() != 0; }

private:
    friend class Figures;
    Counter taken_, given_, sampled_rows_, sampled_ns_;
};

// The figures of an operator on all lanes, which lie `stride` bytes apart. Any thread.
class Figures {
public:
    Figures() = default;
    Figures(const Figure* first, std::size_t stride, std::size_t lanes)
        : first_(reinterpret_cast<const char*>(first)), stride_(stride), lanes_(lanes) {}

    bool are_there() const { return lanes_ != 0; }
    std::uint64_t taken() const { return sum(&Figure::taken_); }
    std::uint64_t given() const { return sum(&Figure::given_); }
    double selectivity() const {
        return taken() == 0 ? 1.0 : static_cast<double>(given()) / static_cast<double>(taken());
    }
    double cost_ns() const {  // of a row; 0: not known yet
        const auto rows = sum(&Figure::sampled_rows_);
        return rows == 0 ? 0.0 : static_cast<double>(sum(&Figure::sampled_ns_)) / static_cast<double>(rows);
    }
    std::int64_t busy_ns() const { return static_cast<std::int64_t>(cost_ns() * static_cast<double>(taken())); }

private:
    std::uint64_t sum(Counter Figure::*what) const {
        std::uint64_t found = 0;
        for (std::size_t i = 0; i < lanes_; ++i)
            found += (reinterpret_cast<const Figure*>(first_ + i * stride_)->*what).get();
        return found;
    }

    const char* first_{nullptr};
    std::size_t stride_{0}, lanes_{0};
};

// Whether an operator's time is taken in this round. That is one round of `every`, by chance, because the input may
// have a pattern.
inline bool is_sampled(std::int64_t serial, std::uint32_t every) {
    assert(every != 0);
    return mix(static_cast<std::uint64_t>(serial)) % every == 0;
}

}  // namespace callboard
