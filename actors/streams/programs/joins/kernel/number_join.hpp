// A join whose rows come one by one, with times and values that are integers of 64 bits or doubles, as in Python.
// They are gathered into columns, and matched as a batch.
//
// One thread at a time. It waits for nobody.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/streams/programs/joins/kernel/indexed_join.hpp"

namespace callboard {

class NumberJoin {
public:
    explicit NumberJoin(const JoinSettings<std::int64_t>& settings)
        : predicate_(settings.predicate), whole_(new IndexedJoin<std::int64_t>(settings)) {}
    explicit NumberJoin(const JoinSettings<double>& settings)
        : predicate_(settings.predicate), real_(new IndexedJoin<double>(settings)) {}

    // A row of the next batch is a side, a number and whether it has no partner, a time of the settings' type, and a
    // value of each term's type, in any order. These throw std::bad_alloc, after which the join is of no use.
    void add_row(std::uint8_t side, std::uint64_t number, bool is_alone) {
        sides_.push_back(side);
        numbers_.push_back(number);
        alone_.push_back(is_alone);
    }
    void add_time(std::int64_t time) { whole_times_.push_back(time); }
    void add_time(double time) { real_times_.push_back(time); }
    void add_value(std::uint32_t term, std::int64_t value) { columns_[term].whole.push_back(value); }
    void add_value(std::uint32_t term, double value) { columns_[term].real.push_back(value); }
    // All of the row's values are 0: it has no partner.
    void add_zeros() {
        for (std::uint32_t i = 0; i < predicate_.count; ++i) {
            if (predicate_.terms[i].type == NumberType::int64) columns_[i].whole.push_back(0);
            else columns_[i].real.push_back(0);
        }
    }

    // Matches the batch, and begins the next. Replaces `matches`, as IndexedJoin::join() does.
    void match(std::vector<JoinMatch>& matches) {
        if (whole_ != nullptr) match(*whole_, whole_times_, matches);
        else match(*real_, real_times_, matches);
        sides_.clear();
        numbers_.clear();
        alone_.clear();
        for (Column& column : columns_) column.whole.clear(), column.real.clear();
    }

    // The number of comparisons of two rows so far.
    std::uint64_t compared() const { return whole_ != nullptr ? whole_->compared() : real_->compared(); }

private:
    // Numbers of one type, as the column's term says.
    struct Column {
        std::vector<std::int64_t> whole;
        std::vector<double> real;
    };

    template <class Time>
    void match(IndexedJoin<Time>& join, std::vector<Time>& times, std::vector<JoinMatch>& matches) {
        assert(times.size() == sides_.size() && "a row has one time");
        JoinBatch<Time> batch;
        batch.rows = sides_.size();
        batch.sides = sides_.data();
        batch.times = times.data();
        batch.numbers = numbers_.data();
        batch.alone = alone_.data();
        for (std::uint32_t i = 0; i < predicate_.count; ++i) {
            if (predicate_.terms[i].type == NumberType::int64) batch.values[i] = columns_[i].whole.data();
            else batch.values[i] = columns_[i].real.data();
        }
        join.join(batch, matches);
        times.clear();
    }

    const JoinPredicate predicate_;
    const std::unique_ptr<IndexedJoin<std::int64_t>> whole_;  // one of the two
    const std::unique_ptr<IndexedJoin<double>> real_;
    std::vector<std::uint8_t> sides_, alone_;
    std::vector<std::uint64_t> numbers_;
    std::vector<std::int64_t> whole_times_;
    std::vector<double> real_times_;
    Column columns_[JoinPredicate::most];
};

}  // namespace callboard
