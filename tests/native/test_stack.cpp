// The stack that is taken whole, with links of both kinds.
#include "callboard/core/memory/stack.hpp"

#include <vector>

#include "check.hpp"

using namespace callboard;

namespace {

struct Plain {
    int value;
    Plain* next{nullptr};
};

struct Shared {
    int value;
    Atomic<Shared*> next{nullptr};
    explicit Shared(int value) : value(value) {}
};

template <class Item>
std::vector<int> values(Item* item) {
    std::vector<int> found;
    for (; item != nullptr; item = get_next(item)) found.push_back(item->value);
    return found;
}

template <class Item>
void is_taken_whole() {
    Item items[]{Item{1}, Item{2}, Item{3}};
    Stack<Item> stack;
    for (Item& item : items) stack.push(&item);
    Item* const all = stack.take_all();
    CHECK(stack.is_empty() && stack.seems_empty());
    CHECK(stack.take_all() == nullptr);
    CHECK((values(all) == std::vector<int>{3, 2, 1}));
    CHECK((values(oldest_first(all)) == std::vector<int>{1, 2, 3}));
}

}  // namespace

TEST("all items are taken at once, the newest first, and can be turned over") {
    is_taken_whole<Plain>();
    is_taken_whole<Shared>();
    CHECK(oldest_first<Plain>(nullptr) == nullptr);
}

TEST("a push says whether the stack was empty") {
    Plain one{1}, two{2};
    Stack<Plain> stack;
    CHECK(stack.push(&one));
    CHECK(!stack.push(&two));
    stack.take_all();
    CHECK(stack.push(&two));
}

TEST("a chain is pushed as it is linked, on top of the stack") {
    Plain below{3}, first{1}, last{2};
    first.next = &last;
    Stack<Plain> stack;
    stack.push(&below);
    CHECK(!stack.push(&first, &last));
    CHECK((values(stack.take_all()) == std::vector<int>{1, 2, 3}));
}

CHECK_MAIN
