// The candidates for a mailbox's spare nodes. Each has a List, which belongs to one mailbox, and a
// Cache, which belongs to one thread; take() is the sender's, give() the receiver's.
#pragma once

#include "callboard/core/memory/node.hpp"

namespace free_lists {

using callboard::Atomic;
using callboard::Node;

// No list at all: each node is made, and freed.
struct NoList {
    static constexpr const char* name = "no list, slabs alone";
    struct List {};
    struct Cache {
        Node* take(List&) { return new Node; }
        void give(Node* node, List&) { delete node; }
    };
};

// The free list of callboard: taken whole with one exchange, given back in batches, cached by the
// thread.
struct Batches {
    static constexpr const char* name = "take all, in batches (ours)";
    using List = callboard::FreeList;
    using Cache = callboard::NodeCache;
};

// The same, given back one by one: a thread keeps 512 nodes, and each further one goes to the list.
struct TakeAll {
    static constexpr const char* name = "take all, one by one";
    using List = callboard::FreeList;

    class Cache {
    public:
        Node* take(List& list) {
            Node* node = own_;
            if (__builtin_expect(node != nullptr, 1)) {
                own_ = node->next.load(callboard::relaxed);
                --count_;
                return node;
            }
            if (taken_ == nullptr) taken_ = list.take_all();
            node = taken_;
            if (node == nullptr) return new Node;
            taken_ = node->next.load(callboard::relaxed);
            return node;
        }

        void give(Node* node, List& list) {
            if (__builtin_expect(count_ < own_limit, 1)) {
                node->next.store(own_, callboard::relaxed);
                own_ = node;
                ++count_;
            } else if (list.size() < list_limit) {
                list.give(node, node, 1);
            } else {
                delete node;
            }
        }

        ~Cache() {
            callboard::FreeList::free_chain(own_);
            callboard::FreeList::free_chain(taken_);
        }

    private:
        static constexpr std::uint32_t own_limit = 512, list_limit = 8192;
        Node* own_{nullptr};
        Node* taken_{nullptr};
        std::uint32_t count_{0};
    };
};

#if defined(__x86_64__)
// The paper's (Prokesch 2011, algorithm 3): Treiber's stack, popped with a 16-byte compare-and-swap
// over the top and a count of the pops, pushed with a plain one. A popper reads the successor of a
// node that another may have taken, so no node may be freed before the list is.
struct Counted {
    static constexpr const char* name = "counted 16-byte CAS (paper)";

    class List {
    public:
        Node* pop() {
            for (;;) {
                Top seen;
                seen.node = __atomic_load_n(&top_.node, __ATOMIC_ACQUIRE);
                seen.pops = __atomic_load_n(&top_.pops, __ATOMIC_RELAXED);
                if (seen.node == nullptr) return nullptr;
                const Top then{seen.node->next.load(callboard::relaxed), seen.pops + 1};
                if (__sync_bool_compare_and_swap(word(&top_), *word(&seen), *word(&then)))
                    return seen.node;
            }
        }

        void push(Node* node) {
            Node* top = __atomic_load_n(&top_.node, __ATOMIC_RELAXED);
            do {
                node->next.store(top, callboard::relaxed);
            } while (!__atomic_compare_exchange_n(&top_.node, &top, node, true, __ATOMIC_RELEASE,
                                                  __ATOMIC_RELAXED));
        }

        ~List() { callboard::FreeList::free_chain(top_.node); }

    private:
        struct alignas(16) Top {
            Node* node{nullptr};
            std::uint64_t pops{0};
        };
        typedef __int128 __attribute__((may_alias)) Word;
        static Word* word(const Top* top) {
            return reinterpret_cast<Word*>(const_cast<Top*>(top));
        }
        Top top_;
    };

    struct Cache {
        Node* take(List& list) {
            Node* node = list.pop();
            return node != nullptr ? node : new Node;
        }
        void give(Node* node, List& list) { list.push(node); }
    };
};
#endif

}  // namespace free_lists
