// In place of core/clock.hpp: the clock of the simulated thread.
#pragma once

#include <cstdint>

#include "../../../machine.hpp"

namespace callboard {

inline std::int64_t monotonic_ns() { return simulated::look_at_clock(); }
inline std::int64_t coarse_ns() { return simulated::look_at_clock(); }

}  // namespace callboard
