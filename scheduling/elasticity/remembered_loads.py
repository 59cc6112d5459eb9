"""Remembered measurements: the throughput of each level under each load, in earlier runs.

A load has no name. It is recognised by its throughput at one level.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.core.text import safe_str

_FORMAT = "callboard elasticity 1"
_SAME = 1.15
"""The throughputs of one load at one level differ by a smaller ratio."""
_MOST_LOADS = 16
_MOST_PROGRAMS = 64

_Loads = list[dict[int, float]]


def program_of(stages: Iterable[str]) -> str:
    """Return a short name for a program with these stages."""
    return hashlib.sha256("\n".join(stages).encode()).hexdigest()[:16]


class Remembered:
    """The throughputs of levels, for each load of each program, kept in an optional file.

    Raises ConfigError if the file is of another kind, and leaves it unchanged.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._programs: dict[str, _Loads] = {} if self._path is None else _read(self._path)

    def recall(self, program: str, level: int, throughput: float) -> Mapping[int, float] | None:
        """Return the throughputs under the known load that has `throughput` at `level`, if any."""
        near = [
            (max(load[level], throughput) / min(load[level], throughput), load)
            for load in self._programs.get(program, [])
            if level in load and throughput > 0
        ]
        ratio, load = min(near, key=lambda each: each[0], default=(_SAME, None))
        return load if ratio < _SAME else None

    def learn(self, program: str, throughputs: Mapping[int, float]) -> None:
        """Remember a load, instead of those that look the same."""
        kept = [
            load
            for load in self._programs.pop(program, [])
            if not any(
                level in load and max(load[level], value) < _SAME * min(load[level], value)
                for level, value in throughputs.items()
            )
        ]
        self._programs[program] = [*kept, dict(throughputs)][-_MOST_LOADS:]
        for oldest in list(self._programs)[:-_MOST_PROGRAMS]:
            del self._programs[oldest]
        if self._path is not None:
            try:
                _write(self._path, self._programs)
            except OSError as error:
                log.warning(
                    "elasticity could not be remembered", path=self._path, error=safe_str(error)
                )


def _read(path: Path) -> dict[str, _Loads]:
    if not path.parent.is_dir():
        raise ConfigError(f"elasticity cannot remember in {path}: there is no such folder")
    try:
        return _checked(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"elasticity cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not a file of elasticity's remembered levels; delete it, or name another"
        ) from error


def _checked(kept: Any) -> dict[str, _Loads]:
    """Return the contents of a file, or raise any error."""
    if kept["format"] != _FORMAT:
        raise ValueError(kept["format"])
    programs = {
        program: [{int(level): float(value) for level, value in load.items()} for load in loads]
        for program, loads in kept["programs"].items()
    }
    values = [each for loads in programs.values() for load in loads for each in load.items()]
    if not all(level >= 1 and 0 < value < float("inf") for level, value in values):
        raise ValueError("a level or throughput out of range")
    return programs


def _write(path: Path, programs: Mapping[str, _Loads]) -> None:
    """Replace the file atomically, so that a reader or a crash finds the old one or the new one."""
    text = json.dumps({"format": _FORMAT, "programs": programs}, indent=1)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
