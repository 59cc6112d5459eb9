"""Nexmark: its events, and answers to its queries that equal those of SQL."""

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8")
JOINS = ("q3", "q4", "q8")


def test_out_of_50_events_1_is_a_person_3_are_auctions_and_46_are_bids() -> None:
    from nexmark.events import Events

    events = Events(5_000)
    counts = [events.person.num_rows, events.auction.num_rows, events.bid.num_rows]
    assert counts == [100, 300, 4_600]


def test_a_seed_gives_the_same_events_and_another_one_others() -> None:
    from nexmark.events import STREAMS, Events

    for name in STREAMS:
        first, again, other = (getattr(Events(2_000, seed), name) for seed in (3, 3, 4))
        assert first.equals(again)
        assert not first.equals(other)


def test_events_are_in_order_of_time_and_every_row_is_of_something_that_may_be_there() -> None:
    from nexmark.events import FIRST_AUCTION, FIRST_PERSON, LEAD, LONGEST, STREAMS, Events

    events = Events(50_000)
    for name in STREAMS:
        time = getattr(events, name)["time"].to_numpy()
        assert (time[1:] >= time[:-1]).all()
    auction, bid = events.auction, events.bid
    lengths = auction["expires"].to_numpy() - auction["time"].to_numpy()
    assert lengths.min() > 0
    assert lengths.max() <= LONGEST
    for ids, first, there in (
        (auction["seller"], FIRST_PERSON, events.person.num_rows),
        (bid["bidder"], FIRST_PERSON, events.person.num_rows),
        (bid["auction"], FIRST_AUCTION, auction.num_rows),
    ):
        assert ids.to_numpy().min() >= first
        assert ids.to_numpy().max() < first + there + LEAD


def test_half_of_the_bids_are_for_a_hot_auction() -> None:
    from nexmark.events import FIRST_AUCTION, HOT, Events

    auctions = Events(50_000).bid["auction"].to_numpy() - FIRST_AUCTION
    assert 0.49 < (auctions % HOT == 0).mean() < 0.53


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("by", ["rows", "batches", "bytewax", "bytewax_batches"])
def test_a_query_gives_the_answer_of_sql(query: str, by: str) -> None:
    pytest.importorskip("duckdb")
    if by.startswith("bytewax"):
        pytest.importorskip("bytewax")
    if by == "bytewax_batches" and query in JOINS:
        pytest.skip("it has no join of Arrow batches")
    from nexmark.events import Events
    from nexmark.oracle import by_duckdb, comparable
    from nexmark.playing import BATCH, BY

    events = Events(3 * BATCH + 5_000, seed=7)  # 3 seconds
    want = comparable(query, by_duckdb(query, events)[1])
    got = comparable(query, BY[by](query, events)[1])
    assert want.num_rows
    assert got.to_pylist() == want.to_pylist()


@pytest.mark.parametrize("by", ["rows", "batches", "bytewax", "bytewax_batches"])
@pytest.mark.parametrize("query", ["q5", "q7"])
def test_windows_close_where_time_goes_on_and_where_it_leaps(query: str, by: str) -> None:
    """The bids of 5 seconds, and those of the next 5 a while later: panes lie empty between."""
    pytest.importorskip("duckdb")
    if by.startswith("bytewax"):
        pytest.importorskip("bytewax")
    from nexmark.events import Events
    from nexmark.oracle import by_duckdb, comparable
    from nexmark.playing import BY

    for leap in (7_000, 61_000):
        events = Events(100_000, seed=7)
        time = events.bid["time"].to_numpy().copy()
        time[len(time) // 2 :] += leap
        at = events.bid.schema.get_field_index("time")
        leapt = events.bid.set_column(at, "time", pa.array(time))
        vars(events)["bid"] = leapt
        want = comparable(query, by_duckdb(query, events)[1])
        got = comparable(query, BY[by](query, events)[1])
        assert got.to_pylist() == want.to_pylist()
