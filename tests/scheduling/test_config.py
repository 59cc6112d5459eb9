"""The configuration: its settings, their precedence, and errors of wrong ones."""

import importlib
import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, ConfigError, MailboxFull
from callboard.core.threads.cores import usable_cores
from callboard.policies import Blocks, Fifo, PlacementPolicy, RoundRobin, Weighted
from callboard.scheduling.config import Config
from callboard.scheduling.flow.heuristics import EstimatedTime


class Box(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


class Parser(Box):
    pass


def index_of(ref: ActorRef[Any]) -> int:
    assert ref.worker is not None
    return ref.worker.index


@pytest.fixture
def toml(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "callboard.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


# --- what is set --------------------------------------------------------------------------------


def test_without_settings_there_are_plain_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.scheduling.config.usable_cores", usable_cores)
    config = Config.load()
    assert config.workers == usable_cores()
    assert (config.threading, config.quantum, config.monitoring) == ("dynamic", 64, "off")
    assert config.cpu_affinity is False
    assert isinstance(config.placement_policy(), RoundRobin)
    assert isinstance(config.priority_policy(), Fifo)
    assert not config.counted
    assert not config.tuned


def test_the_configuration_wins_over_the_code(toml: Any) -> None:
    path = toml("""
        workers = 3
        monitoring = "times"
        placement = { policy = "blocks", size = 2 }
    """)
    with ActorSystem(workers=1, quantum=7, placement="round_robin", config=path) as system:
        assert system.config.workers == 3
        assert system.config.quantum == 7
        assert system.statistics().monitoring == "times"
        assert [index_of(system.spawn(Box)) for _ in range(5)] == [0, 0, 1, 1, 2]


def test_a_dict_does_what_a_file_does(toml: Any) -> None:
    path = toml("""
        workers = 2
        drain_timeout = 5

        [placement]
        policy = "blocks"
        size = 3

        [priority]
        policy = "weighted"
        ageing = 4

        [classes.Parser]
        priority = 2
        mailbox = { capacity = 10, overflow = "fail" }
    """)
    tree = {
        "workers": 2,
        "drain_timeout": 5,
        "placement": {"policy": "blocks", "size": 3},
        "priority": {"policy": "weighted", "ageing": 4},
        "classes": {"Parser": {"priority": 2, "mailbox": {"capacity": 10, "overflow": "fail"}}},
    }
    from_file = Config.load(path, mailbox=BoundedMailbox)
    assert from_file == Config.load(tree, mailbox=BoundedMailbox)
    assert from_file.drain_timeout == 5.0
    assert isinstance(from_file.placement_policy(), Blocks)
    assert isinstance(from_file.priority_policy(), Weighted)


def test_a_config_is_taken_as_it_is() -> None:
    config = Config.load({"workers": 2})
    assert Config.load(config, workers=5) is config


def test_each_worker_gets_a_priority_policy_of_its_own() -> None:
    config = Config.load({"priority": "weighted"})
    assert config.priority_policy() is not config.priority_policy()


@pytest.mark.parametrize("value", ["estimated_time", EstimatedTime, {"policy": EstimatedTime}])
def test_a_heuristic_is_for_graphs_and_not_for_actors(value: Any) -> None:
    config = Config.load({"streams": {"policy": value}})
    assert isinstance(config.graph_heuristic, EstimatedTime)
    assert config.graph_heuristic is not config.graph_heuristic
    wanted = r"is a heuristic: .* given to run\(\) as `policy`, or as `policy` under `streams`"
    for option in ("priority", "placement"):
        with pytest.raises(ConfigError, match=wanted):
            Config.load({option: value})
    assert Config.load().graph_heuristic is None


def test_a_priority_policy_is_not_for_graphs() -> None:
    wanted = r"policy of streams: no policy 'fifo'; there are .*estimated_time"
    with pytest.raises(ConfigError, match=wanted):
        Config.load({"streams": {"policy": "fifo"}})


def test_the_same_name_is_the_same_placement_policy() -> None:
    config = Config.load({"placement": "balanced"})
    assert config.placement_policy() is config.placement_policy("balanced")
    blocks = config.placement_policy({"policy": "blocks", "size": 2})
    assert blocks is config.placement_policy({"size": 2, "policy": "blocks"})
    assert blocks is not config.placement_policy({"policy": "blocks", "size": 3})


def test_options_for_a_class_and_for_a_name_win_over_the_spawns() -> None:
    config = {
        "workers": 3,
        "classes": {
            "Parser": {"placement": {"policy": "fixed", "worker": 2}, "priority": 3},
            f"{__name__}:Box": {"placement": {"policy": "fixed", "worker": 1}},
        },
        "actors": {"head": {"priority": 9}},
    }
    with ActorSystem(config=config) as system:
        parser = system.spawn(Parser, priority=1, placement="round_robin")
        assert (index_of(parser), parser.priority) == (2, 3)
        head = system.spawn(Parser, name="head")
        assert (index_of(head), head.priority) == (2, 9)
        box = system.spawn(Box, priority=1)
        assert (index_of(box), box.priority) == (1, 1)


def test_options_reach_the_actors_that_actors_spawn() -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> ActorRef[Any]:
            return self.spawn(Parser)

    with ActorSystem(config={"classes": {"Parser": {"priority": 3}}}) as system:
        assert system.spawn(Parent).ask("spawn").result(30).priority == 3


def test_a_mailbox_can_be_bounded_by_the_configuration() -> None:
    class Greedy(Actor[Any]):
        """Tells itself more than its mailbox holds."""

        def receive(self, message: Any) -> str:
            if message == "stuff":
                self.ref.tell("one")
                self.ref.tell("two")
                with pytest.raises(MailboxFull):
                    self.ref.tell("three")
            return "full"

    config = {"classes": {Greedy.__qualname__: {"mailbox": {"capacity": 2, "overflow": "fail"}}}}
    with ActorSystem(config=config) as system:
        assert system.spawn(Greedy).ask("stuff").result(30) == "full"


def test_policies_by_module_and_class_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house_policies.py").write_text(
        textwrap.dedent("""
            from callboard.policies import PlacementPolicy
            from callboard.policies import PriorityPolicy

            class Place(PlacementPolicy):
                def __init__(self, index=0):
                    self.index = index

                def place(self, actor, workers):
                    return workers[self.index]

            class Order(PriorityPolicy):
                def __init__(self):
                    self.ready_actors = []

                def put_ready(self, actor):
                    self.ready_actors.append(actor)

                def fetch_ready(self):
                    return self.ready_actors.pop()
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = {
        "workers": 2,
        "placement": {"policy": "house_policies:Place", "index": 1},
        "priority": "house_policies:Order",
    }
    with ActorSystem(config=config) as system:
        box = system.spawn(Box)
        assert index_of(box) == 1
        assert box.ask(5).result(30) == 5
        assert box.worker is not None
        assert type(box.worker.policy).__name__ == "Order"
    with pytest.raises(ConfigError, match=r"house_policies:Place.*'side'.*its options: index"):
        Config.load({"placement": {"policy": "house_policies:Place", "side": 1}})
    with pytest.raises(ConfigError, match=r"house_policies:Order.*'side'.*its options: none"):
        Config.load({"priority": {"policy": "house_policies:Order", "side": 1}})
    with pytest.raises(ConfigError, match=r"no policy 'house_policies:Plaice': .*no attribute"):
        Config.load({"placement": "house_policies:Plaice"})


def test_workers_are_pinned_to_the_cores_that_are_named() -> None:
    class Where(Actor[Any]):
        def receive(self, message: Any) -> set[int]:
            return os.sched_getaffinity(0)

    core = max(os.sched_getaffinity(0))
    with ActorSystem(config={"cpu_affinity": [core]}) as system:
        assert system.spawn(Where).ask("where").result(30) == {core}
    with ActorSystem(config={"cpu_affinity": True}) as system:
        assert system.spawn(Where).ask("where").result(30) == {min(os.sched_getaffinity(0))}
    with ActorSystem() as system:
        assert system.spawn(Where).ask("where").result(30) == os.sched_getaffinity(0)


# --- what wrong settings get ----------------------------------------------------------------------


class Unplaced(PlacementPolicy):
    pass


class Failing(PlacementPolicy):
    def __init__(self) -> None:
        raise RuntimeError("no database")


PLACEMENTS = "round_robin, blocks, balanced, least_loaded, fixed"
PRIORITIES = "fifo, two_level, weighted, shortest_first, longest_queue"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"wrokers": 2},
            "no setting 'wrokers'; there are name, workers, processes, shared_memory, elasticity",
        ),
        (
            {"shared_memory": 65535},
            "shared_memory must be a whole number from 65536 to 1099511627776, got 65535",
        ),
        ({"workers": 0}, "workers must be a whole number from 1 to 1024, got 0"),
        ({"workers": "2"}, "workers must be a whole number .*, or a range such as .*, got '2'"),
        ({"quantum": 2**31}, "quantum must be a whole number from 1 to 2147483647, got 2147483648"),
        ({"name": ""}, "name must be a non-empty string, got ''"),
        ({"drain_timeout": -1}, "drain_timeout must be a number of seconds from 0 to 1e9, got -1"),
        (
            {"monitoring": "all"},
            "monitoring must be one of off, times, mailboxes, channels, workers, got 'all'",
        ),
        (
            {"cpu_affinity": [4711]},
            "cpu_affinity must be true, false, or a list of cores out of .*, got \\[4711\\]",
        ),
        (
            {"cpu_affinity": []},
            "cpu_affinity must be true, false, or a list of cores out of .*, got \\[\\]",
        ),
        ({"placement": "blcks"}, f"placement: no policy 'blcks'; there are {PLACEMENTS}"),
        ({"priority": "fofi"}, f"priority: no policy 'fofi'; there are {PRIORITIES}"),
        ({"placement": 3}, f"placement: expected a policy: one of {PLACEMENTS}, .* got 3"),
        ({"placement": "nowhere:Policy"}, "placement: no policy .*No module named 'nowhere'"),
        ({"placement": ":Policy"}, "placement: no policy ':Policy'"),
        ({"placement": "os:path"}, "placement: expected a policy: .*, got 'os:path'"),
        ({"placement": "blocks"}, "'blocks': missing a required argument: 'size'"),
        ({"placement": {"size": 3}}, "placement: the table has no key `policy`"),
        ({"placement": {"policy": "blocks", "sise": 3}}, "policy 'blocks': .*its options: size"),
        (
            {"placement": {"policy": "blocks", "size": 0}},
            "placement: the size of Blocks must be a whole number of at least 1, got 0",
        ),
        (
            {"priority": {"policy": "weighted", "aging": 3}},
            "policy 'weighted': .*'aging'; its options: ageing",
        ),
        (
            {"priority": {"policy": "weighted", "ageing": "fast"}},
            "the ageing of Weighted must be a whole number from 1 to 2147483647, got 'fast'",
        ),
        ({"priority": {"policy": "fifo", "x": 1}}, "policy 'fifo': .*'x'; its options: none"),
        (
            {"priority": PlacementPolicy},
            f"priority: expected a policy: one of {PRIORITIES}",
        ),
        ({"placement": Unplaced}, "placement: Unplaced has no method `place`"),
        ({"placement": Failing}, "placement: policy .*Failing.* cannot be made: .*no database"),
        ({"priority": Fifo()}, "each worker needs its own priority policy"),
        ({"classes": 3}, "classes must be a table, got 3"),
        ({"classes": {"Box": 3}}, "classes.Box must be a table, got 3"),
        (
            {"classes": {"Box": {"weight": 3}}},
            "no setting 'weight' of classes.Box; there are placement, priority, mailbox, context, "
            "dedicated, supervision",
        ),
        (
            {"actors": {"box": {"priority": -1}}},
            r"priority of actors.box must be a whole number from 0 to 4294967295, got -1",
        ),
        (
            {"actors": {"box": {"placement": "nowhere"}}},
            "placement of actors.box: no policy 'nowhere'",
        ),
        (
            {"actors": {"box": {"mailbox": {"capacity": 0}}}},
            "mailbox of actors.box: a mailbox's capacity must be a whole number of at least 1",
        ),
        ({"actors": {"box": {"mailbox": {"capcity": 5}}}}, "mailbox of actors.box: .*'capcity'"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ActorSystem(config=settings)


def test_an_error_says_which_file_it_is_in(toml: Any) -> None:
    path = toml("workers = 0")
    with pytest.raises(ConfigError, match=f"workers must be .*, got 0 in {path}"):
        ActorSystem(config=str(path))


def test_a_keyword_is_checked_like_a_setting() -> None:
    with pytest.raises(ConfigError, match="workers must be a whole number from 1 to 1024, got 0"):
        ActorSystem(workers=0)
    with pytest.raises(ConfigError, match="no policy 'blcks'"):
        ActorSystem(placement="blcks")


def test_a_file_that_is_missing_or_no_toml_is_refused(toml: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.toml' cannot be read: No such file"):
        ActorSystem(config=tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match=r"callboard.toml' is not TOML: .*line 1"):
        ActorSystem(config=toml("workers = = 2"))
    with pytest.raises(ConfigError, match="a dict or the path of a TOML file as config, got 3"):
        ActorSystem(config=3)


def test_a_wrong_policy_at_a_spawn_is_refused_there() -> None:
    with ActorSystem(workers=2) as system:
        with pytest.raises(ConfigError, match="no policy 'nowhere'"):
            system.spawn(Box, placement="nowhere")
        with pytest.raises(ConfigError, match="expected a policy"):
            system.spawn(Box, placement=["round_robin"])  # type: ignore[call-overload,call-arg]
        assert system.actors == []


# --- names of classes and actors ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Prser", "there is no such class of actors; did you mean 'Parser'"),
        ("parser", "did you mean 'Parser'"),
        ("Zzz", "there is no such class of actors; a class that is imported later is named"),
        (f"{__name__}:Prser", f"did you mean '{__name__}:Parser'"),
        ("no.such.module:Parser", "classes.no.such.module:Parser: No module named 'no'"),
        ("json:JSONDecoder", "there is no such class of actors"),
        (":Parser", "classes.:Parser: "),
    ],
)
def test_a_class_that_there_is_not_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ActorSystem(config={"classes": {name: {"priority": 1}}})


def test_a_class_within_others_is_found_by_its_whole_name() -> None:
    class Inner(Actor[Any]):
        def receive(self, message: Any) -> None:
            pass

    with pytest.raises(ConfigError, match=r"did you mean '.*<locals>\.Inner'"):
        ActorSystem(config={"classes": {"Inner": {"priority": 1}}})
    for name in (Inner.__qualname__, f"{__name__}:{Inner.__qualname__}"):
        with ActorSystem(config={"classes": {name: {"priority": 5}}}) as system:
            assert system.spawn(Inner).priority == 5


def test_a_class_to_be_imported_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unseen_actors.py").write_text(
        "from callboard import Actor\n"
        "class Unseen(Actor):\n"
        "    def receive(self, message):\n"
        "        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with ActorSystem(config={"classes": {"unseen_actors:Unseen": {"priority": 5}}}) as system:
        unseen = importlib.import_module("unseen_actors").Unseen
        assert system.spawn(unseen).priority == 5


def test_a_module_that_makes_a_system_may_define_its_classes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "early_system.py").write_text(
        "from callboard import Actor, ActorSystem\n"
        "system = ActorSystem(config={'classes': {'early_system:Later': {'priority': 5}}})\n"
        "class Later(Actor):\n"
        "    def receive(self, message):\n"
        "        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("early_system")
    with module.system as system:
        assert system.spawn(module.Later).priority == 5


@pytest.mark.parametrize("name", ["/shop/cart", "a/b", ""])
def test_a_name_that_no_actor_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"actors.{name}: expected an actor's name"):
        ActorSystem(config={"actors": {name: {"priority": 1}}})


def test_an_entry_for_no_actor_is_told(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        "actors": {"head": {"priority": 9}, "haed": {"priority": 9}},
        "classes": {"Parser": {"priority": 1}, "Box": {"priority": 1}},
    }
    with ActorSystem(config=config) as system:
        assert system.statistics().unmet == (
            "classes.Parser", "classes.Box", "actors.head", "actors.haed",
        )  # fmt: skip
        system.spawn(Parser, name="head")
        assert system.statistics().unmet == ("classes.Box", "actors.haed")
        assert "no spawn yet for classes.Box, actors.haed" in str(system.statistics())
    assert (
        "no actor was spawned for actors.haed of the configuration; did you mean 'head'?"
        in caplog.text
    )
    assert "no actor was spawned for classes.Box" in caplog.text
    assert "actors.head " not in caplog.text
