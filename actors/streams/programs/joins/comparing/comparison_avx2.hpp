// Comparing with an interval by AVX2: a compare leaves a whole lane of ones or zeros for each row, of which the
// highest bits are gathered. Integers are compared with > only: values outside are found, and the result is inverted.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "callboard/streams/programs/joins/comparing/interval.hpp"

#define CALLBOARD_AVX2 __attribute__((target("avx2")))

namespace callboard::avx2 {

// Eight rows of 4 bytes, or four of 8: a bit for each.
CALLBOARD_AVX2 inline unsigned mask(const std::int32_t* rows, __m256i low, __m256i high) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    const __m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(low, values), _mm256_cmpgt_epi32(values, high));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(out))) ^ 0xffu;
}
CALLBOARD_AVX2 inline unsigned mask(const std::int64_t* rows, __m256i low, __m256i high) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    const __m256i out = _mm256_or_si256(_mm256_cmpgt_epi64(low, values), _mm256_cmpgt_epi64(values, high));
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(out))) ^ 0xfu;
}
CALLBOARD_AVX2 inline unsigned mask(const float* rows, __m256 low, __m256 high) {
    const __m256 values = _mm256_loadu_ps(rows);
    const __m256 in = _mm256_and_ps(_mm256_cmp_ps(values, low, _CMP_GE_OQ), _mm256_cmp_ps(values, high, _CMP_LE_OQ));
    return static_cast<unsigned>(_mm256_movemask_ps(in));
}
CALLBOARD_AVX2 inline unsigned mask(const double* rows, __m256d low, __m256d high) {
    const __m256d values = _mm256_loadu_pd(rows);
    const __m256d in = _mm256_and_pd(_mm256_cmp_pd(values, low, _CMP_GE_OQ), _mm256_cmp_pd(values, high, _CMP_LE_OQ));
    return static_cast<unsigned>(_mm256_movemask_pd(in));
}

CALLBOARD_AVX2 inline __m256i spread(std::int32_t value) { return _mm256_set1_epi32(value); }
CALLBOARD_AVX2 inline __m256i spread(std::int64_t value) { return _mm256_set1_epi64x(value); }
CALLBOARD_AVX2 inline __m256 spread(float value) { return _mm256_set1_ps(value); }
CALLBOARD_AVX2 inline __m256d spread(double value) { return _mm256_set1_pd(value); }

template <class T>
CALLBOARD_AVX2 std::uint32_t mask_words(const void* rows, const Interval& interval, std::uint32_t words,
                                        std::uint64_t* masks) {
    constexpr unsigned lanes = 32 / sizeof(T);
    const auto low = spread(interval.low<T>()), high = spread(interval.high<T>());
    const T* at = static_cast<const T*>(rows);
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < words; ++i, at += 64) {
        std::uint64_t word = 0;
        for (unsigned row = 0; row < 64; row += lanes) word |= std::uint64_t{mask(at + row, low, high)} << row;
        masks[i] = word;
        found |= std::uint32_t{word != 0} << i;
    }
    return found;
}

}  // namespace callboard::avx2

#undef CALLBOARD_AVX2

#endif
