// Batches that are divided, and put together again; stress_native_work.cpp has the threads.
#include "callboard/scheduling/flow/keyed_division.hpp"

#include <numeric>

#include "callboard/scheduling/flow/native_work.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// Each row gives as many outputs as its key says, which are its number; all sub-batches' outputs in rows' order.
std::vector<std::uint64_t> gathered(const std::vector<std::uint64_t>& keys, bool backwards) {
    Division division;
    division.divide_among(3, keys.size());
    for (auto key : keys) division.add(key);
    std::vector<std::vector<std::uint64_t>> outputs(division.count());
    for (std::uint32_t i = 0; i < division.count(); ++i) {
        const auto number = backwards ? division.count() - 1 - i : i;
        auto& sub_batch = division.sub_batch(number);
        for (auto row : sub_batch.rows) {
            outputs[number].insert(outputs[number].end(), keys[row], row);
            sub_batch.ends.push_back(outputs[number].size());
        }
    }
    std::vector<std::uint64_t> all;
    for (std::size_t row = 0; row < division.rows(); ++row) {
        const auto number = division.owner(row);
        const auto [begin, end] = Division::next(division.sub_batch(number));
        for (auto i = begin; i < end; ++i) all.push_back(outputs[number][i]);
    }
    return all;
}

struct Sum {
    std::int64_t total = 0;
};

// Sums of even and of odd integers; it fails at 13.
struct Sums {
    Sum sums[2];
    Atomic<std::int64_t> stopped_at{INT64_MAX};
    NativeWork work;
    const char* error = nullptr;

    Sums() {
        work.objects = {&sums[0], &sums[1]};
        work.owner = this;
        work.stopped_at = &stopped_at;
        work.edges = 1;
        work.key_of = [](void*, const Value* value) { return static_cast<std::uint64_t>(value->integer % 2); };
        work.process = [](void* object, const Value* value, std::uint64_t, Output* out) {
            if (value->integer == 13) return out->fail("thirteen");
            out->push_integer(static_cast<Sum*>(object)->total += value->integer);
        };
        work.finish = [](void* object, Output* out) { out->push_integer(-static_cast<Sum*>(object)->total); };
        work.make_error = [](void* owner, const char* reason) -> void* {
            static_cast<Sums*>(owner)->error = reason;
            return owner;
        };
        work.drop_error = [](void*) {};
    }

    std::vector<std::int64_t> alone(const std::vector<std::int64_t>& integers, bool final) {
        Output in;
        for (auto integer : integers) in.push_integer(integer);
        Values* chunk = integers.empty() ? Values::make(0) : in.take();
        chunk->final = final;
        Values* outputs = work.alone(chunk, true);
        std::vector<std::int64_t> found;
        if (outputs == nullptr) return found;
        for (std::uint64_t i = 0; i < outputs->count(); ++i) found.push_back(outputs->begin()[i].integer);
        work.let_go(outputs);
        return found;
    }
};

}  // namespace

TEST("outputs are in the order of the rows, whichever sub-batch is done first") {
    const std::vector<std::uint64_t> keys{2, 0, 5, 1, 2, 7, 0, 3};
    std::vector<std::uint64_t> expected;
    for (std::size_t row = 0; row < keys.size(); ++row) expected.insert(expected.end(), keys[row], row);
    CHECK(gathered(keys, false) == expected);
    CHECK(gathered(keys, true) == expected);
}

TEST("a row of every partition is in each sub-batch, and one of none in no sub-batch") {
    Division division;
    division.divide_among(4, 3);
    division.add_to(2);
    division.add_to_none();
    CHECK_EQUAL(division.count(), 1u);
    division.add_to_all();
    CHECK_EQUAL(division.count(), 4u);
    for (std::uint32_t i = 0; i < 4; ++i) CHECK_EQUAL(division.sub_batch(i).rows.back(), 2u);
    CHECK_EQUAL(division.sub_batch(0).rows.size(), 2u);
    CHECK_EQUAL(division.owner(1), Division::everybody);
}

TEST("only the thread that ends the last sub-batch gathers") {
    Division division;
    division.divide_among(2, 0);
    division.concern_all();
    division.begin();
    CHECK(!division.end_sub_batch());
    CHECK(division.end_sub_batch());
}

TEST("alone, a divided chunk gives each partition's sums in order, and at the end what they hold") {
    Sums sums;
    CHECK((sums.alone({1, 2, 3, 4}, false) == std::vector<std::int64_t>{1, 2, 4, 6}));
    auto last = sums.alone({}, true);
    CHECK_EQUAL(last.size(), 2u);
    CHECK_EQUAL(std::accumulate(last.begin(), last.end(), std::int64_t{0}), -10);
}

TEST("alone, a value that fails ends the outputs, and the error goes with them") {
    Sums sums;
    CHECK((sums.alone({2, 5, 13, 4}, true) == std::vector<std::int64_t>{2, 5}));
    CHECK_EQUAL(std::string(sums.error), "thirteen");
}

CHECK_MAIN
