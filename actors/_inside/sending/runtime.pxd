from libc.stdint cimport uint32_t, uint64_t

from callboard._inside.answers.pending_asks cimport Deadlines
from callboard.scheduling.handle cimport ClassTimes
from callboard.scheduling.team cimport Team


cdef class Runtime:
    # Its parts.
    cdef readonly Team team
    cdef readonly str name
    cdef readonly object dead_letters
    cdef readonly Deadlines timers
    cdef readonly object config
    cdef readonly bint manual
    cdef uint32_t quantum
    # Settings of `config` that are looked at often.
    cdef readonly bint counted         # count every mailbox
    cdef readonly bint carrying        # messages bring their senders' context variables
    cdef readonly bint notes_channels  # monitoring notes what actors do with channels
    cdef readonly bint tuned           # the configuration has options for some actors
    # Parts of modules above this one, which the system adds as soon as it is made.
    cdef public object system_ref      # weak
    cdef public object placement       # of actors for which spawn() names no other
    cdef public object spawner         # behind spawn() of actors
    cdef public object event_loop      # of the actors that were spawned with one
    cdef public object records         # of the workers, where there are some: see statistics.py
    # Hooks: None, or set by the module that is named, and called from here.
    cdef public object on_change        # when the last top-level actor ended, or one escalated: system.py
    cdef public object on_spawn         # after each spawn, once somebody waits for an actor: directory.py
    cdef public object spans            # around handlers: observing/opentelemetry.py
    cdef public tuple scans             # weak references to what counts ended actors: observing/scan.pyx
    cdef public object circles          # looks for circles of full channels: channels/wait.pyx
    cdef public uint32_t sampled_every  # one message of this many is a sample; 0: none. See observing/tracing
    # How it goes.
    cdef public object failure         # what escalated past the last actor
    cdef public bint closing           # no new actors
    cdef public bint closed            # the workers are gone
    cdef public bint forked
    cdef dict children                 # top-level actors, in the order of their spawning
    cdef dict times                    # of each class of actors, by its name: see times_of()
    cdef dict names                    # (parent or None, name) -> ref
    cdef uint64_t last_number

    cdef int tell_change(self) except -1
    cdef str ending(self)
    cdef uint64_t next_number(self) noexcept
    cdef ClassTimes times_of(self, str name)
