// The numbers that joins compare: their types, and code that is made once for each of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace callboard {

enum class NumberType : std::uint8_t { int32, int64, float32, float64 };

inline constexpr std::size_t number_types = 4;

constexpr std::uint32_t size_of(NumberType type) {
    return type == NumberType::int32 || type == NumberType::float32 ? 4 : 8;
}

// Calls `use` with a zero of the type.
template <class Use>
decltype(auto) with_type(NumberType type, const Use& use) {
    switch (type) {
    case NumberType::int32: return use(std::int32_t{0});
    case NumberType::int64: return use(std::int64_t{0});
    case NumberType::float32: return use(float{0});
    default: return use(double{0});
    }
}

}  // namespace callboard
