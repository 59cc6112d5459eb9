"""The encoding of messages, with pickle for what it does not know."""

from __future__ import annotations

import io
import pickle
from typing import Any

import msgpack

from callboard.pools.importing import MAIN
from callboard.remote.wire.codec import Codec

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
