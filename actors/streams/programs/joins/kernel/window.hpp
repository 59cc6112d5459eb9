// The rows that one lane has stored of one side, in order, and which of them are still seen.
//
// A row has a position, which counts the rows that were ever stored. Those from begin() on are seen by a row that
// comes now. Rows before begin() keep their memory until purge(): rows of the batch in work may see it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "callboard/streams/programs/joins/kernel/block_arena.hpp"

namespace callboard {

// now - then > within, for a `then` that is not later. For integers it is exact; `within` is not negative.
template <class Time>
bool is_expired(Time now, Time then, Time within) {
    if constexpr (std::is_integral_v<Time>)
        return now > then &&
               static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(then) > static_cast<std::uint64_t>(within);
    else return now - then > within;
}

// later + a < earlier + b, for a `later` that is not earlier. For integers it is exact; lengths are not negative.
template <class Time>
bool ends_before(Time later, Time a, Time earlier, Time b) {
    if constexpr (std::is_integral_v<Time>)
        return a < b && static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier) <
                            static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
    else return later + a < earlier + b;
}

template <class Time>
class JoinWindow {
    static_assert(sizeof(Time) == 8, "times and numbers take as much room in a block");

public:
    // The arena outlives the window.
    explicit JoinWindow(BlockArena& arena) : arena_(arena) {}
    JoinWindow(const JoinWindow&) = delete;
    ~JoinWindow() {
        for (unsigned char* block : blocks_) arena_.give_back(block);
    }

    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return end_; }

    // A row, which comes after all others, with place `row` of each column. Throws std::bad_alloc, and then
    // nothing has changed.
    void push(Time time, std::uint64_t number, const void* const* columns, std::size_t row) {
        assert(kept_ <= begin_ && begin_ <= end_);
        if (end_ - kept_ == blocks_.size() * std::uint64_t{BlockArena::rows}) {
            blocks_.reserve(blocks_.size() + 1);
            blocks_.push_back(arena_.take());
        }
        const std::uint32_t place = place_of(end_);
        assert((begin_ == end_ || !(time < times(block_at(end_ - 1))[place_of(end_ - 1)])) && "times do not fall");
        unsigned char* const block = block_at(end_);
        times(block)[place] = time;
        numbers(block)[place] = number;
        const JoinColumns& layout = arena_.columns();
        for (std::uint32_t i = 0; i < layout.count; ++i) {
            const std::size_t width = layout.widths[i];
            copy_number(block + arena_.offset_of(i) + place * width,
                        static_cast<const unsigned char*>(columns[i]) + row * width, layout.widths[i]);
        }
        ++end_;
    }

    // Rows at the front that are too old by now are not seen any more; `expired` is called with each position.
    template <class Expired>
    void expire(Time now, Time within, const Expired& expired) {
        while (begin_ != end_ && is_expired(now, times(block_at(begin_))[place_of(begin_)], within)) expired(begin_++);
    }

    // Whole blocks of rows that are not seen go back to the arena.
    void purge() noexcept {
        std::size_t gone = 0;
        for (; kept_ + BlockArena::rows <= begin_; kept_ += BlockArena::rows) arena_.give_back(blocks_[gone++]);
        blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(gone));
    }

    // The beginning of the block with a position. That block must not be purged yet.
    const std::uint64_t* numbers_at(std::uint64_t position) const { return numbers(block_at(position)); }
    const unsigned char* column_at(std::uint64_t position, std::uint32_t column) const {
        return block_at(position) + arena_.offset_of(column);
    }
    static std::uint32_t place_of(std::uint64_t position) {
        return static_cast<std::uint32_t>(position % BlockArena::rows);
    }

private:
    static Time* times(unsigned char* block) { return reinterpret_cast<Time*>(block); }
    static std::uint64_t* numbers(unsigned char* block) {
        return reinterpret_cast<std::uint64_t*>(block + 8 * BlockArena::rows);
    }
    unsigned char* block_at(std::uint64_t position) const {
        assert(position >= kept_ && (position - kept_) / BlockArena::rows < blocks_.size() && "it was not purged");
        return blocks_[(position - kept_) / BlockArena::rows];
    }

    BlockArena& arena_;
    std::uint64_t kept_{0};  // the first position of the first block
    std::uint64_t begin_{0}, end_{0};
    std::vector<unsigned char*> blocks_;
};

}  // namespace callboard
