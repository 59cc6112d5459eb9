// A lane of a join of numbers, whose predicate tells where matches may be: only the rows of a few buckets are
// compared. The answer is that of FullJoin, and in the same order.
//
// Why it is the same.
//   1. A row comes into its bucket before the next row that may see it, and leaves it with the window. So a row finds
//      in buckets only rows that it sees; bucket_grid.hpp says why all matches are in these buckets. A row that leaves
//      its window before that is in no bucket: with a window of length 0 on one side, these are nearly all.
//   2. Rows of a bucket are in the order in which they were stored, and what is found in several buckets is put in
//      order by number. Buckets that share a hash are found twice, and their matches are taken once.
//   3. A row with a NaN is in no bucket and matches nothing.
// One thread at a time. It waits for nobody.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/streams/programs/joins/kernel/bucket_grid.hpp"
#include "callboard/streams/programs/joins/kernel/grid_buckets.hpp"
#include "callboard/streams/programs/joins/kernel/rules.hpp"

namespace callboard {

template <class Time>
class IndexedJoin {
public:
    // For a predicate that divides rows among buckets, BucketGrid::divides(); with others it is right, and slow.
    explicit IndexedJoin(const JoinSettings<Time>& settings, VectorPath path = best_path())
        : comparison_(comparison_of(path)),
          probes_(settings.predicate),
          grid_(settings.predicate, settings.seed),
          windows_(settings, slot_column()),
          buckets_{GridBuckets(JoinColumns::of(settings.predicate)),
                   GridBuckets(JoinColumns::of(settings.predicate))} {}

    // Replaces `matches` by those of the batch, in order of row, and of the partner's number. Throws std::bad_alloc,
    // after which the join is of no use.
    void join(const JoinBatch<Time>& batch, std::vector<JoinMatch>& matches) {
        probes_.read(batch);
        grid_.read(batch, probes_);
        matches.clear();
        for (std::uint32_t side : {0, 1}) waited_[side] = stored_[side] = 0;
        for (std::size_t row = 0; row < std::min(3 * ahead, batch.rows); ++row) fetch(batch, row);
        for (std::size_t row = 0; row < batch.rows; ++row) {
            fetch(batch, row + 3 * ahead);
            const std::uint32_t side = batch.sides[row];
            windows_.take(
                batch, row,
                [&](const JoinWindow<Time>&) {
                    store_waiting(batch, 1 - side);
                    match(buckets_[1 - side], row, matches);
                },
                [&](JoinWindow<Time>&, Time time) {
                    if (grid_.is_number(row)) waiting_[side].push_back({row, time});
                },
                [&](std::uint32_t of, std::uint64_t position) {
                    const std::uint64_t end = windows_.of(of).end();
                    if (position + 2 * ahead < end) buckets_[of].prefetch_slot(slot_at(of, position + 2 * ahead));
                    if (position + ahead < end) buckets_[of].prefetch_bucket(slot_at(of, position + ahead));
                    buckets_[of].pop(slot_at(of, position));
                });
        }
        rows_ += batch.rows;
        for (std::uint32_t side : {0, 1}) {
            store_waiting(batch, side);
            if (waited_[side] != 0) stores_[side] = 2 * stored_[side] >= waited_[side];
        }
        windows_.purge();
    }

    // Puts rows into their windows that were there when another join was saved: before all others.
    void load(const JoinBatch<Time>& batch) {
        probes_.read(batch);
        grid_.read(batch, probes_);
        for (std::size_t row = 0; row < batch.rows; ++row)
            windows_.load(batch, row, [&](JoinWindow<Time>& window, Time time) {
                if (grid_.is_number(row)) store(batch, row, window, time);
            });
    }

    const JoinWindows<Time>& windows() const { return windows_; }
    const GridBuckets& buckets(std::uint32_t side) const { return buckets_[side]; }

    // The number of comparisons of two rows so far, and the number of rows that were compared.
    std::uint64_t compared() const { return compared_; }
    std::uint64_t rows() const { return rows_; }

private:
    static constexpr std::size_t ahead = 8;

    struct Waiting {
        std::size_t row;  // in the batch
        Time time;
    };

    // The window knows only the bucket of a stored row.
    static JoinColumns slot_column() {
        JoinColumns columns;
        columns.add(sizeof(std::uint32_t));
        return columns;
    }

    void store(const JoinBatch<Time>& batch, std::size_t row, JoinWindow<Time>& window, Time time) {
        const std::uint32_t slot =
            buckets_[batch.sides[row]].push(grid_.bucket_of(row), batch.numbers[row], batch.values, row);
        const void* const columns[] = {&slot};
        window.push(time, batch.numbers[row], columns, 0);
    }

    // Rows of a side that no row could see as yet come into their buckets, but for those that nobody will see.
    void store_waiting(const JoinBatch<Time>& batch, std::uint32_t side) {
        for (const Waiting& one : waiting_[side]) {
            if (windows_.has_left(side, one.time)) continue;
            store(batch, one.row, windows_.of(side), one.time);
            ++stored_[side];
        }
        waited_[side] += waiting_[side].size();
        waiting_[side].clear();
    }

    std::uint32_t slot_at(std::uint32_t side, std::uint64_t position) const {
        const JoinWindow<Time>& window = windows_.of(side);
        assert(position < window.end());
        return reinterpret_cast<const std::uint32_t*>(window.column_at(position, 0))[window.place_of(position)];
    }

    // The memory of a row's partners is three steps away: the table's lines, the entries that these name, and rows.
    // Each step is fetched some rows before the next. Where most rows are not stored, their own buckets are left out.
    // Inlined, because GCC drops calls of functions that only prefetch.
    __attribute__((always_inline)) void fetch(const JoinBatch<Time>& batch, std::size_t row) const {
        if (row < batch.rows) {
            const GridBuckets &own = buckets_[batch.sides[row]], &other = buckets_[1 - batch.sides[row]];
            if (stores_[batch.sides[row]]) own.prefetch(grid_.bucket_of(row));
            for (const std::uint64_t bucket : grid_.buckets(row)) other.prefetch(bucket);
        }
        if (row >= ahead && (row -= ahead) < batch.rows) {
            const GridBuckets &own = buckets_[batch.sides[row]], &other = buckets_[1 - batch.sides[row]];
            if (stores_[batch.sides[row]]) own.prefetch_entry(grid_.bucket_of(row));
            for (const std::uint64_t bucket : grid_.buckets(row)) other.prefetch_entry(bucket);
        }
        if (row >= ahead && (row -= ahead) < batch.rows) {
            const GridBuckets &own = buckets_[batch.sides[row]], &other = buckets_[1 - batch.sides[row]];
            if (stores_[batch.sides[row]]) own.prefetch_end(grid_.bucket_of(row));
            for (const std::uint64_t bucket : grid_.buckets(row)) other.prefetch_rows(bucket);
        }
    }

    void match(const GridBuckets& buckets, std::size_t row, std::vector<JoinMatch>& matches) {
        const std::size_t begin = matches.size();
        const auto found = [&](std::uint64_t number) { matches.push_back({static_cast<std::uint32_t>(row), number}); };
        for (const std::uint64_t bucket : grid_.buckets(row))
            compared_ += buckets.match(bucket, probes_.predicate(), probes_.intervals(row), comparison_, found);
        if (grid_.buckets(row).size() < 2 || matches.size() - begin < 2) return;
        const auto first = matches.begin() + static_cast<std::ptrdiff_t>(begin);
        std::sort(first, matches.end(), [](const JoinMatch& one, const JoinMatch& other) {
            return one.partner < other.partner;
        });
        matches.erase(std::unique(first, matches.end()), matches.end());
    }

    const BlockComparison comparison_;
    JoinProbes probes_;
    BucketGrid grid_;
    JoinWindows<Time> windows_;
    GridBuckets buckets_[2];
    std::vector<Waiting> waiting_[2];        // of the batch in work
    std::size_t waited_[2]{}, stored_[2]{};  // rows of the batch that have waited, and those that came into a bucket
    bool stores_[2]{true, true};             // whether most of them did, in the latest batch with any
    std::uint64_t compared_{0}, rows_{0};
};

}  // namespace callboard
