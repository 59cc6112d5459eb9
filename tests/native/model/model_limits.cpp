// The bounds of a mailbox: senders that wait for room, and a receiver that makes it.
#include "callboard/mailbox/limits.hpp"
#include "model.hpp"

using namespace callboard;
using model::together;

namespace {

void take_room(Limits& limits) {
    Parker parker;  // it ends with the wait, so nobody may touch it then
    while (limits.reserve(1) == 0) limits.wait_for_room(parker, -1);
}

}  // namespace

MODEL("room for one: a sender that waits finds the room that is made") {
    model::Kernel kernel;
    Limits limits(1, -1);
    CHECK(limits.reserve(1) == 1);
    together([&] { limits.give_back(1); }, [&] { take_room(limits); });
    CHECK(limits.count() == 1);
}

MODEL("room for two: two senders that wait find the room that is made") {
    model::Kernel kernel;
    Limits limits(2, -1);
    CHECK(limits.reserve(2) == 2);
    together([&] { limits.give_back(2); }, [&] { take_room(limits); }, [&] { take_room(limits); });
    CHECK(limits.count() == 2);
}

MODEL("room for one: two senders take turns") {
    model::Kernel kernel;
    Limits limits(1, -1);
    const auto send = [&] {
        for (int i = 0; i < 2; ++i) {
            take_room(limits);
            limits.give_back(1);
        }
    };
    together(send, send);
    CHECK(limits.count() == 0);
}
