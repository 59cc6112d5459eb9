// Trials, which find out whether several lanes at a stage pay: they measure with one lane and with all, in turn.
//
// Without an interpreter lock, lanes in one Python function count references to the same objects, such as the
// `self` of a method. Each waits for cache lines that another one wrote. If the function takes less time than that,
// all lanes together do less than one. So a stage compares the rows that several lanes do at once with those of a
// lane alone. It stays with the better mode, for a longer term each time that this is confirmed. Then it tries the
// other mode for a moment. Workers do so with stealing (stealing_trials.hpp).
//
// The best time slice of each mode counts, because others may have been interrupted. There is no trial while rows are
// long, since then lanes wait little, or while lanes never work at the same time.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

class LaneTrials {
public:
    // In time slices:
    static constexpr std::int64_t trial = 6;
    static constexpr std::int64_t first = 16;      // for which a trial's result holds; four times longer at each
    static constexpr std::int64_t longest = 1024;
    static constexpr std::uint32_t enough = 3;     // for a trial to have a result
    static constexpr double long_row = 2'000;      // nanoseconds

    explicit LaneTrials(std::int64_t time_slice_ns) : time_slice_ns_(time_slice_ns) { assert(time_slice_ns > 0); }

    // A lane's time slice.
    struct TrialSlice {
        std::int64_t end;      // in monotonic ns
        std::int64_t spent;    // ns
        std::uint64_t rows;
        std::uint32_t before;  // lanes at the stage when it began, this one included
        std::uint32_t after;   // and when it ended
    };

    // Whether one lane is enough now.
    bool is_for_one() const { return for_one_.load(relaxed); }

    // Any lane, before it leaves the stage. True: more lanes may enter from now on.
    bool note(const TrialSlice& slice) {
        assert(slice.before != 0 && slice.after != 0 && "this lane is at the stage");
        if (slice.rows == 0 || slice.spent <= 0) return false;
        if (noting_.exchange(true, acquire)) return false;  // one slice more or less does not matter
        const bool was_for_one = is_for_one();
        count(slice);
        if (slice.end >= due_) go_on(slice.end);
        const bool more = was_for_one && !is_for_one();
        noting_.store(false, release);
        return more;
    }

private:
    enum class Term : std::uint8_t { all, one, try_one, try_all };

    // The best recent rate of a mode, in rows a nanosecond, and its number of time slices.
    struct Best {
        double rate{0};
        std::uint32_t slices{0};

        void count(double other) {
            rate = std::max(rate - rate / 64, other);
            ++slices;
        }
    };

    void count(const TrialSlice& slice) {
        const double rate = static_cast<double>(slice.rows) / static_cast<double>(slice.spent);
        if (slice.before == 1 && slice.after == 1) alone_.count(rate);
        if (slice.before > 1 && slice.after > 1) beside_.count(rate * std::min(slice.before, slice.after));
        if (due_ == 0) due_ = slice.end + length_ * time_slice_ns_;
    }

    // At the end of a term.
    void go_on(std::int64_t now) {
        switch (term_) {
            case Term::all:
                if (beside_.slices < enough || is_long(beside_.rate / 2)) begin(Term::all, now, length_);
                else begin(Term::try_one, now, trial);
                break;
            case Term::one:
                begin(Term::try_all, now, trial);
                break;
            case Term::try_one:
                if (alone_.slices < enough) begin(Term::all, now, first);
                else stay(alone_.rate > beside_.rate ? Term::one : Term::all, now);
                break;
            case Term::try_all:
                if (beside_.slices < enough) begin(Term::all, now, first);
                else stay(alone_.rate > beside_.rate && !is_long(alone_.rate) ? Term::one : Term::all, now);
                break;
        }
    }

    static bool is_long(double rate) { return rate * long_row < 1.0; }

    void stay(Term term, std::int64_t now) {
        length_ = term == verdict_ ? std::min(4 * length_, longest) : first;
        verdict_ = term;
        begin(term, now, length_);
    }

    // Keeps the rates of the previous mode, for the comparison.
    void begin(Term term, std::int64_t now, std::int64_t slices) {
        assert(slices > 0);
        term_ = term;
        due_ = now + slices * time_slice_ns_;
        const bool for_one = term == Term::one || term == Term::try_one;
        (for_one ? alone_ : beside_) = Best{};
        for_one_.store(for_one, relaxed);
    }

    const std::int64_t time_slice_ns_;
    Atomic<bool> for_one_{false};
    Atomic<bool> noting_{false};  // a lane is within note(): its end pairs with the next one's begin
    std::int64_t due_{0};         // when the term ends; 0: before the first time slice
    Term term_{Term::all};
    Term verdict_{Term::all};     // of the last trial
    std::int64_t length_{first};  // of the term that followed it
    Best alone_, beside_;
};

}  // namespace callboard
