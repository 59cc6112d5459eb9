"""The options of `format("callboard")`: texts, under names in lower case, as Spark has them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.remote import Connection, ShardedConnection, connect, connect_sharded
from callboard.remote.protocol.shard import MOST, Shard
from callboard.remote.protocol.staged_rows import BatchName, checked_name
from callboard.remote.sockets.address import parse_address

CONNECTION = frozenset({"url", "entry", "secretfile", "cafile", "timeout"})
"""The options of all reads and writes."""
BY = frozenset({"by"})
"""The option of writes to several servers."""
_SPARKS = frozenset({"checkpointlocation", "queryname"})  # of streams, which come beside ours


class RemoteEntry(NamedTuple):
    """An entry point of a server, or of the shards of one, and the arguments of `connect`."""

    urls: tuple[str, ...]
    entry: str
    connection: dict[str, Any]
    by: str | tuple[str, ...] | None = None
    """The column of a row's key, or several; None for one server, and where nothing is written."""

    def connect(self) -> Connection | ShardedConnection:
        """Connect, as `callboard.remote.connect` does, or to all shards, as `connect_sharded`."""
        if len(self.urls) == 1:
            return connect(self.urls[0], **self.connection)
        return connect_sharded(self.urls, **self.connection)

    def connect_to(self, shard: int) -> Connection:
        """Connect to one of the servers."""
        if len(self.urls) == 1:
            return connect(self.urls[0], **self.connection)
        return connect(self.urls[shard], shard=str(Shard(shard, len(self.urls))), **self.connection)


@dataclass(frozen=True)
class SourceOptions:
    """A user's options. Each error names the option, and its value where it is known."""

    said: Mapping[str, str]

    def place(self, more: Set[str] = frozenset()) -> RemoteEntry:
        """Return where the rows go to or come from; `more` may be said beside that.

        Raises ConfigError, also for an option that is neither.
        """
        self._refuse_others(CONNECTION | more)
        for name in ("url", "entry"):
            if not self.said.get(name):
                raise ConfigError(f"the option {name!r} is missing")
        urls = self._names("url")
        for url in urls:
            try:
                parse_address(url)
            except CallboardError as error:
                raise ConfigError(f"the option 'url': {error}") from None
        if len(urls) > MOST:
            raise ConfigError(f"the option 'url' names {MOST} servers at most, not {len(urls)}")
        connection: dict[str, Any] = {
            ours: self.said[name]
            for name, ours in (("secretfile", "secret_file"), ("cafile", "ca_file"))
            if name in self.said
        }
        if "timeout" in self.said:
            connection["timeout"] = self._seconds("timeout")
        return RemoteEntry(urls, self.said["entry"], connection, self._key(urls, more))

    def load(self) -> BatchName | None:
        """Return the batch that a user has named: a `job`, and a `batch` or 0."""
        if "job" not in self.said:
            if "batch" in self.said:
                raise ConfigError(f"the option 'batch', {self.said['batch']!r}, needs a 'job'")
            return None
        batch = self.whole("batch", 0, -(2**63), 2**63 - 1)
        try:
            return checked_name(self.said["job"], batch)
        except ValueError as error:
            raise ConfigError(f"the option 'job': {error}") from None

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return an option that is a whole number."""
        text = self.said.get(name)
        if text is None:
            return default
        try:
            number: Any = int(text)
        except ValueError:
            number = text
        return checks.whole(f"the option {name!r}", number, least, most, error=ConfigError)

    def switch(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        text = self.said.get(name, str(default)).lower()
        checks.one_of(f"the option {name!r}", text, ("true", "false"), error=ConfigError)
        return text == "true"

    def _key(self, urls: tuple[str, ...], more: Set[str]) -> str | tuple[str, ...] | None:
        """Return the value of `by`, which writes to several servers want, and others refuse."""
        if not more >= BY:
            return None
        if "by" not in self.said:
            if len(urls) > 1:
                raise ConfigError(
                    f"the option 'by' is missing: 'url' names {len(urls)} servers, and a row goes "
                    "to that of its key, which is in the column that 'by' names"
                )
            return None
        if len(urls) == 1:
            raise ConfigError(
                f"the option 'by', {self.said['by']!r}, is for several servers, and 'url' names one"
            )
        names = self._names("by")
        return names[0] if len(names) == 1 else names

    def _names(self, name: str) -> tuple[str, ...]:
        """Return an option's parts, which have commas between them."""
        names = tuple(part.strip() for part in self.said[name].split(","))
        if not all(names):
            raise ConfigError(f"the option {name!r} names nothing in a place: {self.said[name]!r}")
        return names

    def _seconds(self, name: str) -> float:
        text = self.said[name]
        try:
            number: Any = float(text)
        except ValueError:
            number = text
        return checks.seconds(f"the option {name!r}", number, error=ConfigError)

    def _refuse_others(self, known: Set[str]) -> None:
        if "secret" in self.said:
            raise ConfigError(
                "a secret is no option, as Spark shows options in its plans: name a file in "
                "'secretfile', or set CALLBOARD_SECRET_FILE or CALLBOARD_SECRET for the driver and "
                "the executors"
            )
        for name in self.said:  # and not its value, which may be a secret
            if name not in known | _SPARKS:
                raise ConfigError(
                    f"the option {name!r} is not known here; the options are "
                    f"{', '.join(sorted(known))}"
                )
