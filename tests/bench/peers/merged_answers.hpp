// Summaries of two streams as a summary of both: Das et al. 2009, section 3.1; Agarwal et al. 2012, "Mergeable
// summaries", section 3, for the bound.
//
// If only one side has a counter for a key, the key came to the other side at most `unseen` times. That side's
// `unseen` is added to the key's count and to its error. The `capacity` greatest sums are kept. A dropped key came
// at most as often as the greatest dropped count says. A key that neither side has came at most as often as the sum
// of both `unseen`, and no dropped count is below that sum.
//
// Why that is still at most N / C, for C counters: let u be the sum of both `unseen`. No count is below its side's
// `unseen`. A side whose `unseen` is not 0 has C counters, whose counts add up to its part of N or less. So the
// excesses of the sums above u are together at most N - C u. If the greatest dropped sum exceeds u by d, each of
// the C kept sums exceeds it by at least d: (C + 1) d <= N - C u, and u + d <= (N + u) / (C + 1) <= N / C, for u <=
// N / C. The assumptions about each side hold for the result: no kept count is below the new `unseen`, there are C
// if that is not 0, and they add up to at most C u + N - C u. So a merged summary may be merged again.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "callboard/core/memory/slot_index.hpp"
#include "callboard/frequency/designs/summary.hpp"

namespace callboard {

// All rows of two summaries, of at most `capacity` each; those of the answer are in no order.
template <class Keys>
typename Summary<Keys>::Answer merge(typename Summary<Keys>::Answer one, typename Summary<Keys>::Answer other,
                                     std::size_t capacity, std::uint64_t seed) {
    using Row = typename Summary<Keys>::Row;
    std::vector<Row>& rows = one.rows;
    const std::size_t own = rows.size();
    rows.reserve(own + other.rows.size());
    SlotIndex index;
    const auto hash_of = [&](std::uint32_t slot) { return Keys::hash(seed, Keys::probe_of(rows[slot].key)); };
    for (std::size_t i = 0; i < own; ++i) {
        index.make_room(hash_of);
        index.insert(hash_of(static_cast<std::uint32_t>(i)), static_cast<std::uint32_t>(i));
        rows[i].count += other.unseen;  // until the key is found there
        rows[i].error += other.unseen;
    }
    for (Row& row : other.rows) {
        const auto key = Keys::probe_of(row.key);
        const std::uint32_t slot = index.find(Keys::hash(seed, key), [&](std::uint32_t slot) {
            return Keys::same(Keys::probe_of(rows[slot].key), key);
        });
        if (slot == SlotIndex::none) {
            rows.push_back({std::move(row.key), row.count + one.unseen, row.error + one.unseen});
        } else {
            rows[slot].count += row.count - other.unseen;
            rows[slot].error += row.error - other.unseen;
        }
    }
    one.total += other.total;
    one.unseen += other.unseen;
    if (rows.size() > capacity) {
        const auto is_before = [](const Row& a, const Row& b) { return a.count > b.count; };
        const auto dropped = rows.begin() + static_cast<std::ptrdiff_t>(capacity);
        std::nth_element(rows.begin(), dropped, rows.end(), is_before);
        one.unseen = dropped->count;
        rows.erase(dropped, rows.end());
    }
    return one;
}

// As a tree: the first with the second, the third with the fourth, and so on. There is at least one.
template <class Keys>
typename Summary<Keys>::Answer merge_all(std::vector<typename Summary<Keys>::Answer> answers, std::size_t capacity,
                                         std::uint64_t seed) {
    for (std::size_t step = 1; step < answers.size(); step *= 2)
        for (std::size_t i = 0; i + step < answers.size(); i += 2 * step)
            answers[i] = merge<Keys>(std::move(answers[i]), std::move(answers[i + step]), capacity, seed);
    return std::move(answers.front());
}

}  // namespace callboard
