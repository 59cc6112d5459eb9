// One lane of a join of rows whose times and values are columns: it finds partners, by buckets or comparing everything.
// Times are integers of 64 bits or doubles, and `const void*` points to such.
//
// One thread at a time. It waits for nobody.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/streams/programs/joins/kernel/full_join.hpp"
#include "callboard/streams/programs/joins/kernel/indexed_join.hpp"

namespace callboard {

class ColumnMatcher {
public:
    virtual ~ColumnMatcher() = default;

    // Takes rows in their order, whose values are those of the terms; `alone` is as in a JoinBatch. Appends what they
    // match, row after row, from the oldest partner on: the rows as `first` and those after it, and partners as their
    // numbers on their side. Throws std::bad_alloc, and then it is of no use.
    virtual void match(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
                       const void* const* values, const std::uint8_t* alone, std::vector<JoinMatch>& matches) = 0;

    // Puts rows into their windows that were there when another matcher was saved: before all others, and after those
    // that the settings say have passed.
    virtual void load(std::size_t rows, const std::uint8_t* sides, const void* times, const void* const* values,
                      const std::uint8_t* alone) = 0;

    // The number of comparisons of two rows so far.
    virtual std::uint64_t compared() const = 0;
};

template <class Time>
class ColumnMatcherOf final : public ColumnMatcher {
public:
    ColumnMatcherOf(const JoinSettings<Time>& settings, bool by_buckets)
        : terms_(settings.predicate.count), counts_{settings.passed[0], settings.passed[1]} {
        if (by_buckets) indexed_.reset(new IndexedJoin<Time>(settings));
        else full_.reset(new FullJoin<Time>(settings));
    }

    void match(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
               const void* const* values, const std::uint8_t* alone, std::vector<JoinMatch>& matches) override {
        const JoinBatch<Time> batch = numbered(rows, sides, times, values, alone);
        const bool is_first = matches.empty();  // mostly: then nothing is copied
        std::vector<JoinMatch>& found = is_first ? matches : found_;
        if (indexed_ != nullptr) indexed_->join(batch, found);
        else full_->join(batch, found);
        for (JoinMatch& match : found) match.row += static_cast<std::uint32_t>(first);
        if (!is_first) matches.insert(matches.end(), found.begin(), found.end());
    }

    void load(std::size_t rows, const std::uint8_t* sides, const void* times, const void* const* values,
              const std::uint8_t* alone) override {
        const JoinBatch<Time> batch = numbered(rows, sides, times, values, alone);
        if (indexed_ != nullptr) indexed_->load(batch);
        else full_->load(batch);
    }

    std::uint64_t compared() const override { return indexed_ != nullptr ? indexed_->compared() : full_->compared(); }

private:
    JoinBatch<Time> numbered(std::size_t rows, const std::uint8_t* sides, const void* times, const void* const* values,
                             const std::uint8_t* alone) {
        JoinBatch<Time> batch;
        batch.rows = rows;
        batch.sides = sides;
        batch.times = static_cast<const Time*>(times);
        batch.alone = alone;
        numbers_.clear();
        for (std::size_t row = 0; row < rows; ++row) numbers_.push_back(counts_[sides[row]]++);
        batch.numbers = numbers_.data();
        for (std::uint32_t i = 0; i < terms_; ++i) batch.values[i] = values[i];
        return batch;
    }

    const std::uint32_t terms_;
    std::unique_ptr<IndexedJoin<Time>> indexed_;  // one of the two
    std::unique_ptr<FullJoin<Time>> full_;
    std::uint64_t counts_[2];
    std::vector<std::uint64_t> numbers_;
    std::vector<JoinMatch> found_;
};

// Merges the matches of another lane, for the same rows, in the order of a single lane.
inline void add_matches(std::vector<JoinMatch>& matches, const std::vector<JoinMatch>& others) {
    const auto middle = static_cast<std::ptrdiff_t>(matches.size());
    matches.insert(matches.end(), others.begin(), others.end());
    std::inplace_merge(matches.begin(), matches.begin() + middle, matches.end(),
                       [](const JoinMatch& one, const JoinMatch& other) {
                           return one.row != other.row ? one.row < other.row : one.partner < other.partner;
                       });
}

// The choice of a join: FullJoin, whose cost is the window's, or IndexedJoin. The latter costs a few looks into
// memory, and the rows in the buckets that it looks into.
//
// The figures are what tests/native/bench/bench_join.cpp measured on an EPYC of the fourth generation, in
// nanoseconds for a row. They are good enough for the choice, as the costs mostly lie far apart. From about 1,500
// rows in the window on the index is quicker, unless values crowd in few buckets.
constexpr double ns_of_comparison(VectorPath path) {
    switch (path) {
    case VectorPath::avx512: return 0.06;
    case VectorPath::avx2: return 0.12;
    case VectorPath::neon: return 0.25;  // not measured
    default: return 1.3;
    }
}

// `window_rows` are seen by a row, on average; of these the index compares `compared_rows` with it: in a join that
// runs, IndexedJoin::compared() / rows().
inline bool prefers_index(const JoinPredicate& predicate, VectorPath path, double window_rows,
                          double compared_rows = 0) {
    constexpr double looks = 100, compared = 0.5, row = 40;  // the last is what a full join does besides
    if (!BucketGrid(predicate).divides()) return false;
    return looks + compared * compared_rows < row + ns_of_comparison(path) * window_rows;
}

}  // namespace callboard
