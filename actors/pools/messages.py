"""The messages between a program and a process of a pool: a header, and a body."""

from __future__ import annotations

from struct import Struct

from callboard.remote.protocol.kinds import MessageKind

# The kind, the number of messages in the body, and the number of the delivery, from 1 on.
HEADER = Struct("<BIQ")

# To the process. TELL and ASK have an encoded value, TELL_MANY rows, and BATCH an Arrow batch.
KINDS = {int(kind): kind for kind in MessageKind if kind.group == "delivery"}
TELL, TELL_MANY, ASK, BATCH = sorted(KINDS)

# From the process.
SERVING = 64  # it takes messages
READY = 65  # its actor has started
ANSWER = 66  # the number of the ask; a value
FAILED = 67  # the number of a delivery; the type and the text of an exception
HANDLED = 68  # so many messages of deliveries that were told, the earliest that are not known to be
DEAD_LETTER = 69  # the delivery, or 0, and the place in it; reason, error, text, encoded message
ENDED = 70  # the text says why
