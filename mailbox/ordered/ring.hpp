// A ring of slots that are addressed by serial number, as the bounded structures of streams use it.
//
// The capacity is rounded up to a power of two, so that a serial number finds its slot with one mask.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace callboard {

template <class Slot>
class Ring {
public:
    explicit Ring(std::size_t at_least) : mask_(power_of_two(at_least) - 1), slots_(new Slot[mask_ + 1]) {}

    Slot& operator[](std::int64_t serial) const {
        assert(serial >= 0);
        return slots_[static_cast<std::size_t>(serial) & mask_];
    }
    std::int64_t capacity() const { return static_cast<std::int64_t>(mask_) + 1; }

private:
    static std::size_t power_of_two(std::size_t at_least) {
        assert(at_least <= ~std::size_t{0} / 2 + 1);
        std::size_t power = 1;
        while (power < at_least) power *= 2;
        assert((power & (power - 1)) == 0 && power >= at_least);
        return power;
    }

    const std::size_t mask_;
    const std::unique_ptr<Slot[]> slots_;
};

}  // namespace callboard
