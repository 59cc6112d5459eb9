// Counts how often the keys of one dict or set collide in its hash table, without making the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace callboard {

// Places hashes as CPython's dict and set place keys (Objects/dictobject.c, Objects/setobject.c), and counts the
// places that are looked at. Equal hashes are not the only ones that collide: the places follow from the hash
// alone, so that a sender who knows this can choose hashes that all go the same way.
class Collisions {
public:
    explicit Collisions(bool of_set) : of_set_(of_set), slots_(smallest, empty) {}

    // Take note of the next key's hash, and return how much work it is. -1: the keys so far are far more work than keys
    // that nobody has chosen.
    std::int64_t add(std::int64_t hash) {
        const std::uint64_t before = work_;
        if (of_set_ ? used_ * 5 >= (slots_.size() - 1) * 3 : used_ >= slots_.size() * 2 / 3) grow();
        ++used_;
        return place(hash, compared) ? static_cast<std::int64_t>(work_ - before) : -1;
    }

private:
    static constexpr std::size_t smallest = 8, linear = 9;
    static constexpr std::int64_t empty = -1;  // no hash of Python's
    // Multiples of 2^17 are the worst that anybody has by chance: a million take 70 looks each.
    static constexpr std::uint64_t usual = 256, spare = 4096;
    static constexpr std::uint64_t compared = 8;  // keys of one hash are compared, which takes longer than a look

    void grow() {
        const std::size_t wanted = of_set_ ? used_ * (used_ > 50'000 ? 2 : 4) + 1 : used_ * 3;
        std::size_t size = smallest;
        while (size < wanted) size *= 2;
        std::vector<std::int64_t> before(size, empty);
        before.swap(slots_);
        for (const std::int64_t hash : before) {
            if (hash != empty && !place(hash, 0)) return;
        }
    }

    bool place(std::int64_t hash, std::uint64_t for_equal) {
        const std::size_t mask = slots_.size() - 1;
        const std::uint64_t most = usual * used_ + spare;
        std::uint64_t perturb = static_cast<std::uint64_t>(hash);
        std::size_t at = perturb & mask;
        while (work_ <= most) {
            ++work_;
            // A set looks at the next places as well, which are in the cache.
            const std::size_t last = of_set_ && at + linear <= mask ? at + linear : at;
            for (std::size_t near = at; near <= last; ++near) {
                if (slots_[near] == empty) {
                    slots_[near] = hash;
                    return true;
                }
                if (slots_[near] == hash) work_ += for_equal;
            }
            perturb >>= 5;
            at = (at * 5 + perturb + 1) & mask;
        }
        return false;
    }

    bool of_set_;
    std::size_t used_ = 0;
    std::uint64_t work_ = 0;
    std::vector<std::int64_t> slots_;
};

}  // namespace callboard
