// The stack that is taken whole, and the list of spare nodes that is one.
#include "callboard/core/memory/node.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Item {
    Plain<Item*> next{nullptr};
    Plain<int> value;
    explicit Item(int value) : value(value) {}
};

int take(Stack<Item>& stack) {
    int sum = 0;
    for (Item* item = stack.take_all(); item != nullptr;) {
        Item* const older = item->next;
        sum += item->value;
        delete item;
        item = older;
    }
    return sum;
}

}  // namespace

MODEL("each item is taken once, as it was pushed") {
    Stack<Item> stack;
    Plain<int> first{0}, second{0};
    together([&] { stack.push(new Item(1)), stack.push(new Item(2)); },
             [&] {
                 stack.push(new Item(4));
                 first = take(stack);
             },
             [&] { second = take(stack); });
    CHECK(first + second + take(stack) == 7);
}

MODEL("a thread that finds a stack empty because it was taken sees all that the taker did before") {
    Stack<Item> stack;
    Plain<int> done{0};
    stack.push(new Item(1));
    together([&] { done = 7, take(stack); },
             [&] {
                 if (stack.is_empty()) CHECK(done == 7);
             });
}

MODEL("a thread that pushes and then looks for a sleeper is seen, or sees it") {
    Stack<Item> stack;
    Atomic<int> sleeps{0};
    Plain<int> stays{0}, is_called{0};
    together([&] { stack.push(new Item(1), seq_cst), is_called = sleeps.load(seq_cst); },
             [&] { sleeps.store(1, seq_cst), stays = !stack.is_empty(); });
    CHECK(stays != 0 || is_called != 0);
    take(stack);
}

MODEL("a list's nodes are taken once, as they were given") {
    FreeList list;
    Node* const given = new Node;
    given->second = new Plain<int>(7);
    const auto use = [&list] {
        Node* const node = list.take_all();
        if (node == nullptr) return;
        auto* const value = static_cast<Plain<int>*>(node->second);
        if (value != nullptr) *value = *value + 1;
        list.give(node, node, 1);
    };
    together([&] { list.give(given, given, 1); }, use, use);
    Node* const left = list.take_all();
    CHECK(left == given);
    delete static_cast<Plain<int>*>(left->second);
    delete left;
}

MODEL("a list that ends while another thread frees its surplus") {
    model::Kernel kernel;
    Surplus surplus(0);
    auto* const list = new FreeList;
    for (int i = 0; i < 2; ++i) {
        Node* const node = new Node;
        list->give(node, node, 1);
    }
    surplus.note(*list);
    together([&] { surplus.free_all(); }, [&] { delete list; });
    CHECK(surplus.is_empty());
}
