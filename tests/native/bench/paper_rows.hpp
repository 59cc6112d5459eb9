// The rows of the benchmark of Gulisano et al., "ScaleJoin", section VI: x is a 32-bit integer and y a float, both
// uniform in 1 to 10,000. Rows match if they are at most 10 apart in both: 1 pair of 250,000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/streams/programs/joins/comparing/predicate.hpp"
#include "callboard/streams/programs/joins/kernel/batch.hpp"

namespace bench {

// The matches of a join, in any order.
struct Answer {
    std::uint64_t matches{0}, sum{0};

    void add(std::uint64_t row, std::uint64_t partner) {
        ++matches;
        sum += callboard::mix(row * 0x9e3779b97f4a7c15u + partner);
    }
    friend bool operator==(const Answer& one, const Answer& other) {
        return one.matches == other.matches && one.sum == other.sum;
    }
};

struct Rows {
    std::vector<std::uint8_t> sides;
    std::vector<std::int64_t> times;
    std::vector<std::uint64_t> numbers;
    std::vector<std::int32_t> x;
    std::vector<float> y;

    // Rows of one side, or of both in turn; 1,000 units of time are a second.
    Rows(std::uint64_t seed, std::size_t count, std::uint64_t first, std::int64_t time, std::int64_t per_second,
         int only_side = -1, int range = 10000) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t draw = callboard::random_number(seed, i);
            sides.push_back(static_cast<std::uint8_t>(only_side < 0 ? static_cast<int>(i % 2) : only_side));
            const std::int64_t of_its_side = static_cast<std::int64_t>(only_side < 0 ? i / 2 : i);
            times.push_back(time + of_its_side * 1000 / per_second);
            numbers.push_back(first + i);
            x.push_back(static_cast<std::int32_t>(draw % static_cast<std::uint64_t>(range) + 1));
            y.push_back(1 + static_cast<float>(draw >> 40) * (static_cast<float>(range - 1) / 16777216.0f));
        }
    }

    callboard::JoinBatch<std::int64_t> batch(std::size_t begin, std::size_t count) const {
        callboard::JoinBatch<std::int64_t> batch;
        batch.rows = count;
        batch.sides = sides.data() + begin;
        batch.times = times.data() + begin;
        batch.numbers = numbers.data() + begin;
        batch.values[0] = x.data() + begin;
        batch.values[1] = y.data() + begin;
        return batch;
    }

    // The same rows later.
    void move_on(std::uint64_t by_number, std::int64_t by_time) {
        for (auto& number : numbers) number += by_number;
        for (auto& time : times) time += by_time;
    }
};

inline callboard::JoinPredicate paper_predicate() {
    callboard::JoinPredicate predicate;
    predicate.add(callboard::JoinTerm::band(callboard::NumberType::int32, 10));
    predicate.add(callboard::JoinTerm::band(callboard::NumberType::float32, 10));
    return predicate;
}

}  // namespace bench
