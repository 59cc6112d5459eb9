// A ready index: a set of small numbers, the places of a pool's stages at which input waits. Any thread
// puts a place in or takes it out, and finds the first or the last one. The cost grows only with the
// height of the tree: one level for 64 places, two for 4,096, three for 262,144.
//
// A tree of words of 64 bits: a bit of the lowest level is a place, a bit above says that the word below
// it is not zero.
//
//     level 1   0000...0101              words 0 and 2 below are not zero
//     level 0   0...0010   0...0000   0...1001           places 1, 128 and 131
//
// Rules, with all operations sequentially consistent, that is, in one order:
//   1. set() makes its place's bit one, and then each bit above it. It writes only where a bit is zero. So
//      a place that is there already costs only loads, of lines that no thread writes.
//   2. clear() makes its place's bit zero. If that leaves the word zero, it makes the bit above zero, and
//      looks at the word once more. If the word is nonzero by now, clear() makes the bit above one again,
//      as set() does.
//
// So no place is lost: a thread that sets a bit in a word looks at the bit above after it. If that is zero,
// the thread sets it. If it is one, and made zero by a clear() afterwards, that clear() looks at the word
// later still, and finds it nonzero. Hence whenever no clear() is in the middle, a place whose set() has
// returned is found, until it is cleared. A clear() in the middle may hide for a moment places that others
// have set. Then it returns true, and its caller looks again for the threads that may have missed them.
//
// A bit above a word that is zero may stay one, if a clear() of the same place overtakes set(). A
// search passes over it, and the next place that comes and goes in that word takes it away.
//
// Progress: all operations are wait-free, except searches while places come and go.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

#include "callboard/core/atomics.hpp"

namespace callboard {

class ReadyIndex {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // One thread, before anything else: room for places below `places`. For 64 places or fewer, nothing is
    // allocated.
    void make_room(std::uint32_t places) {
        std::uint32_t words = 0;
        levels_ = 0;
        do {
            assert(levels_ < most_levels);
            begins_[levels_++] = words;
            places = places / 64 + (places % 64 != 0);
            words += places;
        } while (places > 1);
        if (words > 1) many_ = std::make_unique<Atomic<std::uint64_t>[]>(words);
    }

    void set(std::uint32_t place) {
        assert(place != none);
        set_from(0, place);
    }

    // True: it may have hidden other places for a moment.
    [[nodiscard]] bool clear(std::uint32_t place) {
        Atomic<std::uint64_t>* below = &word(0, place);
        if (below->fetch_and(~bit(place), seq_cst) & ~bit(place)) return false;
        for (std::uint32_t level = 1; level < levels_; ++level) {
            place /= 64;
            Atomic<std::uint64_t>& here = word(level, place);
            const auto others = here.fetch_and(~bit(place), seq_cst) & ~bit(place);
            if (below->load(seq_cst) != 0) return set_from(level, place), true;
            if (others != 0) return false;
            below = &here;
        }
        return false;
    }

    bool has(std::uint32_t place) const { return word(0, place).load(seq_cst) & bit(place); }

    // The first place from `from` on; `none` if there is none.
    std::uint32_t first(std::uint32_t from = 0) const {
        for (std::uint32_t level = 0;;) {
            if (from / 64 >= words_in(level)) return none;
            const auto found = word(level, from).load(seq_cst) & (~std::uint64_t{0} << from % 64);
            if (found != 0) {
                from = from / 64 * 64 + static_cast<std::uint32_t>(__builtin_ctzll(found));
                if (level-- == 0) return from;
                from *= 64;  // down
            } else {
                if (++level == levels_) return none;
                from = from / 64 + 1;  // up, and on
            }
        }
    }

    // The last place before `end`, which is at most the number of places; `none` if there is none.
    std::uint32_t last(std::uint32_t end) const {
        for (std::uint32_t level = 0; end != 0;) {
            const std::uint32_t from = end - 1;
            const auto found = word(level, from).load(seq_cst) & (~std::uint64_t{0} >> (63 - from % 64));
            if (found != 0) {
                end = from / 64 * 64 + 64 - static_cast<std::uint32_t>(__builtin_clzll(found));
                if (level-- == 0) return end - 1;
                end *= 64;  // down
            } else {
                if (++level == levels_) return none;
                end = from / 64;  // up, and back
            }
        }
        return none;
    }

private:
    static constexpr std::uint32_t most_levels = 6;  // 64 to the sixth is more than 32 bits

    static std::uint64_t bit(std::uint32_t place) { return std::uint64_t{1} << place % 64; }

    // The word of a level that a place, or a word of the level below, has its bit in.
    Atomic<std::uint64_t>& word(std::uint32_t level, std::uint32_t place) {
        assert(level < levels_ && (many_ != nullptr || place < 64));
        return many_ == nullptr ? one_ : many_[begins_[level] + place / 64];
    }
    const Atomic<std::uint64_t>& word(std::uint32_t level, std::uint32_t place) const {
        assert(level < levels_ && (many_ != nullptr || place < 64));
        return many_ == nullptr ? one_ : many_[begins_[level] + place / 64];
    }

    std::uint32_t words_in(std::uint32_t level) const {
        return level + 1 == levels_ ? 1 : begins_[level + 1] - begins_[level];
    }

    void set_from(std::uint32_t level, std::uint32_t place) {
        for (; level < levels_; ++level, place /= 64) {
            Atomic<std::uint64_t>& here = word(level, place);
            if (!(here.load(seq_cst) & bit(place))) here.fetch_or(bit(place), seq_cst);
        }
    }

    Atomic<std::uint64_t> one_{0};  // where one word is enough
    std::unique_ptr<Atomic<std::uint64_t>[]> many_;
    std::uint32_t levels_{1};
    std::uint32_t begins_[most_levels]{};  // of the levels, in `many_`
};

}  // namespace callboard
