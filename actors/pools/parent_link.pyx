"""The conversation of a process of a pool with its parent.

The actor that passes the parent's messages on receives when nothing is left to handle, or when more comes before that.
It does so on the worker of the pool's actor. So an ask that comes alone is received, handled and answered without
another thread.
"""

import time
from collections import deque

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Wake
from callboard._inside.sending.ref cimport ActorRef
from callboard.mailbox.shared.byte_channel cimport ByteChannel
from callboard.pools.link cimport Header, framed
from callboard.remote.wire.scalars cimport NOT_SCALAR, packed_scalar, scalar_of

from callboard.core.log import log
from callboard.core.text import safe_str
from callboard.core.text import sendable as shortened
from callboard.pools import messages as kinds
from callboard.remote.errors import CodecError
from callboard.remote.protocol.server_side import Delivery

cdef Py_ssize_t MOST = 512         # messages that are taken at a time
cdef Py_ssize_t MOST_OWED = 4096   # messages that were handled, and the parent does not know it
cdef Py_ssize_t LARGE = 32 * 1024  # bytes of a message, which takes long to decode
cdef Py_ssize_t TEXT = 10_000      # bytes of an error's text

cdef int TELL = kinds.TELL, ASK = kinds.ASK, ANSWER = kinds.ANSWER, FAILED = kinds.FAILED, HANDLED = kinds.HANDLED
cdef object FOUND = object()


@cython.final
cdef class OpenDelivery(Wake):
    """The messages of a delivery that are not handled. It is called back when they are."""

    cdef ParentLink link
    cdef uint64_t number
    cdef list values
    cdef bint was_asked
    cdef Py_ssize_t next  # the place after the one that was found last

    cdef void wake(self, object future) noexcept:
        cdef ParentLink link = self.link
        cdef Future done = future
        link.note_done(self.number)
        try:
            if not self.was_asked:
                link.finish(None, 1)
            elif done.error is None:
                link.answer_to(self.number, done.value)
            else:
                link.fail_to(self.number, True, done.error)
        except BaseException as error:
            log.error("an answer could not be sent", exc_info=error)

    cdef Py_ssize_t take(self, message):
        """Return the place of an object, once; -1: it is not there."""
        cdef Py_ssize_t count = len(self.values), at, place
        for at in range(count):
            place = (self.next + at) % count
            if self.values[place] is message:
                self.values[place] = FOUND
                self.next = place + 1
                return place
        return -1


@cython.final
cdef class ParentLink:
    """The parent, as a process sees it. Safe in every thread."""

    cdef readonly ByteChannel channel
    cdef public object codec
    cdef cython.pymutex mutex  # of what follows
    cdef object receiver       # the actor that receives; None before begin()
    cdef ActorRef actor        # that takes the messages
    cdef bint is_unbounded     # its mailbox has always room
    cdef bint goes_on          # the receiver receives, or is about to
    cdef dict opened           # deliveries whose values are decoded, by number
    cdef Py_ssize_t open       # deliveries that are not handled
    cdef Py_ssize_t owed       # messages whose credit the parent does not have
    cdef object unsent         # messages without room in the channel
    cdef uint64_t sent         # bytes of the first of them
    cdef bint is_closed
    cdef readonly bint is_broken  # the process is to end

    def __cinit__(self, ByteChannel channel, codec):
        self.channel, self.codec = channel, codec
        self.unsent, self.opened = deque(), {}

    # --- for the main thread ------------------------------------------------------------------------

    def begin(self, receiver, ActorRef actor):
        """Begin to serve the parent."""
        self.receiver, self.actor = receiver, actor
        self.is_unbounded = actor._room is None
        self.send(kinds.SERVING)
        self.go_on()

    def go_on(self):
        """Have the receiver receive."""
        with self.mutex:
            if self.goes_on or self.receiver is None:
                return
            self.begin_receiving()
        self.receiver.tell(None)

    def end(self, why):
        """Tell the parent why this process is about to end."""
        self.send(kinds.ENDED, 0, 0, self.codec.encode(shortened(why, TEXT)))

    def wait_for_answers(self, double seconds):
        """Wait until all that was taken is handled, at most so long."""
        cdef double deadline = time.monotonic() + seconds
        while self.open and time.monotonic() < deadline:
            self.channel.sleep(milliseconds=5)
        with self.mutex:
            self.give_credit()

    def close(self):
        """Tell the parent nothing more."""
        with self.mutex:
            self.is_closed = True

    def flush_until(self, is_over, double seconds):
        """Send what had no room, as long as the parent is there, at most so long."""
        cdef double deadline = time.monotonic() + seconds
        while self.unsent and not is_over() and time.monotonic() < deadline:
            with self.mutex:
                self.flush()
            self.channel.sleep(milliseconds=5)

    # --- for the receiver ---------------------------------------------------------------------------

    def take(self):
        """Pass on what has come, and return the deliveries from the first one on that may have to wait.

        If nothing comes for some microseconds, the main thread waits for more.
        """
        cdef ByteChannel channel = self.channel
        cdef list left = []
        cdef bytes message
        cdef Header header
        cdef Py_ssize_t taken = 0
        cdef uint64_t looked = 0
        cdef bint goes_on
        while True:
            while taken < MOST:
                looked = channel.look()
                message = channel.receive()
                if message is None:
                    break
                taken += 1
                with self.mutex:
                    self.open += 1
                memcpy(&header, PyBytes_AS_STRING(message), sizeof(Header))
                if left or PyBytes_GET_SIZE(message) > LARGE or not self.pass_on(header, message):
                    body = memoryview(message)[sizeof(Header):]
                    left.append(Delivery(
                        kinds.KINDS[header.kind], header.number, 0, header.messages, body, len(message)))
            if not taken and (self.unsent or self.owed):
                with self.mutex:
                    self.flush()
                    self.give_credit()
            if taken or not channel.spin(looked):
                break
        with self.mutex:
            goes_on = taken == MOST or (taken and self.open == 0)
            if not goes_on:
                self.goes_on = False
                channel.end_receiving(looked)
        if goes_on:
            self.receiver.tell(None)
        return left

    cdef bint pass_on(self, Header header, bytes message) except -1:
        """Pass a message on at once. False: it may have to wait, or cannot be decoded."""
        cdef OpenDelivery opened
        cdef Future future
        if not self.is_unbounded or (header.kind != ASK and header.kind != TELL):
            return False
        value = scalar_of(
            <const unsigned char*>PyBytes_AS_STRING(message) + sizeof(Header),
            PyBytes_GET_SIZE(message) - sizeof(Header))
        if value is NOT_SCALAR:
            try:
                value = self.codec.decode(memoryview(message)[sizeof(Header):])
            except CodecError:
                return False
        opened = self.note_begun(header.number, [value])
        opened.was_asked = header.kind == ASK
        if opened.was_asked:
            future = self.actor.ask(value)
        else:
            self.actor.tell(value)
            future = self.actor._fence()
        future.add_done_callback(opened)
        return True

    def note_begun(self, uint64_t number, list values):
        """Have a delivery's messages found until it is done."""
        cdef OpenDelivery opened = OpenDelivery.__new__(OpenDelivery)
        opened.link, opened.number, opened.values = self, number, values
        with self.mutex:
            self.opened[number] = opened
        return opened

    def note_done(self, uint64_t number):
        """Have them no longer found."""
        with self.mutex:
            self.opened.pop(number, None)

    def find(self, message):
        """Return the delivery and the place of a message that is a dead letter, or two zeros.

        Each place is found once. If one object was sent often, the first place is found: actors handle their messages
        in order.
        """
        cdef OpenDelivery opened
        cdef Py_ssize_t place
        with self.mutex:
            for opened in self.opened.values():
                place = opened.take(message)
                if place >= 0:
                    return opened.number, place
        return 0, 0

    # --- answers ------------------------------------------------------------------------------------

    def answer(self, delivery, value):
        """Answer an ask. A value that cannot be encoded is a failure."""
        self.answer_to(delivery.sequence, value)

    def fail(self, delivery, error):
        """Send the error of a failed delivery."""
        self.fail_to(delivery.sequence, delivery.kind == ASK, error)

    def note_handled(self, delivery):
        """Note that told messages were handled."""
        self.finish(None, delivery.messages)

    def break_off(self, why):
        """Have the process end, as the order of the parent's messages is lost."""
        self.end(why)
        self.is_broken = True
        self.channel.rouse()

    def send(self, int kind, Py_ssize_t messages=0, uint64_t number=0, bytes body=b""):
        """Send a message, now or when there is room."""
        message = framed(kind, messages, number, body)
        with self.mutex:
            self.post(message)

    cdef int answer_to(self, uint64_t number, value) except -1:
        cdef bytes body = packed_scalar(value)
        if body is None:
            try:
                body = self.codec.encode(value)
            except CodecError as error:
                return self.fail_to(number, True, error)
        return self.finish(framed(ANSWER, 1, number, body), 0)

    cdef int fail_to(self, uint64_t number, bint was_asked, error) except -1:
        said = [shortened(type(error).__qualname__, TEXT), shortened(safe_str(error), TEXT)]
        cdef bytes message = framed(FAILED, 1, number, self.codec.encode(said))
        if was_asked:
            self.finish(message, 0)
            return 0
        with self.mutex:
            self.post(message)
        return 0

    cdef int finish(self, bytes message, Py_ssize_t handled) except -1:
        """Note that a delivery is handled. After the last one the receiver goes on."""
        cdef bint goes_on
        with self.mutex:
            self.open -= 1
            goes_on = self.open == 0 and not self.goes_on
            if goes_on:
                self.begin_receiving()  # before the parent can answer, so that it wakes nobody
            self.owed += handled
            if self.owed >= MOST_OWED:
                self.give_credit()
            if message is not None:
                self.post(message)
        if goes_on:
            self.receiver.tell(None)
        return 0

    # The caller of these has the mutex.

    cdef int begin_receiving(self) except -1:
        self.goes_on = True
        self.channel.begin_receiving()
        return 0

    cdef int give_credit(self) except -1:
        owed, self.owed = self.owed, 0
        if owed:
            self.post(framed(HANDLED, owed, 0, b""))
        return 0

    cdef int post(self, bytes message) except -1:
        if not self.is_closed:
            self.unsent.append(message)
            self.flush()
        return 0

    cdef int flush(self) except -1:
        cdef bytes message
        while self.unsent:
            message = self.unsent[0]
            self.sent = self.channel.send(message, self.sent, True)
            if self.sent < <uint64_t>PyBytes_GET_SIZE(message):
                break
            self.unsent.popleft()
            self.sent = 0
        return 0
