// The scheduler's types by name alone, for modules that only hand pointers on: an edit of a type rebuilds only
// the modules that look inside.
#pragma once

#include <cstdint>

namespace callboard {

struct Cell;
struct Context;
class Recorder;
struct TeamState;
struct Worker;

// The outcome of a dispatch: the runner still has the readiness (`more`), or gave it up (`done`).
enum class Outcome : std::uint8_t { done, more };

// Dispatches a cell for at most `quantum` messages. Python cells: with the interpreter attached.
using Run = Outcome (*)(Cell*, Context*, std::uint32_t quantum);

}  // namespace callboard
