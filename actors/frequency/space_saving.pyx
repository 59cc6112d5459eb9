"""The most frequent keys of a stream, in bounded memory: Space Saving.

Metwally, Agrawal and El Abbadi 2006, as Das et al. 2009 describe it in section 2.2. See counters.hpp.
"""

from cpython.object cimport PyObject, PyObject_Hash
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.core.mix cimport mix
from callboard.frequency.counting.counters cimport ByteCounters, IntegerCounters, ObjectCounters, no_slot
from callboard.frequency.encoding cimport append_key, key_of, read_integer, read_integers, read_runs
from callboard.frequency.counting.guard cimport SummaryGuard
from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.counting.object_keys cimport hash_of_object

import math
import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import islice
from numbers import Number

from callboard.core.checks import LARGEST, finite, whole
from callboard.core.text import safe_repr
from callboard.frequency.arrays import read_array
from callboard.frequency.packing import pack, unpack
from callboard.frequency.results import Counted, Estimate, Frequent

__all__ = ["SpaceSaving"]

# How its keys are kept: all of them integers; integers, texts, bytes and tuples of these as bytes; as objects.
cdef enum:
    undecided
    as_integers
    as_bytes
    as_objects

# Of an iterator, so many keys are counted at a time.
cdef Py_ssize_t LOT = 4096
# So few keys are counted sooner than the interpreter's lock is let go and taken again.
cdef size_t FEW = 64
cdef uint64_t MOST = LARGEST

# Keys that do not say how to hash them cannot be chosen to collide.
cdef uint64_t SEED = mix(int.from_bytes(os.urandom(8), "little"))


cdef class SpaceSaving:
    """Counts keys with at most `1 / epsilon` counters, rounded up, however many keys there are.

    Of `total` elements, no count is below how often its key came, and none is above it by more than
    `epsilon * total`; every key that came more often than that has a counter. `error` says for each
    how far above it may be. The counts add up to `total`, until summaries are merged.

    Keys are equal as Python's are. As long as all are integers of 64 bits, or integers, `str`,
    `bytes` and tuples of these, they are kept without a Python object; others, such as floats,
    make the summary keep the objects, for good. `epsilon` is from 1e-9 to below 1.

    Any thread may use a summary; one at a time is at work on it, and others wait. Integers from arrays,
    and keys from lists once they are read, are counted without the interpreter's lock. Code that runs
    in the middle of that, such as a key's `__eq__`, a finalizer or a signal handler, may count keys,
    which is done when the summary is free, and gets a RuntimeError if it asks for something.
    """

    cdef IntegerCounters* integers
    cdef ByteCounters* runs
    cdef ObjectCounters* objects
    cdef list kept              # of `objects`, by their slots
    cdef list owed              # what the thread in the guard is to count when it leaves
    cdef int mode
    cdef SummaryGuard guard
    cdef readonly double epsilon
    cdef readonly uint32_t capacity

    def __cinit__(self, *args, **kwargs):
        self.mode = undecided
        self.kept = []
        self.owed = []

    def __init__(self, epsilon):
        if self.capacity != 0:
            raise RuntimeError("a summary is made once")
        self.epsilon = float(finite("epsilon", epsilon))
        if not 1e-9 <= self.epsilon < 1:
            raise ValueError(f"epsilon is a number from 1e-9 to below 1, not {safe_repr(epsilon)}")
        # 1 / 1e-5 is a little less than 100,000: what is within a rounding of a whole number is that number.
        inverse = 1 / self.epsilon
        near = round(inverse)
        self.capacity = near if math.isclose(inverse, near, rel_tol=1e-12) else math.ceil(inverse)

    def __dealloc__(self):
        del self.integers
        del self.runs
        del self.objects

    # --- counting --------------------------------------------------------------------------------

    def update(self, keys, weights=None):
        """Count keys.

        `keys` is one key, if it is a `str`, `bytes` or tuple, or nothing that can be iterated; a
        mapping of keys to how often they came; or any other iterable, such as a list, a NumPy or
        Arrow array, a generator. `weights` says how often they came: a whole number from 0 on for
        one key, and as many of them as keys otherwise; without it, once.

        An error leaves the summary as it was, if `keys` is an array or a collection, and comparing keys
        raises none. Of another iterator what came before its error is counted, but for the
        lot of 4,096 that a key which cannot be hashed is in.

        Raises TypeError for a key that cannot be hashed and an array that holds no keys; ValueError for
        NaN, for a weight below 0, for weights that are more or fewer than keys, and for counts beyond
        2**63 - 1.
        """
        if isinstance(keys, (str, bytes, tuple)) or not isinstance(keys, Iterable):
            self.add(keys, 1 if weights is None else weights)
            return
        if weights is None and isinstance(keys, Mapping):
            items = list(keys.items())
            self._update([key for key, _ in items], [weight for _, weight in items])
            return
        keys = read_array(keys)
        if weights is not None:
            keys, weights = list(keys), list(weights)
            if len(keys) != len(weights):
                raise ValueError(f"{len(keys)} keys have as many weights, not {len(weights)}")
            self._update(keys, weights)
        elif type(keys) is memoryview:
            self._update_integers(keys)
        elif hasattr(keys, "__len__"):
            self._update(list(keys), None)
        else:
            rest = iter(keys)
            more = True
            while more:
                lot = []
                try:
                    lot.extend(islice(rest, LOT))
                finally:  # of a lot that ends with an error, too
                    self._update(lot, None)
                more = len(lot) == LOT

    def add(self, key, weight=1):
        """Count one key, of whatever type, `weight` times; the errors are those of `update`."""
        cdef uint64_t times = weight if type(weight) is int and 0 <= weight <= MOST else whole("a weight", weight, 0)
        cdef list _late = None
        if self.guard.is_mine():
            self._owe([key], [weight])
            return
        self._enter()
        try:
            self._check_total(times)
            if times != 0:
                _late = self._count_one(key, times)
            else:
                check_key(key)
        finally:
            self._leave()

    def merge(self, SpaceSaving other):
        """Count what the other summary has counted, too; it stays as it is.

        The bounds hold for all elements of both: of a key that only one has a counter for, the other may
        have seen as many as of its least. From then on counts add up to at most `total`. The other one's `epsilon`
        is at most this one's, or ValueError is raised.
        """
        if other is self:
            raise ValueError("a summary cannot be merged with itself")
        if other.epsilon > self.epsilon:
            raise ValueError(
                f"a summary of epsilon {self.epsilon} cannot keep its bounds with one of {other.epsilon}"
            )
        theirs, their_unseen, their_total = other._state()
        self._enter()
        try:
            self._check_total(their_total)
            mine, my_unseen, my_total = self._counters(), self._unseen(), self._total()
            counters = {each.key: (each.count + their_unseen, each.error + their_unseen) for each in mine}
            for key, count, error in theirs:
                if key in counters:
                    had, erred = counters[key]
                    counters[key] = (had + count - their_unseen, erred + error - their_unseen)
                else:
                    counters[key] = (count + my_unseen, error + my_unseen)
            greatest = sorted(counters.items(), key=lambda item: -item[1][0])[: self.capacity]
            self._load([Counted(key, *counts) for key, counts in greatest], my_total + their_total)
        finally:
            self._leave()

    # --- answers ---------------------------------------------------------------------------------

    def top(self, k):
        """Return the `k` keys with the greatest counts, or all, the greatest first, as `Counted`."""
        cdef uint32_t most = min(whole("k", k, 0), 0xffffffff)
        cdef vector[uint32_t] slots
        self._enter()
        try:
            if self.mode == as_integers:
                slots = self.integers.top(most)
            elif self.mode == as_bytes:
                slots = self.runs.top(most)
            elif self.mode == as_objects:
                slots = self.objects.top(most)
            return [self._counted(slot) for slot in slots]
        finally:
            self._leave()

    def frequent(self, share):
        """Return the keys that came more often than `share` of all elements, as `Frequent`.

        `share` is from `epsilon` to below 1: a key below `epsilon` may have no counter. Raises
        ValueError for another one.
        """
        given, share = share, float(finite("a share", share))
        if not self.epsilon <= share < 1:
            raise ValueError(f"a share is a number from epsilon, {self.epsilon}, to below 1, not {given!r}")
        cdef vector[uint32_t] slots
        cdef uint64_t bar
        answer = Frequent([], [])
        self._enter()
        try:
            bar = int(Fraction(share) * self._total())
            if self.mode == as_integers:
                slots = self.integers.above(bar)
            elif self.mode == as_bytes:
                slots = self.runs.above(bar)
            elif self.mode == as_objects:
                slots = self.objects.above(bar)
            for slot in slots:
                each = self._counted(slot)
                (answer.guaranteed if each.count - each.error > bar else answer.possible).append(each)
            return answer
        finally:
            self._leave()

    def estimate(self, key):
        """Return how often a key came, as `Estimate`; of one without a counter, how often it may have."""
        cdef uint32_t slot
        self._enter()
        try:
            slot = self._find(key)
            if slot == no_slot:
                unseen = self._unseen()
                return Estimate(unseen, unseen)
            counted = self._counted(slot)
            return Estimate(counted.count, counted.error)
        finally:
            self._leave()

    @property
    def total(self):
        """How many elements were counted, with their weights."""
        self._enter()
        try:
            return self._total()
        finally:
            self._leave()

    @property
    def unseen(self):
        """How often a key without a counter may have come."""
        self._enter()
        try:
            return self._unseen()
        finally:
            self._leave()

    def __len__(self):
        """Return how many keys have counters."""
        self._enter()
        try:
            return self._size()
        finally:
            self._leave()

    def __iter__(self):
        """Iterate over all counters as they are now, as `Counted`, in no order."""
        return iter(self._state()[0])

    def __repr__(self):
        counters, _, total = self._state()
        return (
            f"<{type(self).__name__} epsilon={self.epsilon!r}, {len(counters)} of {self.capacity} counters,"
            f" {total} elements>"
        )

    # --- elsewhere -------------------------------------------------------------------------------

    def to_bytes(self):
        """Return the summary as msgpack bytes, which `from_bytes` reads.

        Keys are integers of 64 bits, `str`, `bytes`, floats, booleans, None, and tuples of these; TypeError
        is raised for others, which pickle may take.
        """
        counters, _, total = self._state()
        return pack(self.epsilon, total, counters)

    @classmethod
    def from_bytes(cls, data):
        """Make a summary of what `to_bytes` returned. Raises ValueError for other bytes."""
        return restored(cls, *unpack(data))

    def copy(self):
        """Return another summary with the same counters."""
        counters, _, total = self._state()
        return restored(type(self), self.epsilon, total, counters)

    def __reduce__(self):
        counters, _, total = self._state()
        return restored, (type(self), self.epsilon, total, [tuple(each) for each in counters])

    # --- within the guard ------------------------------------------------------------------------

    cdef int _enter(self) except -1:
        if self.capacity == 0:
            raise RuntimeError("the summary was not made: __init__ was not called")
        if not self.guard.try_enter():
            if self.guard.is_mine():
                raise RuntimeError(
                    "this thread is at work on the summary, and a key's __eq__ or __hash__, a finalizer or a"
                    " signal handler asks it for something: it can only count keys"
                )
            with nogil:
                self.guard.enter()
        return 0

    cdef int _leave(self) except -1:
        self.guard.leave()
        while self.owed:
            self._update(*self.owed.pop(0))
        return 0

    cdef int _owe(self, list keys, weights) except -1:
        """Within the guard: count them later."""
        for key in keys:
            check_key(key)
        self.owed.append((keys, weights))
        return 0

    cdef uint32_t _size(self):
        if self.mode == as_integers:
            return self.integers.size()
        if self.mode == as_bytes:
            return self.runs.size()
        return self.objects.size() if self.mode == as_objects else 0

    cdef uint64_t _total(self):
        if self.mode == as_integers:
            return self.integers.total()
        if self.mode == as_bytes:
            return self.runs.total()
        return self.objects.total() if self.mode == as_objects else 0

    cdef uint64_t _unseen(self) except? 0:
        if self.mode == as_integers:
            return self.integers.unseen()
        if self.mode == as_bytes:
            return self.runs.unseen()
        return self.objects.unseen() if self.mode == as_objects else 0

    cdef object _counted(self, uint32_t slot):
        if self.mode == as_integers:
            return Counted(
                self.integers.key_of(slot), self.integers.count_of(slot), self.integers.error_of(slot)
            )
        if self.mode == as_bytes:
            return Counted(key_of(self.runs.key_of(slot)), self.runs.count_of(slot), self.runs.error_of(slot))
        return Counted(self.kept[slot], self.objects.count_of(slot), self.objects.error_of(slot))

    cdef list _counters(self):
        return [self._counted(slot) for slot in range(self._size())]

    def _state(self):
        """Return all counters, how often another key may have come, and the total, of one moment."""
        self._enter()
        try:
            return self._counters(), self._unseen(), self._total()
        finally:
            self._leave()

    cdef int _check_total(self, uint64_t more) except -1:
        """`more` is below 2**63."""
        if self._total() + more > MOST:
            raise ValueError(f"counts are at most 2**63 - 1: {self._total()} and {more} are more")
        return 0

    cdef uint32_t _find(self, key) except? 0:
        cdef string room
        cdef ByteRun run
        cdef uint32_t slot
        cdef Py_hash_t hash_of_key = PyObject_Hash(key)
        if self.mode == undecided:
            return no_slot
        if self.mode == as_objects:
            return self.objects.find(<PyObject*>key, hash_of_object(SEED, hash_of_key))
        if self.mode == as_integers and type(key) is int:
            return self.integers.find(key) if -LARGEST - 1 <= key <= LARGEST else no_slot
        if append_key(key, room, &run):
            if self.mode == as_integers:
                return no_slot
            if run.data == NULL:
                run.data = room.data()
            return self.runs.find(run)
        if key is None or type(key) is float and not key.is_integer():
            return no_slot
        if type(key) in (float, bool):
            return self._find(int(key))
        # One that is kept as such only in another mode may be equal to one that is here.
        for slot in range(self._size()):
            mine = self._counted(slot).key
            if PyObject_Hash(mine) == hash_of_key and mine == key:
                return slot
        return no_slot

    cdef int _be(self, int mode) except -1:
        """Keep keys in this way, if not in one that is for more."""
        if mode > self.mode:
            self._become(mode, self._counters(), self._total())
        return 0

    def _load(self, list counters, total):
        """Have these counters instead, of unequal keys, at most `capacity`; within the guard."""
        self._become(max(self.mode, mode_of([each[0] for each in counters])), counters, total)

    cdef int _become(self, int mode, list counters, uint64_t total) except -1:
        """Have these counters, kept in this way. An error changes nothing."""
        cdef SpaceSaving made = SpaceSaving.__new__(SpaceSaving)
        made.capacity = self.capacity
        made.mode = mode
        made._fill(counters, total)
        self.integers, made.integers = made.integers, self.integers
        self.runs, made.runs = made.runs, self.runs
        self.objects, made.objects = made.objects, self.objects
        self.kept, made.kept = made.kept, self.kept
        self.mode = mode
        return 0

    cdef int _fill(self, list counters, uint64_t total) except -1:
        """Put counters into a summary that has nothing but its mode."""
        cdef string room
        cdef ByteRun run
        cdef uint64_t key_hash
        if self.mode == as_integers:
            self.integers = new IntegerCounters(self.capacity, SEED)
            self.integers.set_total(total)
            for key, count, error in counters:
                self.integers.put(key, self.integers.hash(key), count, error)
        elif self.mode == as_bytes:
            self.runs = new ByteCounters(self.capacity, SEED)
            self.runs.set_total(total)
            for key, count, error in counters:
                room.clear()
                append_key(key, room, &run)
                if run.data == NULL:
                    run.data = room.data()
                self.runs.put(run, self.runs.hash(run), count, error)
        elif self.mode == as_objects:
            self.objects = new ObjectCounters(self.capacity, SEED)
            self.objects.set_total(total)
            for key, count, error in counters:
                key_hash = hash_of_object(SEED, PyObject_Hash(key))
                self.kept.append(key)
                self.objects.put(<PyObject*>key, key_hash, count, error)
        return 0

    def _update(self, list keys, weights):
        """Count the keys, which nobody else changes."""
        cdef vector[int64_t] numbers
        cdef vector[ByteRun] found
        cdef string room
        cdef list late = []
        cdef uint64_t more
        cdef Py_ssize_t i
        if weights is None:
            more = len(keys)
        else:
            weights = [whole("a weight", weight, 0) for weight in weights]
            more = min(sum(weights), MOST + 1)  # that is too many, too
        if self.guard.is_mine():
            self._owe(keys, weights)
            return
        self._enter()
        try:
            self._check_total(more)
            if self.mode <= as_integers and read_integers(keys, numbers):
                self._be(as_integers)
                self._count_integers(numbers, weights)
            elif self.mode <= as_bytes and read_runs(keys, found, room):
                self._be(as_bytes)
                self._count_runs(found, weights)
            else:
                for key in keys:
                    check_key(key)  # before anything is counted
                self._be(as_objects)
                for i in range(len(keys)):
                    self._count_object(keys[i], 1 if weights is None else weights[i], late)
        finally:
            self._leave()

    cdef list _count_one(self, object key, uint64_t weight):
        """Return what is to be let go outside the guard, as `_count_object` does, or None."""
        cdef int64_t number
        cdef ByteRun run
        cdef string room
        cdef list late
        if self.mode <= as_integers and read_integer(key, &number):
            self._be(as_integers)
            self.integers.add(number, weight)
        elif self.mode <= as_bytes and append_key(key, room, &run):
            self._be(as_bytes)
            if run.data == NULL:
                run.data = room.data()
            self.runs.add(run, weight)
        else:
            check_key(key)
            self._be(as_objects)
            late = []
            self._count_object(key, weight, late)
            return late
        return None

    cdef int _count_integers(self, vector[int64_t]& numbers, weights) except -1:
        cdef size_t i
        if weights is not None:
            for i in range(numbers.size()):
                if weights[i] != 0:
                    self.integers.add(numbers[i], weights[i])
        elif numbers.size() < FEW:
            self.integers.add_array(numbers.data(), numbers.size())
        else:
            with nogil:
                self.integers.add_array(numbers.data(), numbers.size())
        return 0

    cdef int _count_runs(self, vector[ByteRun]& found, weights) except -1:
        cdef size_t i
        if weights is not None:
            for i in range(found.size()):
                if weights[i] != 0:
                    self.runs.add(found[i], weights[i])
        elif found.size() < FEW:
            self.runs.add_array(found.data(), found.size())
        else:
            with nogil:
                self.runs.add_array(found.data(), found.size())
        return 0

    cdef int _count_object(self, object key, uint64_t weight, list late) except -1:
        """`late` gets what is to be let go outside the guard: an object's end may run code."""
        cdef uint64_t key_hash = hash_of_object(SEED, PyObject_Hash(key))
        cdef uint32_t slot = self.objects.find(<PyObject*>key, key_hash)
        cdef uint32_t used
        if weight == 0:
            return 0
        if slot == no_slot:  # there is room for it in the lists before the counter refers to it
            late.append(None)
            self.kept.append(key)
        try:
            used = self.objects.add_at(slot, <PyObject*>key, key_hash, weight)
        except BaseException:
            if slot == no_slot:
                self.kept.pop()
            raise
        if slot == no_slot and used != len(self.kept) - 1:
            late[len(late) - 1] = self.kept[used]
            self.kept[used] = key
            self.kept.pop()
        return 0

    cdef int _update_integers(self, const int64_t[::1] array) except -1:
        cdef size_t count = array.shape[0]
        if count == 0:
            return 0
        self._enter()
        try:
            self._check_total(count)
            if self.mode <= as_integers:
                self._be(as_integers)
                with nogil:
                    self.integers.add_array(&array[0], count)
                return 0
        finally:
            self._leave()
        self._update(list(array), None)
        return 0


cdef int mode_of(list keys) except -1:
    """How these keys can be kept. Raises TypeError for one that cannot be hashed."""
    cdef vector[int64_t] numbers
    cdef vector[ByteRun] found
    cdef string room
    if read_integers(keys, numbers):
        return as_integers
    if read_runs(keys, found, room):
        return as_bytes
    for key in keys:
        check_key(key)
    return as_objects


cdef int check_key(key) except -1:
    PyObject_Hash(key)
    if isinstance(key, Number) and key != key:
        raise ValueError(f"a key is equal to itself, not as {safe_repr(key)}")
    return 0


def restored(cls, epsilon, total, counters):
    """Make a summary of its parts, which were checked."""
    cdef SpaceSaving summary = cls(epsilon)
    # With counters to spare, nothing was ever taken over: all counts are exact.
    spare = summary.capacity - len(counters)
    if spare < 0 or spare > 0 and sum([count for _, count, _ in counters]) != total:
        raise ValueError(
            f"these bytes are not those of a summary: of {total} elements, {len(counters)} counters out of"
            f" {summary.capacity} say something else"
        )
    summary._enter()
    try:
        summary._load([Counted(*each) for each in counters], total)
    finally:
        summary._leave()
    return summary
