from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Context

cdef enum Verdict:
    GO_ON      # handle user messages
    GAVE_UP    # the cell waits, and is not to be touched
    ENDED      # closed: only dead letters are left to make
    LATER      # constructing failed and is to be tried again: let others run first

cdef Verdict handle_system(ActorRef ref, Context* context) noexcept
