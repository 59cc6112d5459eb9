// Space Saving against exact counts.
#include "callboard/frequency/counting/counters.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "callboard/frequency/counting/keys.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

constexpr std::uint64_t seed = 0x51ed2701a3f1c6b5;

// Adds what it is told to a summary and to a map, and holds the first to its promises.
template <class Keys, class Key, class ProbeOf>
struct Pair {
    Counters<Keys> summary;
    std::map<Key, std::uint64_t> exact{};
    std::uint64_t total = 0;
    ProbeOf probe_of;

    Pair(std::uint32_t capacity, ProbeOf probe_of) : summary(capacity, seed), probe_of(probe_of) {}

    void add(const Key& key, std::uint64_t weight) {
        summary.add(probe_of(key), weight);
        exact[key] += weight;
        total += weight;
    }

    void check() {
        CHECK_EQUAL(summary.total(), total);
        CHECK(summary.size() <= summary.capacity());
        const std::uint64_t bound = total / summary.capacity();
        const std::uint64_t unseen = summary.unseen();
        CHECK(unseen <= bound);
        std::uint64_t sum = 0, counted = 0;
        for (std::uint32_t slot = 0; slot < summary.size(); ++slot) {
            sum += summary.count_of(slot);
            CHECK(summary.count_of(slot) >= unseen);
            CHECK(summary.error_of(slot) <= bound);
        }
        CHECK_EQUAL(sum, total);
        for (auto& [key, times] : exact) {
            const std::uint32_t slot = summary.find(probe_of(key));
            if (slot == SlotIndex::none) {
                CHECK(times <= unseen);
                continue;
            }
            ++counted;
            CHECK(times <= summary.count_of(slot));
            CHECK(times + summary.error_of(slot) >= summary.count_of(slot));
        }
        CHECK_EQUAL(counted, summary.size());
    }
};

const auto itself = [](std::int64_t key) { return key; };
const auto text = [](const std::string& key) {
    return ByteRun{key.data(), static_cast<std::uint32_t>(key.size()), 1};
};

// The lower of several draws: skewed.
std::uint64_t draw(std::uint64_t stream, std::uint64_t index, std::uint64_t below, int skew) {
    std::uint64_t least = below;
    for (int i = 0; i <= skew; ++i)
        least = std::min(least, random_number(stream, index * 8 + static_cast<std::uint64_t>(i)) % below);
    return least;
}

}  // namespace

TEST("integers keep their counts within the bounds, whatever the skew, the weights and the capacity") {
    for (std::uint32_t capacity : {1u, 2u, 3u, 10u, 100u, 5000u})
        for (int skew : {0, 2, 6})
            for (std::uint64_t most : {1u, 3u, 1000000u}) {
                Pair<IntegerKeys, std::int64_t, decltype(itself)> pair(capacity, itself);
                for (std::uint64_t i = 0; i < 3000; ++i) {
                    pair.add(static_cast<std::int64_t>(draw(most, i, 1000, skew)) - 500, 1 + random_number(7, i) % most);
                    if (i % 500 == 0) pair.check();
                }
                pair.check();
            }
}

TEST("texts do, short ones and long ones") {
    for (std::uint32_t capacity : {1u, 20u, 300u}) {
        Pair<ByteKeys, std::string, decltype(text)> pair(capacity, text);
        for (std::uint64_t i = 0; i < 5000; ++i) {
            const auto number = draw(3, i, 400, 2);
            pair.add(std::string(number % 40, 'x') + std::to_string(number), 1);
        }
        pair.check();
    }
}

TEST("keys in batches are counted as one by one") {
    std::vector<std::int64_t> keys;
    for (std::uint64_t i = 0; i < 10007; ++i) keys.push_back(static_cast<std::int64_t>(draw(5, i, 3000, 1)));
    Counters<IntegerKeys> batches(50, seed), singly(50, seed);
    batches.add_array(keys.data(), keys.size());
    for (auto key : keys) singly.add(key, 1);
    CHECK_EQUAL(batches.total(), singly.total());
    for (std::uint32_t slot = 0; slot < 50; ++slot) {
        CHECK_EQUAL(batches.key_of(slot), singly.key_of(slot));
        CHECK_EQUAL(batches.count_of(slot), singly.count_of(slot));
        CHECK_EQUAL(batches.error_of(slot), singly.error_of(slot));
    }
}

TEST("the greatest come first, and of equals the older") {
    Counters<IntegerKeys> summary(100, seed);
    for (std::int64_t key = 0; key < 60; ++key) summary.add(key, static_cast<std::uint64_t>(1 + key / 2));
    const auto best = summary.top(7);
    std::vector<std::int64_t> keys;
    for (auto slot : best) keys.push_back(summary.key_of(slot));
    CHECK((keys == std::vector<std::int64_t>{58, 59, 56, 57, 54, 55, 52}));
    CHECK_EQUAL(summary.top(1000).size(), 60u);
    CHECK(summary.top(0).empty());
}

TEST("keys that are never equal are distinguished by their kinds") {
    Counters<ByteKeys> summary(10, seed);
    summary.add({"ab", 2, 1}, 3);
    summary.add({"ab", 2, 2}, 4);
    CHECK_EQUAL(summary.size(), 2u);
    CHECK_EQUAL(summary.count_of(summary.find({"ab", 2, 2})), 4u);
    CHECK(summary.find({"ab", 2, 3}) == SlotIndex::none);
    CHECK(summary.find({"abc", 3, 1}) == SlotIndex::none);
}

TEST("a summary that was put together goes on within its bounds") {
    Counters<IntegerKeys> summary(3, seed);
    summary.put(1, summary.hash(1), 50, 5);
    summary.put(2, summary.hash(2), 40, 10);
    summary.put(3, summary.hash(3), 45, 0);
    summary.set_total(135);
    summary.set_unseen(20);
    CHECK_EQUAL(summary.unseen(), 20u);
    summary.add(9, 2);
    CHECK(summary.find(2) == SlotIndex::none);
    const auto slot = summary.find(9);
    CHECK_EQUAL(summary.count_of(slot), 42u);
    CHECK_EQUAL(summary.error_of(slot), 40u);
    CHECK_EQUAL(summary.unseen(), 40u);
    CHECK_EQUAL(summary.total(), 137u);
}

TEST("a counter that was given up ends its key's count, and the next key begins with it") {
    Counters<IntegerKeys> summary(2, seed, 10);
    summary.add(1, 5);
    summary.add(2, 7);
    CHECK_EQUAL(summary.least(), 5u);
    CHECK_EQUAL(summary.give_up(), 5u);
    CHECK_EQUAL(summary.least(), 7u);
    CHECK_EQUAL(summary.size(), 1u);
    CHECK_EQUAL(summary.unseen(), 5u);
    CHECK(summary.find(1) == SlotIndex::none);
    CHECK_EQUAL(summary.top(10).size(), 1u);
    CHECK_EQUAL(summary.above(0).size(), 1u);
    std::int64_t key = 3;
    CHECK(!summary.add_kept(key, summary.hash(key), 1, 6));  // full again, and the least is 7
    summary.grow();
    CHECK(summary.add_kept(key, summary.hash(key), 1, 6));
    CHECK_EQUAL(summary.count_of(summary.find(3)), 6u);
    CHECK_EQUAL(summary.error_of(summary.find(3)), 5u);
    CHECK_EQUAL(summary.give_up(), 6u);
    CHECK_EQUAL(summary.give_up(), 7u);
    CHECK_EQUAL(summary.least(), ~std::uint64_t{0});
    key = 4;
    CHECK(!summary.add_kept(key, summary.hash(key), 1, 100));
    summary.grow(9);
    CHECK_EQUAL(summary.least(), 10u);
    CHECK(summary.add_kept(key, summary.hash(key), 1, 100));
    CHECK_EQUAL(summary.count_of(summary.find(4)), 10u);
    CHECK_EQUAL(summary.unseen(), 9u);
}

TEST("the greatest counts do not depend on earlier queries, or on keys that came or went since") {
    Counters<IntegerKeys> summary(200, seed);
    std::uint64_t draws = 0;
    const auto random = [&](std::uint64_t below) { return random_number(seed, draws++) % below; };
    for (int round = 0; round < 500; ++round) {
        for (std::uint64_t i = random(60); i != 0; --i)
            summary.add(static_cast<std::int64_t>(random(round < 250 ? 150 : 400)), 1 + random(9));
        if (round % 50 == 49)
            for (std::uint64_t i = random(190); i != 0 && summary.size() > 0; --i) summary.give_up(), summary.grow();
        std::vector<std::uint32_t> all;
        for (std::uint32_t slot = 0; slot < summary.slots(); ++slot)
            if (summary.count_of(slot) != 0) all.push_back(slot);
        std::stable_sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) {
            return summary.count_of(a) > summary.count_of(b);
        });
        CHECK_EQUAL(all.size(), summary.size());
        const std::uint64_t bar = random(100);
        auto above = all;
        while (!above.empty() && summary.count_of(above.back()) <= bar) above.pop_back();
        CHECK(summary.above(bar) == above);
        for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{10}, random(220), std::size_t{10}}) {
            auto expected = all;
            if (expected.size() > most) expected.resize(most);
            CHECK(summary.top(most) == expected);
        }
    }
}

TEST("room that no key has is given up before a counter") {
    Counters<IntegerKeys> summary(1, seed, 10);
    summary.add(1, 5);
    summary.grow(2);
    CHECK_EQUAL(summary.least(), 3u);
    CHECK_EQUAL(summary.give_up(), 0u);
    CHECK_EQUAL(summary.size(), 1u);
    CHECK_EQUAL(summary.capacity(), 1u);
    CHECK_EQUAL(summary.least(), 5u);
}

TEST("counters that were given up are those of the next keys, the last one first") {
    Counters<IntegerKeys> summary(3, seed, 3);
    for (std::int64_t key = 1; key <= 3; ++key) summary.add(key, static_cast<std::uint64_t>(key));
    const auto first = summary.find(1), second = summary.find(2);
    summary.give_up();
    summary.give_up();
    for (std::int64_t key = 4; key <= 5; ++key) {
        summary.grow();
        summary.add(key, 1);
    }
    CHECK_EQUAL(summary.find(4), second);
    CHECK_EQUAL(summary.find(5), first);
    CHECK_EQUAL(summary.slots(), 3u);
    CHECK_EQUAL(summary.top(10).size(), 3u);
    CHECK_EQUAL(summary.count_of(second), 3u);
}

TEST("a key that begins below the least count is the next one to be taken over") {
    Counters<IntegerKeys> summary(3, seed, 10);
    for (std::int64_t key = 1; key <= 3; ++key) summary.add(key, static_cast<std::uint64_t>(100 * key));
    std::int64_t fourth = 4, fifth = 5;
    CHECK(!summary.add_kept(fourth, summary.hash(fourth), 7, 99));  // it has looked for the least, 100
    summary.grow();
    CHECK(summary.add_kept(fourth, summary.hash(fourth), 7, 99));
    CHECK_EQUAL(summary.count_of(summary.find(4)), 7u);
    CHECK(summary.add_kept(fifth, summary.hash(fifth), 1, 99));
    CHECK(summary.find(4) == SlotIndex::none);
    CHECK_EQUAL(summary.count_of(summary.find(5)), 8u);
    CHECK_EQUAL(summary.unseen(), 7u);
}

TEST("a short key does not keep a long one's room, and a longer one gets more") {
    const std::string keys[] = {std::string(100000, 'a'), "b", std::string(40, 'c'), std::string(20, 'd')};
    ByteKeys::Kept kept = nullptr;
    for (auto& key : keys) {
        ByteKeys::replace(kept, text(key), 7);
        CHECK(ByteKeys::equal(kept, text(key)));
        CHECK(kept->room >= key.size() && kept->room <= 4 * key.size() + 12);
    }
    CHECK_EQUAL(kept->room, 40u);
    ByteKeys::drop(kept);
}

CHECK_MAIN
