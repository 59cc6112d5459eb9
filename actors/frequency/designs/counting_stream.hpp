// The private state of a stream of a cooperative design: memory, work that it found while it owned a bucket, figures.
#pragma once

#include <cstdint>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/frequency/designs/elements.hpp"
#include "callboard/frequency/designs/gathering.hpp"
#include "callboard/frequency/designs/retired_nodes.hpp"

namespace callboard {

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
    Element* homeless{nullptr};
    bool closed_first{false};

    std::int64_t closed{0};        // buckets that it has closed, less those that it has unlinked
    bool saw_long_queue{false};
    unsigned rests{0};  // one after the other

    OneWriterCount total;  // weights included
    OneWriterCount counted, delegated_elements, delegated_requests, queue_sum, queue_most, throttled;
};

}  // namespace callboard
