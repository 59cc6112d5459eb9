// Nodes, the free list and the cache of a thread. Every node that is made is counted here, so a
// lost or a doubly freed one shows without a sanitizer.
#include <set>
#include <thread>

#include "callboard/core/memory/slab.hpp"

namespace callboard {

static Atomic<long> made{0}, freed{0};

struct CountedSlab : Slab {
    static void* make_line() {
        made.fetch_add(1, relaxed);
        return Slab::make_line();
    }
    static void free_line(void* memory) noexcept {
        freed.fetch_add(1, relaxed);
        Slab::free_line(memory);
    }
};

}  // namespace callboard

#define Slab CountedSlab  // where nodes come from
#include "callboard/core/memory/node.hpp"
#undef Slab
#include "check.hpp"

using callboard::FreeList;
using callboard::Node;
using callboard::Surplus;
using callboard::freed;
using callboard::made;
using SmallCache = callboard::BasicNodeCache<2, 4>;  // batches of 2 nodes, 4 in a list

struct Balance {  // checks at its end that every node made since its start was freed
    long made_before = made.load(callboard::relaxed), freed_before = freed.load(callboard::relaxed);
    long made_since() const { return made.load(callboard::relaxed) - made_before; }
    long freed_since() const { return freed.load(callboard::relaxed) - freed_before; }
    ~Balance() { CHECK_EQUAL(made_since(), freed_since()); }
};

static int length(Node* chain) {
    int count = 0;
    for (; chain != nullptr; chain = chain->next.load(callboard::relaxed)) ++count;
    return count;
}

TEST("a record of sixteen bytes fits a node") {
    Node node;
    const unsigned char record[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    std::memcpy(node.bytes, record, sizeof record);
    CHECK(std::memcmp(node.bytes, record, sizeof record) == 0);
    CHECK(node.next.load(callboard::relaxed) == nullptr);
}

TEST("nodes that are made one after another lie on different cache lines") {
    Balance balance;
    Node* const nodes[2] = {new Node, new Node};
    for (Node* node : nodes) CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(node) % callboard::cache_line, 0u);
    CHECK(nodes[0] != nodes[1]);
    for (Node* node : nodes) delete node;
}

TEST("an empty list has nothing to take") {
    FreeList list;
    CHECK(list.take_all() == nullptr);
    CHECK_EQUAL(list.size(), 0u);
}

TEST("a taker gets every node of a list, the newest first") {
    FreeList list;
    Node nodes[3];
    for (Node& node : nodes) list.give(&node, &node, 1);
    CHECK_EQUAL(list.size(), 3u);
    Node* chain = list.take_all();
    CHECK(chain == &nodes[2]);
    CHECK_EQUAL(length(chain), 3);
    CHECK(list.take_all() == nullptr);
}

TEST("a list that was emptied holds nothing, and counts again from there") {
    FreeList list;
    Node nodes[3];
    for (Node& node : nodes) list.give(&node, &node, 1);
    list.take_all();
    CHECK_EQUAL(list.size(), 0u);
    list.give(&nodes[0], &nodes[0], 1);
    CHECK_EQUAL(list.size(), 1u);
    list.take_all();
}

TEST("a list frees its nodes when it ends") {
    Balance balance;
    FreeList list;
    for (int i = 0; i < 2; ++i) {
        Node* node = new Node;
        list.give(node, node, 1);
    }
}

TEST("an empty cache beside an empty list makes a node") {
    Balance balance;
    FreeList list;
    SmallCache cache;
    Node* node = cache.take(list);
    CHECK_EQUAL(balance.made_since(), 1);
    cache.give(node, list);
}

TEST("a consumed node is the next one sent") {
    Balance balance;
    FreeList list;
    SmallCache cache;
    Node* node = cache.take(list);
    cache.give(node, list);
    CHECK(cache.take(list) == node);
    cache.give(node, list);
    CHECK_EQUAL(balance.made_since(), 1);
}

TEST("nodes that a receiver does not keep go to the list, for its senders") {
    Balance balance;
    FreeList list;
    SmallCache receiver, sender;
    Node* nodes[5];
    for (Node*& node : nodes) node = new Node;
    for (Node* node : nodes) receiver.give(node, list);
    CHECK_EQUAL(list.size(), 2u);
    std::set<Node*> sent;
    for (int i = 0; i < 2; ++i) sent.insert(sender.take(list));
    CHECK(sent == std::set<Node*>({nodes[0], nodes[1]}));
    CHECK_EQUAL(balance.made_since(), 5);
    for (Node* node : sent) sender.give(node, list);
}

TEST("a node beyond the limits of the receiver and the list is freed") {
    Balance balance;
    FreeList list;
    SmallCache cache;
    for (int i = 0; i < 10; ++i) cache.give(new Node, list);
    CHECK_EQUAL(list.size(), 4u);
    CHECK_EQUAL(balance.freed_since(), 2);
}

TEST("a full list that a sender emptied is filled again") {
    Balance balance;
    FreeList list;
    SmallCache receiver;
    for (int i = 0; i < 10; ++i) receiver.give(new Node, list);  // full, two were freed
    FreeList::free_chain(list.take_all());
    for (int i = 0; i < 3; ++i) receiver.give(new Node, list);
    Node* chain = list.take_all();
    CHECK_EQUAL(length(chain), 4);
    FreeList::free_chain(chain);
}

TEST("a cache frees its nodes when its thread ends") {
    Balance balance;
    FreeList list;
    std::thread([&] {
        SmallCache receiver, sender;
        for (int i = 0; i < 5; ++i) receiver.give(new Node, list);
        sender.give(sender.take(list), list);
    }).join();
}

TEST("trimming frees the nodes beyond the limit, and leaves a shorter list alone") {
    Balance balance;
    FreeList list;
    for (int i = 0; i < 5; ++i) {
        Node* node = new Node;
        list.give(node, node, 1);
    }
    list.trim(6);
    CHECK_EQUAL(list.size(), 5u);
    list.trim(2);
    CHECK_EQUAL(balance.freed_since(), 3);
    CHECK_EQUAL(list.size(), 2u);
    Node* chain = list.take_all();
    CHECK_EQUAL(length(chain), 2);
    list.trim(2);
    CHECK_EQUAL(list.size(), 0u);
    FreeList::free_chain(chain);
}

TEST("a list that was given more than a batch is noted, once, and trimmed to a batch") {
    Balance balance;
    Surplus surplus(SmallCache::batch_size);
    FreeList list;
    SmallCache cache;
    cache.surplus = &surplus;
    for (int i = 0; i < 6; ++i) cache.give(new Node, list);
    CHECK(surplus.is_empty());  // two batches stay in the cache, and one may be in the list
    for (int i = 0; i < 5; ++i) cache.give(new Node, list);
    CHECK(!surplus.is_empty());
    CHECK(list.size() > 2u);
    surplus.free_all();
    CHECK(surplus.is_empty());
    CHECK_EQUAL(list.size(), 2u);
    for (int i = 0; i < 4; ++i) cache.give(new Node, list);
    CHECK(!surplus.is_empty());  // the next burst
}

TEST("a list that ends is forgotten") {
    Balance balance;
    Surplus surplus(1);
    FreeList stays;
    {
        FreeList ends;
        surplus.note(ends);
        surplus.note(stays);
    }
    surplus.free_all();
    CHECK(surplus.is_empty());
}

CHECK_MAIN
