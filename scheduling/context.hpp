// The state of a thread that sends or dispatches. It has its own cache lines, because it is written for each message.
//
// The layer above keeps its state of a thread in a derived type, such as ActorContext; context.pyx makes that type.
#pragma once

#include <cstdint>

#include "callboard/core/memory/node.hpp"
#include "callboard/core/monitoring/sampler.hpp"
#include "callboard/core/threads/spinner.hpp"
#include "callboard/core/tick_clock.hpp"
#include "callboard/scheduling/forward.hpp"

namespace callboard {

struct alignas(cache_line) Context {
    virtual ~Context() = default;

    Worker* worker{nullptr};      // null outside the workers
    std::uint32_t index{0};       // the worker's, if there is one
    Recorder* recorder{nullptr};  // the worker's, if it has one
    Cell* current{nullptr};       // the cell whose message is in work on this thread
    NodeCache nodes;
    std::uint32_t depth{0};   // dispatches within dispatches, by overflow policy `help`
    bool makes_handle{false}; // the runtime makes the next object: see Handle
    Spinner spinner;               // how this thread waits before it sleeps
    void* trace{nullptr};          // called for each message, in a manual system; borrowed
    void* python{nullptr};         // a worker's thread's PyThreadState
    std::uint32_t catching_up{0};  // how many of the next dispatches may be long: see dispatch_length.hpp
    std::int64_t past_quantum{0};  // when the long one in work got there
    Sampler stamps;                // which messages are stamped: see actor_cell.hpp
    TickClock clock;               // of what monitoring measures
    std::int64_t dispatch_began{0}; // when the present dispatch began, or a little earlier; 0: see dispatch_length.hpp
};

}  // namespace callboard
