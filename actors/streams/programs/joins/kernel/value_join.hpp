// A join whose rows are native values, which this object's owner compares one by one. The work for each row of a
// batch is recorded first. Then it is done, which may take long, without the interpreter.
//
// One thread at a time. It waits for nobody.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/scheduling/flow/values.hpp"
#include "callboard/streams/programs/joins/kernel/batch.hpp"

namespace callboard {

class ValueJoin {
public:
    ValueJoin() = default;
    ValueJoin(const ValueJoin&) = delete;
    ~ValueJoin() {
        for (const Entry& entry : entries_) drop(entry.value);
    }

    // --- writing down; these throw std::bad_alloc, after which the join is of no use ---------------------------------

    // The next row. The calls that follow are about it.
    void add(std::uint8_t side, std::uint64_t number) {
        assert(side < 2);
        entries_.push_back({});
        entries_.back().side = side;
        entries_.back().number = number;
    }
    // The oldest row of a window leaves: before the row is compared, if that was not asked for as yet, else after it.
    void expire(std::uint8_t side) {
        assert(!entries_.empty() && side < 2);
        Entry& entry = entries_.back();
        ++(entry.is_compared ? entry.after : entry.before)[side];
    }
    // It is compared with the other side's window. A buffer is kept as long as needed.
    void compare(const Value& value) {
        assert(!entries_.empty() && !entries_.back().is_compared && "a row is compared once");
        if (value.kind == Kind::buffer) value.buffer->retain();
        entries_.back().value = value;
        entries_.back().is_compared = true;
    }
    // It comes into its own side's window, after all that.
    void store() {
        assert(!entries_.empty());
        entries_.back().is_stored = true;
    }
    // It is neither compared nor stored, whatever was called before.
    void refuse() {
        assert(!entries_.empty());
        entries_.back().is_refused = true;
    }

    // The number of these comparisons, at most.
    std::size_t due() const {
        return entries_.size() * (windows_[0].count() + windows_[1].count() + entries_.size());
    }

    // --- doing it: of each row in turn, begin(), and if that is true found() for each partner; then end() ------------

    std::size_t rows() const { return entries_.size(); }
    bool begin(std::size_t row) {
        assert(row < entries_.size());
        if (row == 0) matches.clear();
        Entry& entry = entries_[row];
        for (int side : {0, 1}) windows_[side].drop_first(entry.before[side]);
        if (!entry.is_compared || entry.is_refused) return false;
        compared_ += windows_[1 - entry.side].count();
        return true;
    }
    std::uint8_t side(std::size_t row) const { return entries_[row].side; }
    const Value* value(std::size_t row) const { return &entries_[row].value; }
    // The window that a row is compared with.
    const Value* others(std::size_t row) const { return windows_[1 - side(row)].values(); }
    std::size_t count(std::size_t row) const { return windows_[1 - side(row)].count(); }
    void found(std::size_t row, std::size_t place) {
        assert(place < count(row));
        matches.push_back({static_cast<std::uint32_t>(row), windows_[1 - side(row)].numbers()[place]});
    }
    void end(std::size_t row) {
        Entry& entry = entries_[row];
        for (int side : {0, 1}) windows_[side].drop_first(entry.after[side]);
        if (entry.is_stored && !entry.is_refused) {
            windows_[entry.side].push(entry.value, entry.number);
            entry.value.kind = Kind::integer;  // the window has the buffer now
        }
        if (row + 1 != entries_.size()) return;
        for (const Entry& each : entries_) drop(each.value);
        entries_.clear();
    }

    // Rows as places in the batch, and the numbers of their partners, both in order.
    std::vector<JoinMatch> matches;

    // The number of comparisons of two rows so far.
    std::uint64_t compared() const { return compared_; }

private:
    static void drop(const Value& value) {
        if (value.kind == Kind::buffer) value.buffer->drop();
    }

    struct Entry {
        Value value;
        std::uint64_t number;
        std::size_t before[2], after[2];
        std::uint8_t side;
        bool is_compared, is_stored, is_refused;
    };

    // Contiguous rows; those at the front have left, and are removed when they are half of all.
    class Window {
    public:
        ~Window() { drop_first(count()); }
        const Value* values() const { return values_.data() + first_; }
        const std::uint64_t* numbers() const { return numbers_.data() + first_; }
        std::size_t count() const { return values_.size() - first_; }

        void push(const Value& value, std::uint64_t number) {
            numbers_.push_back(number);
            try {
                values_.push_back(value);
            } catch (...) {
                numbers_.pop_back();
                throw;
            }
        }
        void drop_first(std::size_t many) {
            assert(many <= count() && values_.size() == numbers_.size());
            for (; many != 0; --many) drop(values_[first_++]);
            if (2 * first_ < values_.size()) return;
            const auto gone = static_cast<std::ptrdiff_t>(first_);
            values_.erase(values_.begin(), values_.begin() + gone);
            numbers_.erase(numbers_.begin(), numbers_.begin() + gone);
            first_ = 0;
        }

    private:
        std::vector<Value> values_;
        std::vector<std::uint64_t> numbers_;
        std::size_t first_{0};
    };

    Window windows_[2];
    std::vector<Entry> entries_;
    std::uint64_t compared_{0};
};

}  // namespace callboard
