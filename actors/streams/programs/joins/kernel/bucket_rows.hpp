// The rows of a bucket: their numbers and their columns side by side in one piece of memory, in the order in which
// they were stored. New rows are appended at the end, old ones leave at the front.
//
// Pieces have room for 4 rows, or 8, 16 and so on. A bucket that fills its piece moves down in it, if a quarter of it
// is free in front, or else to the next larger one. One that keeps an eighth of it moves to the next smaller one.
// So a move of n rows comes after n / 3 rows or more. The pieces of all buckets have room for 8 times as many rows as
// there are, and 4 for each bucket, at most. Pieces that were given back are used again.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "callboard/streams/programs/joins/kernel/block_arena.hpp"

namespace callboard {

struct BucketRows {
    unsigned char* piece{nullptr};  // null: no room for any
    std::uint32_t begin{0}, end{0};  // of its rows
    std::uint32_t size_class{0};

    std::uint32_t count() const { return end - begin; }
    std::uint32_t room() const { return piece == nullptr ? 0 : std::uint32_t{4} << size_class; }
};

class PieceArena {
public:
    explicit PieceArena(const JoinColumns& columns) : columns_(columns) {
        for (std::uint32_t i = 0; i < columns.count; ++i) {
            before_[i] = bytes_;
            bytes_ += columns.widths[i];
        }
    }
    PieceArena(const PieceArena&) = delete;
    ~PieceArena() {
        for (std::uint32_t i = 0; i < classes; ++i)
            for (unsigned char* piece : free_[i]) free_memory(piece, i);
    }

    const std::uint64_t* numbers(const BucketRows& rows) const {
        return reinterpret_cast<const std::uint64_t*>(rows.piece);
    }
    const unsigned char* column(const BucketRows& rows, std::uint32_t i) const {
        return rows.piece + std::size_t{rows.room()} * before_[i];
    }

    // For a caller that will read the columns, or write after the rows.
    __attribute__((always_inline)) void prefetch_columns(const BucketRows& rows) const {
        for (std::uint32_t i = 0; i < columns_.count; ++i)
            __builtin_prefetch(column(rows, i) + std::size_t{rows.begin} * columns_.widths[i]);
    }
    __attribute__((always_inline)) void prefetch_end(const BucketRows& rows) const {
        __builtin_prefetch(rows.piece + 8 * std::size_t{rows.end}, 1);
        for (std::uint32_t i = 0; i < columns_.count; ++i)
            __builtin_prefetch(column(rows, i) + std::size_t{rows.end} * columns_.widths[i], 1);
    }

    // Appends a row, with place `row` of each column. Throws std::bad_alloc, and then nothing has changed.
    void push(BucketRows& rows, std::uint64_t number, const void* const* columns, std::size_t row) {
        if (rows.end == rows.room()) make_room(rows);
        assert(rows.begin <= rows.end && rows.end < rows.room());
        std::memcpy(rows.piece + 8 * std::size_t{rows.end}, &number, sizeof number);
        for (std::uint32_t i = 0; i < columns_.count; ++i) {
            const std::size_t width = columns_.widths[i];
            copy_number(rows.piece + std::size_t{rows.room()} * before_[i] + rows.end * width,
                        static_cast<const unsigned char*>(columns[i]) + row * width, columns_.widths[i]);
        }
        ++rows.end;
    }

    // Removes the oldest row; there is one. Throws std::bad_alloc, and then nothing has changed.
    void pop(BucketRows& rows) {
        assert(rows.begin < rows.end && rows.end <= rows.room() && "there is a row");
        if (rows.count() == 1) {
            give_back(rows.piece, rows.size_class);
            rows = BucketRows{};
            return;
        }
        if (rows.size_class != 0 && rows.count() <= rows.room() / 8) move(rows, rows.size_class - 1);
        ++rows.begin;
    }

    // Clears the rows of a bucket that leaves with all of them.
    void clear(BucketRows& rows) noexcept {
        if (rows.piece != nullptr) give_back(rows.piece, rows.size_class);
        rows = BucketRows{};
    }

    // Bytes of pieces, also of those that wait to be used.
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (std::uint32_t i = 0; i < classes; ++i) sum += (used_[i] + free_[i].size()) * size_of_piece(i);
        return sum;
    }

private:
    static constexpr std::uint32_t classes = 29;  // up to 2**30 rows in a bucket

    std::size_t size_of_piece(std::uint32_t size_class) const { return (std::size_t{4} << size_class) * bytes_; }

    // Large pieces begin with a cache line. Small ones, which most keys have, do not: aligned memory takes longer to
    // allocate and to free.
    static constexpr std::uint32_t aligned_from = 4;

    unsigned char* allocate(std::uint32_t size_class) const {
        const std::size_t bytes = size_of_piece(size_class);
        return static_cast<unsigned char*>(size_class < aligned_from
                                               ? ::operator new(bytes)
                                               : ::operator new(bytes, std::align_val_t{cache_line}));
    }
    static void free_memory(unsigned char* piece, std::uint32_t size_class) noexcept {
        if (size_class < aligned_from) ::operator delete(piece);
        else ::operator delete(piece, std::align_val_t{cache_line});
    }

    void make_room(BucketRows& rows) {
        if (rows.piece == nullptr) {
            rows.piece = take(0);
            rows.size_class = 0;
        } else if (4 * rows.begin >= rows.room()) {
            move_within(rows.piece, rows, rows.size_class);
            rows.end -= rows.begin;
            rows.begin = 0;
        } else {
            move(rows, rows.size_class + 1);
        }
    }

    void move(BucketRows& rows, std::uint32_t size_class) {
        unsigned char* const piece = take(size_class);
        move_within(piece, rows, size_class);
        give_back(rows.piece, rows.size_class);
        rows = {piece, 0, rows.count(), size_class};
    }

    // Copies the rows to the front of a piece, which may be their own.
    void move_within(unsigned char* piece, const BucketRows& rows, std::uint32_t size_class) {
        assert(rows.count() <= std::size_t{4} << size_class);
        const std::size_t room = std::size_t{4} << size_class;
        std::memmove(piece, rows.piece + 8 * std::size_t{rows.begin}, 8 * std::size_t{rows.count()});
        for (std::uint32_t i = 0; i < columns_.count; ++i) {
            const std::size_t width = columns_.widths[i];
            std::memmove(piece + room * before_[i], column(rows, i) + rows.begin * width, rows.count() * width);
        }
    }

    unsigned char* take(std::uint32_t size_class) {
        if (size_class >= classes) throw std::bad_alloc();
        auto& free = free_[size_class];
        unsigned char* piece;
        if (free.empty()) {
            free.reserve(free.size() + used_[size_class] + 1);  // so that giving back cannot fail
            piece = allocate(size_class);
        } else {
            piece = free.back();
            free.pop_back();
        }
        ++used_[size_class];
        return piece;
    }

    void give_back(unsigned char* piece, std::uint32_t size_class) noexcept {
        auto& free = free_[size_class];
        assert(piece != nullptr && used_[size_class] != 0);
        assert(free.size() < free.capacity() && "giving back cannot fail");
        free.push_back(piece);
        for (--used_[size_class]; free.size() > used_[size_class] / 2 + (64 >> size_class); free.pop_back())
            free_memory(free.back(), size_class);
    }

    const JoinColumns columns_;
    std::size_t before_[JoinPredicate::most]{};  // bytes of a row's columns before one, its number among them
    std::size_t bytes_{8};                       // of a row
    std::size_t used_[classes]{};
    std::vector<unsigned char*> free_[classes];
};

}  // namespace callboard
