"""The five answers by Spark SQL, on the same rows: an oracle that shares nothing but the rows.

The order of a stream is a column here, `position`, because a table has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpcxbb.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLD_TOGETHER = """
WITH lines AS (
  SELECT DISTINCT
    (ss_sold_date_sk * 86400 + ss_sold_time_sk) DIV 3600 AS hour,
    ss_ticket_number AS ticket,
    ss_item_sk AS item
  FROM store_sales
), pairs AS (
  SELECT a.hour, a.item AS first, b.item AS second, count(*) AS baskets
  FROM lines a JOIN lines b ON a.ticket = b.ticket AND a.item < b.item
  GROUP BY a.hour, a.item, b.item
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY hour ORDER BY baskets DESC, first, second) AS rank
  FROM pairs
)
SELECT hour, first, second, baskets FROM ranked WHERE rank <= 100 ORDER BY hour, rank
"""

SESSIONS = """
WITH clicks AS (
  SELECT *, wcs_click_date_sk * 86400 + wcs_click_time_sk AS time
  FROM web_clickstreams
  WHERE wcs_user_sk IS NOT NULL
), gaps AS (
  SELECT *, time - lag(time) OVER (PARTITION BY wcs_user_sk ORDER BY position) AS gap
  FROM clicks
), sessions AS (
  SELECT *, count_if(gap > 3600) OVER (PARTITION BY wcs_user_sk ORDER BY position) AS session
  FROM gaps
)
"""

VIEWED_TOGETHER = f"""
{SESSIONS}, views AS (
  SELECT DISTINCT wcs_user_sk AS user, session, wcs_item_sk AS item FROM sessions
)
SELECT a.item AS first, b.item AS second, count(*) AS sessions
FROM views a JOIN views b ON a.user = b.user AND a.session = b.session AND a.item < b.item
GROUP BY a.item, b.item
ORDER BY sessions DESC, first, second
LIMIT 30
"""

VIEWED_BEFORE = """
WITH clicks AS (
  SELECT
    position,
    wcs_click_date_sk * 86400 + wcs_click_time_sk AS time,
    wcs_user_sk AS user,
    wcs_item_sk AS item,
    wcs_sales_sk IS NOT NULL AS bought,
    row_number() OVER (PARTITION BY wcs_user_sk ORDER BY position) AS place
  FROM web_clickstreams
  WHERE wcs_user_sk IS NOT NULL
), counted AS (
  SELECT a.position, a.item AS bought, b.item AS viewed
  FROM clicks a
  JOIN clicks b ON a.user = b.user AND b.place BETWEEN a.place - 5 AND a.place - 1
  WHERE a.bought AND a.item <> b.item AND b.time >= a.time - 10 * 86400
), views AS (
  SELECT bought, viewed, count(*) AS views, min(position) AS first
  FROM counted
  GROUP BY bought, viewed
), ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY bought ORDER BY views DESC, viewed) AS rank,
    min(first) OVER (PARTITION BY bought) AS arrival
  FROM views
)
SELECT bought, viewed, views FROM ranked WHERE rank <= 30 ORDER BY arrival, bought, rank
"""

ABANDONED = f"""
{SESSIONS}, pages AS (
  SELECT count(*) AS pages
  FROM sessions JOIN web_page ON wcs_web_page_sk = wp_web_page_sk
  GROUP BY wcs_user_sk, session
  HAVING bool_or(wp_type = 'dynamic') AND NOT bool_or(wp_type = 'order')
)
SELECT count(*), coalesce(sum(pages), 0), avg(pages) FROM pages
"""

DECLINING = """
WITH days AS (
  SELECT
    i_category AS category,
    ss_sold_date_sk AS x,
    sum(ss_net_paid) AS y,
    min(store_sales.position) AS first
  FROM store_sales JOIN item ON ss_item_sk = i_item_sk
  GROUP BY i_category, ss_sold_date_sk
), sums AS (
  SELECT
    category,
    min(first) AS arrival,
    count(*) * sum(x * y) - sum(x) * sum(y) AS rise,
    count(*) * sum(x * x) - sum(x) * sum(x) AS run
  FROM days
  GROUP BY category
)
SELECT category, CAST(rise AS DOUBLE) / CAST(run AS DOUBLE) AS slope
FROM sums
WHERE run > 0 AND rise <= 0
ORDER BY arrival
"""

QUERIES = {
    1: SOLD_TOGETHER,
    2: VIEWED_TOGETHER,
    3: VIEWED_BEFORE,
    4: ABANDONED,
    15: DECLINING,
}


def load(spark: SparkSession, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Make rows known to Spark under the name of the benchmark's table."""
    import pyarrow

    values: dict[str, Any] = {"position": range(len(rows))}
    values |= zip(COLUMNS[table], zip(*rows, strict=True), strict=True)
    spark.createDataFrame(pyarrow.table(values)).createOrReplaceTempView(table)


def answer(spark: SparkSession, query: int) -> list[tuple[Any, ...]]:
    """Return a query's answer on the tables that were loaded last."""
    return [tuple(row) for row in spark.sql(QUERIES[query]).collect()]
