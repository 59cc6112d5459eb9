"""Options of actors, given as attributes of their class or in the configuration."""

from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, ConfigError, SpawnError, Supervision


class Configured(Actor[Any]):
    mailbox = BoundedMailbox(1, overflow="drop_newest")
    supervision = "resume"
    dedicated = True

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError(message)
        worker = self.ref.worker
        return None if worker is None else worker.index


def test_a_class_s_attributes_are_its_actors_options(system: ActorSystem) -> None:
    ref = system.spawn(Configured)
    with pytest.raises(ValueError, match="fail"):
        ref.ask("fail").result(30.0)
    assert ref.ask("worker").result(30.0) >= len(system._runtime.team.workers)
    assert ref._room is None  # nobody waits for room: the mailbox drops


def test_options_of_the_spawn_win(system: ActorSystem) -> None:
    ref = system.spawn(Configured, dedicated=False, mailbox=BoundedMailbox(7))
    assert ref._room == 7
    assert ref.ask("worker").result(30.0) < len(system._runtime.team.workers)


def test_a_subclass_inherits_and_overrides(system: ActorSystem) -> None:
    class Sub(Configured):
        dedicated = False
        mailbox = None  # type: ignore[assignment]

    ref = system.spawn(Sub)
    assert ref.ask("worker").result(30.0) < len(system._runtime.team.workers)
    with pytest.raises(ValueError, match="fail"):
        ref.ask("fail").result(30.0)
    assert ref.is_alive


def test_methods_and_properties_of_these_names_are_the_author_s(system: ActorSystem) -> None:
    class Own(Actor[str]):
        __slots__ = ("supervision",)

        def mailbox(self) -> str:
            return "mine"

        @property
        def dedicated(self) -> str:
            return "to you"

        def receive(self, message: str) -> tuple[str, str]:
            return self.mailbox(), self.dedicated

    assert system.spawn(Own).ask("").result(30.0) == ("mine", "to you")


def test_a_wrong_attribute_is_an_error_at_the_spawn(system: ActorSystem) -> None:
    class Wrong(Actor[Any]):
        dedicated = "yes"

        def receive(self, message: Any) -> None:
            pass

    with pytest.raises(SpawnError, match="dedicated must be True or False, got 'yes'"):
        system.spawn(Wrong)


def test_the_configuration_s_win_over_all() -> None:
    tuned = {"dedicated": False, "supervision": {"directive": "restart", "limit": 3}}
    with ActorSystem(workers=1, config={"classes": {"Configured": tuned}}) as system:
        ref = system.spawn(Configured, dedicated=True, supervision="stop")
        assert ref.ask("worker").result(30.0) == 0
        with pytest.raises(ValueError, match="fail"):
            ref.ask("fail").result(30.0)
        assert ref.ask("worker").result(30.0) == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"dedicated": 1}, "dedicated of actors.box must be True or False, got 1"),
        ({"supervision": "hope"}, "supervision of actors.box: a directive must be .*got 'hope'"),
        ({"supervision": {"patience": 3}}, "supervision of actors.box: .*'patience'"),
        ({"supervision": 3}, "supervision of actors.box must be a table, got 3"),
    ],
)
def test_a_wrong_setting_is_an_error_of_the_configuration(options: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ActorSystem(workers=1, config={"actors": {"box": options}})


def test_a_directive_alone_may_be_configured() -> None:
    config = {"actors": {"box": {"supervision": "resume"}}}
    with ActorSystem(workers=1, config=config) as system:
        ref = system.spawn(Configured, name="box", supervision=Supervision("stop"))
        with pytest.raises(ValueError, match="fail"):
            ref.ask("fail").result(30.0)
        assert ref.ask("worker").result(30.0) >= 0
