// A worker's records of its dispatches.
#include "callboard/core/monitoring/recorder.hpp"

#include <vector>

#include "check.hpp"

using namespace callboard;

namespace {

DispatchRecord at(const Recorder& recorder, std::uint64_t number) {
    DispatchRecord record;
    CHECK(recorder.ring.read(number, record));
    return record;
}

ChannelUse* use(Recorder& recorder, std::uint64_t& serial, std::uint32_t& place, bool expected_new) {
    bool is_new = false;
    ChannelUse* const found = recorder.use(serial, place, is_new);
    CHECK_EQUAL(is_new, expected_new);
    return found;
}

}  // namespace

TEST("a dispatch's parts are one record, with the state that was noted") {
    Recorder recorder(8, 100);
    recorder.begin(7, 500);
    recorder.note(1'000, 10, 2);
    recorder.note(1'500, 20, 3);
    recorder.note_actor(4, 900, 5);
    recorder.note_state(state_output);
    recorder.end(false);
    CHECK_EQUAL(recorder.ring.written(), 1u);
    const DispatchRecord record = at(recorder, 0);
    CHECK_EQUAL(record.time, 1'500);
    CHECK_EQUAL(record.spent, 30);
    CHECK_EQUAL(record.began, 500);
    CHECK_EQUAL(record.messages, 5u);
    CHECK_EQUAL(record.actor, 7u);
    CHECK_EQUAL(record.dispatch, 4u);
    CHECK_EQUAL(record.created, 900);
    CHECK_EQUAL(record.queue, 5);
    CHECK_EQUAL(record.kind, state_output);
}

TEST("an actor that keeps its readiness is ready, unless it has ended") {
    Recorder recorder(8, 100);
    recorder.begin(1, 500);
    recorder.end(true);
    recorder.begin(1, 500);
    recorder.note_state(state_ended);
    recorder.note_state(state_input);
    recorder.end(true);
    recorder.begin(1, 500);
    recorder.end(false);
    CHECK_EQUAL(at(recorder, 0).kind, state_ready);
    CHECK_EQUAL(at(recorder, 1).kind, state_ended);
    CHECK_EQUAL(at(recorder, 2).kind, state_input);
}

TEST("a dispatch of an actor that nobody wants recorded leaves no record, and takes no uses") {
    Recorder recorder(8, 100);
    std::uint64_t serial = 0;
    std::uint32_t place = 0;
    bool is_new = false;
    recorder.begin(0, 500);
    CHECK(!recorder.wants_record());
    CHECK(recorder.use(serial, place, is_new) == nullptr);
    recorder.end(false);
    CHECK_EQUAL(recorder.ring.written(), 0u);
}

TEST("a dispatch inside another one has its own record, and its own uses of channels") {
    Recorder recorder(16, 100);
    std::uint64_t outer_serial = 0, inner_serial = 0;
    std::uint32_t outer_place = 0, inner_place = 0;
    recorder.begin(1, 500);
    use(recorder, outer_serial, outer_place, true)->channel = 11;
    recorder.begin(2, 500);
    use(recorder, inner_serial, inner_place, true)->channel = 22;
    recorder.end(false);
    use(recorder, outer_serial, outer_place, false)->has_moved = true;
    recorder.end(false);
    CHECK_EQUAL(recorder.ring.written(), 4u);
    CHECK_EQUAL(ChannelUse::of(at(recorder, 0)).channel, 22);
    CHECK_EQUAL(at(recorder, 1).actor, 2u);
    CHECK_EQUAL(at(recorder, 1).uses, 1u);
    CHECK_EQUAL(ChannelUse::of(at(recorder, 2)).channel, 11);
    CHECK(ChannelUse::of(at(recorder, 2)).has_moved);
    CHECK_EQUAL(at(recorder, 3).actor, 1u);
}

TEST("an end's note is of one dispatch: the next one begins anew") {
    Recorder recorder(16, 100);
    std::uint64_t serial = 0;
    std::uint32_t place = 0;
    for (int i = 0; i < 3; ++i) {
        recorder.begin(1, 500);
        use(recorder, serial, place, true);
        use(recorder, serial, place, false);
        recorder.end(false);
    }
    CHECK_EQUAL(recorder.ring.written(), 6u);
}

TEST("a dispatch with very many channels fills a quarter of the ring at most, and says so") {
    Recorder recorder(16, 100);
    recorder.begin(1, 500);
    for (int i = 0; i < 9; ++i) {
        std::uint64_t serial = 0;
        std::uint32_t place = 0;
        use(recorder, serial, place, true)->channel = i;
    }
    recorder.end(false);
    CHECK_EQUAL(recorder.ring.written(), 5u);
    CHECK_EQUAL(at(recorder, 4).uses, 9u);
}

TEST("the records are due once for each half of the ring") {
    Recorder recorder(8, 100);
    int due = 0;
    for (int i = 0; i < 16; ++i) {
        recorder.begin(1, 500);
    recorder.end(false);
        due += recorder.is_due();
    }
    CHECK_EQUAL(due, 4);
}

TEST("sampled messages are records before that of the dispatch, and no more than the ring has room for") {
    Recorder recorder(64, 100);
    CHECK(!recorder.note_sent(8, 1, 500));  // in no dispatch
    recorder.begin(7, 500);
    for (std::uint64_t arrow = 1; arrow <= 9; ++arrow) {
        CHECK_EQUAL(recorder.note_sent(8, arrow, 600), arrow <= 8);
        recorder.note_taken(9, arrow, 700);
    }
    recorder.note(1'000, 10, 2);
    recorder.end(false);
    CHECK_EQUAL(recorder.ring.written(), 17u);
    const DispatchRecord sent = at(recorder, 0), taken = at(recorder, 1);
    CHECK(sent.kind == record_sent && taken.kind == record_taken);
    CHECK_EQUAL(sent.actor, 7u);
    CHECK_EQUAL(sent.dispatch, 1u);
    CHECK_EQUAL(sent.created, 8);
    CHECK_EQUAL(taken.created, 9);
    CHECK_EQUAL(at(recorder, 16).actor, 7u);
}

CHECK_MAIN
