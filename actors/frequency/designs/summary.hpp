// The interface of every design of a summary: streams count keys in it, and any thread asks for the frequent keys.
//
// For N elements, weights included, with C counters:
//   1. No count is below the key's true one, and none above it by more than `error`, which is at most N / C.
//   2. A key without a counter came at most `unseen` times, which is at most N / C.
//   3. While no thread counts, the counts add up to N or less, and an answer has all counted keys.
// Each design says which of the elements that are being counted at the time are in an answer.
//
// A key's count begins with how often it may have come unseen, so that is its error, too.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace callboard {

struct KeyEstimate {
    std::uint64_t count, error;
    bool has_counter;
};

template <class Keys>
class Summary {
public:
    using Probe = typename Keys::Probe;
    struct Row {
        typename Keys::Copy key;
        std::uint64_t count, error;
    };
    struct Answer {
        std::vector<Row> rows;  // the greatest count first
        std::uint64_t total, unseen;
    };
    using Estimate = KeyEstimate;

    Summary() = default;
    Summary(const Summary&) = delete;
    virtual ~Summary() = default;

    // Each key came as often as its weight says, which is not 0, or once if there are no weights. For each stream one
    // thread at a time. The caller ensures that the total stays below 2**63. Throws std::bad_alloc; then some of the
    // keys were counted.
    virtual void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) = 0;

    // The same; false if it throws.
    bool try_add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) noexcept {
        try {
            add(stream, keys, weights, count);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    // Any thread, while streams count. At most `most` keys whose counts are above this fraction of the total at the
    // beginning. The answer's total is that at the end.
    virtual Answer ask(std::size_t most, double support) = 0;
    virtual Estimate estimate(const Probe& key) = 0;
    virtual std::uint64_t total() = 0;
    virtual std::uint32_t size() = 0;

    // Before anything is counted: the answer of another summary, with all of its rows that are not below its `unseen`.
    // There is room for them.
    virtual void load(const Answer& state) = 0;
};

// The whole part of support * total, without rounding; `support` is from 0 to below 1.
inline std::uint64_t part_of(double support, std::uint64_t total) {
    assert(support >= 0 && support < 1 && total >> 63 == 0);
    int exponent = 0;
    const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(support, &exponent), 53));
    const int shift = 53 - exponent;
    return shift > 116 ? 0 : static_cast<std::uint64_t>(static_cast<unsigned __int128>(digits) * total >> shift);
}

// Leaves the rows with the greatest counts, the greatest first.
template <class Row>
void keep_greatest(std::vector<Row>& rows, std::size_t most) {
    const auto is_before = [](const Row& a, const Row& b) { return a.count > b.count; };
    if (rows.size() > most) {
        std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end(), is_before);
        rows.resize(most);
    }
    std::sort(rows.begin(), rows.end(), is_before);
}

}  // namespace callboard
