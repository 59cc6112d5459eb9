"""The carrier, which takes records from entity to entity, and what nodes and entities are to it."""

from libc.stdint cimport int64_t

from callboard.nets.kernel.record cimport MovingRecord, Shape, Shapes, Ticket

cdef extern from "callboard/core/tick_clock.hpp" namespace "callboard" nogil:
    cdef cppclass TickClock:
        int64_t now()


cdef class Entity
cdef class EntityState
cdef class Carrier


cdef class NetNode:
    cdef readonly str path
    cdef public str place  # the same in more words, for errors
    cdef dict plans  # by shapes: what to do with a record of that shape
    cdef Shape last_shape
    cdef object last_plan
    cdef public object planner  # makes a plan for a shape
    cdef public object options  # of a box; the timeout of a synchrocell
    cdef public bint is_leaf  # a box, a filter or a synchrocell
    cdef public object consumed  # the labels that a box takes
    cdef public Py_ssize_t passed  # records that came to its entities
    cdef public Py_ssize_t alive  # its entities
    cdef public Py_ssize_t made
    # Boxes have the following. Other threads read these, and may see them of slightly different moments.
    cdef public Py_ssize_t running  # calls elsewhere that are at work
    cdef public Py_ssize_t waiting  # records for which none has begun
    cdef public Py_ssize_t calls  # of records; each is one try or more
    cdef public Py_ssize_t tries  # that have ended
    cdef public Py_ssize_t failures
    cdef public int64_t spent  # nanoseconds of all tries
    cdef public int64_t worst  # and of the longest one

    cdef void took(self, int64_t nanoseconds) noexcept
    cdef object plan(self, Shape shape)
    cdef Entity entity(self, Entity after)
    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier)
    cdef Entity go_on(self, Entity at, MovingRecord record, Carrier carrier)
    cdef int over(self, Entity at, Ticket ticket, Carrier carrier) except -1


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


cdef class Carrier:
    cdef readonly Shapes shapes
    cdef MovingRecord top  # of the stack of records that wait to be carried on
    cdef MovingRecord rests  # of the stack of those whose boxes have more outputs to give, if they are apart
    cdef public Py_ssize_t elsewhere  # records at boxes that run elsewhere
    cdef public Py_ssize_t most_elsewhere  # as many have such boxes wait
    cdef readonly Py_ssize_t hops
    cdef Py_ssize_t until  # the number of hops at which this turn ends
    cdef readonly Py_ssize_t open  # tickets of records that entered the run and have not come to their end
    cdef public list outputs
    cdef public Py_ssize_t most_outputs
    cdef public list answered  # who asked for records that have come to their end
    cdef public set running  # calls of boxes elsewhere that are not over
    cdef public list touched  # replicas of splits that may be as they were made: the split, and the value
    cdef public list calls  # of boxes that run elsewhere, to be begun
    cdef public Entity first  # by which records enter the net
    cdef public double now  # when the turn began
    cdef TickClock ticks  # the time that boxes take, also on a manual system
    cdef readonly Py_ssize_t taken  # records of the latest `take`
    cdef public dict cells  # unfinished synchrocells by their timeouts, with the times of their first records
    cdef public object clock  # returns the time, in seconds
    cdef public object failed  # called with the entity's node, the record and the error
    cdef public bint uses_tickets

    cdef void push(self, Entity at, MovingRecord record) noexcept
    cdef void push_rest(self, Entity at, MovingRecord record) noexcept
    cdef int ended(self, MovingRecord record) except -1
    cdef int release(self, Ticket ticket) except -1
    cdef int give_rest(self, Entity at, MovingRecord record) except -1
    cdef int carry(self, Entity at, MovingRecord record) except -1
    cdef int enter(self, Entity at, MovingRecord record, object asked) except -1
    cdef int keep(self, Entity cell) except -1
    cdef int keep_no_more(self, Entity cell) except -1
    cdef int note(self, MovingRecord record, NetNode node, str what) except -1
    cdef Entity fail(self, Entity at, MovingRecord record, object error)


cdef Entity new_entity(NetNode node, Entity after)
cdef Entity past(Entity entity)
cdef void dissolve(Entity entity, Entity after) noexcept
