// The parts of the cooperative designs: counted elements, and the buckets of those that have one frequency.
//
// An element is owned by its pending count, a bucket by its delegation. The owner of an element has its request in
// hand, or has handed it over: then the thread that serves it owns the element. Hence there is one request for an
// element at any moment (Das et al. 2009, invariant 4.2 and section 4.3.4), and the element is that request.
//
// An element's key never changes while others may find it: another key has another element, so a thread that reads
// a key reads one that is whole. The first line is what all threads look at, the second is the owner's.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/closable.hpp"

namespace callboard {

// A request for work on an element.
enum class ElementRequest : std::uint8_t {
    begin,      // it is new: it gets a counter if there is one left
    overwrite,  // it is new, and takes over the least counter
    increment,  // it is in the bucket's list, and leaves it
    add,        // it is on its way to its bucket: this one, or one behind it
    trim,       // it is none, but says up to which round the bucket's infrequent elements go (Lossy Counting)
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
    ElementRequest errand{ElementRequest::begin};
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

}  // namespace callboard
