"""A server on a state directory, for tests that start it again, and what they do with it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from callboard import ActorSystem
from callboard.remote import Connection, Server, ServerLimits, connect, serve_entries
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.store import StagingLimits
from tests.remote.conftest import DEADLINE, Notes, eventually


class Served:
    """A server on a state directory, started again and again."""

    def __init__(self, folder: Path, cls: type[Any]) -> None:
        self.folder = folder
        self.cls = cls
        self.starts = 0
        self.running: tuple[ActorSystem, Server, Connection] | None = None

    def start(
        self,
        cls: type[Any] | None = None,
        limits: ServerLimits | None = None,
        staging: StagingLimits | None = None,
        **options: Any,
    ) -> Connection:
        self.end()
        self.starts += 1
        system = ActorSystem(workers=1)
        try:
            ref = system.spawn(cls or self.cls, **options)
            server = Server(
                system,
                serve_entries({"it": ref, "notes": system.spawn(Notes)}),
                f"unix:{self.folder}/s{self.starts}",
                state=self.folder / "state",
                limits=limits,
                staging=staging,
            )
        except BaseException:
            system.stop()
            raise
        connection = connect(str(server.address), timeout=DEADLINE)
        self.running = system, server, connection
        return connection

    def end(self) -> None:
        """End it as a crash would: nothing is drained."""
        if self.running is not None:
            system, server, connection = self.running
            self.running = None
            connection.close()
            server.stop()
            system.stop(timeout=DEADLINE)

    def rows_left(self) -> list[int]:
        """Return the numbers of the batches whose rows are still in the journal."""
        self.end()
        journal = Journal(self.folder / "state" / "journal.db")
        numbers = [n for n in range(1, journal.last + 1) if journal.entries(n)]
        journal.close()
        return numbers


def commit(connection: Connection, batch: int, rows: Iterable[Any], entry: str = "it") -> None:
    with connection.upload(entry, job="job", batch=batch) as upload:
        upload.send_many(rows)
    assert upload.staged is not None
    connection.commit("job", batch, [upload.staged])


def asked(connection: Connection, query: Any = "total", name: str = "it") -> Any:
    return connection.ref(name).ask(query).result(DEADLINE)


def health(connection: Connection) -> dict[str, Any]:
    return connection.health().result(DEADLINE)


def applied(connection: Connection) -> None:
    eventually(lambda: health(connection)["unapplied"] == 0, "it is applied")
