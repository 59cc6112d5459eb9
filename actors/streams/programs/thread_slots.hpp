// The slots of a table: each thread has one, and finds it without a lock.
//
// A thread looks for a number that it wrote itself. So whether it sees those of others, or not yet, does not
// matter, and all is relaxed. It took its slot under the table's lock, after it saw all slots before it taken.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

class ThreadSlots {
public:
    static constexpr std::size_t most = 64;  // as many as a pool has lanes

    // Returns the slot of the thread with this number, which is not 0; `most`: it has none.
    std::size_t find(std::uint64_t thread) const {
        assert(thread != 0);
        for (std::size_t slot = 0; slot < most; ++slot) {
            const auto owner = owners_[slot].load(relaxed);
            if (owner == thread) return slot;
            if (owner == 0) break;
        }
        return most;
    }

    // Called by that thread under the table's lock, if it has no slot. Returns `most` if all are taken.
    std::size_t take(std::uint64_t thread) {
        assert(find(thread) == most);
        for (std::size_t slot = 0; slot < most; ++slot) {
            if (owners_[slot].load(relaxed) != 0) continue;
            owners_[slot].store(thread, relaxed);
            return slot;
        }
        return most;
    }

private:
    Atomic<std::uint64_t> owners_[most]{};
};

}  // namespace callboard
