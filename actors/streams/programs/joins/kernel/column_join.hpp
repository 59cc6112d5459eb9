// The outputs of a join whose rows' times lie in a column, and whose partners were found: JoinOutputs, for callers
// that do not know the type of times. They are integers of 64 bits or doubles, and `const void*` points to such.
//
// One thread at a time. It waits for nobody.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/streams/programs/joins/kernel/join_outputs.hpp"

namespace callboard {

class ColumnJoin {
public:
    virtual ~ColumnJoin() = default;

    // Takes rows in their order, and the matches of all rows from there on, in which the first of them has the number
    // `first`. Returns how many are matches of these rows. Throws std::bad_alloc, as all of these do, and then the join
    // is of no use.
    virtual std::size_t take_many(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
                                  const JoinMatch* matches, std::size_t count) = 0;

    // The same for one row whose partners the caller finds between the two steps, in the other side's window. The
    // first may be said of any time which all rows that come have come to.
    virtual void arrive(const void* time) = 0;
    virtual void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) = 0;

    virtual void let_all_go() = 0;

    // The rows of a window, and whether they have had a partner: all of them into arrays, and back into a join that no row
    // has come to, after the number of the first.
    virtual void save(std::uint32_t side, void* times, std::uint8_t* partners) const = 0;
    virtual void begin_at(std::uint32_t side, std::uint64_t number) = 0;
    virtual void load(std::uint32_t side, const void* times, const std::uint8_t* partners, std::size_t rows) = 0;

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
    // `most` rows are in a window, by the rule of last_rows.
    ColumnJoinOf(JoinKind kind, JoinRule rule, JoinLengths<Time> within, std::uint64_t most)
        : outputs_(kind, rule, within, most) {}

    std::size_t take_many(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
                          const JoinMatch* matches, std::size_t count) override {
        std::size_t at = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            const Time now = static_cast<const Time*>(times)[row];
            outputs_.arrive(now);
            for (; at < count && matches[at].row == first + row; ++at)
                outputs_.give(sides[row], now, static_cast<std::int64_t>(matches[at].partner));
            outputs_.keep(sides[row], now);
        }
        assert((at == count || matches[at].row >= first + rows) && "matches are in the order of rows");
        return at;
    }

    void arrive(const void* time) override { outputs_.arrive(at(time)); }

    void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) override {
        for (std::size_t i = 0; i < count; ++i) outputs_.give(side, at(time), partners[i]);
        outputs_.keep(side, at(time));
    }

    void let_all_go() override { outputs_.let_all_go(); }

    void save(std::uint32_t side, void* times, std::uint8_t* partners) const override {
        for (std::uint64_t number = begin(side), row = 0; number < end(side); ++number, ++row) {
            static_cast<Time*>(times)[row] = outputs_.time_of(side, number);
            partners[row] = outputs_.has_partner(side, number);
        }
    }
    void begin_at(std::uint32_t side, std::uint64_t number) override { outputs_.begin_at(side, number); }
    void load(std::uint32_t side, const void* times, const std::uint8_t* partners, std::size_t rows) override {
        for (std::size_t row = 0; row < rows; ++row)
            outputs_.load(side, static_cast<const Time*>(times)[row], partners[row] != 0);
    }

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

    JoinOutputs<Time> outputs_;
};

}  // namespace callboard
