// The designs of a summary, and the promises that each is held to: those of callboard/frequency/designs/summary.hpp.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/frequency/counting/keys.hpp"
#include "callboard/frequency/designs/partitioned.hpp"
#include "callboard/frequency/designs/sequential.hpp"
#include "../bench/peers/cooperative.hpp"
#include "../bench/peers/independent_summary.hpp"
#include "../bench/peers/shared_summary.hpp"
#include "check.hpp"

namespace designs {

using callboard::ByteKeys;
using callboard::ByteRun;
using callboard::IntegerKeys;
using callboard::Summary;

constexpr std::uint64_t seed = 0x51ed2701a3f1c6b5;
constexpr auto all = std::numeric_limits<std::size_t>::max();

// `is_one`: there is one counter for a key, so counts add up to the total, and an estimate is the key's row.
// `is_current`: an answer includes all that was counted before it was asked for, while others count, too.
// `is_divided`: there are partitions, each with counters and with unseen keys of its own.
template <template <class> class Type, bool one, bool current, bool divided = false>
struct Design {
    static constexpr bool is_one = one, is_current = current, is_divided = divided;
    template <class Keys>
    static constexpr bool has_streams = std::is_constructible_v<Type<Keys>, std::uint32_t, std::uint64_t, unsigned>;

    const char* name;

    template <class Keys>
    std::unique_ptr<Summary<Keys>> make(std::uint32_t capacity, unsigned streams) const {
        if constexpr (has_streams<Keys>) return std::make_unique<Type<Keys>>(capacity, seed, streams);
        else return std::make_unique<Type<Keys>>(capacity, seed);
    }
};

template <class Keys>
struct Throttled : callboard::Cooperative<Keys> {  // at short queues
    Throttled(std::uint32_t capacity, std::uint64_t seed, unsigned streams)
        : callboard::Cooperative<Keys>(capacity, seed, streams, 4, true) {}
};

template <class Keys>
struct OnePartition : callboard::Partitioned<Keys> {
    OnePartition(std::uint32_t capacity, std::uint64_t seed, unsigned streams)
        : callboard::Partitioned<Keys>(capacity, seed, streams, 1) {}
};

template <class Keys>
struct FourPartitions : callboard::Partitioned<Keys> {
    FourPartitions(std::uint32_t capacity, std::uint64_t seed, unsigned streams)
        : callboard::Partitioned<Keys>(capacity, seed, streams, 4) {}
};

// A program that is made for one design says which, as one that is made for one test does.
#ifndef DESIGN_ONLY
#define DESIGN_ONLY ""
#endif
#define EACH_DESIGN(name, ...) \
    if constexpr (std::string_view(name).find(DESIGN_ONLY) != std::string_view::npos) body(Design<__VA_ARGS__>{name})

// A new design is a line here.
template <class Body>
void each_design(const Body& body) {
    EACH_DESIGN("Sequential", callboard::Sequential, true, true);
    EACH_DESIGN("Shared", callboard::Shared, true, true);
    EACH_DESIGN("Independent", callboard::Independent, false, true);
    EACH_DESIGN("Cooperative", Throttled, true, false);
    EACH_DESIGN("Partitioned, in one", OnePartition, true, true);
    EACH_DESIGN("Partitioned, in four", FourPartitions, false, true, true);
}

template <class Body>
void each_design_with_streams(const Body& body) {
    each_design([&](auto design) {
        if constexpr (decltype(design)::template has_streams<IntegerKeys>) body(design);
    });
}

// A sort of keys, made from numbers.
struct Integers {
    using Keys = IntegerKeys;
    using Key = std::int64_t;
    static Key key(std::uint64_t number) { return static_cast<Key>(number) - 500; }
    static std::uint64_t number_of(Key key) { return static_cast<std::uint64_t>(key + 500); }
    static Keys::Probe probe(const Key& key) { return key; }
    static Key key_of(const Keys::Copy& copy) { return copy; }
};

// Short ones and long ones, of which each says its number throughout.
struct Texts {
    using Keys = ByteKeys;
    using Key = std::string;
    static Key key(std::uint64_t number) {
        std::string text;
        for (std::uint64_t times = 1 + number % 7; times != 0; --times) text += std::to_string(number) + " ";
        return text;
    }
    static std::uint64_t number_of(const Key& key) { return std::strtoull(key.c_str(), nullptr, 10); }
    static Keys::Probe probe(const Key& key) { return {key.data(), static_cast<std::uint32_t>(key.size()), 1}; }
    static Key key_of(const Keys::Copy& copy) { return copy.kind == 1 ? copy.data : "another kind"; }
};

// The least of several draws: skewed.
inline std::uint64_t draw(std::uint64_t stream, std::uint64_t index, std::uint64_t below, int skew) {
    std::uint64_t least = below;
    for (int i = 0; i <= skew; ++i)
        least = std::min(least, callboard::random_number(stream, index * 8 + static_cast<std::uint64_t>(i)) % below);
    return least;
}

template <class Sort>
using Exact = std::map<typename Sort::Key, std::uint64_t>;

template <class Sort>
using Answer = typename Summary<typename Sort::Keys>::Answer;

// The greatest first, and no key twice. Returns the rows by key.
template <class Sort>
auto by_key(const Answer<Sort>& answer) {
    std::map<typename Sort::Key, typename Summary<typename Sort::Keys>::Row> rows;
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
        CHECK(i == 0 || answer.rows[i - 1].count >= answer.rows[i].count);
        CHECK(rows.emplace(Sort::key_of(answer.rows[i].key), answer.rows[i]).second);
    }
    return rows;
}

// No thread counts. Checks all three promises, and that all ways to ask say the same.
template <class Sort, class Of>
void hold_to_promises(const Of&, Summary<typename Sort::Keys>& summary, const Exact<Sort>& exact,
                      std::uint32_t capacity) {
    std::uint64_t total = 0, sum = 0;
    for (auto& [key, times] : exact) total += times;
    const std::uint64_t bound = total / capacity;
    const Answer<Sort> answer = summary.ask(all, 0);
    const auto rows = by_key<Sort>(answer);
    CHECK_EQUAL(summary.total(), total);
    CHECK_EQUAL(answer.total, total);
    CHECK_EQUAL(answer.rows.size(), summary.size());
    CHECK(answer.rows.size() <= capacity && answer.rows.size() <= exact.size());
    CHECK(answer.unseen <= bound);
    for (auto& row : answer.rows) {
        sum += row.count;
        CHECK(Of::is_divided || row.count >= answer.unseen);
        CHECK(row.error <= bound);
        CHECK(exact.count(Sort::key_of(row.key)) == 1);
    }
    CHECK(sum <= total);
    if (Of::is_one) CHECK_EQUAL(sum, total);
    for (auto& [key, times] : exact) {
        const auto estimate = summary.estimate(Sort::probe(key));
        CHECK(times <= estimate.count && estimate.count <= times + estimate.error);
        CHECK(estimate.error <= bound);
        const auto found = rows.find(key);
        if (found == rows.end()) {
            CHECK(times <= answer.unseen);
            CHECK(estimate.count <= answer.unseen);
            if (Of::is_one) CHECK(!estimate.has_counter && estimate.count == answer.unseen);
            continue;
        }
        const auto& row = found->second;
        CHECK(times <= row.count && row.count <= times + row.error);
        CHECK(estimate.has_counter);
        CHECK(estimate.count <= row.count && estimate.error <= row.error);
        if (Of::is_one) CHECK(estimate.count == row.count && estimate.error == row.error);
    }
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{7}, all}) {
        for (const double support : {0.0, 0.0005, 0.02, 0.5}) {
            const std::uint64_t bar = callboard::part_of(support, total);
            std::size_t above = 0;  // of all rows, which are sorted
            while (above < answer.rows.size() && answer.rows[above].count > bar) ++above;
            const Answer<Sort> part = summary.ask(most, support);
            CHECK_EQUAL(part.rows.size(), std::min(most, above));
            CHECK_EQUAL(part.total, total);
            CHECK_EQUAL(part.unseen, answer.unseen);
            for (std::size_t i = 0; i < part.rows.size(); ++i) CHECK_EQUAL(part.rows[i].count, answer.rows[i].count);
            for (auto& [key, row] : by_key<Sort>(part)) CHECK(rows.count(key) == 1 && rows.at(key).count == row.count);
        }
    }
}

// Keys that a stream is going to count. The exact counts of all are collected beside.
template <class Sort>
struct Stream {
    std::vector<typename Sort::Key> keys;
    std::vector<std::uint64_t> weights;

    Stream(std::uint64_t number, std::size_t length, std::uint64_t below, int skew, std::uint64_t heaviest) {
        for (std::size_t i = 0; i < length; ++i) {
            keys.push_back(Sort::key(draw(number, i, below, skew)));
            weights.push_back(1 + callboard::random_number(number + 77, i) % heaviest);
        }
    }

    void tell(Exact<Sort>& exact) const {
        for (std::size_t i = 0; i < keys.size(); ++i) exact[keys[i]] += weights[i];
    }

    // So many keys from there on, without their weights if these are 1.
    void add_to(Summary<typename Sort::Keys>& summary, unsigned stream, std::size_t first, std::size_t count) const {
        std::vector<typename Sort::Keys::Probe> probes;
        count = std::min(count, keys.size() - first);
        for (std::size_t i = first; i < first + count; ++i) probes.push_back(Sort::probe(keys[i]));
        const bool plain = *std::max_element(weights.begin(), weights.end()) == 1;
        summary.add(stream, probes.data(), plain ? nullptr : weights.data() + first, count);
    }
};

}  // namespace designs
