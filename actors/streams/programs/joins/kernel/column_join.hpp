// A join of rows whose times and values lie in columns: it finds partners, by cells or comparing everything, and says
// what comes out. Times are integers of 64 bits or doubles, and `const void*` points to such.
//
// One thread at a time. It waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/streams/programs/joins/kernel/choice.hpp"
#include "callboard/streams/programs/joins/kernel/full_join.hpp"
#include "callboard/streams/programs/joins/kernel/indexed_join.hpp"
#include "callboard/streams/programs/joins/kernel/join_outputs.hpp"

namespace callboard {

class ColumnJoin {
public:
    virtual ~ColumnJoin() = default;

    // Takes rows in their order, whose values are those of the terms; `alone` is as in a JoinBatch. Throws
    // std::bad_alloc, as all of these do, and then the join is of no use.
    virtual void join(std::size_t rows, const std::uint8_t* sides, const void* times, const void* const* values,
                      const std::uint8_t* alone) = 0;

    // The same for one row whose partners the caller finds between the two steps, in the other side's window. The
    // first may be said of any time which all rows that come have come to.
    virtual void arrive(const void* time) = 0;
    virtual void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) = 0;

    virtual void let_all_go() = 0;

    virtual std::uint64_t begin(std::uint32_t side) const = 0;
    virtual std::uint64_t end(std::uint32_t side) const = 0;

    // The time of the oldest row in a window; false: there is none. And that of the oldest row of the outputs.
    virtual bool has_oldest(void* time) const = 0;
    virtual void earliest(void* time) const = 0;
    virtual JoinedRows& outputs() = 0;
};

template <class Time>
class ColumnJoinOf final : public ColumnJoin {
public:
    ColumnJoinOf(JoinKind kind, const JoinSettings<Time>& settings, std::uint64_t most, bool by_cells)
        : terms_(settings.predicate.count), outputs_(kind, settings.rule, settings.within, most) {
        if (terms_ == 0) return;
        if (by_cells) indexed_.reset(new IndexedJoin<Time>(settings));
        else full_.reset(new FullJoin<Time>(settings));
    }

    void join(std::size_t rows, const std::uint8_t* sides, const void* times, const void* const* values,
              const std::uint8_t* alone) override {
        JoinBatch<Time> batch;
        batch.rows = rows;
        batch.sides = sides;
        batch.times = static_cast<const Time*>(times);
        batch.alone = alone;
        numbers_.clear();
        for (std::size_t row = 0; row < rows; ++row) numbers_.push_back(counts_[sides[row]]++);
        batch.numbers = numbers_.data();
        for (std::uint32_t i = 0; i < terms_; ++i) batch.values[i] = values[i];
        if (indexed_ != nullptr) indexed_->join(batch, matches_);
        else full_->join(batch, matches_);
        std::size_t at = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            const Time now = batch.times[row];
            outputs_.arrive(now);
            for (; at < matches_.size() && matches_[at].row == row; ++at)
                outputs_.give(sides[row], now, static_cast<std::int64_t>(matches_[at].partner));
            outputs_.keep(sides[row], now);
        }
    }

    void arrive(const void* time) override { outputs_.arrive(at(time)); }

    void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) override {
        for (std::size_t i = 0; i < count; ++i) outputs_.give(side, at(time), partners[i]);
        outputs_.keep(side, at(time));
    }

    void let_all_go() override { outputs_.let_all_go(); }

    std::uint64_t begin(std::uint32_t side) const override { return outputs_.begin(side); }
    std::uint64_t end(std::uint32_t side) const override { return outputs_.end(side); }

    bool has_oldest(void* time) const override {
        std::uint32_t side;
        if (!outputs_.has_oldest(side)) return false;
        *static_cast<Time*>(time) = outputs_.oldest(side);
        return true;
    }
    void earliest(void* time) const override { *static_cast<Time*>(time) = outputs_.earliest; }
    JoinedRows& outputs() override { return outputs_.rows; }

private:
    static Time at(const void* time) { return *static_cast<const Time*>(time); }

    const std::uint32_t terms_;
    std::unique_ptr<IndexedJoin<Time>> indexed_;  // one of the two, or none without terms
    std::unique_ptr<FullJoin<Time>> full_;
    JoinOutputs<Time> outputs_;
    std::uint64_t counts_[2]{};
    std::vector<std::uint64_t> numbers_;
    std::vector<JoinMatch> matches_;
};

}  // namespace callboard
