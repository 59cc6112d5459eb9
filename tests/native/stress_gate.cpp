// Gates under many threads, with windows so small that full, empty and used again are the common cases.
#include <utility>

#include "gate_history.hpp"
#include "gates.hpp"

using callboard::Atomic;
using stress::Random;
using stress::await;
using stress::together;

namespace {

struct Case {
    unsigned sources, readers;
    std::size_t window;
};

// What a source does: values of times that grow by little or nothing, and now and then a time without one.
struct Step {
    bool is_value;
    GateValue value;
};

std::vector<Step> steps_of(unsigned source, std::int64_t count) {
    Random random(source + 1);
    const bool is_silent = source % 4 == 3;  // it only says what time it has come to
    std::vector<Step> steps;
    std::int64_t time = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        time += random.below(3);
        steps.push_back({!is_silent && random.below(16) != 0, {time, stress::stamp(static_cast<int>(source), i)}});
    }
    return steps;
}

template <class Gate>
void bring(Gate& gate, unsigned source, const std::vector<Step>& steps) {
    Random random(source);
    for (std::size_t at = 0; at < steps.size();) {
        random.pause();
        if (!steps[at].is_value) {
            gate.come_to(source, steps[at++].value.time);
            continue;
        }
        std::vector<GateValue> batch;
        const std::size_t most = 1 + random.below(3);
        while (batch.size() < most && at + batch.size() < steps.size() && steps[at + batch.size()].is_value)
            batch.push_back(steps[at + batch.size()].value);
        await([&] {
            const std::size_t added = gate.add_many(source, batch.data(), batch.size());
            at += added;
            batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(added));
            return batch.empty();
        });
    }
    gate.end(source);
}

// The reader gets what is expected, one after the other, and nothing behind it.
template <class Gate>
void expect(Gate& gate, unsigned reader, const std::vector<Entry>& expected) {
    Random random(100 + reader);
    std::size_t at = 0;
    std::int64_t end = callboard::monotonic_ns() + stress::patience;
    while (at != expected.size()) {
        Entry entries[3];
        const std::size_t count = gate.next_many(reader, entries, 1 + random.below(3));
        if (count != 0) end = callboard::monotonic_ns() + stress::patience;
        else if (callboard::monotonic_ns() > end) check::give_up(__FILE__, __LINE__, "a value never became ready");
        for (std::size_t i = 0; i < count; ++i, ++at)
            if (at == expected.size() || !(entries[i] == expected[at]))
                check::give_up(__FILE__, __LINE__, "another sequence");
        if (count == 0) std::this_thread::yield();
        else random.pause();
    }
    Entry entry;
    CHECK(!gate.try_next(reader, entry));
}

// Each reader gets the sorted merge of all that the sources bring.
template <class Gate>
void each_reader_gets_the_merge(Case shape, std::int64_t each) {
    std::vector<std::vector<Step>> steps;
    std::vector<Entry> expected;
    for (unsigned source = 0; source < shape.sources; ++source) {
        steps.push_back(steps_of(source, each));
        for (const Step& step : steps.back())
            if (step.is_value) expected.push_back({step.value.time, source, step.value.value});
    }
    expected = in_order(std::move(expected));
    Gate gate(shape.sources, shape.readers, shape.window);
    together(static_cast<int>(shape.sources + shape.readers), [&](int index) {
        const auto thread = static_cast<unsigned>(index);
        if (thread < shape.sources) bring(gate, thread, steps[thread]);
        else expect(gate, thread - shape.sources, expected);
    });
}

template <class Gate>
void all_shapes() {
    for (const Case shape : {Case{1, 1, 1}, Case{2, 1, 2}, Case{1, 3, 2}, Case{2, 2, 1}, Case{3, 2, 5}, Case{5, 2, 3},
                             Case{4, 3, 16}})
        each_reader_gets_the_merge<Gate>(shape, 1000 / stress::shorter);
}

// Source 0 brings a value and at once comes to a later time, while the reader looks for either. Source 1, which is the
// reader's thread, has a value at the same time, which must not overtake that one.
template <class Gate>
void nothing_overtakes(int most) {
    Gate gate(2, 1, 2);
    stress::Rounds rounds(most);
    together(2, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int round = 1; index != 0 || rounds.go_on(round); ++round) {
            const std::int64_t time = 2 * round;
            const bool comes_by_value = round % 2 != 0;
            if (index == 0) {
                const GateValue values[2]{{time, 0}, {time + 1, 0}};
                const std::size_t count = comes_by_value ? 2 : 1;
                std::size_t added = 0;
                await([&] { return (added += gate.add_many(0, values + added, count - added)) == count; });
                if (!comes_by_value) gate.come_to(0, time + 1);
                random.pause();
                continue;
            }
            CHECK(gate.try_add(1, time, 0));
            gate.come_to(1, time + 1);
            for (const Entry expected : {Entry{time, 0, 0}, Entry{time, 1, 0}, Entry{time + 1, 0, 0}}) {
                if (expected.time != time && !comes_by_value) continue;
                Entry entry;
                bool found = false;
                await([&] { return (found = gate.try_next(0, entry)) || rounds.over(); });
                if (!found) return;
                if (!(entry == expected)) check::give_up(__FILE__, __LINE__, "another sequence");
            }
        }
    });
}

// Short programs of all threads, recorded, for which the model has an order.
template <class Gate>
void histories_are_linearizable(Case shape, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        history::Clock clock;
        Gate gate(shape.sources, shape.readers, shape.window);
        std::vector<std::vector<GateCall>> threads(shape.sources + shape.readers);
        together(static_cast<int>(threads.size()), [&](int index) {
            const auto thread = static_cast<unsigned>(index);
            Random random(static_cast<std::uint64_t>(round) * threads.size() + thread);
            std::int64_t time = 0;
            for (int i = 0; i < 7; ++i) {
                const bool is_source = thread < shape.sources;
                GateCall call{GateCall::What::next, is_source ? thread : thread - shape.sources, 0, i};
                if (is_source) {
                    call.what = random.below(3) == 0 ? GateCall::What::come_to : GateCall::What::add;
                    call.time = time += random.below(2);
                }
                random.pause();
                call.begin = clock.stamp();
                if (call.what == GateCall::What::next) call.answer = gate.try_next(call.index, call.entry);
                else if (call.what == GateCall::What::come_to) gate.come_to(call.index, time);
                else call.answer = gate.try_add(call.index, time, i);
                call.end = clock.stamp();
                threads[thread].push_back(call);
            }
        });
        CHECK(GateHistory(threads, GateModel(shape.sources, shape.readers, shape.window)).linearizable());
    }
}

}  // namespace

TEST("each reader of a ring gate gets the sorted merge of all sources") {
    all_shapes<callboard::RingGate<std::int64_t, std::int64_t>>();
}

TEST("each reader of a scale gate gets the sorted merge of all sources") {
    all_shapes<TightScaleGate<std::int64_t>>();
    all_shapes<callboard::ScaleGate<std::int64_t, std::int64_t>>();
}

TEST("each reader of a locked gate gets the sorted merge of all sources") {
    all_shapes<callboard::LockedGate<std::int64_t, std::int64_t>>();
}

TEST("nothing overtakes what a source brings just before it comes to a later time") {
    with_each_gate([](auto kind) { nothing_overtakes<typename decltype(kind)::Gate>(10000 / stress::shorter); });
}

TEST("histories of gates are linearizable") {
    with_each_gate([](auto kind) {
        for (const Case shape : {Case{2, 1, 2}, Case{2, 2, 1}, Case{3, 1, 9}})
            histories_are_linearizable<typename decltype(kind)::Gate>(shape, 200 / stress::shorter);
    });
}

CHECK_MAIN
