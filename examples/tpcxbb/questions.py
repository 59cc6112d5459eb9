"""What the five queries ask of the benchmark's rows: the stream that each reads, and the fields.

A query is a program with a shape of its own, and a question, which says where the program finds its
fields in a row. So the same programs answer other questions: `changes.py` asks about files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    fields: Callable[[Any], tuple[Any, ...]]
    """Takes from a row the tuple that the query's program expects; see `sequential.py`."""
    keep: Callable[[Any], bool] | None = None
    """Says of a row whether it counts at all; None if all do."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for the program that differ from its own defaults."""


def about(shop: Shop) -> dict[int, Question]:
    """Return the benchmark's questions, by the number of the query."""
    types = {page.wp_web_page_sk: page.wp_type for page in shop.pages}
    categories = {item.i_item_sk: item.i_category for item in shop.items}

    def visit(click: Click) -> tuple[int, int | None, bool, bool]:
        kind = types[click.wcs_web_page_sk]
        return click.seconds, click.wcs_user_sk, kind == "dynamic", kind == "order"

    def amount(sale: Sale) -> tuple[int, str, int]:
        return sale.ss_sold_date_sk, categories[sale.ss_item_sk], sale.ss_net_paid

    clicks = "web_clickstreams"
    sales = "store_sales"
    return {
        1: Question("Items sold together, by the hour", sales, line),
        2: Question("Products viewed together in a session", clicks, view, known),
        3: Question("Products viewed before one was bought", clicks, event, known),
        4: Question("Carts left behind", clicks, visit, known),
        15: Question("Categories with flat or declining sales", sales, amount),
    }


def known(click: Click) -> bool:
    """Visitors who have not logged in have no sessions that could be told apart."""
    return click.wcs_user_sk is not None


def line(sale: Sale) -> tuple[int, int, int, int]:
    return sale.seconds, sale.ss_customer_sk, sale.ss_ticket_number, sale.ss_item_sk


def view(click: Click) -> tuple[int, int | None, int]:
    return click.seconds, click.wcs_user_sk, click.wcs_item_sk


def event(click: Click) -> tuple[int, int | None, int, bool]:
    return click.seconds, click.wcs_user_sk, click.wcs_item_sk, click.wcs_sales_sk is not None
