// The numbers of the arrows of traces.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

// Any thread.
class ArrowNumbers {
public:
    // 0 is none.
    std::uint32_t next() {
        const std::uint32_t number = last_.fetch_add(1, relaxed) + 1;
        return number != 0 ? number : next();
    }

private:
    Atomic<std::uint32_t> last_{0};
};

}  // namespace callboard
