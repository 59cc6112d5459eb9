// The mixer: SplitMix64's own numbers, and what it is for.
#include "callboard/core/mix.hpp"

#include <set>

#include "callboard/scheduling/flow/keyed_division.hpp"
#include "check.hpp"

using callboard::Division;
using callboard::random_number;

TEST("as a generator it gives the published numbers of SplitMix64 for the seed 0") {
    CHECK_EQUAL(random_number(0, 0), 0xe220a8397b1dcdafu);
    CHECK_EQUAL(random_number(0, 1), 0x6e789e6aa1b965f4u);
    CHECK_EQUAL(random_number(0, 2), 0x06c45d188009454fu);
}

TEST("keys that are multiples of a power of two are spread over all partitions") {
    for (int shift = 0; shift < 64 - 10; ++shift) {
        std::set<std::uint32_t> found;
        for (std::uint64_t key = 0; key < 1024; ++key) found.insert(Division::partition_of(key << shift, 64));
        CHECK_EQUAL(found.size(), 64u);
    }
}

CHECK_MAIN
