// Decides which messages are sampled for monitoring.
#pragma once

#include <cassert>
#include <cstdint>

namespace callboard {

// For one thread. The distances are random: with equal ones, an actor that alternates between two receivers would have
// samples of only one of them.
class Sampler {
public:
    // Whether the next message is a sample. One of `every` is, on average.
    bool takes(std::uint32_t every) {
        assert(every != 0 && every < 1u << 31);
        const std::uint32_t most = 2 * every - 1;
        if (every != every_) {  // another system's: alternating messages are sampled independently
            every_ = every;
            left_ = 0;
            return distance(every) == 1;
        }
        if (left_ == 0) left_ = distance(most);
        if (--left_ != 0) return false;
        left_ = distance(most);
        return true;
    }

private:
    // From 1 to `most`, by a xorshift (Marsaglia 2003).
    std::uint32_t distance(std::uint32_t most) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>((state_ >> 32) % most) + 1;
    }

    std::uint32_t every_{0}, left_{0};
    std::uint64_t state_{0x9e3779b97f4a7c15 ^ reinterpret_cast<std::uintptr_t>(this)};  // different in each thread
};

}  // namespace callboard
