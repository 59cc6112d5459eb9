// Buckets of values: rows that match are in the same bucket, or in neighbouring ones. Gulisano et al., "ScaleJoin",
// section IV-C, leave such structures to the predicate.
//
// A term that asks for equality divides rows by the value itself. A band divides them by a function that never
// decreases: coordinate(x) is x by the buckets' width, cut to an integer. The grid is the product of all equalities and
// of up to two bands.
//
// All matches are found. A probe's interval is exactly what it matches. From low <= x <= high it follows that
// coordinate(low) <= coordinate(x) <= coordinate(high), whatever was rounded, as coordinates never fall. So a probe
// looks into the buckets from low's to high's, and no rule is needed of how far neighbours may be. Why these are few:
// buckets are several distances wide. So far from 0 that floats are sparser than buckets, each float has its own, and
// low and high are the value. A hash stands for a bucket. Buckets with one hash are one: the intervals say what
// matches, not the buckets.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/streams/programs/joins/kernel/probes.hpp"

namespace callboard {

// Hashes of buckets.
struct BucketRange {
    const std::uint64_t *first, *last;

    const std::uint64_t* begin() const { return first; }
    const std::uint64_t* end() const { return last; }
    std::size_t size() const { return static_cast<std::size_t>(last - first); }
};

class BucketGrid {
public:
    // The width of buckets, in distances: a probe looks into fewer wide ones, which hold more rows to compare.
    static constexpr unsigned breadth = 4;
    static constexpr std::uint32_t most_bands = 2;

    // Nobody who lacks the seed can choose values whose buckets collide in a table.
    explicit BucketGrid(const JoinPredicate& predicate, std::uint64_t seed = 0) : predicate_(predicate), seed_(seed) {
        for (std::uint32_t i = 0; i < predicate.count; ++i) {
            const JoinTerm& term = predicate.terms[i];
            if (is_equality(term)) equalities_[equality_count_++] = i;
            else if (can_divide(term) && band_count_ < most_bands) bands_[band_count_++] = Band(i, term);
        }
    }

    // Whether some term divides rows among buckets; else all are in one.
    bool divides() const { return equality_count_ + band_count_ != 0; }

    // The rows of a batch, whose intervals are those of `probes`. Throws std::bad_alloc.
    template <class Time>
    void read(const JoinBatch<Time>& batch, const JoinProbes& probes) {
        Coordinates coordinates;
        coordinates.hash = seed_;
        coordinates_.assign(batch.rows, coordinates);
        for (std::uint32_t i = 0; i < predicate_.count; ++i)
            with_type(predicate_.terms[i].type, [&](auto zero) {
                using T = decltype(zero);
                const T* const values = static_cast<const T*>(batch.values[i]);
                for (std::size_t row = 0; row < batch.rows; ++row)
                    coordinates_[row].is_number &= values[row] == values[row];
            });
        for (std::uint32_t i = 0; i < equality_count_; ++i)
            with_type(predicate_.terms[equalities_[i]].type, [&](auto zero) {
                using T = decltype(zero);
                const T* const values = static_cast<const T*>(batch.values[equalities_[i]]);
                for (std::size_t row = 0; row < batch.rows; ++row)
                    coordinates_[row].hash = mix(coordinates_[row].hash ^ bits_of(values[row]));
            });
        for (std::uint32_t i = 0; i < band_count_; ++i)
            with_type(predicate_.terms[bands_[i].term].type, [&](auto zero) {
                using T = decltype(zero);
                read_band<T>(i, static_cast<const T*>(batch.values[bands_[i].term]), batch.rows, probes);
            });
        buckets_.clear();
        ends_.assign(1, 0);
        for (std::size_t row = 0; row < batch.rows; ++row) {
            Coordinates& coordinates = coordinates_[row];
            if (probes.is_possible(row))
                each_bucket(coordinates, [&](std::uint64_t bucket) { buckets_.push_back(bucket); });
            ends_.push_back(buckets_.size());
            for (std::uint32_t i = 0; i < band_count_; ++i)
                coordinates.hash = step(coordinates.hash, coordinates.own[i]);
        }
    }

    // False: the row has a NaN, and is in no bucket.
    bool is_number(std::size_t row) const {
        assert(row < coordinates_.size());
        return coordinates_[row].is_number;
    }

    // The bucket that a row lies in.
    std::uint64_t bucket_of(std::size_t row) const {
        assert(row < coordinates_.size());
        return coordinates_[row].hash;
    }

    // The buckets that may have rows which match a row. None: nothing matches it.
    BucketRange buckets(std::size_t row) const {
        assert(row + 1 < ends_.size() && ends_[row] <= ends_[row + 1]);
        return {buckets_.data() + ends_[row], buckets_.data() + ends_[row + 1]};
    }

private:
    static constexpr double far = 4503599627370496;  // 2**52

    struct Band {
        std::uint32_t term{0};
        unsigned shift{0};  // of integers: the width is a power of two
        double scale{1};    // of floats: 1 / width

        Band() = default;
        Band(std::uint32_t i, const JoinTerm& whole) : term(i) {
            while (shift < 63 && (std::uint64_t{1} << shift) / breadth < whole.steps) ++shift;
            scale = 1 / std::clamp(breadth * whole.distance, 0x1p-1000, 0x1p+1022);
        }
    };

    struct Coordinates {
        std::uint64_t hash{0};  // of the equalities, and in the end of all
        std::uint64_t own[most_bands]{}, low[most_bands]{}, high[most_bands]{};
        bool is_number{true};
    };

    // An infinite distance divides nothing.
    static bool can_divide(const JoinTerm& term) {
        return term.distance <= std::numeric_limits<double>::max();
    }

    // For floats, a distance of 0 is equality: infinities match nothing, wherever they lie.
    static bool is_equality(const JoinTerm& term) { return term.is_equality || term.distance == 0; }

    template <class Visit>
    void each_bucket(const Coordinates& coordinates, const Visit& visit) const {
        if (band_count_ == 0) return visit(coordinates.hash);
        each_from(coordinates.low[0], coordinates.high[0], [&](std::uint64_t first) {
            const std::uint64_t hash = step(coordinates.hash, first);
            if (band_count_ == 1) return visit(hash);
            each_from(coordinates.low[1], coordinates.high[1],
                      [&](std::uint64_t second) { visit(step(hash, second)); });
        });
    }

    template <class Use>
    static void each_from(std::uint64_t low, std::uint64_t high, const Use& use) {
        for (std::uint64_t i = low;; ++i) {
            use(i);
            if (i == high) return;
        }
    }

    static std::uint64_t step(std::uint64_t hash, std::uint64_t coordinate) { return mix(hash ^ coordinate); }

    // Equal values have equal bits: the zeros are made one.
    template <class T>
    static std::uint64_t bits_of(T value) {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
        } else {
            const T positive = value + T{0};
            std::uint64_t bits = 0;
            std::memcpy(&bits, &positive, sizeof positive);
            return bits;
        }
    }

    template <class T>
    static std::uint64_t coordinate(const Band& band, T value) {
        if constexpr (std::is_integral_v<T>) {
            const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
            return (bits ^ std::uint64_t{1} << 63) >> band.shift;
        } else {
            using Order = FloatOrder<double>;
            const double scaled = static_cast<double>(value) * band.scale;
            const double near = std::clamp(scaled, -far, far);
            const auto linear = static_cast<std::int64_t>(near);  // towards 0: the bucket there is twice as wide
            if (scaled == near) return static_cast<std::uint64_t>(linear);
            return static_cast<std::uint64_t>(Order::ordinal_of(scaled) - Order::ordinal_of(near) + linear);
        }
    }

    template <class T>
    void read_band(std::uint32_t i, const T* values, std::size_t rows, const JoinProbes& probes) {
        for (std::size_t row = 0; row < rows; ++row) {
            Coordinates& coordinates = coordinates_[row];
            if (!coordinates.is_number) continue;
            coordinates.own[i] = coordinate(bands_[i], values[row]);
            if (!probes.is_possible(row)) continue;
            const Interval& interval = probes.intervals(row)[bands_[i].term];
            coordinates.low[i] = coordinate(bands_[i], interval.low<T>());
            coordinates.high[i] = coordinate(bands_[i], interval.high<T>());
        }
    }

    const JoinPredicate predicate_;
    const std::uint64_t seed_;
    std::uint32_t equality_count_{0}, band_count_{0};
    std::uint32_t equalities_[JoinPredicate::most]{};
    Band bands_[most_bands]{};
    std::vector<Coordinates> coordinates_;
    std::vector<std::uint64_t> buckets_;  // of all rows, one after the other
    std::vector<std::size_t> ends_;
};

}  // namespace callboard
