"""Entry points in another process: a server, and connections with refs on it.

`python -m callboard serve app:build` runs a server; `connect()` makes a connection. The layers,
each importing only those before it: `errors`, `codec`, `packed_rows`, `frames` and `arrow`, values
and messages as bytes; `kinds`, `account`, `server_side`, `client_side` and `conversation`, the
protocol without input and output; `address`, `security`, `listening`, `handshake`, `dialing`,
`io_thread` and `link`, sockets; `entries`, `peer`, `client_actor` and `server`, who serves;
`session`, `remote_ref` and `client`, who is served.
`staging` has rows that count once, and those that actors publish: its `messages` and `publishing`
are part of the protocol, its `service` of the server, its `writer` and `published` of the client.
`sharding` has several servers that are one; `shard` says which of them a server is.
"""

from callboard.remote.client.connection import Connection, connect, connect_soon
from callboard.remote.client.published import PublishedRows
from callboard.remote.client.remote_ref import RemoteRef
from callboard.remote.client.writer import StageWriter
from callboard.remote.errors import (
    AddressError,
    BatchCommitted,
    CodecError,
    CommitConflict,
    ConnectionLost,
    NotPublished,
    NotStaged,
    ProtocolError,
    Refused,
    RemoteError,
    RemoteFailure,
    SecurityError,
    StageRefused,
    StateError,
)
from callboard.remote.protocol.server_side import ServerLimits
from callboard.remote.protocol.shard import Shard
from callboard.remote.protocol.staged_rows import Winner
from callboard.remote.sharding.connection import ShardedConnection, connect_sharded
from callboard.remote.sharding.keys import shard_of
from callboard.remote.sharding.ref import ShardedRef
from callboard.remote.sharding.stage import ShardedStage, ShardWinner
from callboard.remote.staging.persistent import KeyedRow, Persistent, RowKey, with_keys
from callboard.remote.storage.store import StagingLimits
from callboard.remote.wire.codec import Codec

__all__ = [
    "AddressError",
    "BatchCommitted",
    "Codec",
    "CodecError",
    "CommitConflict",
    "Connection",
    "ConnectionLost",
    "KeyedRow",
    "NotPublished",
    "NotStaged",
    "Persistent",
    "PublishedRows",
    "ServerLimits",
    "ProtocolError",
    "Refused",
    "RemoteError",
    "RemoteFailure",
    "RemoteRef",
    "RowKey",
    "SecurityError",
    "Shard",
    "ShardWinner",
    "ShardedConnection",
    "ShardedRef",
    "ShardedStage",
    "StageRefused",
    "StageWriter",
    "StagingLimits",
    "StateError",
    "Winner",
    "connect",
    "connect_sharded",
    "connect_soon",
    "shard_of",
    "with_keys",
]
