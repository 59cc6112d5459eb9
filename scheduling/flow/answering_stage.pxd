# A stage whose operator waits for answers: see answering_stage.hpp.
from callboard.scheduling.flow.stage cimport Stage

cdef extern from "callboard/scheduling/flow/answering_stage.hpp" namespace "callboard" nogil:
    cdef cppclass AnsweringStage(Stage):
        void call()
