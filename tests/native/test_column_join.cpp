// The outputs of a join of columns, against nested loops over the whole sequence.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "callboard/streams/programs/joins/kernel/column_join.hpp"
#include "callboard/streams/programs/joins/kernel/column_matcher.hpp"
#include "check.hpp"
#include "joining.hpp"

using namespace callboard;
using namespace joining;

namespace {

using Output = std::pair<std::int64_t, std::int64_t>;
constexpr std::int64_t nobody = JoinedRows::nobody;
constexpr JoinRule rules[] = {JoinRule::three_step, JoinRule::strict, JoinRule::last_rows};
constexpr JoinKind kinds[] = {JoinKind::inner, JoinKind::left, JoinKind::right,
                              JoinKind::outer, JoinKind::semi, JoinKind::anti};

JoinPredicate near_and_equal() {
    JoinPredicate predicate;
    predicate.add(JoinTerm::band(NumberType::int64, 6));
    predicate.add(JoinTerm::equal(NumberType::float64));
    return predicate;
}

// Of one time, rows of the left side come first.
template <class Time>
Stream<Time> merged_stream(const JoinPredicate& predicate) {
    auto stream = random_stream<Time>(11, 300, predicate, 30);
    for (std::size_t begin = 0, end; begin < stream.rows(); begin = end) {
        for (end = begin; end < stream.rows() && stream.times[end] == stream.times[begin];) ++end;
        const auto first = stream.sides.begin();
        std::sort(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
    }
    return stream;
}

// The number of each row among those of its side.
template <class Time>
std::vector<std::int64_t> places(const Stream<Time>& stream) {
    std::vector<std::int64_t> found;
    std::int64_t counts[2]{};
    for (std::uint8_t side : stream.sides) found.push_back(counts[side]++);
    return found;
}

// Whether a row has left its window when another has been taken; by the strict rule, when it comes.
template <class Time>
bool has_left(const Stream<Time>& stream, const JoinSettings<Time>& settings, std::size_t row, std::size_t at) {
    const Time within = settings.within.of[stream.sides[row]];
    if (settings.rule == JoinRule::strict) return stream.times[at] - stream.times[row] > within;
    Time later{0};
    Time last = stream.times[row];
    for (std::size_t i = row + 1; i <= at; ++i)
        if (stream.sides[i] == stream.sides[row]) ++later, last = stream.times[i];
    return settings.rule == JoinRule::last_rows ? later > within
                                                : last - stream.times[row] > within;
}

template <class Time>
std::vector<Output> give_plainly(const Stream<Time>& stream, const JoinSettings<Time>& settings, JoinKind kind) {
    const auto place = places(stream);
    const auto matches = join_plainly(stream, settings);
    const bool pairs = kind != JoinKind::semi && kind != JoinKind::anti;
    const bool gives_unmatched[2] = {kind == JoinKind::left || kind == JoinKind::outer || kind == JoinKind::anti,
                                     kind == JoinKind::right || kind == JoinKind::outer};
    const auto output = [&](std::size_t row, std::int64_t other) {
        return stream.sides[row] == 0 ? Output{place[row], other} : Output{other, place[row]};
    };
    std::vector<Output> out;
    std::vector<bool> has_partner(stream.rows(), false), is_gone(stream.rows(), false);
    const auto leave = [&](std::size_t end, std::size_t at) {
        std::vector<std::size_t> leaving;
        for (std::size_t row = 0; row < end; ++row)
            if (!is_gone[row] && (at >= stream.rows() || has_left(stream, settings, row, at))) leaving.push_back(row);
        const auto over = [&](std::size_t row) { return stream.times[row] + settings.within.of[stream.sides[row]]; };
        if (settings.rule == JoinRule::strict)
            std::stable_sort(leaving.begin(), leaving.end(),
                             [&](std::size_t one, std::size_t other) { return over(one) < over(other); });
        for (std::size_t row : leaving) {
            is_gone[row] = true;
            if (!has_partner[row] && gives_unmatched[stream.sides[row]]) out.push_back(output(row, nobody));
        }
    };
    std::size_t match = 0;
    for (std::size_t row = 0; row < stream.rows(); ++row) {
        if (settings.rule == JoinRule::strict) leave(row, row);
        for (; match < matches.size() && matches[match].row == row; ++match) {
            const std::size_t other = matches[match].partner, left = stream.sides[row] == 0 ? row : other;
            if (pairs) out.push_back(output(row, place[other]));
            if (kind == JoinKind::semi && !has_partner[left]) out.push_back({place[left], nobody});
            has_partner[row] = has_partner[other] = true;
        }
        if (settings.rule != JoinRule::strict) leave(row + 1, row);
    }
    leave(stream.rows(), stream.rows());
    return out;
}

std::vector<Output> taken_from(ColumnJoin& join) {
    std::vector<Output> out;
    JoinedRows& rows = join.outputs();
    for (std::size_t i = 0; i < rows.size(); ++i) out.push_back({rows.of[0][i], rows.of[1][i]});
    rows.clear();
    return out;
}

template <class Time>
std::vector<Output> give(const Stream<Time>& stream, const JoinSettings<Time>& settings, JoinKind kind,
                         std::size_t size, bool by_buckets, std::uint64_t lanes) {
    ColumnJoinOf<Time> join(kind, settings.rule, settings.within, static_cast<std::uint64_t>(settings.within.of[0]) + 1);
    std::vector<std::unique_ptr<ColumnMatcher>> matchers;
    for (std::uint64_t lane = 0; lane < lanes; ++lane) {
        JoinSettings<Time> of_lane = settings;
        of_lane.lanes = lanes, of_lane.lane = lane;
        matchers.push_back(std::make_unique<ColumnMatcherOf<Time>>(of_lane, by_buckets));
    }
    std::vector<Output> out;
    for (std::size_t begin = 0; begin < stream.rows(); begin += size) {
        const JoinBatch<Time> batch = stream.batch(begin, std::min(begin + size, stream.rows()));
        std::vector<JoinMatch> matches, others;
        for (const auto& matcher : matchers) {
            others.clear();
            matcher->match(begin, batch.rows, batch.sides, batch.times, batch.values, batch.alone, others);
            add_matches(matches, others);
        }
        CHECK_EQUAL(join.take_many(begin, batch.rows, batch.sides, batch.times, matches.data(), matches.size()),
                    matches.size());
        for (const Output& output : taken_from(join)) out.push_back(output);
    }
    join.let_all_go();
    for (const Output& output : taken_from(join)) out.push_back(output);
    return out;
}

template <class Time>
void agree(const JoinSettings<Time>& settings) {
    const auto stream = merged_stream<Time>(settings.predicate);
    for (JoinKind kind : kinds) {
        const auto expected = give_plainly(stream, settings, kind);
        CHECK(!expected.empty());
        for (std::size_t size : {1u, 5u, 1000u})
            for (bool by_buckets : {false, true})
                for (std::uint64_t lanes : {1u, 3u})
                    CHECK(give(stream, settings, kind, size, by_buckets, lanes) == expected);
    }
}

}  // namespace

TEST("every kind of join gives the outputs of nested loops, by every rule") {
    for (JoinRule rule : rules)
        for (std::int64_t within : {1, 30}) {
            agree<std::int64_t>({near_and_equal(), rule, within});
            agree<double>({near_and_equal(), rule, static_cast<double>(within)});
            if (rule == JoinRule::last_rows) continue;
            agree<std::int64_t>({near_and_equal(), rule, {within, 4}});
            agree<std::int64_t>({near_and_equal(), rule, {0, within}});
            agree<double>({near_and_equal(), rule, {static_cast<double>(within), 0.0}});
        }
}

TEST("partners that the caller finds give the same as those that are found") {
    const JoinSettings<std::int64_t> settings{near_and_equal(), JoinRule::strict, 30};
    const auto stream = merged_stream<std::int64_t>(settings.predicate);
    const auto place = places(stream);
    const auto matches = join_plainly(stream, settings);
    ColumnJoinOf<std::int64_t> join(JoinKind::outer, settings.rule, settings.within, 1);
    std::size_t match = 0;
    for (std::size_t row = 0; row < stream.rows(); ++row) {
        join.arrive(&stream.times[row]);
        const std::uint32_t other = 1 - stream.sides[row];
        std::vector<std::int64_t> partners;
        for (; match < matches.size() && matches[match].row == row; ++match) {
            partners.push_back(place[matches[match].partner]);
            CHECK(join.begin(other) <= static_cast<std::uint64_t>(partners.back()));
            CHECK(static_cast<std::uint64_t>(partners.back()) < join.end(other));
        }
        join.take(stream.sides[row], &stream.times[row], partners.data(), partners.size());
    }
    join.let_all_go();
    CHECK(taken_from(join) == give_plainly(stream, settings, JoinKind::outer));
}

TEST("old rows leave both windows, in every kind of join") {
    for (JoinKind kind : {JoinKind::inner, JoinKind::left, JoinKind::outer, JoinKind::semi, JoinKind::anti}) {
        ColumnJoinOf<std::int64_t> join(kind, JoinRule::strict, {10, 0}, 1);
        const std::int64_t times[] = {0, 4, 11};
        for (std::uint8_t side : {0, 1}) join.take(side, &times[0], nullptr, 0);
        join.arrive(&times[1]);
        CHECK_EQUAL(join.begin(0), std::uint64_t{0});
        CHECK_EQUAL(join.begin(1), std::uint64_t{1});
        join.arrive(&times[2]);
        CHECK_EQUAL(join.begin(0), std::uint64_t{1});
        CHECK_EQUAL(join.begin(1), std::uint64_t{1});
    }
}

TEST("the earliest time of outputs and of windows is known") {
    ColumnJoinOf<std::int64_t> join(JoinKind::outer, JoinRule::strict, 5, 1);
    std::int64_t time = 0;
    CHECK(!join.has_oldest(&time));
    const std::int64_t times[] = {3, 4, 8, 9}, partner = 0;
    join.take(0, &times[0], nullptr, 0);
    join.arrive(&times[1]);
    join.take(1, &times[1], &partner, 1);
    join.earliest(&time);
    CHECK_EQUAL(time, 3);
    join.outputs().clear();
    join.arrive(&times[2]);
    CHECK(join.has_oldest(&time));
    CHECK_EQUAL(time, 3);
    join.arrive(&times[3]);
    CHECK(join.has_oldest(&time));
    CHECK_EQUAL(time, 4);
    join.let_all_go();
    CHECK(!join.has_oldest(&time));
    CHECK_EQUAL(join.outputs().size(), 0u);
}

CHECK_MAIN
