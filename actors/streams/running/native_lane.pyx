"""Lanes without the interpreter."""

from libc.stdint cimport uint32_t

from callboard.native cimport Message, NativeActor
from callboard.scheduling.flow.flow cimport Rest, RestReason
from callboard.streams.running.flow cimport GraphFlow


cdef class NativeLane(NativeActor):
    """An actor that is a lane of native stages."""

    cdef GraphFlow flow
    cdef uint32_t number

    def __init__(self, flow, uint32_t number):
        self.flow = flow()
        self.number = number

    cdef void receive(self, Message* message) noexcept nogil:
        if self.flow is None:
            return
        cdef Rest rest = self.flow.run(self.number)
        if rest.reason == RestReason.turn_over:
            self.send_integer(self.own_ref, 0)
        # Not `until`: throttled stages are for lanes that hold the interpreter.
