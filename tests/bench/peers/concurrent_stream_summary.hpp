// The elements in the order of their frequencies: the concurrent stream summary.
//
// Das et al. 2009, section 4.3.2. Buckets are linked in ascending order; each has the elements of one frequency and a
// queue of requests, its delegation. Its owner serves them, one after the other, and alone touches the bucket's
// list and its `next`. A bucket that is empty, with nothing pending, is closed: that is its logical removal.
// The owner of the bucket before it unlinks it. All is called from inside an epoch (epochs.hpp).
//
// The paper's minFreq is here a bucket before all others, with frequency 0, that is never closed and has no
// elements. It always has a place where a new element's request goes, and every other bucket has one before it.
//
// Minimal existence (principle 4.2). The owner of one bucket owns no other. An element that goes to another bucket
// is left there as a request (closable.hpp), which the thread visits when it has let go of the first.
//
// The correctness of Space Saving here rests on an order that the paper leaves open:
//   1. Every element that has a counter is covered by a live bucket (one that is not closed) of at most its
//      frequency: it is in the bucket's list, or in its queue. An element that moves is left at the next bucket, or
//      a new bucket with it is linked, before the owner lets go of the old one. Neither bucket can be closed with
//      it. And a new element is counted in size() after it was placed.
//   2. A new bucket is linked only behind a live one of less frequency; so behind the first of all only while there
//      are counters left.
//   3. So once all counters are taken, the first live bucket stays the first until it is closed. By 1 no element
//      has less than its frequency, also on its way. An overwrite is handed to a bucket that was seen to be the
//      first, and is served before it is closed.
//   4. Hence counts are taken over in ascending order, each the least at its moment: it is at most N / C, and
//      at least what any key without a counter came. With any other order a key that comes back could be
//      counted below its truth.
//
// Overwrites. An element is taken over by closing its pending count. If somebody owns it that fails, and its increment
// is on its way to this bucket. When that is so of all elements, the overwrite waits in the bucket for
// them: each serving of the bucket tries again. An element in a list is owned by nobody, or its owner comes: for its
// count is settled by the bucket's owner, or while the bucket is its creator's alone. If all elements leave, the
// overwrite goes to the bucket that is the least then.
//
// Traversal is optimistic: without locks, over closed buckets as well, whose `next` stays. It may miss buckets that
// were linked meanwhile, and end at one that is closed; then the request is refused there, and the traversal begins
// again. The owner of the bucket where it ends looks at its own successor once more.
//
// Memory. A request that others may wait for cannot be undone in the middle. So a thread that needs a bucket for a
// delegated request, and gets no memory, tries until there is some. For its own requests the caller sees to free
// buckets and elements before it begins.
#pragma once

#include <cassert>
#include <cstdint>
#include <new>
#include <thread>

#include "callboard/core/atomics.hpp"
#include "counted_elements.hpp"
#include "epochs.hpp"
#include "search_structure.hpp"

namespace callboard {

template <class Keys>
class ConcurrentStreamSummary {
public:
    using Element = CountedElement<Keys>;
    using Bucket = FrequencyBucket<Keys>;
    using Stream = CountingStream<Keys>;

    ConcurrentStreamSummary(std::int64_t capacity, std::uint32_t throttle, SearchStructure<Keys>& search,
                  RetiredNodes<Bucket>& buckets)
        : capacity_(capacity), throttle_(throttle), search_(search), buckets_(buckets) {}

    // The caller, a stream that owns nothing else, owns an element that has a counter; and its request is another's
    // then, if not done.
    void increment(Stream& stream, Element* element) {
        element->request = ElementRequest::increment;
        assert(element->bucket != nullptr && element->frequency.load(relaxed) != 0 && "it has a counter");
        Bucket& bucket = *element->bucket;
        if (hand_over(stream, bucket, element) == Handed::mine) serve(stream, bucket, element);
        finish(stream);
    }

    // The same of an element without one. If it gets a counter of its own, that begins with `error`.
    void begin(Stream& stream, Element* element, std::uint64_t error) {
        assert(element->frequency.load(relaxed) == 0 && "it has no counter");
        if (size_.load(acquire) < capacity_) {  // pairs with begin_here(): see 1.
            element->request = ElementRequest::begin;
            element->error = error;
            if (hand_over(stream, first_, element) == Handed::mine) serve(stream, first_, element);
        } else {
            overwrite(stream, element);
        }
        finish(stream);
    }

    // Before anything is counted: a key that gets a counter of its own may have come so often already.
    void begin_with(std::uint64_t frequency) { beginning_ = frequency; }

    // An element as it was in another summary, before anything is counted, greatest first.
    void put(Stream& stream, Element* element, std::uint64_t count, std::uint64_t error) {
        element->error = error;
        element->frequency.store(count, relaxed);  // before there are threads
        element->unsettled = static_cast<std::uint64_t>(element->pending.due());
        (void)first_.door.try_own();
        place(stream, first_, element);
        size_.fetch_add(1, release);  // see 1.
        serve(stream, first_, nullptr);
        finish(stream);
    }

    // Unlinks what is closed, where nobody owns the bucket before it. For a stream that owns nothing.
    void sweep(Stream& stream) {
        stream.closed = 0;
        for (Bucket* bucket = &first_; bucket != nullptr;) {
            Bucket* const next = bucket->next.load(acquire);
            if (next != nullptr && next->door.is_closed() && bucket->door.try_own()) {
                live_after(stream, *bucket);
                serve(stream, *bucket, nullptr);
            }
            bucket = next;
        }
        finish(stream);
    }

    // Any thread, inside an epoch. The least frequency of a counter; 0 if there is none.
    std::uint64_t least() const {
        const Bucket* const bucket = least_bucket();
        return bucket == nullptr ? 0 : bucket->frequency;
    }

    // How many elements have counters. One that goes may be counted before it is counted that it came. Acquire pairs
    // with begin_here(): see 1.
    std::uint64_t size() const {
        const std::int64_t size = size_.load(acquire);
        return size < 0 ? 0 : static_cast<std::uint64_t>(size);
    }

private:
    // A thread that owns nothing.
    Handed hand_over(Stream& stream, Bucket& bucket, Element* element) {
        element->is_sampled = true;
        const Handed handed = bucket.door.own_or_delegate(element);
        if (handed == Handed::mine) {  // it was in no queue
            element->is_sampled = false;
            element->next = nullptr;
        }
        if (handed != Handed::delegated) return handed;
        const std::int32_t size = bucket.queued.fetch_add(1, relaxed) + 1;  // a guess
        stream.delegated_requests.add(1);
        if (size > 0) {
            stream.queue_sum.add(static_cast<std::uint64_t>(size));
            stream.queue_most.raise(static_cast<std::uint64_t>(size));
            if (throttle_ != 0 && static_cast<std::uint32_t>(size) > throttle_) stream.saw_long_queue = true;
        }
        return handed;
    }

    void overwrite(Stream& stream, Element* element) {
        element->request = ElementRequest::overwrite;
        for (;;) {
            Bucket* const bucket = least_bucket();
            if (bucket == nullptr) continue;  // there is one
            const Handed handed = hand_over(stream, *bucket, element);
            if (handed == Handed::mine) serve(stream, *bucket, element);
            if (handed != Handed::refused) return;
        }
    }

    // Does the work that the stream found while it owned something. It owns nothing now.
    void finish(Stream& stream) {
        while (__builtin_expect(!stream.visits.empty() || stream.unplaced != nullptr || stream.closed_first, 0)) {
            if (!stream.visits.empty()) {
                Bucket& bucket = *stream.visits.back();
                stream.visits.pop_back();
                serve(stream, bucket, bucket.door.own_left());
            } else if (Element* const element = stream.unplaced) {
                stream.unplaced = element->next;
                overwrite(stream, element);
            } else {
                stream.closed_first = false;
                if (!first_.door.try_own()) continue;
                live_after(stream, first_);
                serve(stream, first_, nullptr);
            }
        }
    }

    // The owner of the bucket, with requests in hand. It lets go of it.
    void serve(Stream& stream, Bucket& bucket, Element* requests) {
        for (bool tried = false;;) {
            if (requests == nullptr) requests = bucket.door.take();
            if (requests != nullptr) {
                std::int32_t sampled = 0;
                for (Element* element = requests; element != nullptr;) {
                    Element* const following = element->next;
                    sampled += element->is_sampled;
                    serve_one(stream, bucket, element);
                    element = following;
                }
                if (sampled != 0) bucket.queued.fetch_sub(sampled, relaxed);
                requests = nullptr;
                tried = false;
                continue;
            }
            if (__builtin_expect(bucket.deferred != nullptr, 0) && !tried) {
                Element* deferred = bucket.deferred;
                bucket.deferred = nullptr;
                while (deferred != nullptr) {
                    Element* const following = deferred->next;
                    overwrite_here(stream, bucket, deferred);
                    deferred = following;
                }
                tried = true;
                continue;
            }
            if (bucket.first == nullptr && &bucket != &first_) {
                // An overwrite that waits for nobody's increment goes on to the next bucket.
                while (Element* const element = bucket.deferred) {
                    bucket.deferred = element->next;
                    send_on(stream, element);
                }
                if (!bucket.door.try_close()) continue;
                ++stream.closed;
                if (first_.next.load(relaxed) == &bucket) stream.closed_first = true;
                return;
            }
            if (bucket.door.try_release()) return;
        }
    }

    void serve_one(Stream& stream, Bucket& bucket, Element* element) {
        switch (element->request) {
            case ElementRequest::increment:
                bucket.remove(element);
                take_due(element);
                return place(stream, bucket, element);
            case ElementRequest::add: return place(stream, bucket, element);
            case ElementRequest::begin: return begin_here(stream, element);
            case ElementRequest::overwrite: return overwrite_here(stream, bucket, element);
        }
    }

    // A bulk increment: what its senders have added meanwhile is counted with it.
    static void take_due(Element* element) { take_due(element, element->frequency.load(relaxed)); }
    static void take_due(Element* element, std::uint64_t before) {
        const auto due = static_cast<std::uint64_t>(element->pending.due());
        assert(element->pending.due() > 0 && "its owner has something due");
        element->unsettled = due;
        element->frequency.store(before + due, release);  // pairs with queries, which read the error then
    }

    void begin_here(Stream& stream, Element* element) {
        if (size_.load(relaxed) >= capacity_) return send_on(stream, element);
        take_due(element, beginning_);
        place(stream, first_, element);
        size_.fetch_add(1, release);  // pairs with begin() and size()
        assert(size_.load(relaxed) <= capacity_ && "there are no more counters than there may be");
    }

    void send_on(Stream& stream, Element* element) {
        element->next = stream.unplaced;
        stream.unplaced = element;
    }

    // The first element that nobody owns, of the least bucket (see 3.), gives its counter to this one.
    void overwrite_here(Stream& stream, Bucket& bucket, Element* element) {
        for (Element* victim = bucket.first; victim != nullptr; victim = victim->after) {
            if (!victim->pending.try_close()) continue;
            bucket.remove(victim);
            search_.erase(victim);
            stream.elements.retire(victim, stream.epoch);
            element->error = bucket.frequency;
            take_due(element, bucket.frequency);
            return place(stream, bucket, element);
        }
        element->next = bucket.deferred;
        bucket.deferred = element;
    }

    // FindDestBucket: the owner of the bucket has an element that is in no list, owns it, and has added the
    // unsettled part of its pending count to its frequency, which is not less than the bucket's.
    void place(Stream& stream, Bucket& bucket, Element* element) {
        for (;;) {
            const std::uint64_t frequency = element->frequency.load(relaxed);
            assert(frequency >= bucket.frequency && "an element goes to greater frequencies");
            if (frequency == bucket.frequency) {
                bucket.add(element);
                if (settle(element)) return;
                bucket.remove(element);
                take_due(element);
                continue;
            }
            Bucket* const next = live_after(stream, bucket);
            if (next == nullptr || frequency < next->frequency) {
                if (place_between(stream, bucket, element, next)) return;
                continue;
            }
            Bucket* const before = traverse(next, frequency);
            element->request = ElementRequest::add;
            element->is_sampled = false;
            using Left = typename decltype(bucket.door)::Left;
            const Left left = before->door.leave(element);
            if (left == Left::refused) continue;
            if (left == Left::first) insist([&] { stream.visits.push_back(before); });
            else stream.delegated_requests.add(1);
            return;
        }
    }

    // True: nobody owns the element any more. False: more is due.
    static bool settle(Element* element) {
        return element->pending.settle(static_cast<std::int64_t>(element->unsettled)) == 0;
    }

    // Puts the element into a bucket of its own behind this one. False: its frequency has grown to the next one's.
    bool place_between(Stream& stream, Bucket& bucket, Element* element, Bucket* next) {
        if (__builtin_expect(stream.buckets.free_count() == 0, 0)) insist([&] { buckets_.fill(stream.buckets); });
        assert(element->frequency.load(relaxed) > bucket.frequency && "buckets ascend");
        Bucket* const fresh = stream.buckets.take();
        assert((next == nullptr || element->frequency.load(relaxed) < next->frequency) && "buckets ascend");
        fresh->door.open();
        fresh->next.store(next, relaxed);
        fresh->frequency = element->frequency.load(relaxed);
        fresh->first = nullptr;
        fresh->deferred = nullptr;
        fresh->queued.store(0, relaxed);
        fresh->add(element);
        // The element is settled before anybody else can find the bucket in the list; what its senders add
        // meanwhile is counted here, in a bucket that is still private. From the settling on, the element's next
        // owner may own the bucket. All that it links stands behind the bucket, which is about to be linked behind
        // one that is owned, and covers the element so long.
        for (int round = 0; !settle(element); ++round) {
            if (round == most_rounds) {  // its senders keep us; so this is a request
                element->request = ElementRequest::increment;
                element->is_sampled = false;
                (void)fresh->door.leave(element);
                insist([&] { stream.visits.push_back(fresh); });
                break;
            }
            take_due(element);
            const std::uint64_t frequency = element->frequency.load(relaxed);
            if (next != nullptr && frequency >= next->frequency) {
                stream.buckets.give(fresh);
                return false;
            }
            fresh->frequency = frequency;
        }
        bucket.next.store(fresh, release);  // pairs with who traverses
        return true;
    }

    // The last live bucket, from this one on, whose frequency is not above that; or this one.
    static Bucket* traverse(Bucket* bucket, std::uint64_t frequency) {
        assert(bucket->frequency <= frequency);
        Bucket* last = bucket;
        for (;;) {
            bucket = bucket->next.load(acquire);  // pairs with place_between()
            if (bucket == nullptr || bucket->frequency > frequency) return last;
            if (!bucket->door.is_closed()) last = bucket;
        }
    }

    // The owner of the bucket. The next one that is not closed; those between are unlinked (invariant 4.11).
    //
    // They are retired with one epoch more than the stream's. For the bucket may be one that place_between() has not
    // linked yet: then readers find what is unlinked here from the bucket before, until its owner links this one.
    // That owner is inside, in at most the epoch after the stream's; so are such readers in at most the one after that.
    Bucket* live_after(Stream& stream, Bucket& bucket) {
        Bucket* next = bucket.next.load(relaxed);
        while (next != nullptr && next->door.is_closed()) {
            Bucket* const closed = next;
            assert(closed->first == nullptr && closed->deferred == nullptr && "what is closed is empty");
            next = closed->next.load(acquire);
            bucket.next.store(next, release);  // pairs with who traverses
            stream.buckets.retire(closed, stream.epoch + 1);
            --stream.closed;
        }
        return next;
    }

    Bucket* least_bucket() const {
        Bucket* bucket = first_.next.load(acquire);  // pairs with place_between() and live_after()
        while (bucket != nullptr && bucket->door.is_closed()) bucket = bucket->next.load(acquire);
        return bucket;
    }

    template <class Attempt>
    static void insist(const Attempt& attempt) {
        for (;; std::this_thread::yield()) {
            try {
                return attempt();
            } catch (const std::bad_alloc&) {
            }
        }
    }

    static constexpr int most_rounds = 8;

    const std::int64_t capacity_;
    const std::uint32_t throttle_;
    SearchStructure<Keys>& search_;
    RetiredNodes<Bucket>& buckets_;
    Bucket first_;
    std::uint64_t beginning_{0};  // the frequency that keys begin with
    alignas(cache_line) Atomic<std::int64_t> size_{0};
};

}  // namespace callboard
