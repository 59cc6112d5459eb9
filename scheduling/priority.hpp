// The ready sets of the shipped priority policies. Each belongs to one worker. Only its thread uses it, or a thief
// instead (stealing.hpp). It has its own cache lines, because it is written at each dispatch.
//
// All put and fetch cells without allocating, except the heap, which grows to the largest number of ready actors
// and stays. Each says why no cell starves.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <queue>

#include "callboard/scheduling/worker.hpp"

namespace callboard {

// A queue of cells, linked by `next`. O(1).
class alignas(cache_line) ReadyQueue {
public:
    void put(Cell* cell) {
        cell->next = nullptr;
        assert((first_ == nullptr || (last_ != cell && last_->next == nullptr)) && "a cell is in one ready set");
        (first_ == nullptr ? first_ : last_->next) = cell;
        last_ = cell;
    }

    Cell* fetch() {
        Cell* const cell = first_;
        if (cell != nullptr) first_ = cell->next;
        return cell;
    }

    Cell* first() const { return first_; }

    // The first unpinned cell, among the few that a thief may look at while its victim waits.
    Cell* fetch_unpinned() {
        Cell* before = nullptr;
        Cell* cell = first_;
        for (int looks = 0; cell != nullptr && looks < 256; ++looks) {
            if (cell->has(unpinned_cell)) return take_after(before);
            before = cell;
            cell = cell->next;
        }
        return nullptr;
    }

    // Takes the successor of `before` out, or the first if that is null.
    Cell* take_after(Cell* before) {
        if (before == nullptr) return fetch();
        Cell* const cell = before->next;
        assert(cell != nullptr && (cell->next != nullptr || last_ == cell));
        before->next = cell->next;
        if (last_ == cell) last_ = before;
        return cell;
    }

private:
    Cell* first_{nullptr};
    Cell* last_{nullptr};
};

// The ready cells that a policy in Python knows, in the order of the puts, doubly linked by `next` and
// `stamp`. Whatever the policy does, no cell is lost: each ready cell is here. O(1).
class TrackedReady {
public:
    void put(Cell* cell) {
        cell->next = nullptr;
        set_previous(cell, last_);
        assert((first_ == nullptr || (last_ != cell && last_->next == nullptr)) && "a cell is in one ready set");
        (first_ == nullptr ? first_ : last_->next) = cell;
        last_ = cell;
        ++count_;
    }

    // `cell` is one of these.
    void take(Cell* cell) {
        assert(count_ != 0 && (cell->next != nullptr || last_ == cell));
        passes_ = cell == first_ ? 0 : passes_ + 1;
        Cell* const before = previous(cell);
        assert((before == nullptr ? first_ : before->next) == cell && "the policy takes what is ready");
        (before == nullptr ? first_ : before->next) = cell->next;
        if (cell->next == nullptr) {
            last_ = before;
        } else {
            set_previous(cell->next, before);
        }
        --count_;
        assert((first_ == nullptr) == (count_ == 0));
    }

    Cell* first() const { return first_; }
    std::uint64_t count() const { return count_; }
    std::uint64_t passes() const { return passes_; }  // how often the first was passed by

    void* policy{nullptr};  // the Python object; borrowed
    bool given_up{false};   // the policy failed: these are a queue now

private:
    static Cell* previous(const Cell* cell) {
        return reinterpret_cast<Cell*>(static_cast<std::uintptr_t>(cell->stamp));
    }
    static void set_previous(Cell* cell, Cell* before) {
        cell->stamp = reinterpret_cast<std::uintptr_t>(before);
    }

    Cell* first_{nullptr};
    Cell* last_{nullptr};
    std::uint64_t count_{0};
    std::uint64_t passes_{0};
};

// The functions by which a worker calls one of the structures of this file.
template <class Ready>
ReadySet ready_set(Ready* ready) {
    ReadySet set{ready, [](void* state, Cell* cell) { static_cast<Ready*>(state)->put(cell); },
                 [](void* state) { return static_cast<Ready*>(state)->fetch(); }, nullptr, unpinned_cell};
    if constexpr (std::is_same_v<Ready, ReadyQueue>)
        set.fetch_unpinned = [](void* state) { return static_cast<Ready*>(state)->fetch_unpinned(); };
    return set;
}

// The same for a structure made by `new`, which is freed with the policy.
template <class Ready>
ReadySet owned_ready_set(Ready* ready) {
    ReadySet set = ready_set(ready);
    set.destroy = [](void* state) { delete static_cast<Ready*>(state); };
    return set;
}

// Cells with a weight first, the others after them (Prokesch 2011, section 6.2.2). O(1).
// No starvation: after `patience` fetches that passed a low cell by, the oldest low one is next.
class TwoLevelReady {
public:
    explicit TwoLevelReady(std::uint64_t patience) : patience_(patience) {}

    void put(Cell* cell) { (cell->weight != 0 ? high_ : low_).put(cell); }

    Cell* fetch() {
        if (low_.first() != nullptr && (high_.first() == nullptr || passed_ >= patience_)) {
            passed_ = 0;
            return low_.fetch();
        }
        if (low_.first() != nullptr) ++passed_;
        assert((low_.first() == nullptr || passed_ <= patience_) && "no cell is passed by for longer");
        return high_.fetch();
    }

private:
    ReadyQueue high_, low_;
    const std::uint64_t patience_;
    std::uint64_t passed_{0};
};

// Cells by rank, the least first. A binary heap: O(log n).
class alignas(cache_line) RankedReady {
public:
    void put(Cell* cell, std::int64_t rank) {
        assert(cell != nullptr);
        heap_.push({rank, ++puts_, cell});
    }

    Cell* fetch() {
        if (heap_.empty()) return nullptr;
        Cell* const cell = heap_.top().cell;
        heap_.pop();
        return cell;
    }

    // The number of puts so far: a clock that stands still when nothing happens.
    std::uint64_t puts() const { return puts_; }

private:
    struct Entry {
        std::int64_t rank;
        std::uint64_t number;  // equal ranks keep their order
        Cell* cell;
        bool operator<(const Entry& other) const {  // the greatest one is on top
            return rank != other.rank ? rank > other.rank : number > other.number;
        }
    };

    std::priority_queue<Entry> heap_;
    std::uint64_t puts_{0};
};

// The heaviest first, aged. The rank is the time of the put, counted in puts, less `ageing` for each
// unit of weight. It need not change while a cell waits, because all that wait grow older alike.
// No starvation: a cell is passed by only by those put at most `ageing` times the difference of
// their weights after it.
class WeightedReady : public RankedReady {
public:
    explicit WeightedReady(std::int64_t ageing) : ageing_(ageing) {}

    void put(Cell* cell) {
        const auto now = static_cast<std::int64_t>(puts());
        RankedReady::put(cell, now - ageing_ * static_cast<std::int64_t>(cell->weight));
    }

private:
    const std::int64_t ageing_;
};

// The cell with the least mean cost of a message first, aged. The rank is a deadline: the time of the
// put plus `patience` times the cost. An actor without a measured cost comes first, and is measured.
// No starvation: a cell is passed by only by those put before its deadline.
class ShortestReady : public RankedReady {
public:
    explicit ShortestReady(std::int64_t patience) : patience_(patience) {}

    void put(Cell* cell) {
        const std::uint64_t messages = cell->messages.get();
        const std::uint64_t mean = messages == 0 ? 0 : cell->busy_ns.get() / messages;
        // Above 2 seconds all are equal, so that the product stays in range.
        const auto cost = static_cast<std::int64_t>(std::min<std::uint64_t>(mean, INT32_MAX));
        // When the worker began to measure its present dispatch: near enough, and costs no system call.
        const Worker* const worker = cell->ready_on.load(relaxed);
        assert(worker != nullptr && cost >= 0);
        RankedReady::put(cell, worker->started + patience_ * cost);
    }

private:
    const std::int64_t patience_;
};

// The cell with the most waiting messages, of the `window` that became ready first. O(window).
// Lengths change while cells wait, so an order made at the put would be out of date, and reading the length of
// every ready actor would cost more than it gains.
// No starvation: a cell that was the oldest for `window` fetches is next.
class LongestReady {
public:
    explicit LongestReady(std::uint64_t window) : window_(window) {}

    void put(Cell* cell) { queue_.put(cell); }

    Cell* fetch() {
        Cell* const oldest = queue_.first();
        if (oldest == nullptr || passed_ >= window_) {
            passed_ = 0;
            return queue_.fetch();
        }
        Cell* before_longest = nullptr;
        std::int64_t most = length(oldest);
        Cell* before = oldest;
        for (std::uint64_t i = 1; i < window_ && before->next != nullptr; ++i) {
            const std::int64_t waiting = length(before->next);
            if (waiting > most) {
                most = waiting;
                before_longest = before;
            }
            before = before->next;
        }
        assert(passed_ < window_ && "no cell is passed by for longer");
        passed_ = before_longest == nullptr ? 0 : passed_ + 1;
        return queue_.take_after(before_longest);
    }

private:
    static std::int64_t length(const Cell* cell) {
        return cell->limits != nullptr ? cell->limits->count() : 0;
    }

    ReadyQueue queue_;
    const std::uint64_t window_;
    std::uint64_t passed_{0};
};

}  // namespace callboard
