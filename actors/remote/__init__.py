"""Entry points in another process: a server, and connections with refs to its actors.

`python -m callboard serve app:build` runs a server; `connect()` makes a connection. The folders,
each of which imports only those before it:

`errors`     the public errors
`wire`       values, rows and record batches as bytes, and bytes as frames
`protocol`   the messages between client and server, without I/O
`sockets`    addresses and sockets, and the threads that read and write them
`storage`    the state on disk: staged rows, the journal of commits, published rows
`staging`    entry points, and the delivery of staged rows to them
`client`     connections, refs, uploads and published rows
`server`     the server, and the command that runs it
`sharding`   several servers used as one
"""

from callboard.remote.client.connection import Connection, aconnect, connect
from callboard.remote.client.published import PublishedRows
from callboard.remote.client.remote_ref import RemoteRef
from callboard.remote.client.writer import UploadWriter
from callboard.remote.protocol.requests import StagedAttempt
from callboard.remote.protocol.server_side import ServerLimits
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

__all__ = [
    "Connection",
    "KeyedRow",
    "PersistentActor",
    "PublishedRows",
    "RemoteRef",
    "RowKey",
    "Server",
    "ServerLimits",
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
