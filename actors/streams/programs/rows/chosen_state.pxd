# The program of an operator with a state that runs here, or in worker processes.
from callboard.streams.programs.program cimport DividedBatch
from callboard.streams.programs.rows.answers cimport PendingRound
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers
from callboard.streams.programs.rows.keyed_in_processes cimport KeyedInProcesses
from callboard.streams.programs.rows.stateful cimport Stateful


cdef class ChosenRound(PendingRound):
    cdef PendingRound there    # the round as it went to the processes; None: it has not


cdef class ChosenState(ProcessAnswers):
    cdef object make           # makes the program that runs here
    cdef Stateful local        # which is that, and has the states; None: they are in processes
    cdef ProcessAnswers away   # sends rounds to the processes
    cdef KeyedInProcesses keyed  # the same, or None without keys
    cdef Py_ssize_t most_away  # requests that processes may have at a time
    cdef bint is_counted       # a round has been in the processes, so the stage's figures come from here
    cdef list moves            # requests of a move that has begun; rounds wait until these are done

    cdef int use(self, Stateful local) except -1
    cdef int count_keys_of(self, DividedBatch divided) except -1
    cdef int follow(self, list requests) except -1
    cdef int run_here(self, ChosenRound taken) except -1
    cdef int try_hand_over(self, ChosenRound taken) except -1
    cdef int encode(self, PendingRound there) except -1
    cdef int move(self) except -1
    cdef bint has_moved(self) except -1
    cdef int note_place(self) except -1
