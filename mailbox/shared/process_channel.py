"""A child process, and the channel between it and its parent."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from callboard.core import child_process
from callboard.mailbox.shared.byte_channel import ByteChannel, memory_size


class ProcessChannel:
    """A process that has been started, and this end of a channel to it."""

    def __init__(
        self, module: str, spec: dict[str, Any], capacity: int, descriptors: Sequence[int] = ()
    ) -> None:
        """Start a process that calls `main(spec)` of a module, and inherits the descriptors. There
        `open_channel(spec)` is the other end, with `capacity` bytes in each direction. Raises
        OSError.
        """
        opened: list[int] = []
        try:
            memory = shared_memory(memory_size(capacity), opened)
            flags = os.EFD_CLOEXEC | os.EFD_NONBLOCK
            own = _called(os.eventfd, 0, flags)
            opened.append(own)
            other = _called(os.eventfd, 0, flags)
            opened.append(other)
            self.alive, childs = os.pipe()
            """Readable when the process has ended."""
            opened += [self.alive, childs]
            ends = {"memory": memory, "own": other, "other": own, "alive": childs}
            self.channel = ByteChannel(memory, capacity, own, other, True)
            self.process: subprocess.Popen[bytes] = child_process.start(
                module,
                {**spec, **ends, "capacity": capacity},
                [memory, own, other, childs, *descriptors],
            )
        except BaseException:
            for descriptor in opened:
                os.close(descriptor)
            raise
        os.close(memory)
        os.close(childs)
        self._opened = [own, other, self.alive]
        self._busy = 0.0

    def has_ended(self) -> bool:
        """Return whether the process has ended. It writes nothing to its pipe."""
        return is_closed(self.alive)

    def busy(self) -> float:
        """Return the processor time of the process so far, in seconds. Any thread."""
        if self.process.returncode is None:
            with suppress(OSError):  # it has just ended
                # The clock of another process: see clock_getcpuclockid(3).
                self._busy = time.clock_gettime(~self.process.pid << 3 | 2)
        return self._busy

    def want_end(self) -> None:
        """Close the standard input of the process, which shows it that its end is wanted."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def wait(self, seconds: float) -> str:
        """Wait for the end of the process, and kill it after some seconds. Return how it ended."""
        self.busy()  # it cannot be read any more when the process is gone
        is_broken = self.channel.is_broken
        if is_broken:
            self.process.kill()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.want_end()
        if is_broken:
            return "it wrote into shared memory what cannot be"
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"

    def close(self) -> None:
        """Close the descriptors, when no thread uses the channel any more."""
        while self._opened:
            os.close(self._opened.pop())


def shared_memory(size: int, made: list[int]) -> int:
    """Return the descriptor of memory that processes can share, and add it to `made`.

    It begins with zeros, and no process can take it away. Raises OSError.
    """
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    made.append(memory := _called(os.memfd_create, "callboard", flags))
    os.ftruncate(memory, size)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory


def _called(function: Callable[..., int], *arguments: Any) -> int:
    """Call a function of the operating system. A container may forbid it, so its error names it."""
    try:
        return function(*arguments)
    except OSError as error:
        raise OSError(error.errno, f"{function.__name__}: {error.strerror}") from error


def open_channel(spec: dict[str, Any]) -> ByteChannel:
    """Open this end of the channel from the parent. Its pipe stays open as long as the process."""
    alive: int = spec["alive"]
    os.set_inheritable(alive, False)
    os.register_at_fork(after_in_child=lambda: os.close(alive))  # its end is not this one's
    memory, own, other = spec["memory"], spec["own"], spec["other"]
    for descriptor in (memory, own, other):
        os.set_inheritable(descriptor, False)
    channel = ByteChannel(memory, spec["capacity"], own, other, False)
    os.close(memory)
    return channel


def is_closed(pipe: int) -> bool:
    """Return whether the other end of a pipe, into which nothing is written, is closed."""
    return bool(select.select([pipe], [], [], 0)[0])
