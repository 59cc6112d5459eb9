"""The encoding of states: that of messages between processes, and what rows of streams may be."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from callboard.frequency.results import Counted, Estimate, Frequent
from callboard.streams.errors import FailedRow
from callboard.streams.programs.program import Watermark
from callboard.streams.programs.windows.window import Window

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types


def state_codec(types: Types = ()) -> Codec:
    """Make a codec. `types` are dataclasses, enumerations, classes of exceptions and NamedTuples.

    The package with the encoding is imported here, since few runs have snapshots. Raises
    ConfigError for other types.
    """
    from callboard.remote.wire.codec import Codec, named

    codec = Codec({"callboard.FailedRow": FailedRow})
    codec.add("callboard.Watermark", Watermark, lambda mark: [mark.time], Watermark)
    for ours in (Window, Counted, Estimate, Frequent):
        codec.add(f"callboard.{ours.__name__}", ours, tuple, ours)
    codec.add_later("pyarrow.lib.RecordBatch", _batch_parts, _batch_from)
    for name, found in vars(builtins).items():
        if isinstance(found, type) and issubclass(found, Exception):
            codec.add(f"builtins.{name}", found, _arguments, found)
    for name, cls in named(types):
        if isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
            codec.add(name, cls, tuple, cls)
        elif isinstance(cls, type) and issubclass(cls, Exception):
            codec.add(name, cls, _arguments, cls)
        else:
            codec.register(name, cls, exactly=True)
    return codec


def _arguments(error: Exception) -> Iterable[Any]:
    return error.args


def _batch_parts(batch: Any) -> list[bytes]:
    """Return the bytes of a record batch: a stream of Arrow's, which names the columns.

    Raises CodecError for a column of a type that is not read here.
    """
    import pyarrow as pa

    from callboard.remote.wire.arrow_columns import check_types

    check_types(batch.schema)  # of others none could be read
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return [sink.getvalue().to_pybytes()]


def _batch_from(data: bytes) -> Any:
    """Make a record batch again. Raises CodecError."""
    from callboard.remote.wire.arrow_ipc import read_batches

    (batch,) = read_batches(data, is_trusted=True)
    return batch
