// A reference for joins: three nested loops, without windows, blocks or buckets. And streams to join.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/streams/programs/joins/kernel/rules.hpp"

namespace joining {

using callboard::JoinBatch;
using callboard::JoinMatch;
using callboard::JoinPredicate;
using callboard::JoinRule;
using callboard::JoinSettings;
using callboard::JoinTerm;
using callboard::NumberType;
using callboard::random_number;

// Numbers of one type.
struct Column {
    NumberType type{NumberType::int64};
    std::vector<std::int32_t> int32{};
    std::vector<std::int64_t> int64{};
    std::vector<float> float32{};
    std::vector<double> float64{};

    template <class T>
    void push(T value) {
        switch (type) {
        case NumberType::int32: return int32.push_back(static_cast<std::int32_t>(value));
        case NumberType::int64: return int64.push_back(static_cast<std::int64_t>(value));
        case NumberType::float32: return float32.push_back(static_cast<float>(value));
        default: return float64.push_back(static_cast<double>(value));
        }
    }

    const void* at(std::size_t row) const {
        switch (type) {
        case NumberType::int32: return int32.data() + row;
        case NumberType::int64: return int64.data() + row;
        case NumberType::float32: return float32.data() + row;
        default: return float64.data() + row;
        }
    }

    // The term itself, as Python has it. Integers here are small.
    bool holds(const JoinTerm& term, std::size_t one, std::size_t other) const {
        if (type == NumberType::int32 || type == NumberType::int64) {
            const std::int64_t x = type == NumberType::int32 ? int32[one] : int64[one];
            const std::int64_t y = type == NumberType::int32 ? int32[other] : int64[other];
            if (term.is_equality) return x == y;
            return term.is_possible && static_cast<std::uint64_t>(std::llabs(x - y)) <= term.steps;
        }
        const double x = type == NumberType::float32 ? static_cast<double>(float32[one]) : float64[one];
        const double y = type == NumberType::float32 ? static_cast<double>(float32[other]) : float64[other];
        return term.is_equality ? x == y : std::fabs(x - y) <= term.distance;
    }
};

template <class Time>
struct Stream {
    std::vector<std::uint8_t> sides{};
    std::vector<Time> times{};
    std::vector<std::uint64_t> numbers{};
    std::vector<Column> columns{};
    std::vector<std::uint8_t> alone{};  // or empty

    std::size_t rows() const { return sides.size(); }

    JoinBatch<Time> batch(std::size_t begin, std::size_t end) const {
        JoinBatch<Time> batch;
        batch.rows = end - begin;
        batch.sides = sides.data() + begin;
        batch.times = times.data() + begin;
        batch.numbers = numbers.data() + begin;
        if (!alone.empty()) batch.alone = alone.data() + begin;
        for (std::size_t i = 0; i < columns.size(); ++i) batch.values[i] = columns[i].at(begin);
        return batch;
    }
};

// Rows with ties in time and strange numbers among the floats, and some that have no partner; of `range` values or so
// in each column.
template <class Time>
Stream<Time> random_stream(std::uint64_t seed, std::size_t rows, const JoinPredicate& predicate, int range) {
    Stream<Time> stream;
    for (std::uint32_t i = 0; i < predicate.count; ++i) {
        stream.columns.emplace_back();
        stream.columns.back().type = predicate.terms[i].type;
    }
    Time now{0};
    for (std::size_t row = 0; row < rows; ++row) {
        const std::uint64_t draw = random_number(seed, row);
        if (draw % 8 < 5) now += static_cast<Time>(draw / 8 % 4) / static_cast<Time>(1);
        if (draw / 64 % 300 == 0) now += static_cast<Time>(100);  // a pause
        // Sides come in runs, too.
        stream.sides.push_back(draw / 4096 % 5 == 0 && row != 0 ? stream.sides.back() : draw / 65536 % 2);
        stream.times.push_back(now);
        stream.numbers.push_back(row);
        stream.alone.push_back(draw / 1048576 % 16 == 0);
        for (std::size_t i = 0; i < stream.columns.size(); ++i) {
            const std::uint64_t other = random_number(seed + 1 + i, row);
            const double value = static_cast<double>(other % static_cast<std::uint64_t>(range)) - range / 2;
            Column& column = stream.columns[i];
            const bool is_float = column.type == NumberType::float32 || column.type == NumberType::float64;
            constexpr double strange[] = {std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN(), -0.0, 1e30, -1e30, 0.1, 1e-310};
            if (is_float && other / 65536 % 16 == 0) column.push(strange[other / 1048576 % 8]);
            else if (is_float) column.push(value / 8);
            else column.push(value);
        }
    }
    return stream;
}

// Each row's partners, in order: of the rows that the lane has stored, which is every n-th of each side.
template <class Time>
std::vector<JoinMatch> join_plainly(const Stream<Time>& stream, const JoinSettings<Time>& settings) {
    std::vector<JoinMatch> matches;
    std::vector<std::uint64_t> turns;
    std::uint64_t came[2] = {0, 0};
    for (std::uint8_t side : stream.sides) turns.push_back(came[side]++);
    std::vector<bool> has_left(stream.rows(), false);
    for (std::size_t row = 0; row < stream.rows(); ++row) {
        std::uint64_t later = 0;  // of the other side's rows, from the last one back
        std::vector<JoinMatch> found;
        for (std::size_t i = row; i-- > 0;) {
            if (stream.sides[i] == stream.sides[row]) continue;
            const Time within = settings.within.of[stream.sides[i]];
            const bool is_alone = !stream.alone.empty() && (stream.alone[i] != 0 || stream.alone[row] != 0);
            const bool is_seen = settings.rule == JoinRule::strict
                                     ? !(stream.times[row] - stream.times[i] > within)
                                     : settings.rule == JoinRule::three_step
                                           ? !has_left[i]
                                           : static_cast<Time>(later++) <= within;
            const std::uint64_t turn = turns[i] % settings.lanes;
            const std::uint64_t its_lane = stream.sides[i] == 0 ? turn : settings.lanes - 1 - turn;
            if (!is_seen || its_lane != settings.lane) continue;
            bool holds = !is_alone;
            for (std::uint32_t term = 0; term < settings.predicate.count; ++term)
                holds = holds && stream.columns[term].holds(settings.predicate.terms[term], row, i);
            if (holds) found.push_back({static_cast<std::uint32_t>(row), stream.numbers[i]});
        }
        matches.insert(matches.end(), found.rbegin(), found.rend());
        for (std::size_t i = 0; i < row; ++i)
            if (stream.sides[i] == stream.sides[row] && stream.times[row] - stream.times[i] > settings.within.of[stream.sides[i]])
                has_left[i] = true;
    }
    return matches;
}

// The matches of a join, given batches of `size` rows, with rows numbered as in the stream.
template <class Join, class Time>
std::vector<JoinMatch> join_in_batches(Join& join, const Stream<Time>& stream, std::size_t size) {
    std::vector<JoinMatch> all, matches{{7, 7}};
    for (std::size_t begin = 0; begin < stream.rows(); begin += size) {
        join.join(stream.batch(begin, std::min(begin + size, stream.rows())), matches);
        for (const JoinMatch& match : matches)
            all.push_back({match.row + static_cast<std::uint32_t>(begin), match.partner});
    }
    return all;
}

}  // namespace joining
