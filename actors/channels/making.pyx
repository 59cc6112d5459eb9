"""Making a channel."""

from callboard.channels.pipe cimport Pipe
from callboard.channels.receiver cimport Receiver
from callboard.channels.sender cimport Sender

from callboard.core import checks

# The room is allocated at once: 8 GiB at most.
cdef object MOST = 2**30


def channel(capacity, *, on_deadlock="raise"):
    """Make a channel with room for `capacity` values, and return its sender and its receiver.

    At capacity 0 a value goes from hand to hand: `send()` waits until it was received. If tasks wait for each other
    in a circle in which this channel is full, one of them gets ChannelDeadlock; with `on_deadlock="grow"` the channel's
    room is doubled instead.

    A stream of LPEL (Prokesch 2011, section 4.4). Raises ValueError for a capacity that is no whole
    number from 0 on.
    """
    cdef Pipe pipe
    cdef Sender sender = Sender.__new__(Sender)
    cdef Receiver receiver = Receiver.__new__(Receiver)
    room = checks.whole("a channel's capacity", capacity, 0, MOST)
    grows = checks.one_of("on_deadlock", on_deadlock, ("raise", "grow")) == "grow"
    pipe = Pipe.__new__(Pipe, room, grows)
    sender.pipe = receiver.pipe = pipe
    return sender, receiver
