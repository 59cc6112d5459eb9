// A lane of a join of numbers, which compares everything: Gulisano et al., "ScaleJoin", algorithm 1.
//
// The paper takes row after row, and each one walks through the whole window, which is larger than the first cache.
// Here a batch's rows are stored first, and each knows which positions of the other window it sees. Then that window
// is walked through block by block, and a block meets all rows of the batch that see some of it, while it is in
// the first cache.
//
// Why the answer is that of row after row.
//   1. A row's view is noted when it comes, between the rows before and after it in the sequence, also those of its
//      own batch. It is positions, from the first row that is still in the window to the last that was stored.
//   2. Memory of rows that left is kept until the batch's end.
//   3. Both ends only grow from row to row, so the rows that see some of a block are neighbours.
//   4. A row meets blocks in order, so its matches are in order of number; a stable sort by row does the rest.
// One thread at a time. It waits for nobody.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/streams/programs/joins/comparing/comparison.hpp"
#include "callboard/streams/programs/joins/kernel/probes.hpp"
#include "callboard/streams/programs/joins/kernel/rules.hpp"

namespace callboard {

template <class Time>
class FullJoin {
public:
    explicit FullJoin(const JoinSettings<Time>& settings, VectorPath path = best_path())
        : comparison_(comparison_of(path)),
          probes_(settings.predicate),
          windows_(settings, JoinColumns::of(settings.predicate)) {}

    // Replaces `matches` by those of the batch, in order of row, and of the partner's number. Throws std::bad_alloc,
    // after which the join is of no use.
    void join(const JoinBatch<Time>& batch, std::vector<JoinMatch>& matches) {
        probes_.read(batch);
        found_.clear();
        for (auto& seen : seen_) seen.clear();
        for (std::size_t row = 0; row < batch.rows; ++row)
            windows_.take(
                batch, row,
                [&](const JoinWindow<Time>& window) {
                    if (window.begin() == window.end() || !probes_.is_possible(row)) return;
                    compared_ += window.end() - window.begin();
                    seen_[batch.sides[row]].push_back({window.begin(), window.end(), static_cast<std::uint32_t>(row)});
                },
                [&](JoinWindow<Time>& window, Time time) { store(batch, row, window, time); },
                [](std::uint32_t, std::uint64_t) {});
        for (std::uint32_t side : {0u, 1u}) compare(seen_[side], windows_.of(1 - side));
        sort_by_row(batch.rows, matches);
        windows_.purge();
    }

    // Puts rows into their windows that were there when another join was saved: before all others.
    void load(const JoinBatch<Time>& batch) {
        for (std::size_t row = 0; row < batch.rows; ++row)
            windows_.load(batch, row, [&](JoinWindow<Time>& window, Time time) { store(batch, row, window, time); });
    }

    const JoinWindows<Time>& windows() const { return windows_; }

    // The number of comparisons of two rows so far.
    std::uint64_t compared() const { return compared_; }

private:
    static constexpr std::uint32_t words = BlockArena::rows / 64;

    struct Seen {
        std::uint64_t begin, end;
        std::uint32_t row;
    };

    static void store(const JoinBatch<Time>& batch, std::size_t row, JoinWindow<Time>& window, Time time) {
        window.push(time, batch.numbers[row], batch.values, row);
    }

    void compare(const std::vector<Seen>& seen, const JoinWindow<Time>& window) {
        if (seen.empty()) return;
        std::size_t first = 0, last = 0;
        for (std::uint64_t begin = seen[0].begin - window.place_of(seen[0].begin);; begin += BlockArena::rows) {
            while (first != seen.size() && seen[first].end <= begin) ++first;
            if (first == seen.size()) return;
            while (last != seen.size() && seen[last].begin < begin + BlockArena::rows) ++last;
            for (std::size_t i = first; i < last; ++i) compare_block(seen[i], window, begin);
        }
    }

    void compare_block(const Seen& seen, const JoinWindow<Time>& window, std::uint64_t block) {
        const auto begin = static_cast<std::uint32_t>(std::max(seen.begin, block) - block);
        const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(seen.end - block, BlockArena::rows));
        assert(begin < end && end <= BlockArena::rows && "the row sees some of the block");
        const std::uint32_t first_word = begin / 64, end_word = (end + 63) / 64;
        const Interval* const intervals = probes_.intervals(seen.row);
        const JoinPredicate& predicate = probes_.predicate();
        const auto column = [&](std::uint32_t term, std::uint32_t word) {
            return window.column_at(block, term) + std::size_t{64} * word * size_of(predicate.terms[term].type);
        };

        std::uint64_t masks[words];
        std::uint32_t found = comparison_.words_of(predicate.terms[0].type)(
            column(0, first_word), intervals[0], end_word - first_word, masks);
        if (found == 0) return;
        masks[0] &= ~std::uint64_t{0} << begin % 64;
        masks[end_word - 1 - first_word] &= ~std::uint64_t{0} >> (64 - end % 64) % 64;
        for (std::uint32_t term = 1; term < predicate.count; ++term) {
            const auto mask_words = comparison_.words_of(predicate.terms[term].type);
            std::uint32_t left = 0;
            for (std::uint32_t some = found; some != 0; some &= some - 1) {
                const auto word = static_cast<std::uint32_t>(__builtin_ctz(some));
                std::uint64_t mask;
                mask_words(column(term, first_word + word), intervals[term], 1, &mask);
                masks[word] &= mask;
                left |= std::uint32_t{masks[word] != 0} << word;
            }
            if (left == 0) return;
            found = left;
        }
        const std::uint64_t* const numbers = window.numbers_at(block) + 64 * first_word;
        for (; found != 0; found &= found - 1) {
            const auto word = static_cast<std::uint32_t>(__builtin_ctz(found));
            for (std::uint64_t mask = masks[word]; mask != 0; mask &= mask - 1)
                found_.push_back({seen.row, numbers[64 * word + static_cast<std::uint32_t>(__builtin_ctzll(mask))]});
        }
    }

    // Each row's matches stay in their order.
    void sort_by_row(std::size_t rows, std::vector<JoinMatch>& matches) {
        ends_.assign(rows + 1, 0);
        for (const JoinMatch& match : found_) ++ends_[match.row + 1];
        for (std::size_t row = 0; row < rows; ++row) ends_[row + 1] += ends_[row];
        matches.resize(found_.size());
        for (const JoinMatch& match : found_) matches[ends_[match.row]++] = match;
    }

    const BlockComparison comparison_;
    JoinProbes probes_;
    JoinWindows<Time> windows_;
    std::vector<Seen> seen_[2];  // by rows of one side
    std::vector<JoinMatch> found_;
    std::vector<std::size_t> ends_;
    std::uint64_t compared_{0};
};

}  // namespace callboard
