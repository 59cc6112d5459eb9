"""Odd failures are reported: texts that cannot be sent, and messages that a mailbox refuses."""

from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DeadLetter, MailboxFull, Supervision
from callboard.remote import (
    Connection,
    PersistentActor,
    Server,
    ServerLimits,
    connect,
    serve_entries,
)
from callboard.remote.errors import RemoteCallError
from tests.remote.conftest import DEADLINE, Gate, ask_twice, eventually

_NAME = "caf\udce9"  # as os.listdir() has the name of a file that is not in UTF-8


class Failing(Actor[Any]):
    def receive(self, text: str) -> None:
        raise ValueError(_NAME if text == "name" else text * 20)  # longer than a frame


class FailingToApply(PersistentActor):
    def apply(self, row: int) -> None:
        raise ValueError(_NAME + "x" * row)  # longer than a frame

    def snapshot(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


def _served(system: ActorSystem, path: Path, ref: Any, **options: Any) -> tuple[Server, Connection]:
    server = Server(system, serve_entries({"it": ref}), f"unix:{path}/s", **options)
    return server, connect(str(server.address), timeout=DEADLINE)


def test_a_failure_with_a_surrogate_in_its_text_is_answered(tmp_path: Path) -> None:
    with ActorSystem() as system:
        ref = system.spawn(Failing, supervision=Supervision("resume"))
        server, connection = _served(system, tmp_path, ref)
        with connection:
            with pytest.raises(RemoteCallError, match=r"ValueError: caf\\udce9"):
                connection.ref("it").ask("name").result(DEADLINE)
            connection.flush()  # its credit has come back
        server.stop()


@pytest.mark.parametrize("letter", ["x", "🙂"])
def test_a_failure_whose_text_is_longer_than_a_frame_is_cut(tmp_path: Path, letter: str) -> None:
    with ActorSystem() as system:
        ref = system.spawn(Failing, supervision=Supervision("resume"))
        limits = ServerLimits(frame=4096, bytes=4096 * 8)
        server, connection = _served(system, tmp_path, ref, limits=limits)
        with connection:
            with pytest.raises(RemoteCallError, match="ValueError: " + letter * 400):
                connection.ref("it").ask(letter * 500).result(DEADLINE)
            assert server.health()["accepted"] == 1
        server.stop()


def test_the_health_says_of_a_batch_with_an_odd_failure_what_fits(tmp_path: Path) -> None:
    with ActorSystem() as system:
        limits = ServerLimits(frame=4096, bytes=4096 * 8)
        state = tmp_path / "state"
        server, connection = _served(
            system, tmp_path, system.spawn(FailingToApply), limits=limits, state=state
        )
        with connection:
            with connection.upload("it", job="job") as upload:
                upload.send_many([100_000])
            assert upload.staged is not None
            connection.commit("job", 0, [upload.staged])
            health = connection.health().result(DEADLINE)
            while health["state"] == "serving":
                health = connection.health().result(DEADLINE)
            assert health["state"] == "failing"
            assert "cannot be applied: caf\\udce9xxx" in health["trouble"]
        server.stop()


def test_a_refusal_by_a_mailbox_is_a_dead_letter(connection: Connection, server: Server) -> None:
    letters: list[DeadLetter] = []
    server._system.dead_letters.subscribe(letters.append)
    refusing = connection.ref("refusing")
    refusing.tell(1)
    eventually(lambda: Gate.seen == [1], "the gate has its first message")
    refusing.tell_many([2, 3, 4])  # of which one fills the mailbox
    with pytest.raises(RemoteCallError, match="MailboxFull"):
        ask_twice(connection)
    refusing.tell(5)
    eventually(lambda: len(letters) == 3, "three are refused")
    assert [(letter.message, letter.reason) for letter in letters] == [
        (number, "refused") for number in (3, 4, 5)
    ]
    assert all(isinstance(letter.error, MailboxFull) for letter in letters)
    Gate.opened.set()
    with pytest.raises(RemoteCallError, match="MailboxFull"):
        connection.flush(DEADLINE)
    connection.flush(DEADLINE)
    assert Gate.seen == [1, 2]
