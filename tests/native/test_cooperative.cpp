// The cooperative design where an element or a bucket is owned by another stream, and where memory is used again or
// fails. test_designs.cpp has its counts, and stress_designs.cpp the contention.
#include <new>
#include <vector>

#include "../bench/peers/cooperative.hpp"
#include "callboard/frequency/counting/keys.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

constexpr std::uint64_t seed = 0x51ed2701a3f1c6b5;

// Keys for some of which there is no memory.
struct FailingKeys : IntegerKeys {
    static void replace(Kept& kept, Probe key, std::uint64_t hash) {
        if (key < 0) throw std::bad_alloc();
        IntegerKeys::replace(kept, key, hash);
    }
};

// The parts of a cooperative design, for two streams that one thread plays.
struct Parts {
    using Element = CountedElement<IntegerKeys>;
    using Bucket = FrequencyBucket<IntegerKeys>;

    RetiredNodes<Element> elements;
    RetiredNodes<Bucket> buckets;
    SearchStructure<IntegerKeys> search{16};
    ConcurrentStreamSummary<IntegerKeys> summary;
    CountingStream<IntegerKeys> one, other;

    explicit Parts(std::int64_t capacity, std::uint32_t throttle = 0) : summary(capacity, throttle, search, buckets) {
        for (auto* const stream : {&one, &other}) {
            stream->epoch = 1;  // as if it had entered
            elements.fill(stream->elements);
            buckets.fill(stream->buckets);
        }
    }

    Element* insert(std::int64_t key, std::int64_t weight) {
        Element* const element = one.elements.take();
        element->key = key;
        element->hash = mix(static_cast<std::uint64_t>(key));
        element->pending.open(weight);
        element->frequency.store(0, relaxed);
        CHECK(search.insert(element, key) == element);
        return element;
    }
    Element* add(std::int64_t key, std::int64_t weight) {
        Element* const element = insert(key, weight);
        summary.begin(one, element, 0);
        return element;
    }
    std::uint64_t count_of(std::int64_t key) {
        const Element* const element = search.find(key, mix(static_cast<std::uint64_t>(key)));
        return element == nullptr ? 0 : element->frequency.load(relaxed);
    }
};

}  // namespace

TEST("an element that is owned keeps its counter, and the overwrite takes another's") {
    Parts parts(2);
    auto* const busy = parts.add(1, 1);
    parts.add(2, 1);
    CHECK(busy->pending.own_or_delegate(1) == Handed::mine);
    auto* const fresh = parts.add(3, 1);
    CHECK_EQUAL(fresh->frequency.load(relaxed), 2u);
    CHECK_EQUAL(fresh->error, 1u);
    CHECK_EQUAL(parts.count_of(1), 1u);
    CHECK_EQUAL(parts.count_of(2), 0u);
}

TEST("an overwrite waits while all elements are owned, and is done when they have left") {
    Parts parts(2);
    auto* const first = parts.add(1, 1);
    auto* const second = parts.add(2, 1);
    CHECK(first->pending.own_or_delegate(4) == Handed::mine);
    CHECK(second->pending.own_or_delegate(1) == Handed::mine);
    auto* const fresh = parts.add(3, 7);
    CHECK_EQUAL(fresh->frequency.load(relaxed), 0u);
    CHECK(fresh->pending.own_or_delegate(1) == Handed::delegated);
    parts.summary.increment(parts.other, first);
    CHECK_EQUAL(parts.count_of(1), 5u);
    CHECK_EQUAL(fresh->frequency.load(relaxed), 0u);
    parts.summary.increment(parts.other, second);
    CHECK_EQUAL(fresh->frequency.load(relaxed), 10u);  // of the least one, with what came meanwhile
    CHECK_EQUAL(fresh->error, 2u);
    CHECK_EQUAL(parts.count_of(1), 5u);
    CHECK_EQUAL(parts.count_of(2), 0u);
    CHECK_EQUAL(parts.summary.least(), 5u);
}

TEST("an overwrite that waits takes over an element that has come by then") {
    Parts parts(2);
    auto* const busy = parts.add(1, 2);
    auto* const coming = parts.add(2, 1);
    CHECK(busy->pending.own_or_delegate(1) == Handed::mine);
    auto* const fresh = parts.insert(3, 1);
    fresh->request = ElementRequest::overwrite;
    auto& bucket = *busy->bucket;
    CHECK(bucket.door.leave(fresh) == decltype(bucket.door)::Left::first);  // by another stream
    CHECK(coming->pending.own_or_delegate(1) == Handed::mine);
    parts.summary.increment(parts.one, coming);
    CHECK(coming->bucket != &bucket);
    parts.other.visits.push_back(&bucket);
    parts.summary.sweep(parts.other);
    CHECK_EQUAL(parts.count_of(2), 0u);
    CHECK_EQUAL(parts.count_of(3), 3u);
    CHECK_EQUAL(fresh->error, 2u);
    parts.summary.increment(parts.one, busy);
    CHECK_EQUAL(parts.count_of(1), 3u);
    CHECK(busy->bucket == fresh->bucket);
}

TEST("requests that meet an owner are counted in its queue, and served by it") {
    Parts parts(3, 1);
    auto* const first = parts.add(1, 1);
    auto* const second = parts.add(2, 1);
    auto* const third = parts.add(3, 1);
    auto& bucket = *first->bucket;
    CHECK(bucket.door.try_own());  // another stream
    for (auto* const element : {first, second}) {
        CHECK(element->pending.own_or_delegate(1) == Handed::mine);
        parts.summary.increment(parts.one, element);
        CHECK_EQUAL(element->frequency.load(relaxed), 1u);
    }
    CHECK_EQUAL(parts.one.delegated_requests.get(), 2u);
    CHECK_EQUAL(parts.one.queue_most.get(), 2u);
    CHECK_EQUAL(parts.one.queue_sum.get(), 3u);
    CHECK(parts.one.saw_long_queue);
    CHECK(!bucket.door.try_release());
    CHECK(third->pending.own_or_delegate(2) == Handed::mine);
    parts.summary.increment(parts.one, third);
    CHECK_EQUAL(third->frequency.load(relaxed), 1u);
    CHECK_EQUAL(bucket.queued.load(relaxed), 3);
    // The owner lets go, as a stream would.
    auto* request = bucket.door.take();
    CHECK(bucket.door.try_release());
    while (request != nullptr) {
        auto* const following = request->next;
        parts.summary.increment(parts.other, request);
        request = following;
    }
    CHECK_EQUAL(parts.count_of(1), 2u);
    CHECK_EQUAL(parts.count_of(2), 2u);
    CHECK_EQUAL(parts.count_of(3), 3u);
    CHECK_EQUAL(parts.summary.least(), 2u);
}

TEST("a key that comes again gets a new element while its closed one is still in place") {
    Parts parts(5);
    auto* const closed = parts.add(1, 1);
    CHECK(closed->pending.try_close());
    CHECK(parts.search.find(1, mix(1)) == closed);
    auto* const fresh = parts.insert(1, 1);
    CHECK(fresh != closed);
    CHECK(parts.search.find(1, mix(1)) == fresh);
    CHECK(parts.search.insert(closed, 1) == fresh);
    parts.search.erase(closed);  // it is not in that slot any more
    CHECK(parts.search.find(1, mix(1)) == fresh);
}

TEST("chains get longer, and emptied slots are used again") {
    Parts parts(1000);
    std::vector<Parts::Element*> all;
    for (std::int64_t key = 0; key < 300; ++key) {
        parts.elements.fill(parts.one.elements);
        all.push_back(parts.insert(key, 1));
    }
    std::size_t seen = 0;
    parts.search.each([&](auto*) { ++seen; });
    CHECK_EQUAL(seen, 300u);
    for (std::int64_t key = 0; key < 300; key += 2) {
        auto* const element = all[static_cast<std::size_t>(key)];
        CHECK(parts.search.find(key, mix(static_cast<std::uint64_t>(key))) == element);
        CHECK(element->pending.settle(1) == 0 && element->pending.try_close());
        parts.search.erase(element);
        CHECK(parts.search.find(key, mix(static_cast<std::uint64_t>(key))) == nullptr);
        parts.elements.fill(parts.one.elements);
        CHECK(parts.insert(key + 1000, 1) != nullptr);
    }
    seen = 0;
    parts.search.each([&](auto*) { ++seen; });
    CHECK_EQUAL(seen, 300u);
}

TEST("closed buckets are unlinked though nobody visits the one before them, and memory is used again") {
    Cooperative<IntegerKeys> summary(10, seed, 2, 0, true);
    std::vector<std::int64_t> keys;
    for (int i = 0; i < 20000; ++i) {
        const std::int64_t key = i < 5 ? i : 7;
        summary.add(static_cast<unsigned>(i % 2), &key, nullptr, 1);
    }
    CHECK_EQUAL(summary.estimate(7).count, 19995u);
    CHECK(summary.buckets_made() < 3000);
    for (int i = 0; i < 50000; ++i) {
        const std::int64_t key = i % 1000;
        summary.add(static_cast<unsigned>(i % 2), &key, nullptr, 1);
    }
    CHECK(summary.elements_made() < 3000);
}

TEST("a key for which there is no memory is in no count, and the others are") {
    Cooperative<FailingKeys> summary(2, seed, 1, 0, true);
    int failed = 0;
    for (int i = 0; i < 100; ++i) {
        const std::int64_t keys[] = {i % 3, -1 - i};
        try {
            summary.add(0, keys, nullptr, 2);
        } catch (const std::bad_alloc&) {
            ++failed;
        }
    }
    CHECK_EQUAL(failed, 100);
    CHECK_EQUAL(summary.total(), 100u);
    const auto answer = summary.ask(10, 0);
    CHECK_EQUAL(answer.rows.size(), 2u);
    CHECK_EQUAL(answer.rows[0].count + answer.rows[1].count, 100u);
    CHECK(!summary.estimate(-1).has_counter);
}

CHECK_MAIN
