// The choice of a join: FullJoin, whose cost is the window's, or IndexedJoin. The latter costs a few looks into
// memory, and the rows in the buckets that it looks into.
//
// The figures are what tests/native/bench/bench_join.cpp measured on an EPYC of the fourth generation, in
// nanoseconds for a row. They are good enough for the choice, as the costs mostly lie far apart. From about 1,500
// rows in the window on the index is quicker, unless values crowd in few buckets.
#pragma once

#include <cstdint>

#include "callboard/streams/programs/joins/comparing/comparison.hpp"
#include "callboard/streams/programs/joins/kernel/bucket_grid.hpp"

namespace callboard {

constexpr double ns_of_comparison(VectorPath path) {
    switch (path) {
    case VectorPath::avx512: return 0.06;
    case VectorPath::avx2: return 0.12;
    case VectorPath::neon: return 0.25;  // not measured
    default: return 1.3;
    }
}

// `window_rows` are seen by a row, on average; of these the index compares `compared_rows` with it: in a join that
// runs, IndexedJoin::compared() / rows().
inline bool prefers_index(const JoinPredicate& predicate, VectorPath path, double window_rows,
                          double compared_rows = 0) {
    constexpr double looks = 100, compared = 0.5, row = 40;  // the last is what a full join does besides
    if (!BucketGrid(predicate).divides()) return false;
    return looks + compared * compared_rows < row + ns_of_comparison(path) * window_rows;
}

}  // namespace callboard
