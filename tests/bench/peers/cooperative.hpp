// Space Saving by streams that cooperate: Das et al. 2009, section 4. It is a peer for measurements.
//
// The promises of summary.hpp hold; concurrent_stream_summary.hpp says why. While nobody counts, the counts add up to
// the total.
//
// A stream looks its element up (search_structure.hpp), and adds the weight to the element's pending count. If
// another stream owns the element, that is all: the owner counts it in bulk. Otherwise the element is the stream's, and
// is handed to its bucket (concurrent_stream_summary.hpp). If another stream owns the bucket, that is all. So when
// add() returns, its keys were counted, or handed to a thread that counts them before its own add() returns.
//
// The total is counted first, so what queries see of counts is never more than the total that they read afterwards.
//
// Queries. The paper's walk the buckets. An element on its way from one bucket to another is in neither, and one
// that moves while it is read takes its reader along into another list. So here they walk the search structure,
// where an element stays as long as it lives. Nobody is stopped, and nobody waits for a query.
//   - ask() has every key that had a counter from its beginning to its end, with a count that it had in
//     between. All keys in it had their counters at one moment, the end of its walk; so none is there twice, and
//     there are no more than counters. A key that got its counter meanwhile may be missing.
//   - The total and `unseen` are read after that.
//   - estimate() is of one moment in between. size() is how many keys have counters, each placed.
//   - Delegated elements that are not counted yet are in no count. It is in the total.
//
// Memory. Elements: those with a counter, one for each key that waits for one, and what streams withhold while others
// may be reading it. A stream that finds as many in existence as its limit says leaves and yields until others
// have gone on: the only wait. It owns nothing then, so it holds up nobody. Buckets the same; to serve a request
// that was delegated never waits, so there can be one more for each element.
//
// Where memory fails before a key is handed over, add() throws. Nothing is lost of what was handed over, and what was
// not is in no count and not in the total.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/frequency/designs/summary.hpp"
#include "concurrent_stream_summary.hpp"
#include "counted_elements.hpp"
#include "epochs.hpp"
#include "search_structure.hpp"

namespace callboard {

template <class Keys>
class Cooperative : public Summary<Keys> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    // `throttle` is the paper's rho of section 4.3.3: a stream that joins a longer queue rests a little. 0: never.
    // Equal keys of one call are added up first, or counted one by one as in the paper.
    Cooperative(std::uint32_t capacity, std::uint64_t seed, unsigned streams, std::uint32_t throttle, bool gathers)
        : capacity_(capacity),
          seed_(seed),
          gathers_(gathers),
          count_(streams),
          epochs_(streams, visitors),
          search_(capacity),
          summary_(capacity, throttle, search_, buckets_),
          streams_(new Stream[streams]) {
        for (unsigned i = 0; i < streams; ++i) {
            streams_[i].index = i;
            streams_[i].visits.reserve(64);
        }
    }

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        assert(stream < count_);
        Stream& own = streams_[stream];
        const Alone<Owner> alone(own);
        while (count != 0) {
            const std::size_t many = std::min(count, own.gathering.most);
            const std::size_t different = gathers_ ? own.gathering.gather(seed_, keys, weights, many)
                                                   : own.gathering.list(seed_, keys, weights, many);
            for (std::size_t first = 0; first < different; first += batch) {
                const Inside inside(*this, own);
                count_batch(own, first, std::min(first + batch, different));
            }
            own.counted.add(many);
            keys += many;
            if (weights != nullptr) weights += many;
            count -= many;
        }
    }

    Answer ask(std::size_t most, double support) override {
        const Visit visit(epochs_);
        std::vector<Found> found;
        found.reserve(summary_.size());
        search_.each([&](Element* element) {
            // Acquire pairs with take_due(): the error is the element's, too.
            const std::uint64_t frequency = element->frequency.load(acquire);
            if (frequency != 0) found.push_back({frequency, element});
        });
        // If a key has two elements, the first was closed before the second one was there.
        const auto is_gone = [](const Found& one) { return one.element->pending.is_closed(); };
        found.erase(std::remove_if(found.begin(), found.end(), is_gone), found.end());
        Answer answer{{}, total(), unseen()};
        const std::uint64_t bar = part_of(support, answer.total);
        if (bar != 0) {
            const auto is_low = [bar](const Found& one) { return one.count <= bar; };
            found.erase(std::remove_if(found.begin(), found.end(), is_low), found.end());
        }
        keep_greatest(found, most);
        answer.rows.reserve(found.size());
        for (const Found& one : found)
            answer.rows.push_back({Keys::copy(one.element->key), one.count, one.element->error});
        return answer;
    }

    Estimate estimate(const Probe& key) override {
        const Visit visit(epochs_);
        const Element* const element = search_.find(key, Keys::hash(seed_, key));
        if (element != nullptr) {
            const std::uint64_t frequency = element->frequency.load(acquire);  // as in ask()
            if (frequency != 0 && !element->pending.is_closed())
                return {frequency, element->error, true};
        }
        const std::uint64_t most = unseen();
        return {most, most, false};
    }

    std::uint64_t total() override {
        std::uint64_t sum = loaded_;
        for (unsigned i = 0; i < count_; ++i) sum += streams_[i].total.get();
        return sum;
    }

    std::uint32_t size() override { return static_cast<std::uint32_t>(summary_.size()); }

    void load(const Answer& state) override {
        std::vector<const Row*> order;
        for (const Row& row : state.rows) order.push_back(&row);
        std::sort(order.begin(), order.end(), [](auto a, auto b) { return a->count > b->count; });
        for (const Row* row : order) {
            const Inside inside(*this, streams_[0]);
            const Probe key = Keys::probe_of(row->key);
            Element* const element = fresh(streams_[0], key, Keys::hash(seed_, key), 1);
            search_.insert(element, key);
            summary_.put(streams_[0], element, row->count, row->error);
        }
        loaded_ = state.total;
        least_unseen_ = state.unseen;
        summary_.begin_with(state.unseen);
    }

    // The sums of all streams, while they count.
    CooperationCounts counts() const {
        CooperationCounts all{};
        for (unsigned i = 0; i < count_; ++i) {
            const Stream& one = streams_[i];
            all.elements += one.counted.get();
            all.delegated_elements += one.delegated_elements.get();
            all.delegated_requests += one.delegated_requests.get();
            all.queue_sum += one.queue_sum.get();
            all.queue_most = std::max(all.queue_most, one.queue_most.get());
            all.throttled += one.throttled.get();
        }
        return all;
    }

    // How many elements and buckets were ever made; they live as long as this.
    std::size_t elements_made() const { return elements_.made(); }
    std::size_t buckets_made() const { return buckets_.made(); }

private:
    using Element = CountedElement<Keys>;
    using Bucket = FrequencyBucket<Keys>;
    using Stream = CountingStream<Keys>;

    // A stream while it is inside an epoch, with a batch of elements and buckets at hand.
    class Inside {
    public:
        Inside(Cooperative& all, Stream& stream) : all_(all), stream_(stream) { all.enter(stream); }
        ~Inside() { all_.leave(stream_); }
        Inside(const Inside&) = delete;

    private:
        Cooperative& all_;
        Stream& stream_;
    };

    static constexpr unsigned visitors = 16;
    static constexpr std::size_t batch = RetiredNodes<Element>::batch;

    struct Found {
        std::uint64_t count;
        Element* element;
    };

    class Visit {
    public:
        explicit Visit(Epochs& epochs) : epochs_(epochs), place_(epochs.enter_as_visitor()) {}
        ~Visit() { epochs_.leave_as_visitor(place_); }
        Visit(const Visit&) = delete;

    private:
        Epochs& epochs_;
        const unsigned place_;
    };

    void count_batch(Stream& stream, std::size_t first, std::size_t end) {
        const auto& all = stream.gathering;
        assert(first < end && epochs_.is_inside(stream.index) && "elements are read from inside an epoch");
        for (std::size_t i = first; i < end; ++i) search_.prefetch(all[i].hash);
        for (std::size_t i = first; i < end; ++i) search_.prefetch_element(all[i].hash);
        for (std::size_t i = first; i < end; ++i) {
            count_one(stream, all[i].key, all[i].hash, all[i].weight);
            if (__builtin_expect(stream.saw_long_queue, 0)) rest(stream);
            else stream.rests = 0;
        }
    }

    void count_one(Stream& stream, const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        assert(weight != 0);
        stream.total.add(weight);
        Element* element = search_.find(key, hash);
        for (;;) {
            if (__builtin_expect(element == nullptr, 0)) {
                try {
                    element = search_.insert(fresh(stream, key, hash, static_cast<std::int64_t>(weight)), key);
                } catch (const std::bad_alloc&) {
                    stream.elements.give(stream.fresh);
                    stream.total.add(-weight);
                    throw;
                }
                if (element == stream.fresh) return summary_.begin(stream, element, least_unseen_);
                stream.elements.give(stream.fresh);
            }
            switch (element->pending.own_or_delegate(static_cast<std::int64_t>(weight))) {
                case Handed::mine: return summary_.increment(stream, element);
                case Handed::delegated: return stream.delegated_elements.add(1);
                case Handed::refused: search_.erase(element); element = search_.find(key, hash);
            }
        }
    }

    // How often a key without a counter may have come: it lost its counter to a count that was the least, or never
    // had one. Called from inside an epoch.
    std::uint64_t unseen() const { return summary_.size() < capacity_ ? least_unseen_ : summary_.least(); }

    // An element that nobody has seen, owned, with so much due; it is stream.fresh, too. Throws std::bad_alloc.
    Element* fresh(Stream& stream, const Probe& key, std::uint64_t hash, std::int64_t weight) {
        assert(weight > 0 && epochs_.is_inside(stream.index) && "elements are taken from inside an epoch");
        Element* const element = stream.fresh = stream.elements.take();
        Keys::replace(element->key, key, hash);
        element->hash = hash;
        element->pending.open(weight);
        element->frequency.store(0, relaxed);  // the search structure releases it
        element->error = 0;
        return element;
    }

    void enter(Stream& stream) {
        for (;; wait(stream)) {
            stream.epoch = epochs_.enter(stream.index);
            if (stream.closed > most_closed) summary_.sweep(stream);
            try {
                const std::size_t limit = summary_.size() + count_ * std::size_t{room};
                if (elements_.fill(stream.elements, limit)) {
                    if (buckets_.fill(stream.buckets, limit)) return;
                    summary_.sweep(stream);
                }
            } catch (...) {
                epochs_.leave(stream.index);
                throw;
            }
            epochs_.leave(stream.index);
        }
    }

    void leave(Stream& stream) {
        assert(stream.visits.empty() && stream.unplaced == nullptr && "who leaves owns nothing");
        epochs_.leave(stream.index);
        stream.elements.reclaim(epochs_);
        stream.buckets.reclaim(epochs_);
        elements_.spread(stream.elements);
        buckets_.spread(stream.buckets);
        if (++stream.batches % batches_between_advances == 0) epochs_.try_advance();
        while (stream.elements.has_too_many() || stream.buckets.has_too_many()) wait(stream);
    }

    // A stream that is outside lets others go on, and frees what they held up.
    void wait(Stream& stream) {
        assert(!epochs_.is_inside(stream.index) && "who waits holds up no epoch");
        if (!epochs_.try_advance()) std::this_thread::yield();
        stream.elements.reclaim(epochs_);
        stream.buckets.reclaim(epochs_);
        elements_.spread(stream.elements);
        buckets_.spread(stream.buckets);
    }

    // Section 4.3.3: a thread that has seen too long a queue rests a little, and longer if it sees that again at
    // once. It owns nothing, and holds up no epoch.
    void rest(Stream& stream) {
        assert(stream.visits.empty() && stream.unplaced == nullptr && "who rests owns nothing");
        stream.saw_long_queue = false;
        stream.throttled.add(1);
        epochs_.leave(stream.index);
        std::this_thread::sleep_for(std::chrono::microseconds(50u << stream.rests));
        if (stream.rests < most_rests) ++stream.rests;
        enter(stream);
    }

    // Things of a sort that a stream may have in use or withhold, over what has a counter.
    static constexpr std::size_t room = RetiredNodes<Element>::withheld + 512;
    static constexpr std::int64_t most_closed = 256;
    static constexpr unsigned most_rests = 4;
    static constexpr std::uint64_t batches_between_advances = 8;

    const std::uint32_t capacity_;
    const std::uint64_t seed_;
    const bool gathers_;
    const unsigned count_;
    std::uint64_t loaded_{0}, least_unseen_{0};  // of what was loaded
    Epochs epochs_;
    RetiredNodes<Element> elements_;
    RetiredNodes<Bucket> buckets_;
    SearchStructure<Keys> search_;
    ConcurrentStreamSummary<Keys> summary_;
    const std::unique_ptr<Stream[]> streams_;
};

}  // namespace callboard
