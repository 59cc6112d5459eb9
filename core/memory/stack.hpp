// A stack that any thread pushes to, and from which a thread takes all items at once. Threads hand over work
// by it: cells that became ready, system messages, spare nodes, dead buffers, delegated requests.
//
// Items are linked by their member `next`, a pointer or an Atomic of one, which belongs to the stack while
// the item is in it.
//
// Why one compare-and-swap is enough. Nothing is ever taken out of the middle, and no pop looks into an
// item, so there is no ABA problem. Suppose that the top was taken and pushed again between a pusher's
// load and its compare-and-swap. Then it is the top again, and the pusher's link to it is right.
//
// Progress: push is lock-free (a failed compare-and-swap means that another thread got through); take_all
// is wait-free.
#pragma once

#include <cassert>
#include <type_traits>

#include "callboard/core/atomics.hpp"

namespace callboard {

// The link, plain or atomic. relaxed: take_all() orders the items after their pushes.
template <class Item>
Item* get_next(const Item* item) {
    if constexpr (std::is_pointer_v<decltype(item->next)>) return item->next;
    else return item->next.load(relaxed);
}

template <class Item>
void set_next(Item* item, Item* next) {
    if constexpr (std::is_pointer_v<decltype(item->next)>) item->next = next;
    else item->next.store(next, relaxed);
}

// Reverses the items that were taken, which are the newest first.
template <class Item>
Item* oldest_first(Item* newest) {
    Item* oldest = nullptr;
    while (newest != nullptr) {
        Item* const older = get_next(newest);
        set_next(newest, oldest);
        oldest = newest;
        newest = older;
    }
    return oldest;
}

template <class Item>
class Stack {
public:
    // Any thread. True: it was empty. Release pairs with take_all(): the taker of an item sees all that
    // its pusher did before.
    bool push(Item* item, std::memory_order order = release) { return push(item, item, order); }

    // The items from `first` to `last`, which are linked already, with `first` as the top.
    bool push(Item* first, Item* last, std::memory_order order = release) {
        assert(first != nullptr && last != nullptr);
        Item* top = top_.load(relaxed);
        do {
            assert(top != first && "an item is pushed once");
            set_next(last, top);
        } while (!top_.compare_exchange_weak(top, first, order, relaxed));
        return top == nullptr;
    }

    // Any thread. All items, the newest first; null if there are none. Acquire pairs with push(). Release pairs
    // with is_empty(): a thread that finds the stack empty because of this exchange sees what the taker did
    // before it.
    Item* take_all() { return top_.exchange(nullptr, acq_rel); }

    // Any thread. Acquire pairs with take_all()'s release, and later reads stay after it. seq_cst pairs with
    // pushes that are seq_cst, too. Say that a pusher then looks whether anybody would see its item. Either this
    // call sees the item, or the pusher sees what this thread announced before.
    bool is_empty() const { return top_.load(seq_cst) == nullptr; }

    // Any thread, a hint.
    bool seems_empty() const { return top_.load(relaxed) == nullptr; }

private:
    Atomic<Item*> top_{nullptr};
};

}  // namespace callboard
