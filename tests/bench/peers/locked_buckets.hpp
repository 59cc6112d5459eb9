// A stream summary that threads share, with a lock on each bucket: Das et al. 2009, section 3.2.
//
// A bucket has the elements of one count; buckets stand in a list in ascending order of their counts. An element is
// owned by at most one thread, which the caller ensures. Its owner moves it from the source to the destination with
// both locked, and the source stays in the list until the element has arrived. So a thread that has locked the
// first bucket with elements has the least count of all, moving elements included. Space Saving depends on that: a
// key that is overwritten at one count and returns below it would have lost some.
//
// The guards:
//   - A bucket's lock guards its `next`, its elements' links and changes of its count. Counts only grow, so a
//     thread that has locked the bucket before it may read a count without its lock: the count was that or is more.
//   - An element's `bucket` is its owner's.
//   - `previous` is written by the thread that has locked the bucket before. Others read it as a hint. `next` of
//     the bucket that it names then confirms it, under that bucket's lock. Buckets live as long as the summary.
//
// No deadlock: a thread that has locked buckets waits only for the bucket behind its last one, and meanwhile that
// bucket stays there. So among the waiting threads, the one that holds the rearmost bucket waits for a thread that
// does not wait. Locking backwards is only tried.
//
// The thread that emptied a bucket takes it out, if it can lock the one before. If not, the next thread that passes
// from there takes it out. No other thread can be on the way to the bucket then: it has no elements, and the one
// before is locked. So it can be reused at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "sleeping_lock.hpp"

namespace callboard {

class LockedBuckets {
    // Where threads outnumber cores, all that wait for the least bucket wait long: with sixteen looks, it took a fourth
    // longer.
    using Lock = SleepingLock<0>;
    struct Bucket;

public:
    struct Element {
        Bucket* bucket{nullptr};
        Element *previous{nullptr}, *next{nullptr};
    };

    // A thread's own store of buckets out of use.
    class Spares {
        friend LockedBuckets;
        Bucket* first_{nullptr};
        unsigned count_{0};
    };

    // Before a thread calls one of the next three, with no lock held. Throws std::bad_alloc; nothing else here does.
    void provide(Spares& spares) {
        if (__builtin_expect(spares.count_ == 0 || spares.count_ > 2 * batch, 0)) level(spares);
    }

    // Hangs a new element, the caller's, into the bucket of `count`.
    void insert(Element& element, std::uint64_t count, Spares& spares) {
        head_.lock.lock();
        move(&head_, element, count, spares);
    }

    // The element is the caller's.
    void increment(Element& element, std::uint64_t weight, Spares& spares) {
        Bucket* const from = element.bucket;
        from->lock.lock();
        move(from, element, from->count.load(relaxed) + weight, spares);
    }

    // Adds to an element of the least count for which try_own() is true, after change(element, least count), with
    // its bucket locked. False if there is none. There are elements.
    template <class TryOwn, class Change>
    bool overwrite(std::uint64_t weight, Spares& spares, const TryOwn& try_own, const Change& change) {
        Bucket* const from = lock_least(spares);
        const std::uint64_t least = from->count.load(relaxed);
        for (Element* element = from->first; element != nullptr; element = element->next) {
            if (!try_own(*element)) continue;
            change(*element, least);
            move(from, *element, least + weight, spares);
            return true;
        }
        from->lock.unlock();
        return false;
    }

    // The owner of an element. A bucket's count changes only with its one element.
    std::uint64_t count_of(const Element& element) const { return element.bucket->count.load(relaxed); }

    // Any thread. Visits (element, count) in ascending order, each bucket locked, until `visit` returns false. No
    // thread overtakes, so each element that was there when the first was visited is visited exactly once.
    template <class Visit>
    void visit(const Visit& visit) {
        std::unique_lock<Lock> held(head_.lock);
        for (Bucket* bucket = head_.next; bucket != nullptr; bucket = bucket->next) {
            std::unique_lock<Lock> following(bucket->lock);
            held.swap(following);
            following.unlock();
            const std::uint64_t count = bucket->count.load(relaxed);
            for (const Element* element = bucket->first; element != nullptr; element = element->next)
                if (!visit(*element, count)) return;
        }
    }

private:
    struct alignas(cache_line) Bucket {
        Lock lock;
        Atomic<std::uint64_t> count{0};
        Bucket* next{nullptr};
        Atomic<Bucket*> previous{nullptr};
        Element* first{nullptr};
        Bucket* next_spare{nullptr};
    };
    static constexpr unsigned batch = 64;

    // Brings an element of a locked bucket to the one of `target`, which is more, and unlocks all.
    void move(Bucket* from, Element& element, std::uint64_t target, Spares& spares) {
        Bucket *at = from, *to;
        for (;;) {
            to = at->next;
            if (to == nullptr || to->count.load(relaxed) > target) {
                to = nullptr;
                break;
            }
            to->lock.lock();
            if (to->first == nullptr) {
                take_out(at, to, spares);
                continue;
            }
            const std::uint64_t count = to->count.load(relaxed);
            if (count == target) break;
            if (count > target) {
                to->lock.unlock();
                to = nullptr;
                break;
            }
            if (at != from) at->lock.unlock();
            at = to;
        }
        if (to == nullptr && at == from && from->first == &element && element.next == nullptr) {
            from->count.store(target, relaxed);  // it was alone, and keeps its place: the bucket goes with it
            return from->lock.unlock();
        }
        if (from != &head_) unhang(*from, element);
        if (to == nullptr) to = link(at, target, spares);
        hang(*to, element);
        to->lock.unlock();
        if (at != from) at->lock.unlock();
        if (from != &head_ && from->first == nullptr) let_go(from, spares);
        else from->lock.unlock();
    }

    // The first bucket that is not empty, locked.
    Bucket* lock_least(Spares& spares) {
        const std::lock_guard<Lock> guard(head_.lock);
        for (;;) {
            Bucket* const first = head_.next;
            first->lock.lock();
            if (first->first != nullptr) return first;
            take_out(&head_, first, spares);
        }
    }

    static void hang(Bucket& bucket, Element& element) {
        element.bucket = &bucket;
        element.previous = nullptr;
        element.next = bucket.first;
        if (bucket.first != nullptr) bucket.first->previous = &element;
        bucket.first = &element;
    }

    static void unhang(Bucket& bucket, Element& element) {
        (element.previous == nullptr ? bucket.first : element.previous->next) = element.next;
        if (element.next != nullptr) element.next->previous = element.previous;
    }

    // A bucket from the spares, locked, behind one that is. A thread with an old hint may look at it just now.
    static Bucket* link(Bucket* before, std::uint64_t count, Spares& spares) {
        Bucket* const made = std::exchange(spares.first_, spares.first_->next_spare);
        --spares.count_;
        made->lock.lock();
        made->count.store(count, relaxed);
        made->previous.store(before, relaxed);  // it is locked, as when that is read
        made->next = before->next;
        if (made->next != nullptr) made->next->previous.store(made, release);  // with let_go()
        return before->next = made;
    }

    // An empty bucket out of the list and to the spares; both are locked, and it is not any more.
    static void take_out(Bucket* before, Bucket* empty, Spares& spares) {
        before->next = empty->next;
        if (empty->next != nullptr) empty->next->previous.store(before, release);  // with let_go()
        empty->next = nullptr;
        empty->lock.unlock();
        empty->next_spare = std::exchange(spares.first_, empty);
        ++spares.count_;
    }

    // Unlocks a bucket that has become empty.
    static void let_go(Bucket* empty, Spares& spares) {
        // Acquire pairs with the release in link() and take_out(): the other may be quite new.
        Bucket* const before = empty->previous.load(acquire);
        if (before->lock.try_lock()) {
            const bool is_before = before->next == empty;
            if (is_before) take_out(before, empty, spares);
            before->lock.unlock();
            if (is_before) return;
        }
        empty->lock.unlock();
    }

    // Threads that empty buckets leave some to those that fill them.
    __attribute__((noinline)) void level(Spares& spares) {
        const std::lock_guard<Lock> guard(store_lock_);
        if (spares.count_ > batch) {
            for (unsigned i = 0; i < batch; ++i) pass(spares, store_);
            return;
        }
        if (store_.count_ == 0) {
            made_.push_back(std::make_unique<Bucket[]>(batch));
            for (unsigned i = 0; i < batch; ++i) {
                made_.back()[i].next_spare = std::exchange(store_.first_, &made_.back()[i]);
                ++store_.count_;
            }
        }
        for (unsigned i = 0; i < batch / 4 && store_.count_ != 0; ++i) pass(store_, spares);
    }

    static void pass(Spares& from, Spares& to) {
        Bucket* const bucket = std::exchange(from.first_, from.first_->next_spare);
        bucket->next_spare = std::exchange(to.first_, bucket);
        --from.count_;
        ++to.count_;
    }

    Bucket head_;  // in front of all, and always empty
    alignas(cache_line) Lock store_lock_;
    Spares store_;
    std::vector<std::unique_ptr<Bucket[]>> made_;
};

}  // namespace callboard
