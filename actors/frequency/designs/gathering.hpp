// Equal keys that a stream has at hand, added up before anybody else hears of them.
//
// The bulk increment of Das et al. 2009, section 4.3.1, comes about where an element is owned by another. Here a
// stream does it for itself: a thousand elements of a skewed stream have few keys. Each key then costs one look-up,
// one pending count and one move between buckets. Nothing is held back: what add() was given is counted before it
// returns.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace callboard {

template <class Keys>
class Gathering {
public:
    using Probe = typename Keys::Probe;
    struct Gathered {
        Probe key;
        std::uint64_t hash, weight;
    };
    static constexpr std::size_t most = 1024;

    // So many elements, at most `most`, whose weights are 1 if there are none. Returns how many keys they have.
    std::size_t gather(std::uint64_t seed, const Probe* keys, const std::uint64_t* weights, std::size_t many) {
        assert(many <= most);
        std::memset(places_, 0, sizeof places_);
        size_ = 0;
        for (std::size_t i = 0; i < many; ++i) {
            const Probe key = keys[i];  // once: another thread may write to the array
            add(key, Keys::hash(seed, key), weights == nullptr ? 1 : weights[i]);
        }
        return size_;
    }

    // The same as they come, to measure what they cost one by one.
    std::size_t list(std::uint64_t seed, const Probe* keys, const std::uint64_t* weights, std::size_t many) {
        assert(many <= most);
        for (std::size_t i = 0; i < many; ++i) {
            const Probe key = keys[i];
            gathered_[i] = {key, Keys::hash(seed, key), weights == nullptr ? 1 : weights[i]};
        }
        return many;
    }

    const Gathered& operator[](std::size_t index) const {
        assert(index < most);
        return gathered_[index];
    }

private:
    static constexpr unsigned bits = 11;  // twice as many places as elements

    void add(const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        for (std::size_t place = hash >> (64 - bits);; place = (place + 1) & ((std::size_t{1} << bits) - 1)) {
            const std::size_t index = places_[place];
            if (index == 0) {
                assert(size_ < most);
                gathered_[size_++] = {key, hash, weight};
                places_[place] = static_cast<std::uint16_t>(size_);
                return;
            }
            Gathered& other = gathered_[index - 1];
            if (other.hash == hash && Keys::same(other.key, key)) {
                other.weight += weight;
                return;
            }
        }
    }

    std::uint16_t places_[std::size_t{1} << bits];  // 0: free, or the index of what is gathered, plus 1
    std::size_t size_;
    Gathered gathered_[most];
};

}  // namespace callboard
