// How far each of several readers is in each of several sources, and so how far a source may go.
//
// A source may be `window` values ahead of its slowest reader. To look at all readers' counts costs a cache line of
// each, so a source remembers the limit and looks again only when it has reached that. Counts only grow: what it
// remembers errs on the safe side.
//
// Progress: wait-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "callboard/core/atomics.hpp"

namespace callboard {

class ReadCounts {
public:
    ReadCounts(unsigned sources, unsigned readers, std::size_t window)
        : window_(static_cast<std::int64_t>(window)), readers_(readers), lines_((sources + in_line - 1) / in_line),
          counts_(new Line[std::size_t{readers} * lines_]) {}

    // The thread of `reader`. It has done with the first `count` values of the source. Release pairs with limit().
    void store(unsigned reader, unsigned source, std::int64_t count) { of(reader, source).store(count, release); }

    // The thread of `source`. It may add so many values in all. Acquire pairs with store(): what lies before has
    // been read.
    std::int64_t limit(unsigned source) const {
        std::int64_t slowest = std::numeric_limits<std::int64_t>::max() - window_;
        for (unsigned reader = 0; reader < readers_; ++reader)
            slowest = std::min(slowest, of(reader, source).load(acquire));
        return slowest + window_;
    }

private:
    static constexpr unsigned in_line = cache_line / sizeof(std::int64_t);
    struct alignas(cache_line) Line {
        Atomic<std::int64_t> counts[in_line]{};
    };

    Atomic<std::int64_t>& of(unsigned reader, unsigned source) const {
        return counts_[std::size_t{reader} * lines_ + source / in_line].counts[source % in_line];
    }

    const std::int64_t window_;
    const unsigned readers_, lines_;        // a reader's
    const std::unique_ptr<Line[]> counts_;  // a reader writes its lines, sources read them
};

}  // namespace callboard
