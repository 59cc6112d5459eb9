"""The options of `format("callboard")`: strings with lower-case names, as Spark passes them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.remote.protocol.requests import BatchName, checked_name
from callboard.remote.protocol.shard import MOST
from callboard.remote.sockets.address import parse_address
from callboard.spark.source.remote_entry import RemoteEntry

CONNECTION = frozenset({"url", "entry", "secretfile", "cafile", "timeout"})
"""The options of all reads and writes."""
BY = frozenset({"by"})
"""The option of writes to several servers."""
_SPARKS = frozenset({"checkpointlocation", "queryname"})  # of streams, which come beside ours


@dataclass(frozen=True)
class SourceOptions:
    """A user's options. Each error names the option, and its value where it is known."""

    values: Mapping[str, str]

    def remote_entry(self, more: Set[str] = frozenset()) -> RemoteEntry:
        """Return the entry point of the rows; `more` are other known options.

        Raises ConfigError, also for an unknown option.
        """
        self._refuse_others(CONNECTION | more)
        for name in ("url", "entry"):
            if not self.values.get(name):
                raise ConfigError(f"the option {name!r} is missing")
        urls = self._names("url")
        for address in urls:
            try:
                parse_address(address)
            except CallboardError as error:
                raise ConfigError(f"the option 'url': {error}") from None
        if len(urls) > MOST:
            raise ConfigError(f"the option 'url' must name at most {MOST} servers, got {len(urls)}")
        connection: dict[str, Any] = {
            argument: self.values[name]
            for name, argument in (("secretfile", "secret_file"), ("cafile", "ca_file"))
            if name in self.values
        }
        if "timeout" in self.values:
            connection["timeout"] = self._seconds("timeout")
        url = urls[0] if len(urls) == 1 else urls
        return RemoteEntry(url, self.values["entry"], connection, self._key(urls, more))

    def batch_name(self) -> BatchName | None:
        """Return the batch named by `job` and `batch`, or 0; None without `job`."""
        if "job" not in self.values:
            if "batch" in self.values:
                raise ConfigError(f"the option 'batch', {self.values['batch']!r}, needs a 'job'")
            return None
        batch = self.whole("batch", 0, -(2**63), 2**63 - 1)
        try:
            return checked_name(self.values["job"], batch)
        except ValueError as error:
            raise ConfigError(f"the option 'job': {error}") from None

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return an option that is a whole number."""
        text = self.values.get(name)
        if text is None:
            return default
        try:
            number: Any = int(text)
        except ValueError:
            number = text
        return checks.whole(f"the option {name!r}", number, least, most, error=ConfigError)

    def switch(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        text = self.values.get(name, str(default)).lower()
        checks.one_of(f"the option {name!r}", text, ("true", "false"), error=ConfigError)
        return text == "true"

    def _key(self, urls: tuple[str, ...], more: Set[str]) -> str | tuple[str, ...] | None:
        """Return the value of `by`, which writes to several servers need, and others refuse."""
        if not more >= BY:
            return None
        if "by" not in self.values:
            if len(urls) > 1:
                raise ConfigError(
                    f"the option 'by' is missing: 'url' names {len(urls)} servers, and a row goes "
                    "to the one of its key, which is in the column that 'by' names"
                )
            return None
        if len(urls) == 1:
            raise ConfigError(
                f"the option 'by', {self.values['by']!r}, is for several servers: 'url' names one"
            )
        names = self._names("by")
        return names[0] if len(names) == 1 else names

    def _names(self, name: str) -> tuple[str, ...]:
        """Return an option's parts, separated by commas."""
        names = tuple(part.strip() for part in self.values[name].split(","))
        if not all(names):
            raise ConfigError(f"the option {name!r} has an empty part: {self.values[name]!r}")
        return names

    def _seconds(self, name: str) -> float:
        text = self.values[name]
        try:
            number: Any = float(text)
        except ValueError:
            number = text
        return checks.seconds(f"the option {name!r}", number, error=ConfigError)

    def _refuse_others(self, known: Set[str]) -> None:
        if "secret" in self.values:
            raise ConfigError(
                "a secret is not an option, as Spark shows options in its plans: name a file in "
                "'secretfile', or set CALLBOARD_SECRET_FILE or CALLBOARD_SECRET for the driver and "
                "the executors"
            )
        for name in self.values:  # and not its value, which may be a secret
            if name not in known | _SPARKS:
                raise ConfigError(
                    f"the option {name!r} is not known here; the options are "
                    f"{', '.join(sorted(known))}"
                )
