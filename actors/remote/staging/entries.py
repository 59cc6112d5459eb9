"""The entry points of a server: actors, other recipients, and entries of running graphs."""

from __future__ import annotations

from collections.abc import Mapping
from operator import length_hint
from typing import Any

from callboard import ActorRef, Future
from callboard.core.errors import ConfigError, MailboxFull
from callboard.core.text import safe_repr, safe_str
from callboard.recipient import Recipient, is_recipient
from callboard.remote.errors import RemoteError
from callboard.remote.staging.persistent import KeyedRef, PersistentActor, checked_class
from callboard.streams.running.run import Run


class ServedEntry:
    """An entry point of a server, by its name: it takes messages, and may answer."""

    room: int | None = None
    """The number of messages that have room; None without a limit."""

    def tell(self, values: list[Any]) -> Future[None] | None:
        """Tell all values. Returns a future if they are told later."""
        raise NotImplementedError

    def ask(self, value: Any) -> Future[Any]:
        """Ask."""
        raise NotImplementedError

    def in_turn(self) -> Future[None] | None:
        """Return a future that is done when all earlier messages are handled.

        None: there is nothing to wait for.
        """
        return None

    def note_begun(self, peer: Any, sequence: int, values: list[Any]) -> None:
        """Note that these values of a client's delivery are about to be passed on."""

    def note_done(self, peer: Any, sequence: int) -> None:
        """Note that all of a delivery is handled, before its client learns it."""


def failures_of(entries: Mapping[str, ServedEntry]) -> dict[Run[Any], str]:
    """Return the failed graphs, each with a text: its entry, and the failure with its cause."""
    found: dict[Run[Any], str] = {}
    for name, entry in entries.items():
        if isinstance(entry, GraphEntry) and (failure := entry.run.failure) is not None:
            why = failure.__cause__
            text = f"the graph of {name!r} has failed: {safe_str(failure)}"
            cause = "" if why is None else f": {type(why).__qualname__}: {safe_str(why)}"
            found.setdefault(entry.run, f"{text}{cause}")
    return found


class ActorEntry(ServedEntry):
    """An actor that clients tell and ask."""

    def __init__(self, ref: ActorRef[Any], has_keys: bool = False) -> None:
        self.ref = ref
        self.has_keys = has_keys
        """Whether staged rows come with their keys."""

    @property
    def room(self) -> int | None:  # type: ignore[override]
        """The number of messages that have room; None without a limit."""
        return self.ref._room

    def tell(self, values: list[Any]) -> None:
        """Tell all values. Raises MailboxFull, by the mailbox's policy.

        The refused value, and those behind it, are dead letters then.
        """
        left = iter(values)
        try:
            if len(values) == 1:
                self.ref.tell(next(left))
            else:
                self.ref.tell_many(left)
        except MailboxFull as error:
            for value in values[-1 - length_hint(left) :]:
                self._refuse(value, error)
            raise

    def _refuse(self, value: Any, error: MailboxFull) -> None:
        system = self.ref.system
        if system is not None:
            system.dead_letters.post(value, self.ref, None, "refused", error)

    def ask(self, value: Any) -> Future[Any]:
        """Ask."""
        return self.ref.ask(value)

    def in_turn(self) -> Future[None]:
        """Return a future that is done when all earlier messages are handled."""
        return self.ref._fence()


class PersistentEntry(ActorEntry):
    """A PersistentActor, whose state only staged rows change."""

    def __init__(self, ref: ActorRef[Any]) -> None:
        """Serve `ref`. Raises ConfigError for an invalid class."""
        checked_class(ref.actor_class)
        super().__init__(ref)

    def tell(self, values: list[Any]) -> None:
        """Refuse."""
        raise RemoteError(
            f"{self.ref.actor_class.__name__} is a PersistentActor: only committed rows change it, "
            "and it can be asked"
        )


class RecipientEntry(ServedEntry):
    """A recipient outside of this process, such as a ref on another server."""

    def __init__(self, recipient: Recipient[Any]) -> None:
        self.recipient = recipient

    def tell(self, values: list[Any]) -> Future[None] | None:
        """Tell all values, or start to, and return a future."""
        atell_many = getattr(self.recipient, "atell_many", None)
        if atell_many is None:
            self.recipient.tell_many(values)
            return None
        told: Future[None] = atell_many(values)
        return told

    def ask(self, value: Any) -> Future[Any]:
        """Ask."""
        return self.recipient.ask(value)


class GraphEntry(ServedEntry):
    """An entry of a running graph. Its window holds up a client that sends too much."""

    def __init__(self, run: Run[Any], name: str) -> None:
        self.run = run
        self._name = name

    def tell(self, values: list[Any]) -> None:
        """Send rows into the graph, and wait for room in it. Raises RunError."""
        self.run.send(self._name, values)

    def ask(self, value: Any) -> Future[Any]:
        """Refuse: a row of a graph has no answer."""
        raise RemoteError(f"the graph's entry {self._name!r} takes rows, and does not answer")


Entry = ActorEntry | RecipientEntry | GraphEntry


def serve_entries(built: Any) -> dict[str, Entry]:
    """Return the entry points for a Server, by name, from the result of `build`.

    The result is a ref or another Recipient, the run of a graph, or a dict of these by name. A
    single ref is served by its own name, and a run's entries by theirs. The entries of a run in a
    dict are named `run/entry`, unless the run has only one entry. Raises ConfigError.
    """
    if is_recipient(built) and isinstance(name := getattr(built, "name", None), str):
        return {name: _entry_of(built)}
    if isinstance(built, Run):
        return {name: GraphEntry(built, name) for name in built.entries}
    if not isinstance(built, Mapping) or not built:
        raise ConfigError(
            "build must return a ref, another recipient with a name, the run of a graph, or a dict "
            f"of names and these, got {safe_repr(built)}"
        )
    entries: dict[str, Entry] = {}
    for name, one in built.items():
        is_served = is_recipient(one) or isinstance(one, KeyedRef | Run)
        if not isinstance(name, str) or not name or not is_served:
            raise ConfigError(
                "build must return a dict of names and recipients or runs, got "
                f"{safe_repr(name)}: {safe_repr(one)}"
            )
        if isinstance(one, KeyedRef):
            entries[name] = ActorEntry(one.ref, has_keys=True)
        elif not isinstance(one, Run):
            entries[name] = _entry_of(one)
        elif len(one.entries) == 1:
            entries[name] = GraphEntry(one, one.entries[0])
        else:
            entries |= {f"{name}/{own}": GraphEntry(one, own) for own in one.entries}
    return entries


def _entry_of(recipient: Recipient[Any]) -> ActorEntry | RecipientEntry:
    if not isinstance(recipient, ActorRef):
        return RecipientEntry(recipient)
    is_persistent = issubclass(recipient.actor_class, PersistentActor)
    return PersistentEntry(recipient) if is_persistent else ActorEntry(recipient)
