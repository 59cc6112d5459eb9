// Outputs of the rounds in flight, which leave in the order of their serial numbers.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

namespace callboard {

// `Buffer` is a reorder buffer (mailbox/ordered/reorder.hpp).
template <template <class> class Buffer>
class RoundsInOrder {
public:
    // Twice the window, because the buffer announces late which rounds have left it. So it takes every
    // round in flight.
    explicit RoundsInOrder(std::uint32_t window) : buffer_(2 * window) {}

    template <class Sink>
    void send(std::int64_t serial, void* output, Sink&& sink) {
        [[maybe_unused]] const bool fits = buffer_.send(serial, std::move(output), sink);
        assert(fits);
    }

private:
    Buffer<void*> buffer_;
};

}  // namespace callboard
