"""Metrics, as Prometheus's own parser reads them."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from callboard import Actor, ActorSystem, BoundedMailbox, ConfigError
from callboard.nets import box
from callboard.observing.prometheus import SystemCollector
from callboard.streams import entry
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until


def labels_of(sample: Any) -> list[str]:
    """Return a sample's labels, the system's first, a bucket's bound last."""
    return [sample.labels["system"], *(v for k, v in sample.labels.items() if k != "system")]


class Scraper:
    """Scrapes systems as a server of Prometheus does."""

    def __init__(self, *systems: ActorSystem, **options: Any) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(SystemCollector(*systems, **options))

    def scrape(self) -> dict[tuple[str, ...], float]:
        """Return the samples by their names and the values of their labels."""
        text = generate_latest(self.registry).decode()
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        found = {(s.name.removeprefix("callboard_"), *labels_of(s)): s.value for s in samples}
        assert len(found) == len(samples)  # each series once
        return found


def test_actors_are_summed_by_class_and_counters_never_fall() -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        boxes = [system.spawn(Box) for _ in range(3)]
        scraper = Scraper(system)
        for box in boxes:
            box.tell_many([1, 2])
        system.drain(60)
        first = scraper.scrape()
        assert first["actors", "shop", "Box"] == 3
        assert first["messages_total", "shop", "Box"] == 6
        assert first["busy_seconds_total", "shop", "Box"] > 0
        boxes[1].stop()
        boxes[0].tell(3)
        system.drain(60)
        second = scraper.scrape()
        assert second["actors", "shop", "Box"] == 2
        assert second["messages_total", "shop", "Box"] == 7
        for box in boxes:
            box.stop()
        system.drain(60)
        third = scraper.scrape()
        assert third["actors", "shop", "Box"] == 0
        assert third["messages_total", "shop", "Box"] == 7


def test_mailboxes_and_their_drops_are_seen() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1) as system:
        holder: Any = system.spawn(Holder)
        small = system.spawn(Box, mailbox=BoundedMailbox(2, "drop_newest"))
        other = system.spawn(Box, mailbox=BoundedMailbox(2))
        scraper = Scraper(system)
        holder.tell(passage)
        assert passage.entered.wait(30)
        for i in range(5):
            small.tell(i)
        other.tell(0)
        found = scraper.scrape()
        passage.leave.set()
        assert found["mailbox_messages", "shop", "Box"] == 3
        assert found["mailbox_longest", "shop", "Box"] == 2
        assert found["mailbox_dropped_total", "shop", "Box"] == 3
        assert found["dead_letters_total", "shop", "dropped_newest"] == 3
        until(lambda: small.statistics().messages == 2)


def test_workers_failures_and_named_actors_have_metrics() -> None:
    with ActorSystem("shop", workers=1) as system:
        box = system.spawn(Box, name='odd "name"\n\\')
        system.spawn(Box, name="other")
        scraper = Scraper(system, actors=["/odd*"])
        box.tell_many([1, 2, "fail"])
        system.drain(60)
        found = scraper.scrape()
        assert found["worker_dispatches_total", "shop", "shop-0"] > 0
        assert found["worker_waits_total", "shop", "shop-0"] > 0
        assert found["failures_total", "shop"] == 1
        named = system.spawn(Box, name="odd[1]")
        named.tell(1)
        system.drain(60)
        found = scraper.scrape()
        assert found["actor_messages_total", "shop", "/odd[1]"] == 1
        assert ("actor_messages_total", "shop", "/other") not in found


def test_a_name_of_any_characters_is_parsed_back() -> None:
    with ActorSystem("shop", workers=1) as system:
        name = 'odd "name"\n\\'
        system.spawn(Box, name=name).tell(1)
        system.drain(60)
        assert Scraper(system, actors="*").scrape()["actor_messages_total", "shop", f"/{name}"] == 1


def test_a_name_that_utf8_cannot_encode_breaks_no_scrape() -> None:
    with ActorSystem("shop", workers=1, monitoring="times") as system:
        system.spawn(Box, name="odd\ud800").tell(1)
        system.drain(60)
        found = Scraper(system, actors="*").scrape()
        assert found["actor_messages_total", "shop", "/odd\\ud800"] == 1


def test_operators_of_runs_have_metrics_that_outlive_the_runs() -> None:
    with ActorSystem("shop", workers=1) as system:
        scraper = Scraper(system)
        graph = entry("n").filter(bool, name="some").collect()
        for _ in range(2):
            with system.run(graph) as run:
                run.send("n", [0, 1, 2, 3])
                run.snapshot()  # all rows are through
                system.drain(60)  # a lane counts its rows after it has handed them on
                found = scraper.scrape()
        assert found["operator_rows_in_total", "shop", "some"] == 8
        assert found["operator_rows_out_total", "shop", "some"] == 6
        assert found["run_rows_total", "shop"] == 8
        after = scraper.scrape()
        assert after["operator_rows_in_total", "shop", "some"] == 8
        assert after["operator_workers", "shop", "some"] == 0


@pytest.mark.parametrize("is_scraped_between", [False, True])
def test_actors_and_runs_that_end_between_two_scrapes_are_counted(is_scraped_between: bool) -> None:
    class Request(Actor[int]):
        def receive(self, message: int) -> int:
            if message:
                self.stop()
            return message

    def inverse(n: int) -> float:
        return 1 / n

    with ActorSystem("shop", workers=2, monitoring="mailboxes") as system:
        scraper = Scraper(system)
        lasting = system.spawn(Request)
        lasting.ask(0).result(60)
        scraper.scrape()
        for _ in range(3):
            run = system.run(entry("n").map(inverse, errors="skip", name="inverse").collect())
            run.send("n", range(1000))
            if is_scraped_between:
                scraper.scrape()
            run.finish()
            del run
        for n in range(1, 101):
            system.spawn(Request).ask(n).result(60)
            if is_scraped_between and n % 9 == 0:
                scraper.scrape()
        lasting.ask(1).result(60)
        system.drain(60)
        until(lambda: scraper.scrape()["operator_rows_in_total", "shop", "inverse"] == 3000)
        found = scraper.scrape()
        assert found["run_rows_total", "shop"] == 3000
        assert found["run_rows_dropped_total", "shop", "skipped"] == 3
        label = Request.__qualname__
        assert found["messages_total", "shop", label] == 102
        assert found["busy_seconds_total", "shop", label] > 0
        assert found["actors", "shop", label] == 0
        again = scraper.scrape()
        assert again["messages_total", "shop", label] == 102
        assert again["run_rows_total", "shop"] == 3000


def test_runs_of_nets_that_end_between_two_scrapes_are_counted() -> None:
    def double(n: int) -> int:
        return 2 * n

    with ActorSystem("shop", workers=1) as system:
        scraper = Scraper(system)
        for _ in range(3):
            with system.run(box(double, "(n) -> (n)")) as run:
                run.send([{"n": n} for n in range(10)])
            del run
        system.drain(60)
        until(lambda: scraper.scrape()["run_rows_total", "shop"] == 30)
        assert scraper.scrape()["run_rows_total", "shop"] == 30


def test_actors_that_end_while_several_scrape_are_counted_once() -> None:
    with ActorSystem("shop", workers=2) as system:
        scrapers = [Scraper(system) for _ in range(3)]
        asked = threading.Event()

        def scrape(scraper: Scraper) -> None:
            while not asked.is_set():
                scraper.scrape()

        threads = [threading.Thread(target=scrape, args=(one,)) for one in scrapers]
        for thread in threads:
            thread.start()
        try:
            for _ in range(300):
                boxes = [system.spawn(Box) for _ in range(3)]
                for each in boxes:
                    each.tell_many([1, 2])
                    each.stop(after_queue=True)
                boxes[-1].ended.result(60)
            system.drain(60)
        finally:
            asked.set()
            for thread in threads:
                thread.join(60)
        for scraper in scrapers:
            assert scraper.scrape()["messages_total", "shop", "Box"] == 1800


def test_several_systems_share_a_registry_and_a_stopped_one_has_no_metrics() -> None:
    with ActorSystem("one", workers=1) as one, ActorSystem("two", workers=1) as two:
        scraper = Scraper(one, two)
        assert {key[1] for key in scraper.scrape()} == {"one", "two"}
        two.stop()
        assert {key[1] for key in scraper.scrape()} == {"one"}


def test_a_collector_keeps_no_system_alive() -> None:
    systems = [ActorSystem("one", workers=1)]
    scraper = Scraper(*systems)

    def drop() -> None:
        systems.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="was garbage-collected"):
        drop()
    assert scraper.scrape() == {}


def test_scrapes_while_actors_come_and_go_are_whole() -> None:
    class Maker(Actor[int]):
        def receive(self, message: int) -> None:
            child = self.spawn(Box)
            child.tell(message)
            child.stop(after_queue=True)
            if message:
                self.ref.tell(message - 1)

    with ActorSystem("shop", workers=1) as system:
        scraper = Scraper(system)
        maker = system.spawn(Maker)
        maker.tell(2000)
        found: list[dict[tuple[str, ...], float]] = []
        ended = threading.Event()

        def wait() -> None:
            system.drain(60)
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        while not (found and ended.is_set()):
            found.append(scraper.scrape())
        thread.join()
        found.append(scraper.scrape())
        counts = [one.get(("messages_total", "shop", "Box"), 0) for one in found]
        assert counts == sorted(counts)
        assert counts[-1] == 2001


def buckets_of(
    found: dict[tuple[str, ...], float], name: str, label: str
) -> list[tuple[float, float]]:
    """Return the bounds and the counts of a histogram in a scrape."""
    return [
        (float(key[3]), count)
        for key, count in found.items()
        if key[:3] == (f"{name}_bucket", "shop", label)
    ]


def test_times_of_classes_are_histograms_whose_counts_are_cumulative() -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        boxes = [system.spawn(Box) for _ in range(2)]
        scraper = Scraper(system)
        for box in boxes:
            box.tell_many(range(500))
        system.drain(60)
        found = scraper.scrape()
        (statistics,) = system.statistics().classes
    for name, distribution in (
        ("processing_seconds", statistics.processing),
        ("mailbox_seconds", statistics.in_mailbox),
    ):
        buckets = buckets_of(found, name, "Box")
        assert buckets == sorted(buckets)
        counts = [count for _, count in buckets]
        assert counts == sorted(counts)
        assert buckets[-1] == (float("inf"), distribution.count)
        assert found[f"{name}_count", "shop", "Box"] == distribution.count > 0
        assert found[f"{name}_sum", "shop", "Box"] == pytest.approx(distribution.total_ns / 1e9)
        for bound, count in buckets[:-1]:
            assert count == distribution.at_most(round(bound * 1e9))
    assert found["processing_seconds_count", "shop", "Box"] == 1000


def test_actors_that_patterns_name_have_histograms_from_the_first_scrape_on() -> None:
    with ActorSystem("shop", workers=1, monitoring="mailboxes") as system:
        box, other = system.spawn(Box, name="box"), system.spawn(Box, name="other")
        scraper = Scraper(system, actors=["/box"])
        scraper.scrape()
        box.tell_many(range(500))
        other.tell_many(range(500))
        system.drain(60)
        found = scraper.scrape()
        assert found["actor_processing_seconds_count", "shop", "/box"] == 500
        assert 0 < found["actor_mailbox_seconds_count", "shop", "/box"] < 500
        assert ("actor_processing_seconds_count", "shop", "/other") not in found
        assert found["processing_seconds_count", "shop", "Box"] == 1000


def test_without_monitoring_there_are_no_histograms() -> None:
    with ActorSystem("shop", workers=1) as system:
        system.spawn(Box, name="box").tell(1)
        system.drain(60)
        found = Scraper(system, actors=["/box"]).scrape()
        assert [key for key in found if "_seconds_bucket" in key[0]] == []


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ([], {}, "at least one system"),
        ([1], {}, "metrics expect actor systems, got 1"),
        (["system"], {"actors": [1]}, "patterns of paths, got 1"),
        (["system", "system"], {}, "2 are named 'shop'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, options: Any, text: str) -> None:
    with ActorSystem("shop", workers=1) as system:
        given = [system if one == "system" else one for one in arguments]
        with pytest.raises(ConfigError, match=text):
            SystemCollector(*given, **options)


def test_without_the_client_library_it_says_how_to_get_it(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "callboard.observing.prometheus")
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'callboard\[prometheus\]'"):
        import callboard.observing.prometheus  # noqa: F401
