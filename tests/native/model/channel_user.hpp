// A user of channels, for tests of the model checker: it waits for nothing but its wake-up, which it keeps.
#pragma once

#include "callboard/channels/kernel/channel.hpp"
#include "model.hpp"

using Parcel = model::Plain<int>;
// Each look tries to make the word light, so both ways to look meet.
using Pipe = callboard::Channel<Parcel*, callboard::BasicConcurrent<0>>;

struct User : callboard::Wakeable {
    User() : Wakeable{note} {}

    void sleep() {
        model::await([this] { return woken.load(callboard::acquire) != waits; });
        ++waits;
    }
    // Returns once it is ready; no other thread has this user then.
    void wait_for(callboard::Waitable& place) {
        if (place.announce(this)) sleep();
    }

    callboard::Atomic<int> woken{0};
    int waits = 0;
    model::Plain<int> alive{1};

private:
    static void note(Wakeable* self) {
        auto* const user = static_cast<User*>(self);
        CHECK(user->alive == 1);
        user->woken.fetch_add(1, callboard::release);
    }
};
