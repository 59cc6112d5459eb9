// Which of a thread's messages are samples.
#pragma once

#include <cassert>
#include <cstdint>

namespace callboard {

// One thread's. The distances are random: with equal ones, an actor that tells two others by turns would have samples
// of one of them alone.
class Sampler {
public:
    // Whether the next message is a sample. One of `every` is, on average.
    bool takes(std::uint32_t every) {
        assert(every != 0 && every < 1u << 31);
        const std::uint32_t most = 2 * every - 1;
        if (every != every_) {  // of another system: messages that take turns are samples with a chance of their own
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
    std::uint64_t state_{0x9e3779b97f4a7c15 ^ reinterpret_cast<std::uintptr_t>(this)};  // each thread's is another
};

}  // namespace callboard
