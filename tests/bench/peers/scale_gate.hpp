// ScaleGate: sources merge, by putting each value in its place in one sorted list that all share.
//
// Gulisano et al. 2015 ("ScaleJoin"), section V-C, algorithm 2. The list has levels, as a skip list has: a node is
// linked on the lowest level, and by chance on some above. A source looks for a value's place from its last one,
// and links the node on each level by compare-and-swap. After that it writes the time of its last value into a word
// of its own. A reader goes along the lowest level for as long as the next value is ready. It is a peer for
// measurements.
//
//     level 3   o --------------------------------- 7 ->     source 0 has come to 7, source 1 to 5,
//     level 0   o --- 1 --- 2 --- 4 --- 4 --- 5 --- 7 ->     so what is up to 5 is ready
//               ^ cursors   ^ a reader's head
//
// Differences from the paper. Values of one time are ordered by source. The word holds a time instead of a tuple,
// so that a source can come to a time without a value there. (In the paper a value is ready when its own source has
// written another: this is enough because all sources' last values are in the list.)
//
// Why readers get the ready values, in order. A source links a value before it stores its word, so a thread that
// acquires the word finds in the list all earlier values. A reader looks at all words first, and takes their
// earliest moment. By the contract, later values of a source are behind its word. So the values before that moment
// in the list are all that will ever be there. They are sorted: each was linked on the lowest level, behind a value
// that is not greater and before one that is greater, by a compare-and-swap on the link between them. No value is
// ever unlinked there.
//
// Why nodes can be reused (section V-C: the prefix that no thread can reach).
//   1. A source starts at its cursor, a node that has all levels, and a reader at its head. Both only go forwards,
//      because links only lead forwards. They store their positions after they have left the nodes before.
//   2. A thread that reclaims loads all cursors and heads, and takes the first of these nodes. All threads that
//      were before it have left, which the loads acquire, and none starts before it any more. Links to nodes before
//      it start before it. So no thread reaches these nodes, or compares a link with their addresses: there is no
//      ABA problem.
//   3. One thread at a time reclaims, so the nodes at which it found cursors are there while it compares them.
// A source that adds nothing moves its cursor by come_to() and end(), so that it holds up no memory. A node goes back
// to the source that made it, through a stack, so no source makes more than it needs itself.
//
// Progress: lock-free for sources (a failed swap means that another's succeeded), wait-free for readers. A thread
// that is stopped while it reclaims, or holds a cursor, holds up memory, but no values.
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"
#include "callboard/core/mix.hpp"
#include "gate.hpp"
#include "read_counts.hpp"

namespace callboard {

// gate.hpp has the contract. A source makes `batch` nodes at once; it throws std::bad_alloc, after it has added some
// of the values, if it cannot. One node in four is on the next level, too.
template <class Time, class T, unsigned levels = 4, std::int64_t batch = 64>
class ScaleGate {
public:
    using Value = TimedValue<Time, T>;
    using Entry = GateEntry<Time, T>;

    ScaleGate(unsigned sources, unsigned readers, std::size_t window)
        : source_count_(sources), reader_count_(readers), sources_(new Source[sources]),
          readers_(new Reader[readers]), read_(sources, readers, window), returns_(sources) {
        oldest_ = make_node(0, {begin_of_time<Time>, T{}});
        oldest_->position = -1;  // before all values
        for (unsigned i = 0; i < sources; ++i) sources_[i].cursor.store(oldest_, relaxed);
        for (unsigned i = 0; i < readers; ++i) readers_[i].head.store(oldest_, relaxed);
    }

    std::size_t add_many(unsigned index, const Value* values, std::size_t count) {
        Source& source = sources_[index];
        const std::int64_t wanted = static_cast<std::int64_t>(count);
        if (source.limit - source.added < wanted) source.limit = read_.limit(index);
        const std::int64_t added = std::min(wanted, source.limit - source.added);
        if (added == 0) return 0;
        for (std::int64_t i = 0; i < added; ++i) {
            assert(source.time <= values[i].time && values[i].time < end_of_time<Time>);
            insert(index, values[i]);
            source.time = values[i].time;
        }
        source.written.store(source.time, release);  // pairs with earliest()
        return static_cast<std::size_t>(added);
    }

    [[nodiscard]] bool try_add(unsigned source, Time time, T value) {
        const Value only{time, value};
        return add_many(source, &only, 1) == 1;
    }

    void come_to(unsigned index, Time time) {
        Source& source = sources_[index];
        if (time <= source.time) return;
        source.time = time;
        source.written.store(time, release);  // pairs with earliest()
        Node* const at = source.cursor.load(relaxed);
        // Release pairs with reclaim().
        source.cursor.store(time == end_of_time<Time> ? nullptr : last_before({time, index}, levels - 1, at), release);
    }

    void end(unsigned source) { come_to(source, end_of_time<Time>); }

    std::size_t next_many(unsigned index, Entry* entries, std::size_t most) {
        Reader& reader = readers_[index];
        Node* head = reader.head.load(relaxed);
        std::size_t count = 0;
        for (; count != most; ++count) {
            Node* next = head->next.load(acquire);  // pairs with link()
            if (next == nullptr || !(next->moment <= reader.ready)) {
                reader.ready = earliest();
                next = head->next.load(acquire);  // only now: see above
                if (next == nullptr || !(next->moment <= reader.ready)) break;
            }
            head = next;
            entries[count] = {head->moment.time, head->moment.source, head->value};
            read_.store(index, head->moment.source, head->position + 1);
        }
        if (count != 0) reader.head.store(head, release);  // pairs with reclaim()
        return count;
    }

    [[nodiscard]] bool try_next(unsigned reader, Entry& entry) { return next_many(reader, &entry, 1) == 1; }

private:
    static_assert(levels >= 2 && batch >= 1, "a cursor has shortcuts");

    struct alignas(cache_line) Node {
        Atomic<Node*> next{nullptr};  // on the lowest level, and in a stack
        Atomic<Node*> shortcuts[levels - 1]{};
        Moment<Time> moment;
        std::int64_t position;  // in the source
        T value;

        Atomic<Node*>& link(unsigned level) { return level == 0 ? next : shortcuts[level - 1]; }
    };

    struct alignas(cache_line) Source {
        Atomic<Time> written{begin_of_time<Time>};  // the source writes, readers look
        Atomic<Node*> cursor{nullptr};              // the source writes; null when it has ended
        alignas(cache_line) Stack<Node> returned;   // written by the reclaiming thread
        alignas(cache_line) Time time = begin_of_time<Time>;  // the source's own, as is what follows
        std::int64_t added = 0, limit = 0, last_reclaimed = -batch;
        Node* spare = nullptr;
        std::vector<std::unique_ptr<Node[]>> made;
    };

    struct alignas(cache_line) Reader {
        Atomic<Node*> head{nullptr};  // the last node that it has read
        Moment<Time> ready{begin_of_time<Time>, 0};
    };

    // Nodes on their way back to a source.
    struct Returns {
        Node *first = nullptr, *last = nullptr;
    };

    // The earliest moment at which anything may still come. Acquire pairs with the sources' stores.
    Moment<Time> earliest() const {
        Moment<Time> earliest{sources_[0].written.load(acquire), 0};
        for (unsigned i = 1; i < source_count_; ++i) {
            const Moment<Time> other{sources_[i].written.load(acquire), i};
            if (other <= earliest) earliest = other;
        }
        return earliest;
    }

    // The last node on the level that is not behind the moment, from `at` on. Acquire pairs with link().
    static Node* last_before(Moment<Time> moment, unsigned level, Node* at) {
        for (Node* next; (next = at->link(level).load(acquire)) != nullptr && next->moment <= moment;) at = next;
        return at;
    }

    void insert(unsigned index, const Value& value) {
        Source& source = sources_[index];
        Node* const node = make_node(index, value);
        Node* before[levels];
        Node* at = source.cursor.load(relaxed);
        for (unsigned level = levels; level-- != 0;) before[level] = at = last_before(node->moment, level, at);
        const std::uint64_t chance = random_number(index, static_cast<std::uint64_t>(source.added));
        unsigned height = 1;
        while (height != levels && (chance >> 2 * height) % 4 == 0) ++height;
        for (unsigned level = 0; level != height; ++level) link(node, level, before[level]);
        source.cursor.store(before[levels - 1], release);  // pairs with reclaim()
        ++source.added;
    }

    // Links the node on the level, behind `before` or a node that has come between.
    static void link(Node* node, unsigned level, Node* before) {
        for (;;) {
            before = last_before(node->moment, level, before);
            Node* next = before->link(level).load(acquire);
            if (next != nullptr && next->moment <= node->moment) continue;
            node->link(level).store(next, relaxed);
            // Release pairs with the threads that come along here, and see the node's contents.
            if (before->link(level).compare_exchange_strong(next, node, release, relaxed)) return;
        }
    }

    Node* make_node(unsigned index, const Value& value) {
        Source& source = sources_[index];
        if (source.spare == nullptr) source.spare = more_nodes(source);
        Node* const node = source.spare;
        source.spare = node->next.load(relaxed);
        for (unsigned level = 0; level != levels; ++level) node->link(level).store(nullptr, relaxed);
        node->moment = {value.time, index};
        node->position = source.added;
        node->value = value.value;
        return node;
    }

    // Those that came back, or new ones. To reclaim is worth its cost after so many values only.
    Node* more_nodes(Source& source) {
        if (Node* const returned = source.returned.take_all()) return returned;
        if (source.added - source.last_reclaimed >= batch) {
            source.last_reclaimed = source.added;
            reclaim();
            if (Node* const returned = source.returned.take_all()) return returned;
        }
        source.made.emplace_back(new Node[batch]);
        Node* const nodes = source.made.back().get();
        for (std::int64_t i = 1; i < batch; ++i) nodes[i - 1].next.store(&nodes[i], relaxed);
        return nodes;
    }

    static bool is_before(const Node* one, const Node* other) {
        if (!(one->moment <= other->moment)) return false;
        return !(other->moment <= one->moment) || one->position < other->position;
    }

    // Gives back all nodes that no thread can reach, unless another is doing that.
    void reclaim() {
        if (reclaims_.exchange(true, acquire)) return;  // pairs with the last one's release
        Node* first = nullptr;
        const auto keep = [&](Node* at) {
            if (at != nullptr && (first == nullptr || is_before(at, first))) first = at;
        };
        // Acquire pairs with the stores of cursors and heads.
        for (unsigned i = 0; i < source_count_; ++i) keep(sources_[i].cursor.load(acquire));
        for (unsigned i = 0; i < reader_count_; ++i) keep(readers_[i].head.load(acquire));
        while (oldest_ != first) {
            Node* const node = oldest_;
            oldest_ = node->next.load(relaxed);  // the thread that linked its successor has left
            Returns& returns = returns_[node->moment.source];
            set_next(node, returns.first);
            if (returns.first == nullptr) returns.last = node;
            returns.first = node;
        }
        for (unsigned i = 0; i < source_count_; ++i) {
            if (returns_[i].first == nullptr) continue;
            sources_[i].returned.push(returns_[i].first, returns_[i].last);
            returns_[i] = {};
        }
        reclaims_.store(false, release);  // pairs with the next one's acquire
    }

    const unsigned source_count_, reader_count_;
    const std::unique_ptr<Source[]> sources_;
    const std::unique_ptr<Reader[]> readers_;
    ReadCounts read_;
    alignas(cache_line) Atomic<bool> reclaims_{false};
    Node* oldest_ = nullptr;  // the reclaiming thread owns it, and its successors
    std::vector<Returns> returns_;
};

}  // namespace callboard
