// The checker of gates' histories, on histories that were written by hand. Source 0 and 1, and one reader.
#include "gate_history.hpp"

namespace {

using Calls = std::vector<GateCall>;

GateCall add(std::int64_t begin, std::int64_t end, unsigned source, std::int64_t time, bool fits = true) {
    return {GateCall::What::add, source, time, 0, fits, {}, begin, end};
}

GateCall come_to(std::int64_t begin, std::int64_t end, unsigned source, std::int64_t time) {
    return {GateCall::What::come_to, source, time, 0, true, {}, begin, end};
}

GateCall next(std::int64_t begin, std::int64_t end, unsigned source, std::int64_t time) {
    return {GateCall::What::next, 0, 0, 0, true, {time, source, 0}, begin, end};
}

GateCall none(std::int64_t begin, std::int64_t end) {
    return {GateCall::What::next, 0, 0, 0, false, {}, begin, end};
}

bool linearizable(std::vector<Calls> threads, std::size_t window = 9) {
    return GateHistory(std::move(threads), GateModel(2, 1, window)).linearizable();
}

}  // namespace

TEST("a value can be read after it was added and what could precede it had gone by, and not before") {
    CHECK(linearizable({{add(0, 1, 0, 5)}, {come_to(2, 3, 1, 5)}, {next(4, 5, 0, 5)}}));
    CHECK(linearizable({{add(0, 9, 0, 5)}, {come_to(0, 9, 1, 5)}, {next(0, 9, 0, 5)}}));
    CHECK(!linearizable({{add(2, 3, 0, 5)}, {come_to(0, 1, 1, 5)}, {next(0, 1, 0, 5)}}));
    CHECK(!linearizable({{add(0, 1, 0, 5)}, {come_to(4, 5, 1, 5)}, {next(2, 3, 0, 5)}}));
    CHECK(!linearizable({{add(0, 1, 0, 5)}, {come_to(2, 3, 1, 4)}, {next(4, 5, 0, 5)}}));
}

TEST("a reader can find nothing before a value is ready, and not after that") {
    CHECK(linearizable({{add(0, 1, 0, 5)}, {come_to(4, 5, 1, 5)}, {none(2, 3)}}));
    CHECK(linearizable({{add(0, 1, 0, 5)}, {come_to(2, 5, 1, 5)}, {none(3, 4), next(6, 7, 0, 5)}}));
    CHECK(!linearizable({{add(0, 1, 0, 5)}, {come_to(2, 3, 1, 5)}, {none(4, 5)}}));
    CHECK(!linearizable({{add(0, 1, 0, 5)}, {come_to(0, 9, 1, 5)}, {next(2, 3, 0, 5), none(4, 5), next(6, 7, 0, 5)}}));
}

TEST("values are read in their order") {
    const Calls first{add(0, 1, 0, 5), come_to(4, 5, 0, 9)}, second{add(2, 3, 1, 5), come_to(6, 7, 1, 9)};
    CHECK(linearizable({first, second, {next(8, 9, 0, 5), next(10, 11, 1, 5)}}));
    CHECK(!linearizable({first, second, {next(8, 9, 1, 5), next(10, 11, 0, 5)}}));
    CHECK(!linearizable({first, second, {next(8, 9, 0, 5), next(10, 11, 0, 5)}}));
}

TEST("a source can be refused before a reader has made room, and not after that") {
    const Calls other{come_to(0, 1, 1, 9)};
    CHECK(linearizable({{add(2, 3, 0, 1), add(4, 5, 0, 2, false)}, other, {next(6, 7, 0, 1)}}, 1));
    CHECK(linearizable({{add(2, 3, 0, 1), add(4, 7, 0, 2)}, other, {next(5, 6, 0, 1)}}, 1));
    CHECK(!linearizable({{add(2, 3, 0, 1), add(6, 7, 0, 2, false)}, other, {next(4, 5, 0, 1)}}, 1));
    CHECK(!linearizable({{add(2, 3, 0, 1), add(4, 5, 0, 2)}, other, {next(6, 7, 0, 1)}}, 1));
}

TEST("calls can contradict each other though each two of them do not") {
    // To explain the value, source 1 has come to 6 before the reader looks again, and then it cannot find nothing.
    const Calls first{add(0, 1, 0, 5), add(2, 3, 0, 6)};
    CHECK(linearizable({first, {come_to(4, 9, 1, 6)}, {next(5, 6, 0, 5)}}));
    CHECK(linearizable({first, {come_to(4, 9, 1, 6)}, {none(5, 6)}}));
    CHECK(!linearizable({first, {come_to(4, 9, 1, 6)}, {next(5, 6, 0, 5), none(7, 8)}}));
}

CHECK_MAIN
