"""What the five queries ask of the benchmark's rows: the stream that each reads, and the fields.

A query is a program with a shape of its own, and a question, which says where the program finds its
fields in a row. So the same programs answer other questions: `changes.py` asks about files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tpcxbb.generator import Shop
from tpcxbb.tables import Click, Sale

QUERIES = (1, 2, 3, 4, 15)


@dataclass(frozen=True)
class Question:
    """One of the five, about the rows of one stream."""

    title: str
    stream: str
    """The name of the stream, and of the graph's entry."""
    fields: Callable[[Any], Iterable[tuple[Any, ...]]]
    """Makes of a row what the query's program takes, see `sequential.py`; of some rows nothing."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the program that it has no defaults for, or other defaults."""


def about(shop: Shop) -> dict[int, Question]:
    """Return the benchmark's questions, by the number of the query."""
    types = {page.wp_web_page_sk: page.wp_type for page in shop.pages}
    categories = {item.i_item_sk: item.i_category for item in shop.items}

    def visit(click: Click) -> Iterable[tuple[int, int, bool, bool]]:
        if click.wcs_user_sk is None:
            return ()
        kind = types[click.wcs_web_page_sk]
        return ((click.seconds, click.wcs_user_sk, kind == "dynamic", kind == "order"),)

    clicks = "web_clickstreams"
    sales = "store_sales"
    by_category = {"group_of": categories.__getitem__}
    return {
        1: Question("Items sold together, by the hour", sales, line),
        2: Question("Products viewed together in a session", clicks, view),
        3: Question("Products viewed before one was bought", clicks, event),
        4: Question("Carts left behind", clicks, visit),
        15: Question("Categories with flat or declining sales", sales, amount, by_category),
    }


def line(sale: Sale) -> Iterable[tuple[int, int, int, int]]:
    return ((sale.seconds, sale.ss_customer_sk, sale.ss_ticket_number, sale.ss_item_sk),)


def amount(sale: Sale) -> Iterable[tuple[int, int, int]]:
    return ((sale.ss_sold_date_sk, sale.ss_item_sk, sale.ss_net_paid),)


def view(click: Click) -> Iterable[tuple[int, int, int]]:
    """Return a look at an item by a known visitor; others cannot be told apart: no sessions."""
    if click.wcs_user_sk is None:
        return ()
    return ((click.seconds, click.wcs_user_sk, click.wcs_item_sk),)


def event(click: Click) -> Iterable[tuple[int, int, int, bool]]:
    if click.wcs_user_sk is None:
        return ()
    bought = click.wcs_sales_sk is not None
    return ((click.seconds, click.wcs_user_sk, click.wcs_item_sk, bought),)
