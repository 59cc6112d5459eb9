"""A connection that was pickled, or that a fork has copied, reconnects."""

import copy
import os
import pickle
import signal
import threading

import pytest

from callboard.remote import Connection, Server, connect
from callboard.remote.client import connection as client
from callboard.remote.sharding.connection import ShardedConnection
from tests.remote.conftest import DEADLINE, Start


def test_a_pickled_ref_connects_anew_and_shares_the_connection(connection: Connection) -> None:
    refs = pickle.loads(pickle.dumps([connection.ref("notes"), connection.ref("others")]))
    assert refs[0].ask(1).result(DEADLINE) == 1
    assert refs[1].connection is refs[0].connection is not connection
    assert connection.ref("notes").ask("all").result(DEADLINE) == [1]
    refs[0].connection.close()


def test_a_copied_ref_is_itself_and_never_connects(connection: Connection, server: Server) -> None:
    ref = connection.ref("notes")
    sharded = ShardedConnection([connection]).ref("notes", by="key")
    for one in (connection, ref, sharded):
        assert copy.copy(one) is one
        assert copy.deepcopy([one]) == [one]
    assert ref.ask("one").result(DEADLINE) == "one"
    assert server.health()["accepted"] == 1


def test_a_secret_that_was_given_is_not_pickled(start: Start) -> None:
    secret = "0123456789abcdef" * 2
    connection = connect(str(start().address), secret=secret)
    with pytest.raises(TypeError, match="give secret_file="):
        pickle.dumps(connection)
    assert secret not in repr(connection)
    connection.close()


def test_a_fork_connects_anew(connection: Connection, server: Server) -> None:
    notes = connection.ref("notes")
    assert notes.ask("parent").result(DEADLINE) == "parent"
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if notes.ask("child").result(DEADLINE) == "child" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert server.health()["accepted"] == 2
    assert notes.ask("all").result(DEADLINE) == ["parent", "child"]
    assert server.health()["accepted"] == 2


def test_threads_of_a_forked_child_share_one_new_connection(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    other = threading.Thread(target=lambda: found.append(connection._own_session))

    class Copied:
        """What a fork has copied of the parent's session: the other thread comes upon it, too."""

        pid = -1

        def _close_in_child(self) -> None:
            if other.ident is None:
                other.start()
                other.join(0.2)  # it may have to wait for this thread

    parents = connection._own_session
    monkeypatch.setattr(connection, "_session", Copied())
    found.append(connection._own_session)
    other.join(DEADLINE)
    assert len(found) == 2
    assert found[0] is found[1]
    found[0].close()
    monkeypatch.setattr(connection, "_session", parents)


def test_a_fork_while_a_thread_unpickles_can_unpickle_too(connection: Connection) -> None:
    pickled = pickle.dumps(connection.ref("notes"))
    with client._known_lock:
        child = os.fork()
    if child == 0:
        signal.alarm(int(DEADLINE))
        try:
            os._exit(0 if pickle.loads(pickled).ask("child").result(DEADLINE) == "child" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
