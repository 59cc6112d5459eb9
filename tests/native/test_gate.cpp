// The contract of gates, on one thread. stress_gate.cpp has the threads.
#include <limits>

#include "gate_model.hpp"
#include "gates.hpp"
#include "stress.hpp"

namespace {

using Entries = std::vector<Entry>;

// All that is ready for the reader.
template <class Gate>
Entries drain(Gate& gate, unsigned reader = 0) {
    Entries entries;
    for (Entry entry; gate.try_next(reader, entry);) entries.push_back(entry);
    return entries;
}

// A program of random calls, each of which must answer as the model does.
template <class Gate>
void does_as_the_model(std::uint64_t seed) {
    stress::Random random(seed);
    const unsigned sources = 1 + random.below(random.below(8) == 0 ? 20 : 4), readers = 1 + random.below(3);
    const std::size_t window = 1 + random.below(5);
    Gate gate(sources, readers, window);
    GateModel model(sources, readers, window);
    std::vector<std::int64_t> times(sources, 0);
    std::vector<bool> ended(sources, false);
    for (std::int64_t step = 0; step < 400; ++step) {
        const unsigned source = random.below(sources), reader = random.below(readers);
        const std::uint32_t choice = random.below(100);
        if (choice < 45) {
            std::vector<GateValue> values(random.below(4));
            std::size_t added = 0;
            if (ended[source]) continue;
            for (GateValue& value : values) value = {times[source] += random.below(3), step};
            while (added < values.size() && model.try_add(source, values[added].time, step)) ++added;
            CHECK_EQUAL(gate.add_many(source, values.data(), values.size()), added);
        } else if (choice < 55) {
            const std::int64_t time = times[source] + random.below(4) - 1;
            gate.come_to(source, time);
            model.come_to(source, time);
            times[source] = std::max(times[source], time);
        } else if (choice < 56 || step > 380) {
            gate.end(source);
            model.end(source);
            ended[source] = true;
        } else {
            Entries entries(random.below(4));
            const std::size_t count = gate.next_many(reader, entries.data(), entries.size());
            for (std::size_t i = 0; i < entries.size(); ++i) {
                Entry expected{};
                CHECK_EQUAL(i < count, model.try_next(reader, expected));
                if (i < count) CHECK(entries[i] == expected);
            }
        }
    }
}

}  // namespace

TEST("values come in order of time, those of one time in order of their sources and as they were added") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(3, 1, 8);
        CHECK(gate.try_add(2, 1, 20) && gate.try_add(2, 5, 21));
        CHECK(gate.try_add(0, 1, 0) && gate.try_add(0, 1, 1) && gate.try_add(0, 5, 2));
        CHECK(gate.try_add(1, 0, 10) && gate.try_add(1, 1, 11) && gate.try_add(1, 5, 12) && gate.try_add(1, 5, 13));
        for (unsigned source = 0; source < 3; ++source) gate.end(source);
        CHECK(drain(gate) == Entries({{0, 1, 10}, {1, 0, 0}, {1, 0, 1}, {1, 1, 11}, {1, 2, 20},
                                      {5, 0, 2}, {5, 1, 12}, {5, 1, 13}, {5, 2, 21}}));
    });
}

TEST("each reader gets the whole sequence, at its own pace") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(2, 3, 8);
        for (std::int64_t i = 0; i < 4; ++i) CHECK(gate.try_add(i % 2, i, i));
        const Entries ready{{0, 0, 0}, {1, 1, 1}, {2, 0, 2}};
        Entry first;
        CHECK(gate.try_next(1, first) && first == ready[0]);
        CHECK(drain(gate, 0) == ready);
        CHECK(drain(gate, 2) == ready);
        CHECK(drain(gate, 1) == Entries({ready[1], ready[2]}));
    });
}

TEST("a source that has brought nothing holds everything back") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(3, 1, 8);
        CHECK(gate.try_add(0, 1, 0) && gate.try_add(2, 1, 0));
        CHECK(drain(gate).empty());
        CHECK(gate.try_add(1, 3, 0));
        CHECK(drain(gate) == Entries({{1, 0, 0}}));  // source 0 may bring another at 1, before source 2's
    });
}

TEST("at one time, a value waits for sources before its own to be beyond, and for those behind to be there") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(3, 1, 8);
        CHECK(gate.try_add(1, 5, 0));
        gate.come_to(2, 4);
        gate.come_to(0, 6);
        CHECK(drain(gate).empty());
        gate.come_to(2, 5);
        CHECK(drain(gate) == Entries({{5, 1, 0}}));
        CHECK(gate.try_add(1, 6, 1));
        gate.come_to(2, 9);
        CHECK(drain(gate).empty());
        CHECK(gate.try_add(0, 6, 2));
        CHECK(drain(gate) == Entries({{6, 0, 2}}));
        gate.come_to(0, 7);
        CHECK(drain(gate) == Entries({{6, 1, 1}}));
    });
}

TEST("a source comes to a time by a value or by saying so, and a time that is past says nothing new") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(2, 1, 8);
        CHECK(gate.try_add(1, 2, 0) && gate.try_add(1, 4, 1));
        gate.come_to(0, 3);
        CHECK(drain(gate) == Entries({{2, 1, 0}}));
        gate.come_to(0, 1);
        CHECK(drain(gate).empty());
        CHECK(gate.try_add(0, 3, 2));
        CHECK(drain(gate) == Entries({{3, 0, 2}}));
        CHECK(gate.try_add(0, 5, 3));
        CHECK(drain(gate) == Entries({{4, 1, 1}}));
    });
}

TEST("a source that has ended holds nothing back") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(3, 1, 8);
        gate.end(0);
        CHECK(gate.try_add(1, 1, 0) && gate.try_add(1, 9, 1) && gate.try_add(2, 5, 2));
        CHECK(drain(gate) == Entries({{1, 1, 0}, {5, 2, 2}}));
        gate.end(2);
        CHECK(drain(gate) == Entries({{9, 1, 1}}));
        CHECK(gate.try_add(1, 9, 3));
        gate.end(1);
        CHECK(drain(gate) == Entries({{9, 1, 3}}));
    });
}

TEST("the values of an only source are ready at once") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(1, 1, 2);
        for (std::int64_t i = 0; i < 100; ++i) {
            CHECK(gate.try_add(0, i / 3, i));
            CHECK(drain(gate) == Entries({{i / 3, 0, i}}));
        }
    });
}

TEST("a source is refused while the slowest reader is a window behind, and not before") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(2, 2, 3);
        gate.end(1);
        for (std::int64_t i = 0; i < 3; ++i) CHECK(gate.try_add(0, i, i));
        CHECK(!gate.try_add(0, 3, 3));
        CHECK_EQUAL(drain(gate, 0).size(), 3u);
        CHECK(!gate.try_add(0, 3, 3));
        Entry entry;
        CHECK(gate.try_next(1, entry));
        CHECK(gate.try_add(0, 3, 3));
        CHECK(!gate.try_add(0, 4, 4));
        CHECK(drain(gate, 1) == Entries({{1, 0, 1}, {2, 0, 2}, {3, 0, 3}}));
        CHECK(drain(gate, 0) == Entries({{3, 0, 3}}));
    });
}

TEST("a source without room does not keep another from adding") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(2, 1, 2);
        CHECK(gate.try_add(0, 1, 0) && gate.try_add(0, 2, 1) && !gate.try_add(0, 3, 2));
        CHECK(gate.try_add(1, 7, 3) && gate.try_add(1, 8, 4));
        CHECK_EQUAL(drain(gate).size(), 2u);
        CHECK(gate.try_add(0, 3, 2));
    });
}

TEST("of a batch, so much is added and taken as there is room for and as is ready") {
    with_each_gate([](auto kind) {
        typename decltype(kind)::Gate gate(1, 1, 3);
        const std::vector<GateValue> values{{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}};
        Entries entries(5);
        CHECK_EQUAL(gate.add_many(0, values.data(), 0), 0u);
        CHECK_EQUAL(gate.add_many(0, values.data(), 5), 3u);
        CHECK_EQUAL(gate.next_many(0, entries.data(), 0), 0u);
        CHECK_EQUAL(gate.next_many(0, entries.data(), 2), 2u);
        CHECK_EQUAL(gate.add_many(0, values.data() + 3, 2), 2u);
        CHECK_EQUAL(gate.next_many(0, entries.data() + 2, 9), 3u);
        CHECK(entries == Entries({{1, 0, 0}, {2, 0, 1}, {3, 0, 2}, {4, 0, 3}, {5, 0, 4}}));
    });
}

TEST("times may be all numbers but the end of time") {
    with_each_gate([](auto kind) {
        const std::int64_t least = std::numeric_limits<std::int64_t>::lowest();
        const std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;
        typename decltype(kind)::Gate gate(2, 1, 8);
        CHECK(gate.try_add(0, least, 0) && gate.try_add(0, most, 1));
        CHECK(drain(gate) == Entries({{least, 0, 0}}));
        CHECK(gate.try_add(1, least, 2) && gate.try_add(1, most, 3));
        CHECK(drain(gate) == Entries({{least, 1, 2}, {most, 0, 1}}));
    });
    with_each_gate<double>([](auto kind) {
        using Gate = typename decltype(kind)::Gate;
        const double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::max();
        Gate gate(2, 1, 8);
        typename Gate::Entry entry;
        CHECK(gate.try_add(0, least, 0) && gate.try_add(0, -0.5, 1) && gate.try_add(0, most, 2));
        CHECK(gate.try_add(1, -0.25, 3) && gate.try_add(1, most, 4));
        for (const std::int64_t value : {0, 1, 3, 2}) CHECK(gate.try_next(0, entry) && entry.value == value);
        CHECK(!gate.try_next(0, entry));
        gate.end(0);
        CHECK(gate.try_next(0, entry) && entry.value == 4);
    });
}

TEST("a program of random calls gets the answers that the model gives") {
    with_each_gate([](auto kind) {
        for (std::uint64_t seed = 0; seed < 400; ++seed) does_as_the_model<typename decltype(kind)::Gate>(seed);
    });
}

CHECK_MAIN
