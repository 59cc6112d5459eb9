// Distributions of times: the processing times of messages, and their waiting times in mailboxes.
//
// The buckets are log-scaled, as in HdrHistogram: eight to each power of two, so the bounds of a bucket differ by at
// most 12.5%. The size of a histogram is constant. Each worker has its own histograms, and a reader adds them up. So
// recording a time costs two plain additions, and no core waits for another.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "callboard/core/atomics.hpp"
#include "callboard/core/monitoring/records.hpp"

namespace callboard {

// Counts of times in nanoseconds. Any thread reads, and may see an addition half done.
class TimeHistogram {
public:
    // The last bucket has all times beyond its bound, of about 18 minutes.
    static constexpr std::size_t buckets = 8 * 38;

    // A bucket has the times above the bound before it, up to its own.
    static std::size_t bucket_of(std::uint64_t ns) {
        const std::uint64_t value = ns == 0 ? 0 : ns - 1;
        if (value < 8) return static_cast<std::size_t>(value);
        const int shift = 60 - __builtin_clzll(value);
        const std::size_t found = 8 * static_cast<std::size_t>(shift) + static_cast<std::size_t>(value >> shift);
        return found < buckets ? found : buckets - 1;
    }

    static std::uint64_t bound_of(std::size_t bucket) {
        assert(bucket < buckets);
        if (bucket < 8) return bucket + 1;
        return (8 + bucket % 8 + 1) << (bucket / 8 - 1);
    }

    // One thread at a time. Adds `count` times, together `sum`; if `count` is 0, a further part of earlier times.
    void add(std::uint64_t sum, std::uint64_t count) {
        if (count != 0) counts_[bucket_of(count == 1 ? sum : mean(sum, count))].add(count);
        sum_.add(sum);
    }

    std::uint64_t count(std::size_t bucket) const { return counts_[bucket].get(); }
    std::uint64_t sum() const { return sum_.get(); }

private:
    // A division of 32 bits, where they have room for it, takes half the time.
    static std::uint64_t mean(std::uint64_t sum, std::uint64_t count) {
        if (__builtin_expect((sum | count) >> 32 == 0, 1))
            return static_cast<std::uint32_t>(sum) / static_cast<std::uint32_t>(count);
        return sum / count;
    }

    Counter counts_[buckets];
    Counter sum_;
};

// The times of the actors of one class, or of one actor, whose times also count as its class's.
class ActorTimes {
public:
    // For `workers` workers, by their index. All dedicated workers share one place.
    explicit ActorTimes(std::uint32_t workers, ActorTimes* of_class = nullptr)
        : workers_(workers), of_class_(of_class), places_(new Atomic<Place*>[workers + 1]()) {}
    ActorTimes(const ActorTimes&) = delete;
    ~ActorTimes() {
        for (std::uint32_t i = 0; i <= workers_; ++i) delete places_[i].load(relaxed);
    }

    std::uint32_t workers() const { return workers_; }

    // The thread of a worker. `messages` of them were handled in a dispatch that took `ns`.
    void note_handled(std::uint32_t worker, std::int64_t ns, std::uint64_t messages) {
        if (of_class_ != nullptr) of_class_->note_handled(worker, ns, messages);
        note(worker, &Place::handled, ns, messages);
    }

    // The thread of a worker. A message was in the mailbox for `ns`.
    void note_waited(std::uint32_t worker, std::int64_t ns) {
        if (of_class_ != nullptr) of_class_->note_waited(worker, ns);
        note(worker, &Place::waited, ns, 1);
    }

    // Any thread.
    std::uint64_t handled(std::size_t bucket) const { return count(&Place::handled, bucket); }
    std::uint64_t waited(std::size_t bucket) const { return count(&Place::waited, bucket); }
    std::uint64_t handled_ns() const { return sum(&Place::handled); }
    std::uint64_t waited_ns() const { return sum(&Place::waited); }

private:
    struct Place {
        TimeHistogram handled, waited;
        Atomic<bool> in_use{false};  // of the place that dedicated workers share
    };

    void note(std::uint32_t worker, TimeHistogram Place::* kind, std::int64_t ns, std::uint64_t count) {
        const std::uint32_t at = worker < workers_ ? worker : workers_;
        Place* place = places_[at].load(acquire);  // pairs with make()
        if (__builtin_expect(place == nullptr, 0) && (place = make(at)) == nullptr) return;
        const auto time = static_cast<std::uint64_t>(ns < 0 ? 0 : ns);
        if (__builtin_expect(at != workers_, 1)) {
            (place->*kind).add(time, count);
            return;
        }
        // Acquire pairs with the release below: the additions come after the last one's.
        while (place->in_use.exchange(true, acquire)) relax();
        (place->*kind).add(time, count);
        place->in_use.store(false, release);
    }

    __attribute__((noinline)) Place* make(std::uint32_t at) {
        std::unique_ptr<Place> made(new (std::nothrow) Place());  // null: memory has ended, and the time is not noted
        Place* found = nullptr;
        if (made == nullptr) return nullptr;
        // Release pairs with the acquire in note() and of readers, and acquire with another's release.
        if (places_[at].compare_exchange_strong(found, made.get(), acq_rel, acquire)) return made.release();
        return found;
    }

    std::uint64_t count(TimeHistogram Place::* kind, std::size_t bucket) const {
        std::uint64_t all = 0;
        for (std::uint32_t i = 0; i <= workers_; ++i)
            if (const Place* const place = places_[i].load(acquire)) all += (place->*kind).count(bucket);
        return all;
    }

    std::uint64_t sum(TimeHistogram Place::* kind) const {
        std::uint64_t all = 0;
        for (std::uint32_t i = 0; i <= workers_; ++i)
            if (const Place* const place = places_[i].load(acquire)) all += (place->*kind).sum();
        return all;
    }

    const std::uint32_t workers_;
    ActorTimes* const of_class_;
    const std::unique_ptr<Atomic<Place*>[]> places_;
};

}  // namespace callboard
