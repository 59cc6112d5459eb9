// The matches of a lane of a join, by full comparison and by buckets, against three nested loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "callboard/streams/programs/joins/kernel/full_join.hpp"
#include "callboard/streams/programs/joins/kernel/column_matcher.hpp"
#include "callboard/streams/programs/joins/kernel/indexed_join.hpp"
#include "check.hpp"
#include "joining.hpp"

using namespace callboard;
using namespace joining;

namespace {

constexpr VectorPath paths[] = {VectorPath::scalar, VectorPath::avx2, VectorPath::avx512, VectorPath::neon};
constexpr JoinRule rules[] = {JoinRule::three_step, JoinRule::strict, JoinRule::last_rows};

JoinPredicate all_of(std::initializer_list<JoinTerm> terms) {
    JoinPredicate predicate;
    for (const JoinTerm& term : terms) predicate.add(term);
    return predicate;
}

std::vector<JoinPredicate> predicates() {
    const auto int32 = NumberType::int32, int64 = NumberType::int64;
    const auto float32 = NumberType::float32, float64 = NumberType::float64;
    return {
        all_of({JoinTerm::equal(int64)}),
        all_of({JoinTerm::equal(float32)}),
        all_of({JoinTerm::equal(float64), JoinTerm::equal(int32)}),
        all_of({JoinTerm::band(int32, 3), JoinTerm::band(float32, 1.25)}),
        all_of({JoinTerm::band(float64, 0)}),
        all_of({JoinTerm::band(float64, 0.1), JoinTerm::equal(int32)}),
        all_of({JoinTerm::band(int64, 5), JoinTerm::band(int32, 6.5), JoinTerm::band(float64, 4)}),
        all_of({JoinTerm::band(float32, 6), JoinTerm::band(float64, 7), JoinTerm::band(int32, 20),
                JoinTerm::whole_band(int64, 30)}),
        all_of({JoinTerm::band(float64, std::numeric_limits<double>::infinity()), JoinTerm::band(int64, 2)}),
        all_of({JoinTerm::band(float32, std::numeric_limits<double>::infinity())}),
        all_of({JoinTerm::band(int64, -1)}),
        all_of({JoinTerm::band(float64, 1e-320), JoinTerm::band(float32, 1e300)}),
    };
}

std::string described(const JoinSettings<std::int64_t>& settings, std::size_t which, std::size_t batch) {
    return "predicate " + std::to_string(which) + " rule " + std::to_string(static_cast<int>(settings.rule)) +
           " lanes " + std::to_string(settings.lanes) + " batch " + std::to_string(batch);
}

// How many of the expected matches there are; and whether these were found, by whatever means.
template <class Time>
void expect(const std::vector<JoinMatch>& expected, const std::vector<JoinMatch>& found, const std::string& what) {
    if (expected == found) return;
    std::size_t at = 0;
    while (at < std::min(expected.size(), found.size()) && expected[at] == found[at]) ++at;
    std::string message = what + ": " + std::to_string(found.size()) + " matches for " +
                          std::to_string(expected.size()) + ", the first difference at " + std::to_string(at);
    if (at < expected.size())
        message += ", row " + std::to_string(expected[at].row) + " partner " + std::to_string(expected[at].partner);
    check::fail(__FILE__, __LINE__, message);
}

template <class Time>
void agree(const Stream<Time>& stream, const JoinSettings<Time>& settings, std::size_t batch, const std::string& what,
           const std::vector<JoinMatch>& expected) {
    for (VectorPath path : paths) {
        if (!has_path(path)) continue;
        FullJoin<Time> full(settings, path);
        expect<Time>(expected, join_in_batches(full, stream, batch),
                     what + " full " + std::to_string(static_cast<int>(path)));
    }
    IndexedJoin<Time> indexed(settings);
    expect<Time>(expected, join_in_batches(indexed, stream, batch), what + " indexed");
}

template <class Time>
bool is_before(const JoinMatch& one, const JoinMatch& other) {
    return one.row != other.row ? one.row < other.row : one.partner < other.partner;
}

}  // namespace

TEST("every rule and predicate gives the outputs of three nested loops, in batches of any size") {
    const auto all = predicates();
    for (std::size_t which = 0; which < all.size(); ++which)
        for (JoinRule rule : rules) {
            std::size_t matches = 0;
            for (std::int64_t within : {0, 1, 40, 400}) {
                const auto stream = random_stream<std::int64_t>(which + 100, 700, all[which], 60);
                JoinSettings<std::int64_t> settings{all[which], rule, within, 1, 0};
                const auto expected = join_plainly(stream, settings);
                matches += expected.size();
                for (std::size_t batch : {1u, 2u, 7u, 1000u})
                    agree(stream, settings, batch, described(settings, which, batch), expected);
            }
            CHECK_EQUAL(matches != 0, all[which].terms[0].is_possible);
        }
}

TEST("rows of each side stay as long as their side's length says") {
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    const auto stream = random_stream<std::int64_t>(11, 1500, predicate, 60);
    for (JoinRule rule : {JoinRule::three_step, JoinRule::strict})
        for (const auto within : {JoinLengths<std::int64_t>(0, 40), JoinLengths<std::int64_t>(40, 0),
                                  JoinLengths<std::int64_t>(3, 400), JoinLengths<std::int64_t>(0, 0)}) {
            const JoinSettings<std::int64_t> settings{predicate, rule, within, 1, 0};
            const auto expected = join_plainly(stream, settings);
            CHECK(!expected.empty());
            for (std::size_t batch : {1u, 7u, 64u, 2000u})
                agree(stream, settings, batch, described(settings, 0, batch), expected);
        }
}

TEST("rows that leave before any row could see them are in no bucket") {
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    IndexedJoin<std::int64_t> indexed({predicate, JoinRule::strict, {40, 0}, 1, 0});
    Stream<std::int64_t> stream;
    stream.columns.resize(1);
    for (int row = 0; row < 300; ++row) {  // the left row in the middle sees the right one before it, of the same time
        stream.sides.push_back(row != 150);
        stream.times.push_back(row == 150 ? 149 : row);
        stream.numbers.push_back(static_cast<std::uint64_t>(row));
        stream.columns[0].push(7);
    }
    std::vector<JoinMatch> matches;
    indexed.join(stream.batch(0, 150), matches);
    CHECK_EQUAL(indexed.windows().of(1).end(), std::uint64_t{1});  // of all rows, the last one: a left row may see it
    indexed.join(stream.batch(150, 300), matches);
    CHECK_EQUAL(indexed.windows().of(1).end(), std::uint64_t{2});
    CHECK_EQUAL(indexed.compared(), std::uint64_t{1 + 39});
    CHECK_EQUAL(matches.size(), std::size_t{1 + 39});
    CHECK((matches.front() == JoinMatch{0, 149}) && (matches.back() == JoinMatch{39, 150}));
}

TEST("times that are doubles are as good as integers") {
    const auto predicate = all_of({JoinTerm::band(NumberType::int32, 4), JoinTerm::band(NumberType::float32, 2)});
    for (JoinRule rule : rules)
        for (double within : {0.0, 0.3, 25.0}) {
            auto stream = random_stream<double>(7, 900, predicate, 60);
            for (double& time : stream.times) time *= 0.1;
            JoinSettings<double> settings{predicate, rule, rule == JoinRule::last_rows ? 19.0 : within, 1, 0};
            const auto expected = join_plainly(stream, settings);
            CHECK(!expected.empty());
            for (std::size_t batch : {3u, 1000u}) agree(stream, settings, batch, "doubles", expected);
        }
}

TEST("lanes together find the matches of one lane, each exactly once") {
    const auto predicate = all_of({JoinTerm::band(NumberType::int32, 2), JoinTerm::band(NumberType::float64, 3)});
    const auto stream = random_stream<std::int64_t>(3, 1500, predicate, 60);
    for (JoinRule rule : rules) {
        JoinSettings<std::int64_t> settings{predicate, rule, 50, 1, 0};
        const auto expected = join_plainly(stream, settings);
        for (std::uint64_t lanes = 1; lanes <= 4; ++lanes) {
            std::vector<JoinMatch> together, together_indexed;
            settings.lanes = lanes;
            for (settings.lane = 0; settings.lane < lanes; ++settings.lane) {
                const auto own = join_plainly(stream, settings);
                agree(stream, settings, 64, described(settings, 0, 64), own);
                FullJoin<std::int64_t> full(settings);
                IndexedJoin<std::int64_t> indexed(settings);
                for (const auto& match : join_in_batches(full, stream, 7)) together.push_back(match);
                for (const auto& match : join_in_batches(indexed, stream, 7)) together_indexed.push_back(match);
            }
            settings.lane = 0;
            std::sort(together.begin(), together.end(), is_before<std::int64_t>);
            std::sort(together_indexed.begin(), together_indexed.end(), is_before<std::int64_t>);
            expect<std::int64_t>(expected, together, described(settings, 0, 7));
            expect<std::int64_t>(expected, together_indexed, described(settings, 0, 7));
        }
    }
}

TEST("windows of any length around a block's give each row, and no other") {
    const auto predicate = all_of({JoinTerm::equal(NumberType::int32)});
    for (std::size_t length : {0u, 1u, 15u, 16u, 17u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 2047u, 2048u, 2049u, 3000u})
        for (std::size_t gone : {0u, 1u, 1000u, 1023u, 1024u, 1500u}) {
            // Rows that leave, rows that stay, and one that meets these; all have one key.
            Stream<std::int64_t> stream;
            stream.columns.resize(1);
            stream.columns[0].type = NumberType::int32;
            const auto add = [&](std::uint8_t side, std::int64_t time) {
                stream.sides.push_back(side);
                stream.times.push_back(time);
                stream.numbers.push_back(stream.numbers.size());
                stream.columns[0].push(5);
            };
            for (std::size_t i = 0; i < gone; ++i) add(0, 0);
            for (std::size_t i = 0; i < length; ++i) add(0, 10);
            add(1, 15);
            std::vector<JoinMatch> expected;
            for (std::size_t i = gone; i < gone + length; ++i)
                expected.push_back({static_cast<std::uint32_t>(gone + length), i});
            const JoinSettings<std::int64_t> settings{predicate, JoinRule::strict, 5, 1, 0};
            for (std::size_t batch : {1000u, 5000u})
                agree(stream, settings, batch, "a window of " + std::to_string(length), expected);
        }
}

TEST("a row of three steps meets rows that the latest row of its own side would not") {
    // Figure 1 of the paper: t1 and t4 meet, though they are 5 apart and the window is 4.
    Stream<std::int64_t> stream;
    stream.columns.resize(1);
    for (const auto& [side, time] : std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {0, 5}, {1, 6}, {0, 6}, {1, 7}}) {
        stream.sides.push_back(static_cast<std::uint8_t>(side));
        stream.times.push_back(time);
        stream.numbers.push_back(stream.numbers.size());
        stream.columns[0].push(1);
    }
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    const std::vector<JoinMatch> three_step{{1, 0}, {2, 1}, {3, 0}, {3, 2}, {4, 1}, {4, 3}, {5, 2}, {5, 4}};
    const std::vector<JoinMatch> strict{{1, 0}, {2, 1}, {3, 2}, {4, 1}, {4, 3}, {5, 2}, {5, 4}};
    agree(stream, {predicate, JoinRule::three_step, 4, 1, 0}, 2, "three steps", three_step);
    agree(stream, {predicate, JoinRule::strict, 4, 1, 0}, 2, "strict", strict);
}

TEST("times at the ends of their type are told apart") {
    constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    Stream<std::int64_t> stream;
    stream.columns.resize(1);
    for (std::int64_t time : {least, least + 1, std::int64_t{0}, most - 1, most}) {
        stream.sides.push_back(stream.sides.size() % 2);
        stream.times.push_back(time);
        stream.numbers.push_back(stream.numbers.size());
        stream.columns[0].push(1);
    }
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    agree(stream, {predicate, JoinRule::strict, most, 1, 0}, 5, "far times", {{1, 0}, {2, 1}, {3, 2}, {4, 3}});
}

TEST("a row looks into few buckets, of which one is each match's, wherever on the line of floats it is") {
    for (double distance : {5e-324, 1e-300, 1e-9, 0.1, 10.0, 1e25, 1e300, 1.7976931348623157e308}) {
        const auto predicate = all_of({JoinTerm::band(NumberType::float64, distance)});
        Stream<std::int64_t> stream;
        stream.columns.resize(1);
        stream.columns[0].type = NumberType::float64;
        for (std::uint64_t i = 0; i < 4000; ++i) {
            const double far = std::ldexp(1.0 + static_cast<double>(i % 7) / 7, static_cast<int>(i / 7 % 2046) - 1022);
            for (double value : {far, -far, far + distance, std::nextafter(far, 0)}) stream.columns[0].push(value);
        }
        stream.sides.assign(16000, 0);
        stream.times.assign(16000, 0);
        stream.numbers.assign(16000, 0);
        const auto batch = stream.batch(0, stream.rows());
        JoinProbes probes(predicate);
        BucketGrid grid(predicate);
        probes.read(batch);
        grid.read(batch, probes);
        for (std::size_t row = 0; row < stream.rows(); ++row) {
            CHECK(grid.buckets(row).size() <= 11);
            if (!probes.is_possible(row)) continue;
            for (std::size_t other = row / 4 * 4; other < row / 4 * 4 + 4; ++other) {
                if (!stream.columns[0].holds(predicate.terms[0], row, other)) continue;
                const BucketRange buckets = grid.buckets(row);
                CHECK_EQUAL(std::count(buckets.begin(), buckets.end(), grid.bucket_of(other)), 1);
            }
        }
    }
}

TEST("values far from 0 are in buckets of their own, though the distance is small") {
    const auto predicate = all_of({JoinTerm::band(NumberType::float64, 1e-9), JoinTerm::band(NumberType::int64, 1)});
    Stream<std::int64_t> stream;
    stream.columns.resize(2);
    stream.columns[0].type = NumberType::float64;
    for (int i = 0; i < 1000; ++i) {
        stream.sides.push_back(0);
        stream.times.push_back(0);
        stream.numbers.push_back(stream.numbers.size());
        stream.columns[0].push(1e9 + i);
        stream.columns[1].push(0);
    }
    IndexedJoin<std::int64_t> join({predicate, JoinRule::strict, 0, 1, 0});
    std::vector<JoinMatch> matches;
    join.join(stream.batch(0, stream.rows()), matches);
    CHECK_EQUAL(join.buckets(0).count(), std::size_t{1000});
}

TEST("memory is that of one window, however long the stream is") {
    const auto predicate = all_of({JoinTerm::band(NumberType::int32, 3), JoinTerm::band(NumberType::float32, 1)});
    const auto stream = random_stream<std::int64_t>(5, 120000, predicate, 2000);
    for (JoinRule rule : rules) {
        const JoinSettings<std::int64_t> settings{predicate, rule, 6000, 1, 0};
        FullJoin<std::int64_t> full(settings);
        IndexedJoin<std::int64_t> indexed(settings);
        std::vector<JoinMatch> matches, others;
        std::size_t blocks = 0, bytes = 0;
        for (std::size_t begin = 0, count = 0; begin < stream.rows(); begin += 500, ++count) {
            const auto batch = stream.batch(begin, begin + 500);
            full.join(batch, matches);
            indexed.join(batch, others);
            CHECK(matches == others);
            const std::size_t now = full.windows().arena().made();
            const std::size_t bytes_now = indexed.buckets(0).bytes() + indexed.buckets(1).bytes();
            if (begin < stream.rows() / 4) {
                blocks = std::max(blocks, now);
                bytes = std::max(bytes, bytes_now);
            }
            CHECK(now <= blocks + 2);
            CHECK(4 * bytes_now <= 5 * bytes);
            for (std::uint32_t side : {0u, 1u}) {
                const auto& window = full.windows().of(side);
                const std::uint64_t rows = window.end() - window.begin();
                CHECK(indexed.buckets(side).count() <= rows);
                CHECK(indexed.windows().of(side).end() - indexed.windows().of(side).begin() <= rows);
            }
        }
    }
}

TEST("a bucket that was large gives its memory back, also if it is never empty") {
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    const JoinSettings<std::int64_t> settings{predicate, JoinRule::strict, 100, 1, 0};
    IndexedJoin<std::int64_t> indexed(settings);
    Stream<std::int64_t> stream;
    stream.columns.resize(1);
    for (std::int64_t row = 0; row < 21000; ++row) {
        stream.sides.push_back(0);
        stream.times.push_back(row < 20000 ? 0 : row - 20000);
        stream.numbers.push_back(static_cast<std::uint64_t>(row));
        stream.columns[0].push(row < 20000 ? 3 : row % 5);
    }
    std::vector<JoinMatch> matches;
    indexed.join(stream.batch(0, 20000), matches);
    const std::size_t large = indexed.buckets(0).bytes();
    CHECK(large >= std::size_t{20000} * 16);
    indexed.join(stream.batch(20000, 21000), matches);
    CHECK_EQUAL(indexed.buckets(0).count(), std::size_t{5});
    CHECK(indexed.buckets(0).bytes() * 20 <= large);
}

TEST("blocks that were given back are used again, and of many most are let go") {
    JoinColumns columns;
    columns.add(8);
    BlockArena arena(columns);
    unsigned char* const block = arena.take();
    arena.give_back(block);
    CHECK_EQUAL(arena.made(), std::size_t{1});
    CHECK(arena.take() == block);
    std::vector<unsigned char*> blocks{block};
    for (int i = 0; i < 99; ++i) blocks.push_back(arena.take());
    CHECK_EQUAL(arena.made(), std::size_t{100});
    for (unsigned char* one : blocks) arena.give_back(one);
    CHECK_EQUAL(arena.used(), std::size_t{0});
    CHECK(arena.made() <= 2);
}

TEST("an index is preferred for a large window, unless it divides nothing, or compares most of it") {
    const auto band = all_of({JoinTerm::band(NumberType::int32, 10), JoinTerm::band(NumberType::float32, 10)});
    for (VectorPath path : paths) {
        CHECK(!prefers_index(band, path, 10));
        CHECK(prefers_index(band, path, 300000));
        CHECK(prefers_index(band, path, 300000, 300000 * 0.05));
    }
    CHECK(!prefers_index(band, VectorPath::avx512, 300000, 150000));
    CHECK(!prefers_index(all_of({JoinTerm::band(NumberType::float64, std::numeric_limits<double>::infinity())}),
                         VectorPath::scalar, 300000));
}

TEST("an index counts the rows that it compares") {
    const auto predicate = all_of({JoinTerm::equal(NumberType::int64)});
    IndexedJoin<std::int64_t> indexed({predicate, JoinRule::strict, 3, 1, 0});
    Stream<std::int64_t> stream;
    stream.columns.resize(1);
    for (int row = 0; row < 8; ++row) {  // the last row has the key of four, two of which have left by then
        stream.sides.push_back(row == 7);
        stream.times.push_back(std::min(row, 6));
        stream.numbers.push_back(static_cast<std::uint64_t>(row));
        stream.columns[0].push(row == 3 || row == 6 ? -row : 7);
    }
    std::vector<JoinMatch> matches;
    indexed.join(stream.batch(0, 8), matches);
    CHECK_EQUAL(indexed.compared(), std::uint64_t{2});
    CHECK_EQUAL(indexed.rows(), std::uint64_t{8});
    CHECK((matches == std::vector<JoinMatch>{{7, 4}, {7, 5}}));
}

TEST("buckets of another seed have other hashes") {
    for (const JoinTerm& term : {JoinTerm::equal(NumberType::int64), JoinTerm::band(NumberType::int64, 3)}) {
        const auto predicate = all_of({term});
        Stream<std::int64_t> stream;
        stream.columns.resize(1);
        stream.columns[0].push(7);
        stream.sides.push_back(0);
        stream.times.push_back(0);
        stream.numbers.push_back(0);
        JoinProbes probes(predicate);
        BucketGrid one(predicate, 1), other(predicate, 2);
        probes.read(stream.batch(0, 1));
        one.read(stream.batch(0, 1), probes);
        other.read(stream.batch(0, 1), probes);
        CHECK(one.bucket_of(0) != other.bucket_of(0));
    }
}

CHECK_MAIN
