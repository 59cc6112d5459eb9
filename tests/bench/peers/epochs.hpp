// Epoch-based reclamation: memory that others may still be reading is used again when all who were inside have
// left.
//
// After Fraser 2004, "Practical lock-freedom", section 5.2.3. Members announce the epoch in which they enter. The
// epoch advances when all who are inside have announced the current one. A member unlinks a thing, so that nobody
// who enters later finds it, and retires it with the epoch that the member has announced. The thing may be used
// again when the epoch is three beyond that. Two beyond the current epoch would do, but the member knows only that
// the current one is at most one beyond its own.
//
// Why three. Let a member unlink a thing while it is inside with `mine`.
//   1. The epoch is at most mine + 1 until it leaves: to advance from e, all inside must have announced e. For
//      this, a thread that looks for members must see each member that is inside. enter() stores its announcement
//      and then finds the epoch unchanged. try_advance() finds the epoch and then loads the announcements. All four
//      are seq_cst. So if the epoch that enter() found came before the one that try_advance() found, the
//      announcement was seen.
//   2. So the thread that moved the epoch to mine + 2 has acquired the unlinker's leaving, or its next
//      announcement. It has released that with the epoch, and enter() acquires the epoch. Hence a member that
//      entered in mine + 2 or later does not find the thing, and all who may hold it are inside with mine + 1 or
//      less.
//   3. By 1 the epoch is at most mine + 2 while any of them is inside. At mine + 3 all of them have left, and
//      has_passed() has acquired that.
//
// Visitors are temporary members, on places that they share.
//
// Progress: enter() is lock-free: it tries again when the epoch has advanced. leave() is wait-free. A member that
// stays inside, because it was preempted, say, holds up the epoch: retired memory is not used again meanwhile. It
// holds up nothing else. A member that retires things must bound how many of them wait: it leaves, and yields until
// the epoch advances.
//
// RetiredNodes gives streams the nodes that others may still read when they are given up: elements and buckets.
//
// Each stream has a stock: free nodes, and nodes that it has retired, oldest first. A node that one stream retires
// is mostly wanted by another, so free nodes go from stock to stock in batches, by a stack that all share. New
// memory comes in slabs, which live as long as this object.
//
// The bound of memory. A stock has at most 3 * batch free nodes, and at most `patience` retired ones while its stream
// is outside. has_too_many() says when its stream must leave and let others run until the epoch has advanced. So
// all stocks together withhold at most streams * (patience + 3 * batch) nodes. With a limit of at least that, plus
// the nodes in use, a stream gets a node without new memory once others go on. `fill()` keeps the limit.
//
// A node has `next`, a pointer or an Atomic of one, `link` and `retired`, which are not its own while it is in here.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"

namespace callboard {

class Epochs {
public:
    Epochs(unsigned members, unsigned visitors)
        : members_(members), places_(members + visitors), announced_(new Announced[places_]) {}

    // Member `index`, which is outside. Returns the epoch that it announced.
    std::uint64_t enter(unsigned index) {
        assert(index < places_ && !is_inside(index) && "a member enters once");
        std::uint64_t epoch = epoch_.load(relaxed);
        for (;;) {
            announced_[index].epoch.store(epoch, seq_cst);  // see 1.
            const std::uint64_t now = epoch_.load(seq_cst);  // acquire pairs with try_advance()
            if (now == epoch) return epoch;
            assert(now > epoch && "the epoch only grows");
            epoch = now;
        }
    }

    // Release pairs with try_advance(): the member's actions inside come before the next epoch.
    void leave(unsigned index) { announced_[index].epoch.store(outside, release); }

    // Any thread. Returns its place among the members, for leave_as_visitor(). While there is none free, it waits.
    unsigned enter_as_visitor() {
        for (;; std::this_thread::yield()) {
            for (unsigned place = members_; place < places_; ++place) {
                Atomic<bool>& taken = announced_[place].taken;
                // Acquire pairs with the last visitor's release.
                if (taken.load(relaxed) || taken.exchange(true, acquire)) continue;
                enter(place);
                return place;
            }
        }
    }
    void leave_as_visitor(unsigned place) {
        assert(place >= members_ && place < places_ && is_inside(place));
        leave(place);
        announced_[place].taken.store(false, release);  // pairs with the next visitor
    }

    // The member's thread. For assertions: what others may retire is read from inside only.
    bool is_inside(unsigned index) const { return announced_[index].epoch.load(relaxed) != outside; }
    // Any thread, inside or not. Moves the epoch on if all who are inside have announced it.
    bool try_advance() {
        std::uint64_t epoch = epoch_.load(seq_cst);  // see 1.
        for (unsigned place = 0; place < places_; ++place) {
            // Acquire pairs with leave() and enter().
            const std::uint64_t announced = announced_[place].epoch.load(seq_cst);
            if (announced != outside && announced != epoch) return false;
        }
        // Release pairs with enter() and has_passed(); a slower thread's exchange fails and orders
        // nothing.
        return epoch_.compare_exchange_strong(epoch, epoch + 1, seq_cst, relaxed);
    }

    // No thread holds a thing that a member with this epoch retired. Acquire pairs with try_advance().
    bool has_passed(std::uint64_t announced) const { return epoch_.load(acquire) >= announced + 3; }

private:
    static constexpr std::uint64_t outside = 0;
    struct alignas(cache_line) Announced {
        Atomic<std::uint64_t> epoch{outside};
        Atomic<bool> taken{false};
    };

    const unsigned members_, places_;
    const std::unique_ptr<Announced[]> announced_;
    alignas(cache_line) Atomic<std::uint64_t> epoch_{1};
};

template <class Node>
class RetiredNodes {
    struct Slab;

public:
    static constexpr std::size_t batch = 32, patience = 256, withheld = patience + 3 * batch;

    // One stream's, who alone uses it.
    class OfStream {
    public:
        // There is one.
        Node* take() {
            Node* const node = free_;
            assert(node != nullptr && free_count_ != 0);
            free_ = node->link;
            --free_count_;
            return node;
        }

        // Nobody else has seen it, or nobody holds it any more.
        void give(Node* node) {
            assert(node != nullptr && node != free_ && "a node is given once");
            node->link = free_;
            free_ = node;
            ++free_count_;
        }

        // It was unlinked by the stream, in the epoch that it has announced.
        void retire(Node* node, std::uint64_t announced) {
            assert(node != nullptr && announced != 0 && "who retires is inside an epoch");
            node->retired = announced;
            node->link = nullptr;
            *last_ = node;
            last_ = &node->link;
            ++retired_count_;
        }

        std::size_t free_count() const { return free_count_; }
        std::size_t retired_count() const { return retired_count_; }
        bool has_too_many() const { return retired_count_ > patience; }

        // Frees what nobody holds any more.
        void reclaim(const Epochs& epochs) {
            while (retired_ != nullptr && epochs.has_passed(retired_->retired)) {
                Node* const node = retired_;
                retired_ = node->link;
                if (retired_ == nullptr) last_ = &retired_;
                assert(retired_count_ != 0);
                --retired_count_;
                give(node);
            }
        }

    private:
        friend class RetiredNodes;
        Node* free_{nullptr};
        std::size_t free_count_{0};
        Node* retired_{nullptr};
        Node** last_{&retired_};
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

    // Sees to it that the stock has a batch of free nodes. False: there are none, and as many as `limit` were made.
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
            Node* const first = stock.free_;
            Node* last = first;
            for (std::size_t i = 1; i < batch; ++i) last = last->link;
            assert(last != nullptr);
            stock.free_ = last->link;
            stock.free_count_ -= batch;
            last->link = nullptr;
            batches_.push(first);
        }
    }

    // How many nodes were ever made.
    std::size_t made() const { return made_.load(relaxed); }

private:
    struct Slab {
        Slab* next;
        Node nodes[batch];
    };

    bool take_batch(OfStream& stock) {
        if (batches_.seems_empty()) return false;
        Node* const first = batches_.take_all();
        if (first == nullptr) return false;
        if (Node* const rest = get_next(first)) {
            Node* last = rest;
            while (Node* const further = get_next(last)) last = further;
            batches_.push(rest, last);
        }
        for (Node* node = first; node != nullptr;) {
            Node* const following = node->link;
            stock.give(node);
            node = following;
        }
        return true;
    }

    void make(OfStream& stock) {
        auto* const slab = new Slab();
        made_.fetch_add(batch, relaxed);
        slabs_.push(slab);
        for (Node& node : slab->nodes) stock.give(&node);
    }

    Stack<Slab> slabs_;
    Stack<Node> batches_;  // each linked by `link`, and they by their firsts' `next`
    Atomic<std::size_t> made_{0};
};

}  // namespace callboard
