// The mixer: the numbers of SplitMix64, and the quality of hashes.
#include "callboard/core/mix.hpp"

#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "callboard/scheduling/flow/keyed_division.hpp"
#include "check.hpp"

using callboard::Division;
using callboard::equal_bytes;
using callboard::hash_bytes;
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

namespace {

// In memory of its own that ends where the run does, so that a sanitizer sees what reads on.
std::unique_ptr<char[]> run(std::size_t size, std::uint64_t seed) {
    std::unique_ptr<char[]> bytes(new char[size]);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(random_number(seed, i));
    return bytes;
}

}  // namespace

TEST("each bit of a run of bytes moves about half of its hash, and makes it another run") {
    for (std::size_t size = 1; size <= 70; ++size) {
        const auto one = run(size, size), other = run(size, size);
        const std::uint64_t hash = hash_bytes(11, one.get(), size);
        CHECK_EQUAL(hash_bytes(11, other.get(), size), hash);
        CHECK(equal_bytes(one.get(), other.get(), size));
        int moved = 0;
        for (std::size_t bit = 0; bit < 8 * size; ++bit) {
            other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
            moved += __builtin_popcountll(hash ^ hash_bytes(11, other.get(), size));
            CHECK(!equal_bytes(one.get(), other.get(), size));
            other[bit / 8] = one[bit / 8];
        }
        const double mean = moved / (8.0 * static_cast<double>(size));
        CHECK(26 < mean && mean < 38);
        moved = 0;
        for (std::uint64_t seed = 0; seed < 64; ++seed)
            moved += __builtin_popcountll(hash_bytes(seed, one.get(), size) ^ hash_bytes(seed + 1, one.get(), size));
        CHECK(26 * 64 < moved && moved < 38 * 64);
    }
}

TEST("no word that a run may hold, be it one of the hash's own numbers, hides the next one") {
    for (const std::uint64_t word : {0x0ull, ~0x0ull, 0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull}) {
        for (const std::size_t place : {0, 1, 2, 3}) {
            std::set<std::uint64_t> hashes;
            for (std::uint64_t other = 0; other < 1000; ++other) {
                std::uint64_t words[4] = {other, other, other, other};
                words[place] = word;
                for (const std::size_t size : {16, 32}) {
                    const auto* data = reinterpret_cast<const char*>(words);
                    hashes.insert(hash_bytes(0x51ed2701a3f1c6b5, data, size));
                }
            }
            CHECK(hashes.size() >= 1999);  // the word itself may be among the others
        }
    }
}

TEST("runs that are alike but for their sizes have hashes of their own") {
    const std::string zeros(200, 0), letters(200, 'a');
    std::set<std::uint64_t> hashes;
    for (std::size_t size = 0; size < 200; ++size) {
        hashes.insert(hash_bytes(5, zeros.data(), size));
        hashes.insert(hash_bytes(5, letters.data(), size));
    }
    CHECK_EQUAL(hashes.size(), 399u);  // nothing is nothing
}

TEST("few bits of a hash tell numbers that are written out apart, with and without zeros in front") {
    for (const int width : {1, 8, 12, 24}) {
        for (const int shift : {0, 32, 54}) {
            int counts[1024] = {};
            for (int number = 0; number < 32768; ++number) {
                std::string text = std::to_string(number);
                text.insert(0, text.size() < static_cast<std::size_t>(width) ? width - text.size() : 0, '0');
                ++counts[hash_bytes(3, text.data(), text.size()) >> shift & 1023];
            }
            double chi = 0;
            for (const int count : counts) chi += (count - 32.0) * (count - 32.0) / 32;
            CHECK(chi < 1250);  // of 1,023 degrees of freedom: a deviation of five
        }
    }
}

CHECK_MAIN
