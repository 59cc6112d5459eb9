// Streams of keys with a Zipf distribution, and how often each key comes in all of them.
//
// Draws by rejection-inversion: Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from
// monotone discrete distributions". It needs no table, so 32 million draws take seconds. A point is drawn on the
// integral of x^-alpha, on which each rank has an interval. The upper part of the interval is as long as the rank
// is probable. The rank is taken if the point is in that part.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/mix.hpp"

namespace bench {

class Zipf {
public:
    Zipf(double alpha, std::uint32_t alphabet)
        : alpha_(alpha), alphabet_(alphabet), begin_(hat(1.5) - 1), length_(hat(alphabet + 0.5) - begin_) {}

    // From 1 on. `next` draws from 0 to below 1.
    template <class Next>
    std::uint32_t draw(const Next& next) const {
        for (;;) {
            const double point = begin_ + next() * length_;
            const double rank = std::clamp(std::floor(inverse(point) + 0.5), 1.0, static_cast<double>(alphabet_));
            if (point >= hat(rank + 0.5) - std::pow(rank, -alpha_)) return static_cast<std::uint32_t>(rank);
        }
    }

private:
    double hat(double x) const { return alpha_ == 1 ? std::log(x) : std::pow(x, 1 - alpha_) / (1 - alpha_); }
    double inverse(double y) const { return alpha_ == 1 ? std::exp(y) : std::pow((1 - alpha_) * y, 1 / (1 - alpha_)); }

    const double alpha_;
    const std::uint32_t alphabet_;
    const double begin_, length_;
};

// Each stream has a seed of its own. They stay as they are when there are more of them.
class ZipfStreams {
public:
    ZipfStreams(double alpha, std::uint32_t alphabet, std::size_t length)
        : zipf_(alpha, alphabet), length_(length), times_(alphabet + 1) {}

    // At least so many. Two threads make them; the machine has nothing else to do.
    void grow_to(std::size_t count) {
        const std::size_t first = keys_.size();
        if (count <= first) return;
        keys_.resize(count);
        callboard::Atomic<std::size_t> next{first};
        const auto make = [&] {
            for (std::size_t i; (i = next.fetch_add(1, callboard::relaxed)) < count;) make_stream(i);
        };
        std::thread other(make);
        make();
        other.join();
    }

    const std::vector<std::int64_t>& operator[](std::size_t stream) const { return keys_[stream]; }

    // A key that came, and how often.
    struct Times {
        std::int64_t key;
        std::uint64_t count;
    };

    // The keys that came most often in all streams that there are.
    std::vector<Times> most_frequent(std::size_t most) const {
        std::vector<std::uint32_t> ranks(times_.size());
        std::iota(ranks.begin(), ranks.end(), 0);
        const auto times = [this](std::uint32_t rank) { return times_[rank].load(callboard::relaxed); };
        std::partial_sort(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(most), ranks.end(),
                          [&](auto a, auto b) { return times(a) > times(b); });
        std::vector<Times> found;
        for (std::size_t i = 0; i < most; ++i) found.push_back({key_of(ranks[i]), times(ranks[i])});
        return found;
    }

private:
    // No key is near its neighbour.
    static std::int64_t key_of(std::uint32_t rank) { return static_cast<std::int64_t>(callboard::mix(rank)); }

    void make_stream(std::size_t stream) {
        std::uint64_t taken = 0;
        const auto next = [&] {
            return static_cast<double>(callboard::random_number(callboard::mix(stream + 1), taken++) >> 11) * 0x1p-53;
        };
        std::vector<std::int64_t> keys(length_);
        for (std::int64_t& key : keys) {
            const std::uint32_t rank = zipf_.draw(next);
            times_[rank].fetch_add(1, callboard::relaxed);
            key = key_of(rank);
        }
        keys_[stream] = std::move(keys);
    }

    const Zipf zipf_;
    const std::size_t length_;
    std::vector<callboard::Atomic<std::uint32_t>> times_;  // by ranks
    std::vector<std::vector<std::int64_t>> keys_;
};

}  // namespace bench
