// The promises of every design of a summary, against exact counts.
#include "designs.hpp"

#include "stress.hpp"

using namespace designs;

namespace {

// Streams that one thread counts in turns, or a thread each.
template <class Sort, class Of>
void count_and_check(const Of& design, std::uint32_t capacity, unsigned streams, bool on_threads, std::size_t length,
                     std::uint64_t alphabet, int skew, std::uint64_t heaviest) {
    const int before = check::failures.load(callboard::relaxed);
    const auto summary = design.template make<typename Sort::Keys>(capacity, streams);
    std::vector<Stream<Sort>> sources;
    for (unsigned i = 0; i < streams; ++i) sources.emplace_back(i + 1, length, alphabet, skew, heaviest);
    Exact<Sort> exact;
    for (auto& source : sources) source.tell(exact);
    constexpr std::size_t batch = 37;
    if (on_threads) {
        stress::together(static_cast<int>(streams), [&](int i) {
            const auto stream = static_cast<unsigned>(i);
            for (std::size_t at = 0; at < length; at += batch) sources[stream].add_to(*summary, stream, at, batch);
        });
    } else {
        for (std::size_t at = 0; at < length; at += batch)
            for (unsigned i = 0; i < streams; ++i) sources[i].add_to(*summary, i, at, batch);
    }
    hold_to_promises<Sort>(design, *summary, exact, capacity);
    if (check::failures.load(callboard::relaxed) != before)
        std::fprintf(stderr, "in %s: capacity %u, %u streams, skew %d, weights to %d\n", design.name, capacity, streams,
                     skew, static_cast<int>(heaviest));
}

template <class Sort>
void count_with_each_capacity(bool on_threads, std::size_t length) {
    each_design([&](auto design) {
        constexpr bool has_streams = decltype(design)::template has_streams<typename Sort::Keys>;
        if (on_threads && !has_streams) return;
        for (const std::uint32_t capacity : {1u, 2u, 3u, 10u, 100u, 5000u})
            for (const int skew : {0, 2, 6})
                for (const std::uint64_t heaviest : {1u, 3u, 1000000u})
                    count_and_check<Sort>(design, capacity, has_streams ? 3 : 1, on_threads, length, 1000, skew,
                                          heaviest);
    });
}

}  // namespace

TEST("counts are within their bounds, whatever the skew, the weights and the capacity") {
    count_with_each_capacity<Integers>(false, 2000 / stress::shorter);
    count_with_each_capacity<Texts>(false, 500 / stress::shorter);
}

TEST("so they are when each stream has a thread") {
    count_with_each_capacity<Integers>(true, 2000 / stress::shorter);
    count_with_each_capacity<Texts>(true, 500 / stress::shorter);
}

// Keys of one weight leave all counters alike, so that hardly one may be taken over when lighter ones come.
TEST("counters and errors stay within their bounds, in any order of keys") {
    constexpr std::uint32_t capacity = 64;
    each_design([](auto design) {
        const auto summary = design.template make<IntegerKeys>(capacity, 2);
        stress::Random random(7);
        Exact<Integers> exact;
        std::uint64_t total = 0;
        for (const std::uint64_t weight : {100u, 1u, 1000000u, 3u, 1u, 0u}) {
            for (std::uint64_t i = 0; i < 4 * capacity; ++i) {
                const std::int64_t key = random.below(weight % 3 == 0 ? 80 : 100000);
                const std::uint64_t times = weight == 0 ? 1 + random.below(500) : weight;
                summary->add(i % 2 == 0 || !design.template has_streams<IntegerKeys> ? 0 : 1, &key, &times, 1);
                exact[key] += times;
                total += times;
                if (i % 8 != 0) continue;
                CHECK(summary->size() <= capacity);
                const auto estimate = summary->estimate(key);
                CHECK(estimate.count >= exact[key] && estimate.error <= total / capacity);
            }
            hold_to_promises<Integers>(design, *summary, exact, capacity);
        }
        if (check::failures.load(callboard::relaxed) != 0) std::fprintf(stderr, "in %s\n", design.name);
    });
}

TEST("as many streams as one likes") {
    each_design_with_streams([](auto design) {
        for (const unsigned streams : {1u, 2u, 5u, 8u, 33u})
            for (const std::uint32_t capacity : {3u, 50u})
                count_and_check<Integers>(design, capacity, streams, false, 600, 400, 2, 1);
    });
}

TEST("streams of unlike lengths and unlike keys") {
    each_design_with_streams([](auto design) {
        const auto summary = design.template make<IntegerKeys>(20, 3);
        Exact<Integers> exact;
        for (unsigned i = 0; i < 3; ++i) {
            Stream<Integers> source(i, 10 + 1500 * i, 20 + 200 * i, 1, 5);
            for (auto& key : source.keys) key += 100 * i;
            source.tell(exact);
            source.add_to(*summary, i, 0, all);
            hold_to_promises<Integers>(design, *summary, exact, 20);
        }
    });
}

TEST("an empty summary says so") {
    each_design([](auto design) {
        const auto summary = design.template make<ByteKeys>(3, 2);
        hold_to_promises<Texts>(design, *summary, {}, 3);
        const auto estimate = summary->estimate(Texts::probe("a"));
        CHECK(estimate.count == 0 && estimate.error == 0 && !estimate.has_counter);
    });
}

TEST("keys of one kind and those of another are told apart") {
    each_design([](auto design) {
        const auto summary = design.template make<ByteKeys>(10, 2);
        const ByteRun keys[] = {{"ab", 2, 1}, {"ab", 2, 2}, {"ab", 2, 2}};
        summary->add(0, keys, nullptr, 3);
        CHECK_EQUAL(summary->size(), 2u);
        CHECK_EQUAL(summary->estimate(keys[0]).count, 1u);
        CHECK_EQUAL(summary->estimate(keys[1]).count, 2u);
        CHECK(!summary->estimate({"ab", 2, 3}).has_counter);
    });
}

TEST("one key alone, and two that pass each other for ever") {
    each_design([](auto design) {
        for (const std::int64_t different : {1, 2}) {
            const auto summary = design.template make<IntegerKeys>(3, 1);
            std::vector<std::int64_t> keys{7};
            for (std::int64_t i = 0; i < 20000; ++i) keys.push_back(i % different);
            Exact<Integers> exact;
            for (const auto key : keys) ++exact[key];
            summary->add(0, keys.data(), nullptr, keys.size());
            hold_to_promises<Integers>(design, *summary, exact, 3);
        }
    });
}

TEST("loaded counts are there, and counting goes on from them within the bounds") {
    each_design([](auto design) {
        constexpr std::uint32_t capacity = 8;
        for (const std::uint64_t alphabet : {5u, 8u, 40u}) {
            const Stream<Texts> before(1, 500, alphabet, 1, 3), after(2, 500, 2 * alphabet, 1, 3);
            Exact<Texts> exact;
            before.tell(exact);
            const auto first = design.template make<ByteKeys>(capacity, 2);
            before.add_to(*first, 0, 0, all);
            const auto answer = first->ask(all, 0);
            const auto second = design.template make<ByteKeys>(capacity, 2);
            second->load(answer);
            hold_to_promises<Texts>(design, *second, exact, capacity);
            after.tell(exact);
            after.add_to(*second, 0, 0, 250);
            after.add_to(*second, decltype(design)::template has_streams<ByteKeys> ? 1 : 0, 250, all);
            hold_to_promises<Texts>(design, *second, exact, capacity);
        }
    });
}

TEST("a merged answer has the counts of both sides, and its unseen those that were dropped") {
    using Merged = Summary<IntegerKeys>::Answer;
    const Merged one{{{1, 50, 5}, {2, 40, 10}, {3, 30, 0}}, 120, 30}, other{{{2, 20, 1}, {4, 9, 2}, {5, 8, 8}}, 37, 8};
    Merged both = callboard::merge<IntegerKeys>(one, other, 3, seed);
    callboard::keep_greatest(both.rows, all);
    CHECK_EQUAL(both.total, 157u);
    CHECK_EQUAL(both.unseen, 38u);  // 3 was dropped: 30, and at most 8 on the other side
    CHECK_EQUAL(both.rows.size(), 3u);
    const std::uint64_t keys[] = {2, 1, 4}, counts[] = {60, 58, 39}, errors[] = {11, 13, 32};
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK_EQUAL(static_cast<std::uint64_t>(both.rows[i].key), keys[i]);
        CHECK_EQUAL(both.rows[i].count, counts[i]);
        CHECK_EQUAL(both.rows[i].error, errors[i]);
    }
}

TEST("where nothing is dropped, a key that neither side has may have come unseen to both") {
    const Summary<IntegerKeys>::Answer one{{{1, 5, 2}, {2, 4, 0}}, 9, 4}, other{{{2, 7, 1}, {1, 6, 3}}, 13, 6};
    const auto both = callboard::merge<IntegerKeys>(one, other, 2, seed);
    CHECK_EQUAL(both.unseen, 10u);
    CHECK_EQUAL(both.rows[0].count, 11u);
    CHECK_EQUAL(both.rows[0].error, 5u);
    CHECK_EQUAL(both.rows[1].count, 11u);
}

CHECK_MAIN
