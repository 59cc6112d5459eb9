"""The encoding of messages, with pickle for types that it does not know.

A worker process finds a class by its name, as `multiprocessing` with spawn does.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import runpy
import sys
import types
from typing import Any

import msgpack

from callboard.core.errors import CallboardError, SpawnError
from callboard.remote.wire.codec import Codec

# The name that a script's module has where it is imported, and not run: as in multiprocessing.
MAIN = "__mp_main__"


def place_of(cls: type) -> list[str]:
    """Return the module and the qualified name of a class. Raises SpawnError if no other process
    can import it.
    """
    module, name = cls.__module__, cls.__qualname__
    what = f"{module}.{name}"
    if "<locals>" in name:
        raise SpawnError(
            f"{what} is defined in a function: define it in a module, as the processes of a pool "
            "import it by its name"
        )
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not cls:
        raise SpawnError(
            f"{what} cannot be found by its name, by which a pool's processes import it"
        )
    if module == "__main__" and not main_place():
        raise SpawnError(
            f"{what} is defined in an interactive session, or by `python -c`: put it into a "
            "module, as the processes of a pool import it by its name"
        )
    return [module, name]


def main_place() -> dict[str, str]:
    """Return where this program's main module is found: its name, or its path; or nothing."""
    main = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:  # of a package that was run, the main module only runs
        return {} if name.endswith("__main__") else {"name": name}
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):
        return {}
    return {"path": os.path.abspath(path)}


def import_main(place: dict[str, str]) -> None:
    """Import the program's main module, under another name, so that it does not run."""
    if sys.modules["__main__"].__name__ == MAIN or not place:
        return
    old = sys.modules["__main__"]
    module = types.ModuleType(MAIN)
    if "name" in place:
        content = runpy.run_module(place["name"], run_name=MAIN, alter_sys=True)
    else:
        content = runpy.run_path(place["path"], run_name=MAIN)
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules[MAIN] = module
    module.__dict__.setdefault("__file__", getattr(old, "__file__", None))


def import_class(module: str, name: str) -> type:
    """Return the class of that name. Raises CallboardError if it is not there."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise CallboardError(f"{module} has no {name}")
        found = getattr(found, part)
    cls: type = found
    return cls


def refuse_if_imported() -> None:
    """Raise CallboardError in a process that is importing its program's main module."""
    if _imports.running:
        raise CallboardError(
            "a worker process of a pool imports the program, and so must not start a pool: put the "
            'program\'s start under `if __name__ == "__main__":`'
        )


class _Imports:
    running = False


_imports = _Imports()


def import_all(spec: dict[str, Any]) -> type:
    """Return the class that a spec names, after importing the program's main module."""
    _imports.running = True
    try:
        import_main(spec["main"])
        return import_class(*spec["class"])
    finally:
        _imports.running = False


_PICKLED = 100  # an extension of these processes alone


class _Unpickler(pickle.Unpickler):
    """Finds what the program's own file has: a process of the pool has that under another name."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function of that name. Raises AttributeError and ImportError."""
        return super().find_class("__main__" if module == MAIN else module, name)


class PicklingCodec(Codec):
    """The encoding of `callboard.remote`, where values of all other types are pickled.

    Only for processes that trust each other: what is unpickled may run any code.
    """

    def _encode_other(self, value: Any) -> msgpack.ExtType:
        return msgpack.ExtType(_PICKLED, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def _plain(self, code: int, data: bytes) -> Any:
        if code == _PICKLED:
            return _Unpickler(io.BytesIO(data)).load()
        return super()._plain(code, data)


def make_codec(types: Any, pickles: bool) -> Codec:
    """Return the encoding of a pool's messages. Raises ConfigError for invalid `types`."""
    return PicklingCodec(types) if pickles else Codec(types)
