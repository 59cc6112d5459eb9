// The guarantees of a summary's design, checked against exact counts; and keys of both sorts to count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/frequency/counting/keys.hpp"
#include "callboard/frequency/designs/summary.hpp"
#include "check.hpp"

namespace summaries {

// Keys by number: the integer itself, or a text of which some are longer than others.
struct Integers {
    using Keys = callboard::IntegerKeys;
    explicit Integers(std::int64_t) {}
    std::int64_t probe(std::int64_t number) const { return number * 1000003; }
    static std::int64_t number(std::int64_t key) { return key % 1000003 == 0 ? key / 1000003 : -1; }
};

class Texts {
public:
    using Keys = callboard::ByteKeys;
    explicit Texts(std::int64_t numbers) {
        for (std::int64_t i = 0; i < numbers; ++i)
            texts_.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i % 7 * i % 50), 'x'));
    }
    callboard::ByteRun probe(std::int64_t number) const {
        const std::string& text = texts_[static_cast<std::size_t>(number)];
        return {text.data(), static_cast<std::uint32_t>(text.size()), 1};
    }
    std::int64_t number(const callboard::ByteKeys::Copy& key) const {
        const std::size_t digits = std::min(key.data.find('x'), key.data.size());
        if (digits == 0 || digits > 9 || key.kind != 1) return -1;
        const std::int64_t number = std::stoll(key.data.substr(0, digits));
        return number < static_cast<std::int64_t>(texts_.size()) && texts_[static_cast<std::size_t>(number)] == key.data
                   ? number
                   : -1;
    }

private:
    std::vector<std::string> texts_;
};

// The lower of several draws: skewed.
inline std::int64_t draw(std::uint64_t stream, std::uint64_t index, std::int64_t below, int skew) {
    std::int64_t least = below;
    for (int i = 0; i <= skew; ++i)
        least = std::min(least, static_cast<std::int64_t>(
                                    callboard::random_number(stream, index * 8 + static_cast<std::uint64_t>(i)) >> 1) %
                                    below);
    return least;
}

// An answer while streams count: in order, of keys that there are, none of them twice, nothing above the total, where
// counts add up to it.
template <class Sort, class Answer>
void is_sound(const Sort& sort, const Answer& answer, std::size_t most, bool adds_up = true) {
    CHECK(answer.rows.size() <= most);
    std::set<std::int64_t> seen;
    std::uint64_t last = ~std::uint64_t{0};
    for (const auto& row : answer.rows) {
        CHECK(row.count <= last);
        CHECK((adds_up ? row.count : row.count - row.error) <= answer.total);
        CHECK(row.error < row.count);
        last = row.count;
        const std::int64_t number = sort.number(row.key);
        CHECK(number >= 0);
        CHECK(seen.insert(number).second);
    }
}

// A summary in which no thread counts, of at most so many counters, against exact counts by number.
template <class Sort, class Summary>
void holds(const Sort& sort, Summary& summary, const std::vector<std::uint64_t>& exact, std::uint64_t capacity) {
    std::uint64_t total = 0, sum = 0;
    for (const std::uint64_t times : exact) total += times;
    CHECK_EQUAL(summary.total(), total);
    const auto answer = summary.ask(~std::size_t{0} >> 8, 0);
    is_sound(sort, answer, capacity);
    CHECK_EQUAL(answer.total, total);
    CHECK_EQUAL(answer.rows.size(), std::size_t{summary.size()});
    const std::uint64_t bound = total / capacity;
    CHECK(answer.unseen <= bound);
    std::set<std::int64_t> counted;
    for (const auto& row : answer.rows) {
        sum += row.count;
        const std::int64_t number = sort.number(row.key);
        if (number < 0) continue;  // is_sound() said so
        counted.insert(number);
        const std::uint64_t times = exact[static_cast<std::size_t>(number)];
        CHECK(times <= row.count);
        CHECK(times + row.error >= row.count);
        CHECK(row.error <= bound);
        CHECK(row.count >= answer.unseen);
        const auto estimate = summary.estimate(sort.probe(number));
        CHECK(estimate.has_counter);
        CHECK_EQUAL(estimate.count, row.count);
        CHECK_EQUAL(estimate.error, row.error);
    }
    CHECK_EQUAL(sum, total);
    for (std::size_t number = 0; number < exact.size(); ++number) {
        if (counted.count(static_cast<std::int64_t>(number)) != 0) continue;
        CHECK(exact[number] <= answer.unseen);
        const auto estimate = summary.estimate(sort.probe(static_cast<std::int64_t>(number)));
        CHECK(!estimate.has_counter);
        CHECK_EQUAL(estimate.count, answer.unseen);
    }
}

// The same of Lossy Counting with rounds of so many elements.
template <class Sort, class Summary>
void holds_lossy(const Sort& sort, Summary& summary, const std::vector<std::uint64_t>& exact, std::uint64_t width) {
    std::uint64_t total = 0;
    for (const std::uint64_t times : exact) total += times;
    CHECK_EQUAL(summary.total(), total);
    const auto answer = summary.ask(~std::size_t{0} >> 8, 0);
    CHECK_EQUAL(answer.total, total);
    CHECK_EQUAL(answer.rows.size(), std::size_t{summary.size()});
    CHECK_EQUAL(answer.unseen, total / width);
    std::set<std::int64_t> counted;
    for (const auto& row : answer.rows) {
        const std::int64_t number = sort.number(row.key);
        CHECK(number >= 0);
        CHECK(counted.insert(number).second);
        const std::uint64_t times = exact[static_cast<std::size_t>(number)];
        CHECK(times <= row.count);
        CHECK(times + row.error >= row.count);
        CHECK(row.error <= answer.unseen);
    }
    for (std::size_t number = 0; number < exact.size(); ++number)
        if (counted.count(static_cast<std::int64_t>(number)) == 0) CHECK(exact[number] <= answer.unseen);
}

}  // namespace summaries
