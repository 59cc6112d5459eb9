"""Entry points in another process: a server, and connections with refs on it.

`python -m callboard serve app:build` runs a server; `connect()` makes a connection. The rooms, in
which nothing imports what stands after it:

`errors`     what can be wrong; import errors from here
`wire`       values, rows and record batches as bytes, and bytes as messages
`protocol`   what client and server say to each other, without input and output
`sockets`    addresses and sockets, and the threads that read and write them
`storage`    what is on disk: staged rows, the journal of commits, published rows
`staging`    what a server offers, and how rows that count once come to it
`client`     connections, refs, uploads and published rows, as a program has them
`server`     the server, and the command that runs it
`sharding`   several servers that are one
"""

from callboard.remote.client.connection import Connection, aconnect, connect
from callboard.remote.client.published import PublishedRows
from callboard.remote.client.remote_ref import RemoteRef
from callboard.remote.client.writer import UploadWriter
from callboard.remote.protocol.server_side import ServerLimits
from callboard.remote.protocol.shard import Shard
from callboard.remote.protocol.staged_rows import StagedAttempt
from callboard.remote.server.server import Server
from callboard.remote.sharding.connection import (
    ShardAttempt,
    ShardedConnection,
    ShardedUpload,
    aconnect_sharded,
    connect_sharded,
)
from callboard.remote.sharding.keys import shard_of
from callboard.remote.sharding.ref import ShardedRef
from callboard.remote.staging.entries import serve_entries
from callboard.remote.staging.persistent import KeyedRow, PersistentActor, RowKey, with_keys
from callboard.remote.storage.store import StagingLimits
from callboard.remote.wire.codec import Codec

__all__ = [
    "Codec",
    "Connection",
    "KeyedRow",
    "PersistentActor",
    "PublishedRows",
    "RemoteRef",
    "RowKey",
    "Server",
    "ServerLimits",
    "Shard",
    "ShardAttempt",
    "ShardedConnection",
    "ShardedRef",
    "ShardedUpload",
    "StagedAttempt",
    "StagingLimits",
    "UploadWriter",
    "aconnect",
    "aconnect_sharded",
    "connect",
    "connect_sharded",
    "serve_entries",
    "shard_of",
    "with_keys",
]
