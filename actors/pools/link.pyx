"""The conversation of a program with a process of a pool, and with its successors at the same place.

Each message is sent at most once, in the order in which threads sent them. The sending thread writes it into the
channel. It waits here while there is no process, or no credit, or no room in the channel. Told messages are kept until
they are known to be handled.

One thread at a time receives: one that waits for an answer in `result()`, or else the keeper of the process. So an
answer usually wakes no thread. That thread handles what it received, with the callbacks of answers.
"""

cimport cython

from collections import OrderedDict, deque
from threading import Lock

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from callboard._inside.answers.future cimport Future
from callboard.core.asserting cimport holds
from callboard.mailbox.shared.byte_channel cimport ByteChannel
from callboard.remote.wire.scalars cimport NOT_SCALAR, packed_scalar, scalar_of
from callboard.scheduling.team cimport Team

from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core.errors import CallboardError
from callboard.core.interrupts import comes_from_signal
from callboard.pools import messages as kinds
from callboard.remote.client.session import WAITS_FOR_ITSELF, may_block
from callboard.remote.errors import CodecError, ConnectionLost
from callboard.remote.protocol.conversation import error_of

# The most messages and bytes that a process has not handled.
MOST_MESSAGES = 16_384
cdef Py_ssize_t most_messages = MOST_MESSAGES, most_bytes = 1 << 29

cdef double PATIENCE = 50e-6  # seconds that a thread waits to receive

cdef int ASK = kinds.ASK, ANSWER = kinds.ANSWER, FAILED = kinds.FAILED, HANDLED = kinds.HANDLED
cdef int SERVING = kinds.SERVING, READY = kinds.READY, DEAD_LETTER = kinds.DEAD_LETTER, ENDED = kinds.ENDED

assert sizeof(Header) == kinds.HEADER.size


@cython.final
cdef class ProcessSubmission:
    """One or several messages for a process."""

    def __cinit__(self, int kind, bytes body, Py_ssize_t messages, Future sent=None):
        self.kind, self.body, self.messages, self.sent = kind, body, messages, sent

    def left(self):
        """Return the places of the messages that are not dead letters yet. From now on all are."""
        places = [place for place in range(self.messages) if self.mark_dead(place)]
        return places

    cdef bint mark_dead(self, place):
        """Note that a message is a dead letter. False: it is one already."""
        if self.dead_letters is None:
            self.dead_letters = set()
        if place in self.dead_letters:
            return False
        self.dead_letters.add(place)
        return True


@cython.final
cdef class ProcessAnswer(Future):
    """The answer of an actor in a process. A thread that waits for it receives, unless another does."""

    @property
    def _wait_cause(self):
        return WaitCause(WaitTarget.ANSWER)

    def _wait(self, timeout=None):
        if not self.flag.is_set() and self.link.receiver == PyThread_get_thread_ident():
            raise CallboardError(f"result() in a callback of an answer {WAITS_FOR_ITSELF}")
        if may_block():
            self.link.drive(self)
        if not self.flag.is_set():
            Future._wait(self, timeout)

    def cancel(self):
        """Cancel the ask: it is withdrawn if it was not sent; otherwise the process handles it.

        Returns False if it was complete already.
        """
        is_first = Future.cancel(self)
        if is_first:
            self.link.withdraw(self)
        return is_first

    def __repr__(self):
        state = "done" if self.flag.is_set() else "waiting"
        return f"<Future {state}, asked {self.link.path}>"


@cython.final
cdef class ProcessLink:
    """The messages to the processes of one place, and theirs. Safe in every thread.

    `on_loss(submissions, error)` is called for told messages whose fate is unknown, or that were never sent.
    `on_dead_letter(reason, error, text, data)` is called for a dead letter in a process. Their caller receives.
    """

    def __cinit__(self, str path, codec, Team team, on_loss, on_dead_letter):
        self.path, self.codec, self.team = path, codec, team
        self.on_loss, self.on_dead_letter = on_loss, on_dead_letter
        self.answers, self.told, self.waiting = {}, deque(), OrderedDict()
        self.unsent, self.rests, self.outcomes = deque(), [], []
        self.receiving = Lock()
        self.trouble = self.end_text = ""

    @property
    def outstanding(self):
        """How many messages are not known to be handled."""
        return self.messages + len(self.waiting)

    @property
    def is_received_here(self):
        """Whether this thread receives: it is in a callback."""
        return self.receiver == PyThread_get_thread_ident()

    def rest(self):
        """Return a future that is done as soon as nothing is on its way."""
        cdef Future rest = Future.__new__(Future)
        with self.mutex:
            if self.is_busy:
                self.rests.append(rest)
                return rest
        rest.complete(None, None)
        return rest

    # --- sending ------------------------------------------------------------------------------------

    def ask(self, message):
        """Send a message, now or later, and return the future of its answer. Raises ConnectionLost."""
        cdef bytes body = packed_scalar(message)
        if body is None:
            body = self.codec.encode(message)
        cdef ProcessAnswer answer = ProcessAnswer.__new__(ProcessAnswer)
        self.check()
        answer.link, answer.size = self, PyBytes_GET_SIZE(body)
        with self.mutex:
            self.enter()
            if not self.waiting and self.may_send(1, answer.size):
                self.answers[self.send(ASK, 1, body)] = answer
            else:
                self.waiting[answer] = ProcessSubmission.__new__(ProcessSubmission, ASK, body, 1, answer)
        return answer

    def submit(self, int kind, bytes body, Py_ssize_t messages, bint is_awaited):
        """Send messages without an answer, and return None, or the ProcessSubmission if they have to wait.

        With `is_awaited` it has a future that is done when they are sent. Raises ConnectionLost.
        """
        cdef ProcessSubmission submission = ProcessSubmission.__new__(ProcessSubmission, kind, body, messages)
        self.check()
        with self.mutex:
            self.enter()
            if not self.waiting and self.may_send(messages, PyBytes_GET_SIZE(body)):
                self.send_submission(submission)
                return None
            if is_awaited:
                submission.sent = Future.__new__(Future)
            self.waiting[submission if submission.sent is None else submission.sent] = submission
        return submission

    def withdraw(self, future):
        """Withdraw what waits to be sent, by its future. Returns False if it was sent."""
        with self.mutex:
            is_withdrawn = self.waiting.pop(future, None) is not None
            if is_withdrawn:
                self.send_waiting()
        self.settle()
        return is_withdrawn

    cdef int check(self) except -1:
        if self.refusal is not None:
            raise ConnectionLost(self.refusal)
        return 0

    # The caller of these has the mutex.

    cdef int enter(self) except -1:
        self.check()
        if not self.is_busy:
            self.is_busy = True
            self.team.add_waiting(1)
        return 0

    cdef bint may_send(self, Py_ssize_t messages, Py_ssize_t size) noexcept:
        if not self.is_open:
            return False
        return self.messages == 0 or (self.messages + messages <= most_messages and self.size + size <= most_bytes)

    cdef uint64_t send(self, int kind, Py_ssize_t messages, bytes body) except? 0:
        """Send a message, or the part of it for which there is room. Return its number."""
        self.numbers += 1
        self.messages += messages
        self.size += PyBytes_GET_SIZE(body)
        self.bytes_sent += sizeof(Header) + PyBytes_GET_SIZE(body)
        self.unsent.append(framed(kind, messages, self.numbers, body))
        self.flush()
        return self.numbers

    cdef int flush(self) except -1:
        cdef bytes message
        while self.unsent and self.channel is not None:
            message = self.unsent[0]
            self.sent = self.channel.send(message, self.sent)
            if self.sent < <uint64_t>PyBytes_GET_SIZE(message):
                return 0
            self.unsent.popleft()
            self.sent = 0
        return 0

    cdef int send_submission(self, ProcessSubmission submission) except -1:
        submission.number = self.send(submission.kind, submission.messages, submission.body)
        if submission.kind == ASK:
            self.answers[submission.number] = submission.sent
        else:
            self.told.append(submission)
            self.told_messages += submission.messages
            if submission.sent is not None:
                self.outcomes.append(submission.sent)
        return 0

    cdef int send_waiting(self) except -1:
        cdef ProcessSubmission submission
        while self.waiting:
            key = next(iter(self.waiting))
            submission = self.waiting[key]
            if not self.may_send(submission.messages, PyBytes_GET_SIZE(submission.body)):
                break
            del self.waiting[key]
            self.send_submission(submission)
        return 0

    # --- receiving ----------------------------------------------------------------------------------

    cdef int drive(self, ProcessAnswer answer) except -1:
        """Receive in this thread as long as something comes, until the answer does.

        The keeper receives for a moment only; another thread, as long as this one would.
        """
        if self.receiving.acquire(True, PATIENCE):
            try:
                if self.channel is not None:
                    self.receive(answer)
            finally:
                self.receiving.release()
        return 0

    cdef int receive(self, ProcessAnswer answer) except -1:
        """Receive what is there; for an answer also what comes until then, within some microseconds.

        Then leave it to the keeper, who receives without a wait: another thread may want to.
        """
        cdef ByteChannel channel = self.channel
        cdef uint64_t looked = channel.look()
        self.receiver = PyThread_get_thread_ident()
        channel.begin_receiving()
        try:
            while not self.trouble:
                while True:
                    looked = channel.look()
                    if self.message is None:
                        self.message = channel.receive()
                        if self.message is None:
                            break
                        self.bytes_received += PyBytes_GET_SIZE(self.message)
                    self.take(self.message)
                if self.unsent:
                    with self.mutex:
                        self.flush()
                if answer is None or answer.flag.is_set() or not channel.spin(looked):
                    break
        finally:
            self.receiver = 0
            channel.end_receiving(looked)
            if self.message is not None or self.trouble:  # this thread was interrupted
                channel.rouse()
        return 0

    cdef int take(self, bytes message) except -1:
        """Handle a message. An interrupted thread leaves it to the next one."""
        try:
            self.handle(message)
        except BaseException as error:
            if comes_from_signal(error):
                raise
            self.trouble = f"it sent what cannot be: {error!r}"
            self.message = None
        return 0

    cdef int handle(self, bytes message) except -1:
        cdef Header header
        cdef ProcessSubmission submission
        if PyBytes_GET_SIZE(message) < <Py_ssize_t>sizeof(Header):
            raise ValueError(f"expected a message of at least {sizeof(Header)} bytes, got {len(message)}")
        memcpy(&header, PyBytes_AS_STRING(message), sizeof(Header))
        if header.kind == ANSWER:
            value = scalar_of(
                <const unsigned char*>PyBytes_AS_STRING(message) + sizeof(Header),
                PyBytes_GET_SIZE(message) - sizeof(Header))
            error = None
            if value is NOT_SCALAR:
                try:
                    value = self.codec.decode(memoryview(message)[sizeof(Header):])
                except CodecError as raised:
                    value, error = None, raised
            self.complete(header.number, value, error)
            self.settle()
            return 0
        body = memoryview(message)[sizeof(Header):]
        if header.kind == FAILED:
            error = error_of(*self.codec.decode(body))
            if header.number in self.answers:
                self.complete(header.number, None, error)
            else:
                self.message = None
                submission = self.find(header.number)
                if submission is not None and not submission.is_lost and type(error).__name__ != "MailboxFull":
                    submission.is_lost = True
                    self.on_loss([submission], error)
        elif header.kind == HANDLED:
            self.note_handled(header.messages)
        elif header.kind == DEAD_LETTER:
            reason, error, text, data = self.codec.decode(body)
            submission = self.find(header.number)
            self.message = None
            if submission is None or submission.mark_dead(header.messages):
                self.on_dead_letter(reason, error, text, data)
        elif header.kind == SERVING:
            with self.mutex:
                self.is_open = True
                self.send_waiting()
        elif header.kind == READY:
            self.was_ready = True
        elif header.kind == ENDED:
            self.end_text = self.codec.decode(body)
        else:
            raise ValueError(f"expected a kind of message, got {header.kind}")
        self.message = None
        self.settle()
        return 0

    cdef int complete(self, uint64_t number, object value, object error) except -1:
        cdef ProcessAnswer answer
        with self.mutex:
            answer = self.answers.pop(number)
            self.message = None  # from here on it is handled
            self.done += 1
            self.messages -= 1
            self.size -= answer.size
            if self.waiting:
                self.send_waiting()
        answer.complete(value, error)
        return 0

    cdef int note_handled(self, Py_ssize_t messages) except -1:
        cdef ProcessSubmission submission
        with self.mutex:
            if messages > self.told_messages:
                raise ValueError(f"expected at most {self.told_messages} messages that were told, got {messages}")
            self.message = None
            self.done += messages
            self.messages -= messages
            self.told_messages -= messages
            while messages > 0:
                submission = self.told.popleft()
                messages -= submission.messages
                self.size -= PyBytes_GET_SIZE(submission.body)
            self.send_waiting()
        return 0

    def find(self, uint64_t number):
        """Return the told submission with this number, unless it is known to be handled."""
        cdef ProcessSubmission submission
        with self.mutex:
            for submission in self.told:  # it is one of the first
                if submission.number >= number:
                    return submission if submission.number == number else None
        return None

    cdef int settle(self) except -1:
        """Complete what was sent, and note whether all is handled."""
        cdef list outcomes, rests = []
        cdef Future future
        while self.outcomes:
            with self.mutex:
                outcomes, self.outcomes = self.outcomes, []
            for future in outcomes:
                future.complete(None, None)
        with self.mutex:
            if self.is_busy and self.messages == 0 and not self.waiting:
                self.is_busy = False
                self.team.add_waiting(-1)
                rests, self.rests = self.rests, rests
        for future in rests:
            future.complete(None, None)
        return 0

    # --- the keeper of the process ------------------------------------------------------------------

    def keep(self, process):
        """Receive from a process, when no other thread does, until it has ended or is of no use."""
        cdef ByteChannel channel = process.channel
        cdef bint has_ended = False
        assert holds(self.channel is None)
        with self.mutex:
            self.channel = channel
        while True:
            with self.receiving:  # what woke this thread may be left to it
                self.receive(None)
            if has_ended or self.trouble or channel.is_broken:
                return self.trouble or self.end_text
            channel.sleep(process.alive)
            has_ended = process.has_ended()

    def end(self, str why):
        """Note that the process is gone. The asks to it fail, and told messages are lost."""
        cdef ProcessSubmission submission
        cdef ProcessAnswer answer
        with self.receiving:
            with self.mutex:
                self.channel, self.is_open, self.message = None, False, None
                self.trouble = self.end_text = ""
                self.unsent.clear()
                self.sent = 0
                told, self.told = self.told, deque()
                answers, self.answers = self.answers, {}
                self.messages = self.size = self.told_messages = 0
        lost = [submission for submission in told if not submission.is_lost]
        text = f"{why}; whether it was handled is unknown"
        self.on_loss(lost, ConnectionLost(text, sum([submission.messages for submission in lost])))
        for answer in answers.values():
            answer.complete(None, ConnectionLost(text))
        self.settle()

    def refuse(self, str why):
        """Have all further use, and what waits, fail by ConnectionLost."""
        cdef ProcessSubmission submission
        with self.mutex:
            if self.refusal is not None:
                return
            self.refusal = why
            waiting, self.waiting = self.waiting, OrderedDict()
        error = ConnectionLost(why)
        for submission in waiting.values():
            if submission.sent is not None:
                submission.sent.complete(None, error)
        self.on_loss([submission for submission in waiting.values() if submission.sent is None], error)
        self.settle()

    def _close_in_child(self):
        """In a forked child: the process is the parent's. A thread of the parent may have had the mutex."""
        self.channel = None
        self.refusal = "the pool is that of the process which was forked"


cdef bytes framed(int kind, Py_ssize_t messages, uint64_t number, bytes body):
    """Return a message: its header, and its body."""
    cdef Header header
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body)
    cdef bytes message = PyBytes_FromStringAndSize(NULL, sizeof(Header) + size)
    cdef char* at = PyBytes_AS_STRING(message)
    header.kind, header.messages, header.number = kind, messages, number
    memcpy(at, &header, sizeof(Header))
    memcpy(at + sizeof(Header), PyBytes_AS_STRING(body), size)
    return message
