"""The made-up shop of the TPCx-BB example: its sizes, its skew, its order; and it is stable."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby, islice

import pytest

from tpcxbb.generator import ORDERS, PAGES, Shop
from tpcxbb.tables import CATEGORIES

SHOP = Shop(scale=0.01)
CLICKS = list(SHOP.clicks())
SALES = list(SHOP.sales())


def checksum(rows: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]


def test_the_rows_are_the_same_on_every_machine() -> None:
    assert checksum(map(tuple, CLICKS)) == "ab81001de5a57494"
    assert checksum(map(tuple, SALES)) == "1fe547e87d1c24ef"
    assert checksum(map(tuple, SHOP.items)) == "77b3b1f99490f6d8"


def test_a_stream_can_be_read_again() -> None:
    assert list(islice(SHOP.clicks(), 100)) == CLICKS[:100]
    assert list(islice(SHOP.sales(), 100)) == SALES[:100]


@pytest.mark.parametrize("other", [Shop(0.01, seed=2), Shop(0.02), Shop(0.01, days=27)])
def test_seed_scale_and_days_each_change_the_rows(other: Shop) -> None:
    assert list(islice(other.clicks(), 100)) != CLICKS[:100]
    assert list(islice(other.sales(), 100)) != SALES[:100]


def test_time_never_goes_back() -> None:
    for stream in (CLICKS, SALES):
        times = [row.seconds for row in stream]
        assert times == sorted(times)


def test_the_rows_are_spread_over_all_days() -> None:
    shop = Shop(scale=0.001, days=5)
    assert len({sale.ss_sold_date_sk for sale in shop.sales()}) == 5


def test_rows_grow_with_the_scale_and_items_with_its_root() -> None:
    larger = Shop(scale=0.04)
    assert len(larger.items) == 2 * len(SHOP.items) == 3600
    assert sum(1 for _ in larger.sales()) == pytest.approx(4 * len(SALES), rel=0.05)
    assert sum(1 for _ in larger.clicks()) == pytest.approx(4 * len(CLICKS), rel=0.05)


def test_scale_one_would_have_the_rows_of_the_benchmark() -> None:
    assert len(CLICKS) * 100 == pytest.approx(6_770_550, rel=0.02)
    assert len(SALES) * 100 == pytest.approx(667_579, rel=0.02)


def test_the_lines_of_a_receipt_come_together_and_share_customer_shop_and_time() -> None:
    receipts = [list(lines) for _, lines in groupby(SALES, lambda sale: sale.ss_ticket_number)]
    assert len(receipts) == round(ORDERS * 0.01)
    for lines in receipts:
        shared = {(s.seconds, s.ss_customer_sk, s.ss_store_sk, s.ss_ticket_number) for s in lines}
        assert len(shared) == 1
    assert {len(lines) for lines in receipts} == set(range(1, 15))


def test_a_few_items_make_a_large_part_of_the_sales() -> None:
    counts = Counter(sale.ss_item_sk for sale in SALES)
    tenth = sorted(counts.values(), reverse=True)[: len(SHOP.items) // 10]
    assert sum(tenth) > 0.4 * len(SALES)
    assert len(counts) > 0.8 * len(SHOP.items)


def test_some_customers_buy_far_more_than_others() -> None:
    counts = Counter(sale.ss_customer_sk for sale in SALES)
    assert max(counts.values()) > 5 * len(SALES) / len(counts)


def test_half_of_the_visitors_are_not_known() -> None:
    looks = [click for click in CLICKS if click.wcs_sales_sk is None]
    unknown = sum(click.wcs_user_sk is None for click in looks)
    assert unknown / len(looks) == pytest.approx(0.5, abs=0.05)


def test_a_purchase_is_made_by_one_known_user_at_one_moment_on_an_order_page() -> None:
    types = {page.wp_web_page_sk: page.wp_type for page in SHOP.pages}
    purchases = defaultdict(list)
    for click in CLICKS:
        if click.wcs_sales_sk is None:
            assert types[click.wcs_web_page_sk] != "order"
        else:
            assert types[click.wcs_web_page_sk] == "order"
            purchases[click.wcs_sales_sk].append(click)
    assert purchases.keys() == set(range(round(ORDERS * 0.01)))
    for clicks in purchases.values():
        assert len({(click.seconds, click.wcs_user_sk) for click in clicks}) == 1
        assert clicks[0].wcs_user_sk is not None


def test_keys_name_rows_of_their_tables() -> None:
    items = range(len(SHOP.items))
    assert [item.i_item_sk for item in SHOP.items] == list(items)
    assert [page.wp_web_page_sk for page in SHOP.pages] == list(range(PAGES))
    assert {sale.ss_item_sk for sale in SALES} <= set(items)
    assert {click.wcs_item_sk for click in CLICKS} <= set(items)
    assert {click.wcs_web_page_sk for click in CLICKS} == set(range(PAGES))
    assert {item.i_category for item in SHOP.items} == set(CATEGORIES)
    assert all(CATEGORIES[item.i_category_id - 1] == item.i_category for item in SHOP.items)


def test_the_smallest_shop_has_a_sale_of_each_kind() -> None:
    tiny = Shop(scale=1e-9)
    assert len(list(tiny.sales())) >= 1
    assert any(click.wcs_sales_sk is not None for click in tiny.clicks())


@pytest.mark.parametrize("scale", [0, -1.0, float("nan")])
def test_a_scale_that_is_not_above_zero_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=f"the scale is {scale}, which is not more than 0"):
        Shop(scale)


def test_less_than_a_day_is_refused() -> None:
    with pytest.raises(ValueError, match="the days are 0, which is fewer than 1"):
        Shop(days=0)
