// The rows of a batch, to be compared with stored rows: an interval for each row and term.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/streams/programs/joins/comparing/interval.hpp"
#include "callboard/streams/programs/joins/kernel/batch.hpp"

namespace callboard {

class JoinProbes {
public:
    explicit JoinProbes(const JoinPredicate& predicate) : predicate_(predicate) {}

    const JoinPredicate& predicate() const { return predicate_; }

    // Throws std::bad_alloc.
    template <class Time>
    void read(const JoinBatch<Time>& batch) {
        assert(batch.rows >> 32 == 0);
        intervals_.resize(batch.rows * predicate_.count);
        is_possible_.assign(batch.rows, 1);
        for (std::uint32_t term = 0; term < predicate_.count; ++term)
            with_type(predicate_.terms[term].type, [&](auto zero) {
                read_term(term, static_cast<const decltype(zero)*>(batch.values[term]), batch.rows);
            });
    }

    // False: the row matches nothing.
    bool is_possible(std::size_t row) const {
        assert(row < is_possible_.size());
        return is_possible_[row] != 0;
    }

    // One for each term.
    const Interval* intervals(std::size_t row) const { return intervals_.data() + row * predicate_.count; }

private:
    template <class T>
    void read_term(std::uint32_t term, const T* values, std::size_t rows) {
        for (std::size_t row = 0; row < rows; ++row) {
            T low, high;
            if (find_interval(predicate_.terms[term], values[row], low, high))
                intervals_[row * predicate_.count + term].set(low, high);
            else is_possible_[row] = 0;
        }
    }

    const JoinPredicate predicate_;
    std::vector<Interval> intervals_;
    std::vector<std::uint8_t> is_possible_;
};

}  // namespace callboard
