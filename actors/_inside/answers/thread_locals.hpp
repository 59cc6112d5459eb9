// The actor layer's state of each thread, and the numbers of a trace's arrows.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/monitoring/sampler.hpp"
#include "callboard/scheduling/context.hpp"

namespace callboard {

// Every Context is one: see thread_locals.pyx. Its pointers are to Python objects, and borrowed.
struct ActorContext : Context {
    std::uint64_t woken{0};           // waits at channels that the thread has ended
    std::uint32_t sent{0};            // by a thread outside the workers, since it let them run last
    bool on_event_loop{false};        // the thread is that of a system's event loop
    Sampler sampler;                  // of the messages that it sends while a trace is recorded
    std::uint32_t completing_at{0};   // the depth of the dispatch that the next one is of
    void* completing{nullptr};        // futures that are done, whose callbacks are to be called
    void* constructing{nullptr};      // the ref whose native actor is being made
    void* awaited{nullptr};           // the future that a task on an event loop has begun to wait for
};

// Any thread.
class ArrowNumbers {
public:
    // 0: none.
    std::uint32_t next() {
        const std::uint32_t number = last_.fetch_add(1, relaxed) + 1;
        return number != 0 ? number : next();
    }

private:
    Atomic<std::uint32_t> last_{0};
};

}  // namespace callboard
