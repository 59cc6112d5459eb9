"""The most frequent keys of a stream, in bounded memory: Space Saving.

Metwally, Agrawal and El Abbadi 2006, as Das et al. 2009 describe it in section 2.2. See counters.hpp.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string

from callboard.core.asserting cimport holds
from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.key_batch cimport (
    KeyBatch, append_key, are_plain, as_bytes, as_integers, as_objects, batch_of_array, batch_of_list,
    read_integer, undecided,
)
from callboard.frequency.store cimport Store, SummaryState, merged
from callboard.frequency.summary_locks cimport StreamSlots, no_stream

import math
from collections.abc import Iterable
from fractions import Fraction

from callboard.core.handles import public_names
from callboard.core.checks import LARGEST, finite, whole
from callboard.core.text import safe_repr
from callboard.core.threads.cores import usable_cores
from callboard.frequency.arrays import ArrowKeys, batches
from callboard.frequency.packing import pack, unpack
from callboard.frequency.results import Counted, Frequent

__all__ = ["SpaceSaving"]

# In the order of design.hpp.
DESIGNS = ("sequential", "partitioned")
MOST_STREAMS = 1024

cdef size_t ALL = 0xffffffff
cdef uint64_t MOST = LARGEST

# The number of keys of a list that are read and counted while they are in the core's cache.
cdef Py_ssize_t BATCH = 1024


cdef class SpaceSaving:
    """Counts keys with at most `1 / epsilon` counters, rounded up, for any number of keys.

    A count is never below the number of times that its key occurred, and exceeds it by at most `epsilon * total`. Every
    key that occurred more often than that has a counter. The `error` of a count is the most by which it may be too
    high. The counts add up to `total`, until summaries are merged.

    Keys are equal as in Python, but aware datetimes are equal if they are the same moment. As long as all keys are
    64-bit integers, `str`, `bytes` or tuples of these, they are stored without Python objects. From the first other key
    on, such as a float, the summary stores the objects.

    Thread-safe. Integers from arrays, and keys from lists once they are read, are counted without the interpreter's
    lock. Keys that are stored as objects are counted by one thread at a time. Other code may run during that: a key's
    `__eq__`, a finalizer or a signal handler. The keys that such code counts are added when the summary is free; a
    query by it raises RuntimeError.

    An answer includes all keys for which `update` and `add` have returned, and perhaps some that are currently being
    counted.

    Args:
        epsilon: From 1e-9 to below 1.
        streams: The number of threads that can count at once, 1 to 1,024. Others wait.
        design: How streams share the counters: see `docs/frequency.md`. "auto" is "sequential" for one stream, and
            "partitioned" for more.

    Raises ValueError for other arguments.
    """

    def __dir__(self):
        return public_names(self)

    def __cinit__(self, *args, **kwargs):
        self.mode = undecided
        self.postponed = []

    def __init__(self, epsilon, *, streams=1, design="auto"):
        if self.capacity != 0:
            raise RuntimeError("__init__ was called twice")
        self.epsilon = float(finite("epsilon", epsilon))
        if not 1e-9 <= self.epsilon < 1:
            raise ValueError(f"epsilon expects a number from 1e-9 to below 1, got {safe_repr(epsilon)}")
        self.streams = whole("streams", streams, 1, MOST_STREAMS)
        if not isinstance(design, str) or design not in ("auto", *DESIGNS):
            raise ValueError(f"design: expected one of auto, {', '.join(DESIGNS)}, got {safe_repr(design)}")
        self.design = ("sequential" if self.streams == 1 else "partitioned") if design == "auto" else str(design)
        self.one_at_a_time = self.design == "sequential"
        # 1 / 1e-5 is a little less than 100,000: a value within a rounding of a whole number is that number.
        inverse = 1 / self.epsilon
        near = round(inverse)
        capacity = near if math.isclose(inverse, near, rel_tol=1e-12) else math.ceil(inverse)
        self.store = Store(DESIGNS.index(self.design), capacity, self.streams, usable_cores())
        self.slots = new StreamSlots(1 if self.one_at_a_time else self.streams)
        self.capacity = capacity

    def __dealloc__(self):
        del self.slots

    # --- counting --------------------------------------------------------------------------------

    def update(self, keys, weights=None):
        """Count keys.

        An error leaves the summary unchanged, if `keys` is an array or a collection, and comparing keys raises no
        error. For an iterator, the keys before its error are counted, except those of the batch of 4,096 in which a
        key cannot be hashed.

        Args:
            keys: A mapping of keys to their weights, or another iterable of keys, such as a list, a NumPy or Arrow
                array, or a generator. A `str`, `bytes` or tuple is one key, and so is an object that is not iterable.
            weights: How often the keys occurred: a whole number of at least 0 for one key, otherwise one for each key.
                By default 1.

        Raises:
            TypeError: A key cannot be hashed, or the items of an array are not keys.
            ValueError: A key is NaN, a weight is below 0, there are more or fewer weights than keys, or counts reach
                2**63.
        """
        cdef Py_ssize_t at
        if isinstance(keys, (str, bytes, tuple)) or not isinstance(keys, Iterable):
            self.add(keys, 1 if weights is None else weights)
            return
        if type(keys) is list and weights is None and len(keys) > BATCH and self._takes_all_of(keys):
            for at in range(0, len(keys), BATCH):
                self._update(keys[at : at + BATCH], None)
            return
        for batch, their_weights in batches(keys, weights):
            if type(batch) is memoryview:
                self._update_integers(batch)
            elif type(batch) is ArrowKeys:
                for array in batch:
                    self._count_batch(batch_of_array(array, self.mode))
            else:
                self._update(batch, their_weights)

    def add(self, key, weight=1):
        """Count one key, of any type, `weight` times. Raises the errors of `update`."""
        cdef uint64_t times = weight if type(weight) is int and 0 <= weight <= MOST else whole("a weight", weight, 0)
        cdef int64_t number
        cdef ByteRun run
        cdef string room
        cdef unsigned stream
        if self.mode == as_integers and times != 0 and not self.guard.is_mine() and read_integer(key, &number):
            self._admit(times)
            stream = self._take_stream()
            try:
                if self.store.mode == as_integers:
                    self.store.integers.add(stream, &number, &times, 1)
                    return
            finally:
                self.slots.give_back(stream)
            self.slots.retract(times)
        elif self.mode == as_bytes and times != 0 and not self.guard.is_mine() and append_key(key, room, &run):
            if run.data == NULL:
                run.data = room.data()
            self._admit(times)
            stream = self._take_stream()
            try:
                if self.store.mode == as_bytes:
                    self.store.runs.add(stream, &run, &times, 1)
                    return
            finally:
                self.slots.give_back(stream)
            self.slots.retract(times)
        self._update([key], [times])

    def merge(self, SpaceSaving other):
        """Add the counts of another summary, which is not changed.

        The bounds hold for all elements of both. If only one has a counter for a key, the other may have seen that key
        as often as its least frequent one. From then on, counts add up to at most `total`. Raises ValueError if the
        other summary's `epsilon` is above this one's.
        """
        if other is self:
            raise ValueError("a summary cannot be merged with itself")
        if other.epsilon > self.epsilon:
            raise ValueError(
                f"a summary of epsilon {self.epsilon} cannot keep its bounds with one of {other.epsilon}"
            )
        cdef SummaryState theirs = other._state()
        cdef SummaryState mine
        cdef bint is_admitted = False
        self._enter(alone=True)
        try:
            mine = self.store.whole()
            self._admit(theirs.total)
            is_admitted = True
            self._load(merged(mine, theirs, self.capacity))
        except BaseException:
            if is_admitted:
                self.slots.retract(theirs.total)
            raise
        finally:
            self._leave(alone=True)

    # --- answers ---------------------------------------------------------------------------------

    def top(self, k):
        """Return the `k` keys with the greatest counts, in descending order, as `Counted`."""
        return self._ask(min(whole("k", k, 0), ALL), 0).rows

    def frequent(self, support):
        """Return the keys above the fraction `support` of all elements, as `Frequent`.

        `support` is from `epsilon` to below 1, since a key below `epsilon` may have no counter. Raises ValueError for
        another number.
        """
        given, support = support, float(finite("support", support))
        if not self.epsilon <= support < 1:
            raise ValueError(f"support expects a number from epsilon, {self.epsilon}, to below 1, got {given!r}")
        cdef SummaryState found = self._ask(ALL, support)
        bar = int(Fraction(support) * found.total)
        answer = Frequent([], [])
        for each in found.rows:
            (answer.guaranteed if each.count - each.error > bar else answer.possible).append(each)
        return answer

    def estimate(self, key):
        """Return how often a key occurred, as `Counted`; for a key without a counter, how often it may have."""
        self._enter()
        try:
            return self.store.estimate(key)
        finally:
            self._leave()

    @property
    def total(self):
        """The number of elements counted, with their weights."""
        self._enter()
        try:
            return self.store.total()
        finally:
            self._leave()

    @property
    def unseen(self):
        """The most times that a key without a counter may have occurred."""
        return self._ask(0, 0).unseen

    def __len__(self):
        """Return the number of keys with counters."""
        self._enter()
        try:
            return self.store.size()
        finally:
            self._leave()

    def __iter__(self):
        """Iterate over all counters as `Counted`, the greatest count first."""
        return iter(self._ask(ALL, 0).rows)

    def __repr__(self):
        cdef SummaryState state = self._ask(ALL, 0)
        return (
            f"<{type(self).__name__} epsilon={self.epsilon!r}, {len(state.rows)} of {self.capacity} counters,"
            f" {state.total} elements>"
        )

    # --- elsewhere -------------------------------------------------------------------------------

    def to_bytes(self):
        """Return the summary as msgpack bytes, which `from_bytes` reads.

        Keys may be 64-bit integers, `str`, `bytes`, floats, booleans, None, and tuples of these. Raises TypeError for
        others; pickle may accept them.
        """
        cdef SummaryState state = self._state()
        return pack(self.epsilon, state.total, state.unseen, state.rows)

    @classmethod
    def from_bytes(cls, data, *, streams=1, design="auto"):
        """Make a summary from the bytes of `to_bytes`. Raises ValueError for other bytes."""
        epsilon, total, unseen, rows = unpack(data)
        options = {} if (streams, design) == (1, "auto") else {"streams": streams, "design": design}
        return (<SpaceSaving?>cls(epsilon, **options))._with(total, unseen, rows)

    def copy(self):
        """Return another summary with the same counters."""
        make, arguments, *attributes = self.__reduce__()
        copied = make(*arguments)
        for each in attributes:
            copied.__dict__.update(each)
        return copied

    def __reduce__(self):
        cdef SummaryState state = self._state()
        options = {"streams": self.streams, "design": self.design}
        arguments = (type(self), self.epsilon, options, state.total, state.unseen, [tuple(each) for each in state.rows])
        attributes = getattr(self, "__dict__", None)  # a subclass's
        return (restored, arguments, attributes) if attributes else (restored, arguments)

    def _with(self, total, unseen, rows):
        if len(rows) > self.capacity:
            raise ValueError(
                f"these bytes are not those of a summary: expected at most {self.capacity} counters for epsilon"
                f" {self.epsilon}, got {len(rows)}"
            )
        self._enter(alone=True)
        try:
            self.slots.admit_first(total)
            self._load(SummaryState([Counted(*each) for each in rows], total, unseen))
        finally:
            self._leave(alone=True)
        return self

    # --- within the guard ------------------------------------------------------------------------

    cdef int _enter(self, bint alone=False) except -1:
        """Enter the guard, to ask; `alone` to change the store."""
        if self.capacity == 0:
            raise RuntimeError("the summary was not made: __init__ was not called")
        if not self.guard.try_enter():
            if self.guard.is_mine():
                raise RuntimeError(
                    "this thread is using the summary, and a key's __eq__ or __hash__, a finalizer or a"
                    " signal handler asks it a question, but may only count keys"
                )
            with nogil:
                self.guard.enter()
        assert holds(self.guard.is_mine())
        if alone or self.one_at_a_time:
            with nogil:
                self.slots.take_all()
        return 0

    cdef int _leave(self, bint alone=False) except -1:
        assert holds(self.guard.is_mine())
        if alone or self.one_at_a_time:
            self.slots.give_back_all()
        self.guard.leave()
        while self.postponed:
            batch = self._next_postponed()
            if batch is not None:
                self._count_batch(batch)
        return 0

    cdef KeyBatch _next_postponed(self):
        """The next batch that this or another thread postponed within the guard; None if another one takes the last."""
        with cython.critical_section(self):
            return self.postponed.pop(0) if self.postponed else None

    cdef SummaryState _ask(self, size_t most, double support):
        self._enter()
        try:
            return self.store.ask(most, support)
        finally:
            self._leave()

    cdef SummaryState _state(self):
        """All counters, the total, and how often another key may have come, while no thread counts."""
        self._enter(alone=True)
        try:
            return self.store.whole()
        finally:
            self._leave(alone=True)

    cdef int _be(self, int mode) except -1:
        """Keep keys in this way, if not in one that is for more. Alone. An error changes nothing."""
        assert holds(self.guard.is_mine() and self.mode == self.store.mode)
        if mode > self.store.mode:
            self.store = self.store.widened(mode)
            self.mode = mode
        return 0

    cdef int _load(self, SummaryState state) except -1:
        """Have these counters instead, of unequal keys, at most `capacity`. Alone. An error changes nothing."""
        cdef KeyBatch keys = batch_of_list([each[0] for each in state.rows], None, self.store.mode)
        self.store = self.store.loaded(keys.mode, state)
        assert holds(self.guard.is_mine() and self.store.size() <= self.capacity)
        self.mode = keys.mode
        return 0

    cdef bint _takes_all_of(self, list keys) except -1:
        """Whether no key of them will be refused, so that they can be counted one batch after another."""
        if self.capacity == 0 or not self.slots.admit(len(keys)):
            return False
        self.slots.retract(len(keys))
        return are_plain(keys)

    # --- counting, with a slot -------------------------------------------------------------------

    cdef int _admit(self, uint64_t elements) except -1:
        if self.capacity == 0:
            raise RuntimeError("the summary was not made: __init__ was not called")
        if elements > MOST or not self.slots.admit(elements):
            raise ValueError(f"counts are at most 2**63 - 1: {self.slots.admitted()} and {elements} are more")
        return 0

    cdef unsigned _take_stream(self) noexcept:
        cdef unsigned stream = self.slots.try_take()
        if stream == no_stream:
            with nogil:
                stream = self.slots.take()
        assert holds(stream < <unsigned>max(<int>self.streams, 1))
        return stream

    def _update(self, list keys, weights):
        """Count keys, in a list that other threads do not change."""
        self._count_batch(batch_of_list(keys, weights, self.mode))

    cdef int _count_batch(self, KeyBatch batch) except -1:
        if self.guard.is_mine():
            self.postponed.append(batch)
            return 0
        self._admit(batch.total)
        while batch.mode != as_objects:
            if self._count(batch):
                return 0
            if batch.mode < self.mode:  # which has changed
                batch.read(self.mode)
            else:
                self._enter(alone=True)
                try:
                    self._be(batch.mode)
                finally:
                    self._leave(alone=True)
        return self._count_objects(batch)

    cdef bint _count(self, KeyBatch batch) except -1:
        """False: the store does not keep such keys, or no longer."""
        cdef unsigned stream
        if batch.mode != self.mode:
            return False
        stream = self._take_stream()
        try:
            if batch.mode != self.store.mode:
                return False
            self.store.add(stream, batch)
            return True
        finally:
            self.slots.give_back(stream)

    cdef int _count_objects(self, KeyBatch batch) except -1:
        cdef list _late = []
        cdef Py_ssize_t i
        cdef bint alone = self.mode != as_objects
        cdef uint64_t before, times
        self._enter(alone)
        before = self.store.total()
        try:
            if alone:
                self._be(as_objects)
            for i in range(len(batch.keys)):
                times = 1 if batch.column.weights.empty() else batch.column.weights[i]
                self.store.add_object(batch.keys[i], times, _late)
        except BaseException:
            self.slots.retract(batch.total - (self.store.total() - before))
            raise
        finally:
            self._leave(alone)
        return 0

    cdef int _update_integers(self, array) except -1:
        cdef const int64_t[::1] numbers = array
        cdef size_t count = numbers.shape[0]
        cdef unsigned stream
        if count == 0:
            return 0
        if self.mode == undecided and not self.guard.is_mine():
            self._update([numbers[0]], None)
            return self._update_integers(array[1:])
        if self.mode == as_integers and not self.guard.is_mine():
            self._admit(count)
            stream = self._take_stream()
            try:
                if self.store.mode == as_integers:
                    self.store.add_array(stream, &numbers[0], count)
                    return 0
            finally:
                self.slots.give_back(stream)
            self.slots.retract(count)
        self._update(list(array), None)
        return 0


def restored(cls, epsilon, options, total, unseen, rows):
    """Make a summary of its parts, without a call to a subclass's `__init__`."""
    cdef SpaceSaving summary = cls.__new__(cls)
    SpaceSaving.__init__(summary, epsilon, **options)
    return summary._with(total, unseen, rows)
