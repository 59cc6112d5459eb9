// A stack that any thread pushes to and that is taken whole: how threads hand work over here, be it cells
// that became ready, system messages, spare nodes, dead buffers or delegated requests.
//
// Items are linked by their member `next`, a pointer or an Atomic of one, which is the stack's for as long
// as the item is in it.
//
// Why one compare-and-swap is enough. Nothing is ever taken out of the middle, and no pop looks into an
// item, so there is no ABA: if the top was taken and pushed again between a pusher's load and its
// compare-and-swap, then it is the top again, and the pusher's link to it is the truth.
//
// Progress: push is lock-free (one that fails means that another got through), take_all is wait-free.
#pragma once

#include <cassert>
#include <type_traits>

#include "callboard/core/atomics.hpp"

namespace callboard {

// The link, plain or atomic. relaxed: who takes the stack orders its items after their pushes.
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

// What was taken, which is the newest first, turned over.
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
    // Any thread. True: it was empty. Release pairs with take_all(): who takes an item sees all that its
    // pusher did before.
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

    // Any thread. All items, the newest first; null if there are none. Acquire pairs with push(). Release
    // pairs with is_empty(): who finds the stack empty because of this exchange sees what the taker did
    // before it.
    Item* take_all() { return top_.exchange(nullptr, acq_rel); }

    // Any thread. Acquire pairs with take_all()'s release; and what is read after it is read after. seq_cst, with
    // pushes that are: who then looks whether anybody would see the item is told so here, or sees that.
    bool is_empty() const { return top_.load(seq_cst) == nullptr; }

    // Any thread, a hint.
    bool seems_empty() const { return top_.load(relaxed) == nullptr; }

private:
    Atomic<Item*> top_{nullptr};
};

}  // namespace callboard
