"""The executor, which moves records from entity to entity, and the bases of nodes and of the states of entities."""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int64_t

from callboard.nets.kernel.record cimport MovingRecord, Shape, Shapes, Lineage

cdef extern from "callboard/core/tick_clock.hpp" namespace "callboard" nogil:
    cdef cppclass TickClock:
        int64_t now()


cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject** arguments, size_t number, PyObject* keywords)
    ctypedef struct PyTupleObject:
        PyObject** ob_item


cdef inline object apply(object function, tuple values):
    """Call a function that was made for the values of a shape."""
    return PyObject_Vectorcall(function, (<PyTupleObject*>values).ob_item, PyTuple_GET_SIZE(values), NULL)


cdef class Entity
cdef class EntityState
cdef class NetExecutor


cdef class NetNode:
    cdef readonly str path
    cdef public str place  # the same in more words, for errors
    cdef dict cache  # by shapes: what `specialize` returned
    cdef Shape last_shape
    cdef object last_specialized
    cdef object specialize  # a function of a shape
    cdef public object options  # of a box; the timeout of a synchrocell
    cdef public bint is_leaf  # a box, a filter or a synchrocell
    cdef public object consumed  # the labels that a box takes
    cdef public Py_ssize_t passed  # records that came to its entities
    cdef public Py_ssize_t alive  # its entities
    cdef public Py_ssize_t made
    # Boxes also have these. Other threads read them, and may see them of slightly different moments.
    cdef public Py_ssize_t running  # calls elsewhere that are at work
    cdef public Py_ssize_t waiting  # records for which none has begun
    cdef public Py_ssize_t calls  # of records; each is one try or more
    cdef public Py_ssize_t tries  # that have ended
    cdef public Py_ssize_t failures
    cdef public int64_t spent  # nanoseconds of all tries
    cdef public int64_t worst  # and of the longest one

    cdef void add_try(self, int64_t nanoseconds) noexcept
    cdef object specialized(self, Shape shape)
    cdef Entity entity(self, Entity after)
    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor)
    cdef Entity go_on(self, Entity at, MovingRecord record, NetExecutor executor)
    cdef int end_lineage(self, Entity at, Lineage lineage, NetExecutor executor) except -1


cdef class Entity:
    cdef NetNode node
    cdef Entity after  # where its outputs go
    cdef object inner  # the entities in it, once there are any
    cdef object state  # an EntityState; the function of a box's replica; whether a choice's initialisers have run

    cdef Entity following(self)


cdef class EntityState:
    cdef list contents(self)


cdef class KeptRecords(EntityState):
    cdef Py_ssize_t filled  # how many patterns have a record
    cdef list records  # for each pattern its record, or None


cdef class NetExecutor:
    cdef readonly Shapes shapes
    cdef MovingRecord top  # of the stack of records that wait to be moved
    cdef MovingRecord rests  # of the stack of those whose boxes have more outputs to give, if that is separate
    cdef public Py_ssize_t elsewhere  # records at boxes that run elsewhere
    cdef public Py_ssize_t max_elsewhere  # at this number, boxes with more outputs wait
    cdef readonly Py_ssize_t hops
    cdef Py_ssize_t until  # the number of hops at which this run() ends
    cdef readonly Py_ssize_t open  # lineages of records that entered the run and have not ended
    cdef public list outputs
    cdef public Py_ssize_t max_outputs
    cdef public list answered  # the asks whose records have ended
    cdef public set running  # calls of boxes elsewhere that have not ended
    cdef public list touched  # replicas of splits that may be in their first state: the split, and the value
    cdef public list calls  # of boxes that run elsewhere, to be made
    cdef public list unsent  # boxes that run in processes, and have records to be sent
    cdef public Entity first  # where records enter the net
    cdef public double now  # when the coordinator last began to work
    cdef TickClock ticks  # the time that boxes take, also on a manual system
    cdef readonly Py_ssize_t taken  # records of the latest `take`
    cdef public dict cells  # unfinished synchrocells by their timeouts, with the times of their first records
    cdef public object clock  # returns the time, in seconds
    cdef public object failed  # called with the entity's node, the record and the error
    cdef public bint keeps_lineage

    cpdef bint run(self, Py_ssize_t hops) except -1
    cdef void push(self, Entity at, MovingRecord record) noexcept
    cdef void push_rest(self, Entity at, MovingRecord record) noexcept
    cdef int ended(self, MovingRecord record) except -1
    cdef int release(self, Lineage lineage) except -1
    cdef int give_rest(self, Entity at, MovingRecord record) except -1
    cdef int move(self, Entity at, MovingRecord record) except -1
    cdef int enter(self, Entity at, MovingRecord record, object asked) except -1
    cdef int note_kept(self, Entity cell) except -1
    cdef int note_emptied(self, Entity cell) except -1
    cdef int note(self, MovingRecord record, NetNode node, str what) except -1
    cdef Entity fail(self, Entity at, MovingRecord record, object error)


cdef Entity new_entity(NetNode node, Entity after)
cdef Entity past(Entity entity)
cdef void dissolve(Entity entity, Entity after) noexcept
