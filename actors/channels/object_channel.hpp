// A channel of Python objects, and the layer between it and its ends.
#pragma once

#include <Python.h>

#include "callboard/channels/kernel/channel.hpp"
#include "callboard/channels/kernel/selection.hpp"

namespace callboard {

// A side of a channel that is to be woken. The channel is used in a critical section, which another one inside it may
// suspend. So the wake-up is only noted there, and done by whoever takes the note after the section.
class SideWakeable : public Wakeable {
public:
    SideWakeable() : Wakeable{note} {}

    // Any thread. True: the caller must wake the side. A note of another thread is as good as the caller's own: the
    // side is looked at after both. Acquire and release pair with each other.
    bool take_note() { return is_noted_.load(relaxed) && is_noted_.exchange(false, acq_rel); }

private:
    static void note(Wakeable* self) { static_cast<SideWakeable*>(self)->is_noted_.store(true, release); }

    Atomic<bool> is_noted_{false};
};

// All ends are used with the interpreter's lock held, where there is one.
#ifdef Py_GIL_DISABLED
using ObjectOrdering = Concurrent;
#else
using ObjectOrdering = Locked;
#endif
using ChannelOfObjects = Channel<PyObject*, ObjectOrdering>;

// With the waiters of both sides, which each operation looks at.
struct ObjectChannel : ChannelOfObjects {
    using ChannelOfObjects::ChannelOfObjects;
    SideWakeable waiting_senders, waiting_receivers;
};

// As a tp_traverse does. The cyclic collector runs while it has the interpreter's lock, or, where there is none, has
// stopped all threads, which it does in no call of a channel. A value on its way in or out has one reference more than
// the collector finds: so the collector keeps it.
inline int traverse(const ObjectChannel& channel, visitproc visit, void* arg) {
    return channel.for_each([=](PyObject* value) { return visit(value, arg); });
}

// Wakes for an object, which the waker keeps alive: a selection.
struct ObjectWakeable : Wakeable {
    void* object;
};

// An end in a Selector: the member, and what it waits for. Its user is the object that it is a part of, and that the
// functions get.
class WatchedEnd final : public Member, public Waitable {
public:
    struct Functions {
        int (*is_ready)(void* watch);
        int (*announce)(void* watch, Wakeable* who);
        int (*withdraw)(void* watch, Wakeable* who);
    };
    static inline Functions functions;  // of all

    WatchedEnd() : Member(static_cast<Waitable&>(*this)) {}

    bool is_ready() override { return functions.is_ready(user); }
    bool announce(Wakeable* who) override { return functions.announce(user, who); }
    bool withdraw(Wakeable* who) override { return functions.withdraw(user, who); }
};

}  // namespace callboard
