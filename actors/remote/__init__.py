"""Entry points in another process: a server, and connections with refs on it.

`python -m callboard serve app:build` runs a server; `connect()` makes a connection. The layers,
each importing only those before it: `errors`, `codec`, `packed_rows`, `frames` and `arrow`, values
and messages as bytes; `kinds`, `account`, `server_side`, `client_side` and `conversation`, the
protocol without input and output; `address`, `security`, `listening`, `handshake`, `dialing`,
`io_thread` and `link`, sockets; `entries`, `peer`, `client_actor` and `server`, who serves;
`session`, `remote_ref` and `client`, who is served.
`staging` has rows that count once, and those that actors publish: its `messages` and `publishing`
are part of the protocol, its `service` of the server, its `writer` and `published` of the client.
Errors are imported from `callboard.remote.errors`.
`sharding` has several servers that are one; `shard` says which of them a server is.
"""

from callboard.remote.client import Connection, connect, connect_soon
from callboard.remote.codec import Codec
from callboard.remote.entries import serve_entries
from callboard.remote.remote_ref import RemoteRef
from callboard.remote.server import Server
from callboard.remote.server_side import ServerLimits
from callboard.remote.shard import Shard
from callboard.remote.sharding.connection import ShardedConnection, connect_sharded
from callboard.remote.sharding.keys import shard_of
from callboard.remote.sharding.ref import ShardedRef
from callboard.remote.sharding.stage import ShardedStage, ShardWinner
from callboard.remote.staging.messages import Winner
from callboard.remote.staging.persistent import KeyedRow, Persistent, RowKey, with_keys
from callboard.remote.staging.published import PublishedRows
from callboard.remote.staging.store import StagingLimits
from callboard.remote.staging.writer import StageWriter

__all__ = [
    "Codec",
    "Connection",
    "KeyedRow",
    "Persistent",
    "PublishedRows",
    "RemoteRef",
    "RowKey",
    "Server",
    "ServerLimits",
    "Shard",
    "ShardWinner",
    "ShardedConnection",
    "ShardedRef",
    "ShardedStage",
    "StageWriter",
    "StagingLimits",
    "Winner",
    "connect",
    "connect_sharded",
    "connect_soon",
    "serve_entries",
    "shard_of",
    "with_keys",
]
