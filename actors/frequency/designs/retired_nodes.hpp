// Where streams get things from that others may read while they are given up: elements and buckets.
//
// Each stream has a stock: what is free, and what it has retired (memory/epochs.hpp), oldest first. A thing that one
// stream retires is mostly wanted by another, so free ones go from stock to stock in batches, by a stack that is
// common to all. New memory comes in slabs, which live as long as this.
//
// The bound of memory. A stock has at most 3 * batch free things, and at most `patience` retired ones when its stream
// is not inside. has_too_many() says when its stream must leave and let others run until the epoch has gone on. So
// all stocks together withhold at most streams * (patience + 3 * batch) things. With a limit of at least that, plus
// the things in use, a stream gets a thing without new memory once others go on. `fill()` keeps the limit.
//
// A thing has `next`, a pointer or an Atomic of one, `link` and `retired`, which are not its own while it is in here.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/epochs.hpp"
#include "callboard/core/memory/stack.hpp"

namespace callboard {

template <class Thing>
class RetiredNodes {
    struct Slab;

public:
    static constexpr std::size_t batch = 32, patience = 256, withheld = patience + 3 * batch;

    // One stream's, who alone uses it.
    class OfStream {
    public:
        // There is one.
        Thing* take() {
            Thing* const thing = free_;
            assert(thing != nullptr && free_count_ != 0);
            free_ = thing->link;
            --free_count_;
            return thing;
        }

        // Nobody else has seen it, or nobody holds it any more.
        void give(Thing* thing) {
            assert(thing != nullptr && thing != free_ && "a thing is given once");
            thing->link = free_;
            free_ = thing;
            ++free_count_;
        }

        // It was unlinked by the stream, in the epoch that it has announced.
        void retire(Thing* thing, std::uint64_t announced) {
            assert(thing != nullptr && announced != 0 && "who retires is inside an epoch");
            thing->retired = announced;
            thing->link = nullptr;
            *last_ = thing;
            last_ = &thing->link;
            ++retired_count_;
        }

        std::size_t free_count() const { return free_count_; }
        std::size_t retired_count() const { return retired_count_; }
        bool has_too_many() const { return retired_count_ > patience; }

        // Frees what nobody holds any more.
        void reclaim(const Epochs& epochs) {
            while (retired_ != nullptr && epochs.has_passed(retired_->retired)) {
                Thing* const thing = retired_;
                retired_ = thing->link;
                if (retired_ == nullptr) last_ = &retired_;
                assert(retired_count_ != 0);
                --retired_count_;
                give(thing);
            }
        }

    private:
        friend class RetiredNodes;
        Thing* free_{nullptr};
        std::size_t free_count_{0};
        Thing* retired_{nullptr};
        Thing** last_{&retired_};
        std::size_t retired_count_{0};
    };

    RetiredNodes() = default;
    RetiredNodes(const RetiredNodes&) = delete;
    ~RetiredNodes() {
        for (Slab* slab = slabs_.take_all(); slab != nullptr;) {
            Slab* const following = slab->next;
            delete slab;
            slab = following;
        }
    }

    // Sees to it that the stock has a batch of free things. False: there are none, and as many as `limit` were made.
    // Throws std::bad_alloc, and nothing has changed.
    bool fill(OfStream& stock, std::size_t limit) {
        while (stock.free_count_ < batch) {
            if (take_batch(stock)) continue;
            if (made_.load(relaxed) + batch > limit) return false;
            make(stock);
        }
        return true;
    }

    // The same whatever was made.
    void fill(OfStream& stock) { fill(stock, ~std::size_t{0}); }

    // Hands on what is more than a stock should keep.
    void spread(OfStream& stock) {
        while (stock.free_count_ >= 3 * batch) {
            Thing* const first = stock.free_;
            Thing* last = first;
            for (std::size_t i = 1; i < batch; ++i) last = last->link;
            assert(last != nullptr);
            stock.free_ = last->link;
            stock.free_count_ -= batch;
            last->link = nullptr;
            batches_.push(first);
        }
    }

    // How many things were ever made.
    std::size_t made() const { return made_.load(relaxed); }

private:
    struct Slab {
        Slab* next;
        Thing things[batch];
    };

    bool take_batch(OfStream& stock) {
        if (batches_.seems_empty()) return false;
        Thing* const first = batches_.take_all();
        if (first == nullptr) return false;
        if (Thing* const rest = get_next(first)) {
            Thing* last = rest;
            while (Thing* const further = get_next(last)) last = further;
            batches_.push(rest, last);
        }
        for (Thing* thing = first; thing != nullptr;) {
            Thing* const following = thing->link;
            stock.give(thing);
            thing = following;
        }
        return true;
    }

    void make(OfStream& stock) {
        auto* const slab = new Slab();
        made_.fetch_add(batch, relaxed);
        slabs_.push(slab);
        for (Thing& thing : slab->things) stock.give(&thing);
    }

    Stack<Slab> slabs_;
    Stack<Thing> batches_;  // each linked by `link`, and they by their firsts' `next`
    Atomic<std::size_t> made_{0};
};

}  // namespace callboard
