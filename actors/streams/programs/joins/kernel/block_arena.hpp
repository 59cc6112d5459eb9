// Blocks of rows, column by column. A block and the data that it is compared with fit the first-level cache.
//
// A block is a piece of memory with the rows' times, their numbers, and their columns, one after the other. Blocks
// that were given back are used again, so a window that slides takes no new memory. At most half as many as are in
// use are kept, so a window that shrank gives its memory back.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/streams/programs/joins/comparing/predicate.hpp"

namespace callboard {

// The widths of columns, in bytes: 4 or 8.
struct JoinColumns {
    std::uint32_t count{0};
    std::uint32_t widths[JoinPredicate::most]{};

    void add(std::uint32_t width) {
        assert(count < JoinPredicate::most && (width == 4 || width == 8));
        widths[count++] = width;
    }

    static JoinColumns of(const JoinPredicate& predicate) {
        JoinColumns columns;
        for (std::uint32_t i = 0; i < predicate.count; ++i) columns.add(size_of(predicate.terms[i].type));
        return columns;
    }
};

// Copies one number of a column.
inline void copy_number(void* to, const void* from, std::uint32_t width) {
    if (width == 4) std::memcpy(to, from, 4);
    else std::memcpy(to, from, 8);
}

class BlockArena {
public:
    static constexpr std::uint32_t rows = 1024;

    explicit BlockArena(const JoinColumns& columns) : columns_(columns) {
        std::size_t at = 2 * 8 * rows;  // after times and numbers
        for (std::uint32_t i = 0; i < columns.count; ++i) {
            offsets_[i] = at;
            at += std::size_t{columns.widths[i]} * rows;
        }
        size_ = at;
    }
    BlockArena(const BlockArena&) = delete;
    ~BlockArena() {
        for (unsigned char* block : free_) release_memory(block);
    }

    const JoinColumns& columns() const { return columns_; }
    std::size_t offset_of(std::uint32_t column) const {
        assert(column < columns_.count);
        return offsets_[column];
    }

    // Throws std::bad_alloc. All of a block's memory is initialised, with meaningless values.
    unsigned char* take() {
        if (free_.empty()) {
            free_.reserve(made() + 1);  // so that giving back cannot fail
            auto* const block = static_cast<unsigned char*>(::operator new(size_, std::align_val_t{cache_line}));
            std::memset(block, 0, size_);
            ++used_;
            return block;
        }
        unsigned char* const block = free_.back();
        free_.pop_back();
        ++used_;
        return block;
    }

    void give_back(unsigned char* block) noexcept {
        assert(used_ != 0 && free_.size() < free_.capacity() && "giving back cannot fail");
        --used_;
        free_.push_back(block);
        while (free_.size() > used_ / 2 + 2) {
            release_memory(free_.back());
            free_.pop_back();
        }
    }

    std::size_t used() const { return used_; }
    std::size_t made() const { return used_ + free_.size(); }

private:
    static void release_memory(unsigned char* block) noexcept {
        ::operator delete(block, std::align_val_t{cache_line});
    }

    const JoinColumns columns_;
    std::size_t offsets_[JoinPredicate::most]{};
    std::size_t size_;
    std::size_t used_{0};
    std::vector<unsigned char*> free_;
};

}  // namespace callboard
