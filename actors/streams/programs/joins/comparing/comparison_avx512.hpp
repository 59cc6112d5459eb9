// Comparing with an interval by AVX-512: a compare leaves a bit for each row, so the masks of 64 rows are put
// together without leaving the mask registers. For integers, low <= x <= high is one unsigned comparison, x - low
// <= high - low. The interval is not empty.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "callboard/streams/programs/joins/comparing/interval.hpp"

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

CALLBOARD_AVX512 inline __m512i load(const std::int32_t* rows) { return _mm512_loadu_si512(rows); }
CALLBOARD_AVX512 inline __m512i load(const std::int64_t* rows) { return _mm512_loadu_si512(rows); }
CALLBOARD_AVX512 inline __m512 load(const float* rows) { return _mm512_loadu_ps(rows); }
CALLBOARD_AVX512 inline __m512d load(const double* rows) { return _mm512_loadu_pd(rows); }

// Fewer rows: memory after them is not read.
CALLBOARD_AVX512 inline __m512i load_some(const std::int32_t* rows, unsigned some) {
    return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(some), rows);
}
CALLBOARD_AVX512 inline __m512i load_some(const std::int64_t* rows, unsigned some) {
    return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(some), rows);
}
CALLBOARD_AVX512 inline __m512 load_some(const float* rows, unsigned some) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(some), rows);
}
CALLBOARD_AVX512 inline __m512d load_some(const double* rows, unsigned some) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(some), rows);
}

CALLBOARD_AVX512 inline __mmask16 mask(__m512i values, const Ends32& ends) {
    return _mm512_cmple_epu32_mask(_mm512_sub_epi32(values, ends.low), ends.span);
}
CALLBOARD_AVX512 inline __mmask8 mask(__m512i values, const Ends64& ends) {
    return _mm512_cmple_epu64_mask(_mm512_sub_epi64(values, ends.low), ends.span);
}
CALLBOARD_AVX512 inline __mmask16 mask(__m512 values, const EndsFloat& ends) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(values, ends.low, _CMP_GE_OQ), values, ends.high, _CMP_LE_OQ);
}
CALLBOARD_AVX512 inline __mmask8 mask(__m512d values, const EndsDouble& ends) {
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(values, ends.low, _CMP_GE_OQ), values, ends.high, _CMP_LE_OQ);
}

// The masks of 16 rows each, or of 8.
template <class T, class Ends>
CALLBOARD_AVX512 inline __mmask16 mask_16(const T* rows, const Ends& ends) {
    if constexpr (sizeof(T) == 4) return mask(load(rows), ends);
    else return _mm512_kunpackb(mask(load(rows + 8), ends), mask(load(rows), ends));
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

template <class T>
CALLBOARD_AVX512 std::uint64_t mask_rows(const void* rows, std::uint32_t count, const Interval& interval) {
    constexpr std::uint32_t lanes = 64 / sizeof(T);
    const auto ends = spread(interval.low<T>(), interval.high<T>());
    const T* const values = static_cast<const T*>(rows);
    std::uint64_t found = 0;
    for (std::uint32_t row = 0; row < count; row += lanes) {
        const unsigned some = count - row >= lanes ? (1u << lanes) - 1 : (1u << (count - row)) - 1;
        found |= std::uint64_t{mask(load_some(values + row, some), ends) & some} << row;
    }
    return found;
}

}  // namespace callboard::avx512

#undef CALLBOARD_AVX512

#endif
