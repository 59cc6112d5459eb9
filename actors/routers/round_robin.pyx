"""Each message to the next ref."""

cimport cython

from callboard.core.batches import iterator_over
from callboard.routers.checks import checked_refs


cdef class RoundRobinRouter:
    """Sends each message to the next of its refs, in turn. Safe in every thread.

    A message goes straight to the chosen ref, without an actor in between. Each ref handles what one
    sender sent it in the order of sending; between refs there is no order.
    """

    cdef readonly tuple refs
    cdef tuple tells     # the method `tell` of each ref
    cdef Py_ssize_t turn

    def __init__(self, refs):
        self.refs = checked_refs("RoundRobinRouter", refs)
        self.tells = tuple([ref.tell for ref in self.refs])
        self.turn = 0

    cdef inline Py_ssize_t next_turn(self) noexcept:
        # Without the interpreter lock two threads may take one turn: no message is lost by that.
        cdef Py_ssize_t turn = self.turn
        cdef Py_ssize_t after = turn + 1
        self.turn = after if after < len(self.tells) else 0
        return turn

    @cython.always_allow_keywords(False)
    def tell(self, message):
        """Send `message` to the next ref. Waits and raises like its `tell`."""
        (<object>self.tells[self.next_turn()])(message)

    def tell_many(self, messages):
        """Send each of `messages` to the next ref. Messages sent before an error stay sent."""
        for message in iterator_over("tell_many()", messages, "messages"):
            (<object>self.tells[self.next_turn()])(message)

    def ask(self, message, timeout=None):
        """Ask the next ref, and return the future of its answer."""
        return self.refs[self.next_turn()].ask(message, timeout)

    def stop(self):
        """Stop each actor behind the refs, after the message in work."""
        for ref in self.refs:
            ref.stop()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a RoundRobinRouter has refs, which cannot be pickled")

    def __repr__(self):
        return f"<RoundRobinRouter over {len(self.refs)} refs>"
