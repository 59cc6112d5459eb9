"""Exceptions raised by signal handlers, which must propagate where other errors are caught."""

from __future__ import annotations

import dis
import signal
import threading

# The instructions of statements that raise. A signal's exception appears between two instructions,
# or in a C call.
_RAISING = ("RAISE_VARARGS", "RERAISE")


def comes_from_signal(error: BaseException) -> bool:
    """Tell whether a signal's handler raised `error` in the main thread.

    Errors of handlers, of subscribers, and of `repr()` are caught. Those of Ctrl-C and SIGTERM are
    passed on, to end the program.
    """
    if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
        return False
    handlers = {
        code
        for number in signal.valid_signals()
        if (code := getattr(signal.getsignal(number), "__code__", None)) is not None
    }
    last = trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        last, trace = trace, trace.tb_next
    if last is None or not isinstance(error, KeyboardInterrupt):
        return False
    # Python's own handler of Ctrl-C has no frame.
    instruction = last.tb_frame.f_code.co_code[last.tb_lasti : last.tb_lasti + 1]
    return not instruction or dis.opname[instruction[0]] not in _RAISING
