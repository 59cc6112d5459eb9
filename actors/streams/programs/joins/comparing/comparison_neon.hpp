// Comparing with an interval by NEON, which each aarch64 has: a compare leaves a lane of ones or zeros for each row.
// The lanes of 64 rows are narrowed to bytes, and each byte keeps the bit of its place: added in pairs, three times,
// eight bytes are one.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "callboard/streams/programs/joins/comparing/interval.hpp"

namespace callboard::neon {

inline int32x4_t spread(std::int32_t value) { return vdupq_n_s32(value); }
inline int64x2_t spread(std::int64_t value) { return vdupq_n_s64(value); }
inline float32x4_t spread(float value) { return vdupq_n_f32(value); }
inline float64x2_t spread(double value) { return vdupq_n_f64(value); }

// Four rows.
inline uint32x4_t lanes(const std::int32_t* rows, int32x4_t low, int32x4_t high) {
    const int32x4_t values = vld1q_s32(rows);
    return vandq_u32(vcgeq_s32(values, low), vcleq_s32(values, high));
}
inline uint32x4_t lanes(const float* rows, float32x4_t low, float32x4_t high) {
    const float32x4_t values = vld1q_f32(rows);
    return vandq_u32(vcgeq_f32(values, low), vcleq_f32(values, high));
}
inline uint64x2_t pair(const std::int64_t* rows, int64x2_t low, int64x2_t high) {
    const int64x2_t values = vld1q_s64(rows);
    return vandq_u64(vcgeq_s64(values, low), vcleq_s64(values, high));
}
inline uint64x2_t pair(const double* rows, float64x2_t low, float64x2_t high) {
    const float64x2_t values = vld1q_f64(rows);
    return vandq_u64(vcgeq_f64(values, low), vcleq_f64(values, high));
}
template <class T, class Ends>
uint32x4_t lanes(const T* rows, Ends low, Ends high) {
    return vcombine_u32(vmovn_u64(pair(rows, low, high)), vmovn_u64(pair(rows + 2, low, high)));
}

// Sixteen rows, a byte for each.
template <class T, class Ends>
uint8x16_t bytes(const T* rows, Ends low, Ends high) {
    const uint16x8_t first = vcombine_u16(vmovn_u32(lanes(rows, low, high)), vmovn_u32(lanes(rows + 4, low, high)));
    const uint16x8_t second =
        vcombine_u16(vmovn_u32(lanes(rows + 8, low, high)), vmovn_u32(lanes(rows + 12, low, high)));
    return vcombine_u8(vmovn_u16(first), vmovn_u16(second));
}

template <class T>
std::uint32_t mask_words(const void* rows, const Interval& interval, std::uint32_t words, std::uint64_t* masks) {
    const auto low = spread(interval.low<T>()), high = spread(interval.high<T>());
    const uint8x16_t places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const T* at = static_cast<const T*>(rows);
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < words; ++i, at += 64) {
        const uint8x16_t first = vandq_u8(bytes(at, low, high), places);
        const uint8x16_t second = vandq_u8(bytes(at + 16, low, high), places);
        const uint8x16_t third = vandq_u8(bytes(at + 32, low, high), places);
        const uint8x16_t fourth = vandq_u8(bytes(at + 48, low, high), places);
        const uint8x16_t sums = vpaddq_u8(vpaddq_u8(first, second), vpaddq_u8(third, fourth));
        masks[i] = vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
        found |= std::uint32_t{masks[i] != 0} << i;
    }
    return found;
}

}  // namespace callboard::neon

#endif
