"""The encoding of messages, with pickle for what it does not know."""

from __future__ import annotations

import pickle
from typing import Any

import msgpack

from callboard.remote.wire.codec import Codec

_PICKLED = 100  # an extension of these processes alone


class PicklingCodec(Codec):
    """The encoding of `callboard.remote`, where values of all other types are pickled.

    Only for processes that trust each other: what is unpickled may run any code.
    """

    def _encode_other(self, value: Any) -> msgpack.ExtType:
        return msgpack.ExtType(_PICKLED, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def _plain(self, code: int, data: bytes) -> Any:
        if code == _PICKLED:
            return pickle.loads(data)
        return super()._plain(code, data)


def make_codec(types: Any, pickles: bool) -> Codec:
    """Return the encoding of a pool's messages. Raises ConfigError for invalid `types`."""
    return PicklingCodec(types) if pickles else Codec(types)
