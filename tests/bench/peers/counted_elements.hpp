// The parts of the cooperative design: counted elements, the buckets of those that have one frequency, and the state
// of each stream.
//
// An element is owned by its pending count, a bucket by its delegation. The owner of an element has its request in
// hand, or has handed it over: then the thread that serves it owns the element. Hence there is one request for an
// element at any moment (Das et al. 2009, invariant 4.2 and section 4.3.4), and the element is that request.
//
// An element's key never changes while others may find it: another key has another element, so a thread that reads
// a key reads one that is whole. The first line is what all threads look at, the second is the owner's.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "closable.hpp"
#include "epochs.hpp"

namespace callboard {

// A request for work on an element.
enum class ElementRequest : std::uint8_t {
    begin,      // it is new: it gets a counter if there is one left
    overwrite,  // it is new, and takes over the least counter
    increment,  // it is in the bucket's list, and leaves it
    add,        // it is on its way to its bucket: this one, or one behind it
};

template <class Keys>
struct FrequencyBucket;

template <class Keys>
struct alignas(cache_line) CountedElement {
    using Slot = Atomic<std::uintptr_t>;

    CountedElement() = default;
    CountedElement(const CountedElement&) = delete;
    ~CountedElement() { Keys::drop(key); }

    typename Keys::Kept key{};
    std::uint64_t hash{0};
    ClosableCount pending;
    Slot* slot{nullptr};  // in the search structure
    CountedElement* link{nullptr};
    std::uint64_t retired{0};

    // 0: it has no counter yet. Queries read it while its owner writes.
    alignas(cache_line) Atomic<std::uint64_t> frequency{0};
    std::uint64_t error{0};
    FrequencyBucket<Keys>* bucket{nullptr};
    CountedElement *before{nullptr}, *after{nullptr};  // in the bucket's list
    CountedElement* next{nullptr};                     // in a queue of requests
    std::uint64_t unsettled{0};                        // of what is due, what `frequency` has already
    ElementRequest request{ElementRequest::begin};
    bool is_sampled{false};  // the bucket's queue counts it
};

// Its frequency does not change once others can find it (invariant 4.9).
template <class Keys>
struct alignas(cache_line) FrequencyBucket {
    using Element = CountedElement<Keys>;

    ClosableDelegation<Element> door;
    Atomic<FrequencyBucket*> next{nullptr};  // written by the owner; as it is for ever when the bucket is closed
    std::uint64_t frequency{0};
    Element* first{nullptr};     // the owner's list
    Element* deferred{nullptr};  // overwrites that found only elements about to be incremented
    Atomic<std::int32_t> queued{0};
    FrequencyBucket* link{nullptr};
    std::uint64_t retired{0};

    void add(Element* element) {
        assert(element->frequency.load(relaxed) == frequency && "a bucket has one frequency");
        element->bucket = this;
        assert(first != element && (first == nullptr || first->before == nullptr) && "an element is in one list");
        element->before = nullptr;
        element->after = first;
        if (first != nullptr) first->before = element;
        first = element;
    }

    void remove(Element* element) {
        assert(element->bucket == this && "it is in the bucket's list");
        assert((element->before == nullptr ? first : element->before->after) == element && "it is in the list");
        if (element->before != nullptr) element->before->after = element->after;
        else first = element->after;
        if (element->after != nullptr) element->after->before = element->before;
    }
};

// The equal keys that a stream has at hand, added up before it touches what is shared.
//
// The bulk increment of Das et al. 2009, section 4.3.1, comes about where an element is owned by another stream. Here a
// stream does it for itself: a thousand elements of a skewed stream have few keys. Each key then costs one look-up,
// one pending count and one move between buckets. Nothing is held back: the keys of an add() are counted before it
// returns.
template <class Keys>
class Gathering {
public:
    using Probe = typename Keys::Probe;
    struct Gathered {
        Probe key;
        std::uint64_t hash, weight;
    };
    static constexpr std::size_t most = 1024;

    // So many elements, at most `most`, whose weights are 1 if there are none. Returns how many keys they have.
    std::size_t gather(std::uint64_t seed, const Probe* keys, const std::uint64_t* weights, std::size_t many) {
        assert(many <= most);
        std::memset(places_, 0, sizeof places_);
        size_ = 0;
        for (std::size_t i = 0; i < many; ++i) {
            const Probe key = keys[i];  // once: another thread may write to the array
            add(key, Keys::hash(seed, key), weights == nullptr ? 1 : weights[i]);
        }
        return size_;
    }

    // The same as they come, to measure what they cost one by one.
    std::size_t list(std::uint64_t seed, const Probe* keys, const std::uint64_t* weights, std::size_t many) {
        assert(many <= most);
        for (std::size_t i = 0; i < many; ++i) {
            const Probe key = keys[i];
            gathered_[i] = {key, Keys::hash(seed, key), weights == nullptr ? 1 : weights[i]};
        }
        return many;
    }

    const Gathered& operator[](std::size_t index) const {
        assert(index < most);
        return gathered_[index];
    }

private:
    static constexpr unsigned bits = 11;  // twice as many places as elements

    void add(const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        for (std::size_t place = hash >> (64 - bits);; place = (place + 1) & ((std::size_t{1} << bits) - 1)) {
            const std::size_t index = places_[place];
            if (index == 0) {
                assert(size_ < most);
                gathered_[size_++] = {key, hash, weight};
                places_[place] = static_cast<std::uint16_t>(size_);
                return;
            }
            Gathered& other = gathered_[index - 1];
            if (other.hash == hash && Keys::same(other.key, key)) {
                other.weight += weight;
                return;
            }
        }
    }

    std::uint16_t places_[std::size_t{1} << bits];  // 0: free, or the index of what is gathered, plus 1
    std::size_t size_;
    Gathered gathered_[most];
};

// Figures 9 and 10 of Das et al. 2009, of one stream or of all.
struct CooperationCounts {
    std::uint64_t elements;            // of the streams, weights not included
    std::uint64_t delegated_elements;  // in the search structure: another owned the element
    std::uint64_t delegated_requests;  // in the stream summary: another owned the bucket
    std::uint64_t queue_sum;           // the sizes of the queues that these requests joined, added up
    std::uint64_t queue_most;
    std::uint64_t throttled;           // how often the stream rested because a queue was too long
};

// Written by one thread, read by any.
class OneWriterCount {
public:
    void add(std::uint64_t more) { count_.store(get() + more, relaxed); }
    void raise(std::uint64_t to) {
        if (to > get()) count_.store(to, relaxed);
    }
    std::uint64_t get() const { return count_.load(relaxed); }

private:
    Atomic<std::uint64_t> count_{0};
};

// The private state of a stream: memory, the work that it found while it owned a bucket, figures.
template <class Keys>
struct alignas(cache_line) CountingStream : OneAtATime<Owner> {
    using Element = CountedElement<Keys>;
    using Bucket = FrequencyBucket<Keys>;

    Gathering<Keys> gathering;
    unsigned index{0};
    std::uint64_t epoch{0};  // that it has announced
    typename RetiredNodes<Element>::OfStream elements;
    typename RetiredNodes<Bucket>::OfStream buckets;

    Element* fresh{nullptr};   // that it has just taken, for a new key
    std::uint64_t batches{0};

    // To be done when it owns nothing: buckets where it was the first to leave a request; overwrites, linked by
    // `next`, that go on to the least bucket; whether it closed the first bucket of all.
    std::vector<Bucket*> visits;
    Element* unplaced{nullptr};
    bool closed_first{false};

    std::int64_t closed{0};        // buckets that it has closed, less those that it has unlinked
    bool saw_long_queue{false};
    unsigned rests{0};  // one after the other

    OneWriterCount total;  // weights included
    OneWriterCount counted, delegated_elements, delegated_requests, queue_sum, queue_most, throttled;
};

}  // namespace callboard
