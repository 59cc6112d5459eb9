// Comparing with an interval by AVX-512: a compare leaves a bit for each row, so the masks of 64 rows are put
// together without leaving the mask registers. Of integers, low <= x <= high is one unsigned comparison,
// x - low <= high - low. The interval is not empty.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "callboard/streams/joining/interval.hpp"

#define CALLBOARD_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace callboard::avx512 {

struct Ends32 {
    __m512i low, span;
};
struct Ends64 {
    __m512i low, span;
};
struct EndsFloat {
    __m512 low, high;
};
struct EndsDouble {
    __m512d low, high;
};

CALLBOARD_AVX512 inline Ends32 spread(std::int32_t low, std::int32_t high) {
    const auto span = static_cast<std::uint32_t>(high) - static_cast<std::uint32_t>(low);
    return {_mm512_set1_epi32(low), _mm512_set1_epi32(static_cast<std::int32_t>(span))};
}
CALLBOARD_AVX512 inline Ends64 spread(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return {_mm512_set1_epi64(low), _mm512_set1_epi64(static_cast<std::int64_t>(span))};
}
CALLBOARD_AVX512 inline EndsFloat spread(float low, float high) { return {_mm512_set1_ps(low), _mm512_set1_ps(high)}; }
CALLBOARD_AVX512 inline EndsDouble spread(double low, double high) {
    return {_mm512_set1_pd(low), _mm512_set1_pd(high)};
}

CALLBOARD_AVX512 inline __mmask16 mask(const std::int32_t* rows, const Ends32& ends) {
    return _mm512_cmple_epu32_mask(_mm512_sub_epi32(_mm512_loadu_si512(rows), ends.low), ends.span);
}
CALLBOARD_AVX512 inline __mmask8 mask(const std::int64_t* rows, const Ends64& ends) {
    return _mm512_cmple_epu64_mask(_mm512_sub_epi64(_mm512_loadu_si512(rows), ends.low), ends.span);
}
CALLBOARD_AVX512 inline __mmask16 mask(const float* rows, const EndsFloat& ends) {
    const __m512 values = _mm512_loadu_ps(rows);
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(values, ends.low, _CMP_GE_OQ), values, ends.high, _CMP_LE_OQ);
}
CALLBOARD_AVX512 inline __mmask8 mask(const double* rows, const EndsDouble& ends) {
    const __m512d values = _mm512_loadu_pd(rows);
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(values, ends.low, _CMP_GE_OQ), values, ends.high, _CMP_LE_OQ);
}

// The masks of 16 rows each, or of 8.
template <class T, class Ends>
CALLBOARD_AVX512 inline __mmask16 mask_16(const T* rows, const Ends& ends) {
    if constexpr (sizeof(T) == 4) return mask(rows, ends);
    else return _mm512_kunpackb(mask(rows + 8, ends), mask(rows, ends));
}

template <class T>
CALLBOARD_AVX512 std::uint32_t mask_words(const void* rows, const Interval& interval, std::uint32_t words,
                                          std::uint64_t* masks) {
    const auto ends = spread(interval.low<T>(), interval.high<T>());
    const T* at = static_cast<const T*>(rows);
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < words; ++i, at += 64) {
        const __mmask32 first = _mm512_kunpackw(mask_16(at + 16, ends), mask_16(at, ends));
        const __mmask32 second = _mm512_kunpackw(mask_16(at + 48, ends), mask_16(at + 32, ends));
        masks[i] = _mm512_kunpackd(second, first);
        found |= std::uint32_t{masks[i] != 0} << i;
    }
    return found;
}

}  // namespace callboard::avx512

#undef CALLBOARD_AVX512

#endif
