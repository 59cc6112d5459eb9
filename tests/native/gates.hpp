// All gates, for tests that hold for each of them.
#pragma once

#include <cstdint>
#include <cstdio>

#include "../bench/peers/ring_gate.hpp"
#include "../bench/peers/locked_gate.hpp"
#include "../bench/peers/scale_gate.hpp"
#include "check.hpp"

// With few nodes at once and few levels, so that they are reclaimed all the time.
template <class Time>
using TightScaleGate = callboard::ScaleGate<Time, std::int64_t, 2, 2>;

template <class Type>
struct OfGate {
    using Gate = Type;
};

template <class Gate, class Test>
void with_gate(const char* name, Test test) {
    const int before = check::failures.load(callboard::relaxed);
    test(OfGate<Gate>{});
    if (check::failures.load(callboard::relaxed) != before) std::fprintf(stderr, "in %s\n", name);
}

// test(of_gate), where `typename decltype(of_gate)::Gate` is the gate.
template <class Time = std::int64_t, class Test>
void with_each_gate(Test test) {
    with_gate<callboard::RingGate<Time, std::int64_t>>("RingGate", test);
    with_gate<callboard::ScaleGate<Time, std::int64_t>>("ScaleGate", test);
    with_gate<TightScaleGate<Time>>("TightScaleGate", test);
    with_gate<callboard::LockedGate<Time, std::int64_t>>("LockedGate", test);
}
