// A message with its sender and the future for its answer, while it is in work.
#pragma once

#include <Python.h>

namespace callboard {

// References: owned by a dispatch that has taken the message out of a mailbox; lent by its sender,
// and by the StoredEnvelope of a message that waits elsewhere.
struct Envelope {
    PyObject* message;
    PyObject* sender;    // its ActorRef, or a Carried; null if the message was asked, or by no actor
    PyObject* reply_to;  // the Future that wants the answer; null if the message was told
    bool stashed;        // it waits for its second turn, and is in work no more
};

inline Envelope to_tell(PyObject* message, PyObject* sender) { return {message, sender, nullptr, false}; }
inline Envelope to_ask(PyObject* message, PyObject* reply_to) { return {message, nullptr, reply_to, false}; }

// For a call that is not inlined: where this copy is what lies in memory, its original can stay in
// registers.
inline Envelope copied(Envelope envelope) {
    return {envelope.message, envelope.sender, envelope.reply_to, envelope.stashed};
}

struct ActorCell;  // see actor_cell.hpp

}  // namespace callboard
