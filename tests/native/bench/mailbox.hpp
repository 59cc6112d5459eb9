// A mailbox with one of the candidates for its spare nodes, and a limit to how far producers run ahead.
#pragma once

#include "callboard/mailbox/mpsc.hpp"

namespace free_lists {

using callboard::Atomic;
using callboard::MpscHead;
using callboard::MpscTail;
using callboard::Node;

template <class Kind>
struct Mailbox {
    Node* const dummy = new Node;
    alignas(callboard::cache_line) MpscTail tail{dummy, false};
    alignas(callboard::cache_line) typename Kind::List spare;
    alignas(callboard::cache_line) MpscHead head{dummy};

    void send(typename Kind::Cache& cache, std::int64_t value) {
        Node* node = cache.take(spare);
        node->integer = value;
        (void)tail.push(node);
    }

    bool receive(typename Kind::Cache& cache, std::int64_t& value) {
        Node* spent = nullptr;
        Node* node = head.pop(spent);
        if (node == nullptr) return false;
        value = node->integer;
        cache.give(spent, spare);
        return true;
    }
};

struct alignas(callboard::cache_line) Progress {
    Atomic<std::int64_t> received{0};
};

// The most messages of a producer that are under way.
inline constexpr std::int64_t window = 1000;

}  // namespace free_lists
