// A channel of Python objects, and what stands between it and its ends.
#pragma once

#include <Python.h>

#include "callboard/channels/kernel/channel.hpp"
#include "callboard/channels/kernel/selection.hpp"

namespace callboard {

// All ends are used with the interpreter's lock held, where there is one.
#ifdef Py_GIL_DISABLED
using ObjectOrdering = Concurrent;
#else
using ObjectOrdering = Locked;
#endif
using ObjectChannel = Channel<PyObject*, ObjectOrdering>;

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

// An end as a Selector waits for it. The functions get the object that stands for the membership.
class WatchedEnd final : public Waitable {
public:
    using IsReady = int (*)(void* watch);
    using Announce = int (*)(void* watch, Wakeable* who);

    WatchedEnd(void* watch, IsReady is_ready, Announce announce, Announce withdraw)
        : watch_(watch), is_ready_(is_ready), announce_(announce), withdraw_(withdraw) {}

    bool is_ready() override { return is_ready_(watch_); }
    bool announce(Wakeable* who) override { return announce_(watch_, who); }
    bool withdraw(Wakeable* who) override { return withdraw_(watch_, who); }

private:
    void* const watch_;
    const IsReady is_ready_;
    const Announce announce_;
    const Announce withdraw_;
};

}  // namespace callboard
