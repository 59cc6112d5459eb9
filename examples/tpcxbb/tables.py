"""The benchmark's tables, as far as the five queries need them; the column names are its own.

A `_sk` column is a number that names something (a surrogate key). A date is counted in days since
1900-01-01, a time of day in seconds. Money is counted in cents, so that sums are exact.
"""

from __future__ import annotations

from typing import NamedTuple

SECONDS_A_DAY = 24 * 60 * 60

CATEGORIES = (
    "Home & Kitchen",
    "Music",
    "Books",
    "Clothing & Accessories",
    "Electronics",
    "Tools & Home Improvement",
    "Toys & Games",
    "Movies & TV",
    "Sports & Outdoors",
)
"""What an item's category number, counted from 1, stands for."""


class Click(NamedTuple):
    """One click in the web shop: a row of web_clickstreams."""

    wcs_click_date_sk: int
    wcs_click_time_sk: int
    wcs_sales_sk: int | None
    """The purchase that the click belongs to; None for a mere look."""
    wcs_item_sk: int
    wcs_web_page_sk: int
    wcs_user_sk: int | None
    """None for a visitor who has not logged in."""

    @property
    def seconds(self) -> int:
        return self.wcs_click_date_sk * SECONDS_A_DAY + self.wcs_click_time_sk


class Sale(NamedTuple):
    """One line of a receipt of a shop in town: a row of store_sales."""

    ss_sold_date_sk: int
    ss_sold_time_sk: int
    ss_item_sk: int
    ss_customer_sk: int
    ss_store_sk: int
    ss_ticket_number: int
    """The receipt: its lines share it, and customer, shop and time; they come together."""
    ss_quantity: int
    ss_sales_price: int
    ss_net_paid: int

    @property
    def seconds(self) -> int:
        return self.ss_sold_date_sk * SECONDS_A_DAY + self.ss_sold_time_sk


class Item(NamedTuple):
    """What is sold: a row of item."""

    i_item_sk: int
    i_category_id: int
    i_category: str


class Page(NamedTuple):
    """A page of the web shop: a row of web_page. The cart is `dynamic`, the checkout `order`."""

    wp_web_page_sk: int
    wp_type: str


COLUMNS = {
    "web_clickstreams": Click._fields,
    "store_sales": Sale._fields,
    "item": Item._fields,
    "web_page": Page._fields,
}
