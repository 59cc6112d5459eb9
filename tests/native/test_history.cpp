// The checker of recorded histories, on histories that were written by hand.
#include "history.hpp"

using history::Call;
using history::Queue;

namespace {

Call call(std::int64_t begin, std::int64_t end) {
    Call made;
    made.begin = begin;
    made.end = end;
    return made;
}

Queue queue(std::vector<Call> pushes, std::vector<Call> pops, std::size_t capacity = 9) {
    return {pushes, pops, {}, capacity};
}

bool honest(std::vector<Call> pushes, std::vector<Call> pops, Call none) {
    return Queue{pushes, pops, {none}, 9}.nones_are_honest();
}

}  // namespace

TEST("calls that overlap may have any order") {
    CHECK(queue({call(0, 9), call(1, 3)}, {call(2, 8), call(4, 7)}).linearizable());
    CHECK(queue({call(1, 3), call(0, 9)}, {call(4, 7), call(2, 8)}).linearizable());
}

TEST("a value that was pushed after another was complete cannot come before it") {
    CHECK(!queue({call(2, 3), call(0, 1)}, {}).linearizable());
}

TEST("a value cannot be popped before its push began") {
    CHECK(queue({call(1, 3)}, {call(0, 2)}).linearizable());
    CHECK(!queue({call(2, 3)}, {call(0, 1)}).linearizable());
}

TEST("values that were popped one after the other cannot be in the other order") {
    CHECK(!queue({call(0, 1), call(2, 3)}, {call(6, 7), call(4, 5)}).linearizable());
}

TEST("a push beyond the capacity comes after the pop that made room") {
    CHECK(queue({call(0, 1), call(2, 5)}, {call(3, 4)}, 1).linearizable());
    CHECK(!queue({call(0, 1), call(2, 3)}, {call(4, 5)}, 1).linearizable());
}

TEST("a queue never holds more than its capacity") {
    CHECK(queue({call(0, 1), call(2, 3)}, {}, 2).linearizable());
    CHECK(!queue({call(0, 1), call(2, 3)}, {}, 1).linearizable());
}

TEST("calls can contradict each other though those next to each other do not") {
    // The second pop has ended when the first push begins: each may overlap the calls between them.
    CHECK(!queue({call(5, 9), call(0, 7)}, {call(2, 8), call(1, 4)}).linearizable());
}

TEST("nothing can be found only while nothing is there, or the oldest value is not complete") {
    CHECK(honest({}, {}, call(0, 1)));
    CHECK(honest({call(1, 3)}, {}, call(0, 2)));
    CHECK(honest({call(0, 9), call(1, 2)}, {}, call(3, 4)));
    CHECK(honest({call(0, 1)}, {call(2, 9)}, call(3, 4)));
    CHECK(!honest({call(0, 1)}, {}, call(2, 3)));
    CHECK(!honest({call(0, 1)}, {call(4, 5)}, call(2, 3)));
    CHECK(!honest({call(0, 1), call(2, 3)}, {call(4, 5)}, call(6, 7)));
}

CHECK_MAIN
