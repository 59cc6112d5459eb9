// A node: the link of a mailbox's queue that carries one message. Also the two stores of spare nodes.
//
// Spare nodes (LPEL, Prokesch 2011, section 4.2.2): a sender takes a node from the free list of the
// receiver's mailbox, and the receiver gives it back. The paper's "free pool" is a stack popped with a
// counted 16-byte compare-and-swap. Here one exchange takes the whole list into a cache of the sending
// thread, which then takes nodes without any atomic operation. While another thread may recycle a node, no
// thread compares its address. So there is no ABA problem and no 16-byte operation, and the same code serves
// x86-64 and aarch64. `docs/design/free-lists.md` has the measurements. The nodes that a burst left in a free
// list are freed when a worker has been idle for a while.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/slab.hpp"
#include "callboard/core/memory/stack.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

// The message that a node carries. `first` and `second` are owned references for the kinds marked
// (P).
enum class Kind : std::uint8_t {
    python,    // (P) message, sender or null
    ask,       // (P) message, future that waits for the answer
    // Native values. With the flag `wants_answer`, `second` is a future (P).
    integer,   // 64-bit integer
    real,      // double
    buffer,    // a counted reference to a Buffer
    record,    // 16 bytes, by value; never asked
    // A Python message that a trace shows on its way; `tag` is the number of its arrow, 0 for none.
    sampled_tell,  // (P) as python
    sampled_ask,   // (P) as ask
};

inline constexpr std::uint8_t wants_answer = 1;

struct Node {
    Atomic<Node*> next{nullptr};
    Kind kind{Kind::python};
    std::uint8_t flags{0};
    std::uint16_t reserved{0};
    std::uint32_t tag{0};  // the user's own tag on a native value
    union {
        void* first;
        std::int64_t integer;
        double real;
        unsigned char bytes[8];  // of the record's 16; the others follow
    };
    void* second{nullptr};
    std::int64_t sent_at{0};  // where times in the mailbox are measured: see _inside/sending/actor_cell.hpp
    Node() : first(nullptr) {}

    // Each has its own cache line: nodes that were made one after another travel on different cores.
    static void* operator new(std::size_t) { return Slab::make_line(); }
    static void operator delete(void* node) noexcept { Slab::free_line(node); }
};
static_assert(sizeof(Node) <= Slab::room, "a node to a cache line");

class FreeList;

// The free lists that got more than a batch of nodes, until an idle thread frees the surplus. It has a lock,
// because lists end; the lock is taken once for each list and burst.
class Surplus {
public:
    explicit Surplus(std::uint32_t kept) : kept_(kept) {}

    // Any thread. The caller keeps the list alive.
    void note(FreeList& list);

    // Any thread, a hint.
    bool is_empty() const { return count_.load(relaxed) == 0; }

    // Any thread.
    void free_all();

    // Around a fork, so that the child does not find it locked by a thread of the parent.
    void lock() { lock_.lock(); }
    void unlock() { lock_.unlock(); }

private:
    friend class FreeList;
    void forget(FreeList& list);

    const std::uint32_t kept_;  // the most that a list keeps
    std::mutex lock_;
    std::vector<FreeList*> lists_;
    Atomic<std::size_t> count_{0};
};

// The free list of one mailbox. The receiver gives, and so may a sender that dropped a message; any
// thread may take all.
class FreeList {
public:
    // Any thread. Every node in the list, or null.
    Node* take_all() { return nodes_.seems_empty() ? nullptr : nodes_.take_all(); }

    // Any thread. The nodes from `first` to `last`, linked by `next`.
    void give(Node* first, Node* last, std::uint32_t count) {
        assert(count != 0);
        const bool was_empty = nodes_.push(first, last);
        count_.store(was_empty ? count : count_.load(relaxed) + count, relaxed);
    }

    // Any thread: the approximate number of nodes in the list, exact where only the receiver gives. It looks
    // at the top, because a taker cannot reset the count, and a full list gets no give() that would.
    std::uint32_t size() const { return nodes_.seems_empty() ? 0 : count_.load(relaxed); }

    // Any thread. Frees all but `kept` nodes, about.
    void trim(std::uint32_t kept) {
        Node* const first = take_all();
        if (first == nullptr) return;
        Node* last = first;
        std::uint32_t count = 1;
        for (Node* next; count < kept && (next = last->next.load(relaxed)) != nullptr; ++count) last = next;
        free_chain(last->next.load(relaxed));
        give(first, last, count);
    }

    // Any thread.
    void free_all() { free_chain(take_all()); }

    // Acquire pairs with the release in Surplus::free_all(), which took this list out of its lists. So a
    // thread that finds this list in no surplus comes after free_all()'s trim().
    ~FreeList() {
        if (Surplus* surplus = listed_.load(acquire)) surplus->forget(*this);
        free_all();
    }

    static void free_chain(Node* node) {
        while (node != nullptr) {
            Node* next = node->next.load(relaxed);
            delete node;
            node = next;
        }
    }

private:
    friend class Surplus;
    Stack<Node> nodes_;
    Atomic<std::uint32_t> count_{0};
    Atomic<Surplus*> listed_{nullptr};  // written under that one's lock
};

inline void Surplus::note(FreeList& list) {
    if (list.listed_.load(relaxed) != nullptr) return;
    const std::lock_guard<std::mutex> hold(lock_);
    if (list.listed_.load(relaxed) != nullptr) return;
    try {
        lists_.push_back(&list);
    } catch (const std::bad_alloc&) {
        return;  // its nodes stay where they are
    }
    list.listed_.store(this, relaxed);
    count_.store(lists_.size(), relaxed);
}

inline void Surplus::free_all() {
    const std::lock_guard<std::mutex> hold(lock_);
    for (FreeList* list : lists_) {
        assert(list->listed_.load(relaxed) == this && "a free list is noted once");
        list->trim(kept_);
        list->listed_.store(nullptr, release);  // from here on it may end
    }
    lists_.clear();
    count_.store(0, relaxed);
}

inline void Surplus::forget(FreeList& list) {
    const std::lock_guard<std::mutex> hold(lock_);
    lists_.erase(std::remove(lists_.begin(), lists_.end(), &list), lists_.end());
    count_.store(lists_.size(), relaxed);
}

// The spare nodes of one thread: up to two batches that it consumed itself, then those that it took from
// receivers. Beyond two batches it gives one back, with one exchange, to the list of the mailbox that it
// consumes from. A mailbox keeps about `list_limit` nodes for its senders; nodes beyond that are freed. With
// two batches instead of one, a thread that alternately takes and gives at the border of a batch does not go
// to the list each time. A list that got more than a batch is noted in `surplus`, if there is one.
template <std::uint32_t batch, std::uint32_t list_limit>
class BasicNodeCache : OneAtATime<Owner> {
public:
    static constexpr std::uint32_t batch_size = batch;

    Surplus* surplus{nullptr};

    // A node to send to the owner of `list`. Throws std::bad_alloc.
    Node* take(FreeList& list) {
        const Alone<Owner> alone(*this);
        Node* node = filling_;
        if (__builtin_expect(node != nullptr, 1)) {
            assert(filled_ != 0 && filled_ <= batch);
            filling_ = node->next.load(relaxed);
            --filled_;
            return node;
        }
        return take_slowly(list);
    }

    // The same; null when there is no more memory.
    Node* try_take(FreeList& list) noexcept {
        try {
            return take(list);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    // The same for a message of the runtime, with a reserve. Null when that is used up, too.
    Node* take_reserved(FreeList& list) noexcept {
        Node* const node = try_take(list);
        if (__builtin_expect(node != nullptr, 1)) return node;
        void* const line = Slab::make_reserved_line();
        return line == nullptr ? nullptr : ::new (line) Node;
    }

    // A consumed node, for this thread's next send, or for the senders to the owner of `list`.
    void give(Node* node, FreeList& list) {
        const Alone<Owner> alone(*this);
        assert(node != nullptr && node != filling_ && "a node is given back once");
        if (__builtin_expect(filled_ == batch, 0)) put_aside(list);
        assert(filled_ < batch && (filling_ == nullptr) == (filled_ == 0));
        if (filling_ == nullptr) oldest_ = node;
        node->next.store(filling_, relaxed);
        filling_ = node;
        ++filled_;
    }

    // The nodes that the thread needed beyond its own two batches, since clear_needs(): new ones, because no
    // node was spare, and, while `taken` is on, those from free lists. The mailboxes that it sends to grew by
    // this number, or would have grown if no thread had given nodes back.
    std::uint32_t needs() const { return needs_; }
    std::uint32_t made() const { return made_; }
    void clear_needs(bool taken) {
        needs_ = made_ = 0;
        weight_of_taken_ = taken;
    }

    ~BasicNodeCache() {
        FreeList::free_chain(filling_);
        FreeList::free_chain(full_);
        FreeList::free_chain(taken_);
    }

private:
    __attribute__((noinline)) Node* take_slowly(FreeList& list) {
        assert(filling_ == nullptr && filled_ == 0 && "what it holds comes first");
        if (full_ != nullptr) {
            filling_ = full_;
            oldest_ = full_oldest_;
            filled_ = batch;
            full_ = nullptr;
            return take(list);
        }
        if (taken_ == nullptr) taken_ = list.take_all();
        if (Node* node = taken_) {
            taken_ = node->next.load(relaxed);
            needs_ += weight_of_taken_;
            return node;
        }
        auto* const node = new Node;
        ++needs_;
        ++made_;
        assert(made_ <= needs_);
        return node;
    }

    __attribute__((noinline)) void put_aside(FreeList& list) {
        assert(filled_ == batch && oldest_->next.load(relaxed) == nullptr && "a whole batch");
        if (full_ != nullptr) {
            if (list.size() < list_limit) list.give(full_, full_oldest_, batch);
            else FreeList::free_chain(full_);
            if (surplus != nullptr && list.size() > batch) surplus->note(list);
        }
        full_ = filling_;
        full_oldest_ = oldest_;
        filling_ = nullptr;
        filled_ = 0;
    }

    Node *filling_{nullptr}, *oldest_{nullptr};    // at most one batch
    Node *full_{nullptr}, *full_oldest_{nullptr};  // a whole batch, or nothing
    Node* taken_{nullptr};
    std::uint32_t filled_{0};           // in filling_
    std::uint32_t needs_{0}, made_{0};  // nodes, since clear_needs()
    std::uint32_t weight_of_taken_{0};  // 1 if one from a list is a need
};

using NodeCache = BasicNodeCache<256, 8192>;

}  // namespace callboard
