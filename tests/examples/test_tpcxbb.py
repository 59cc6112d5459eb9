"""TPCx-BB's queries: plain Python and Spark SQL give the same answers on the same rows."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tpcxbb import questions, sequential
from tpcxbb.generator import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_IS_SLOW = pytest.mark.timeout(300)  # to start, on a busy machine
SHOPS = {
    "tiny": Shop(scale=0.0002, days=15),
    "small": Shop(scale=0.002),
    "medium": Shop(scale=0.01, seed=2),
}


@cache
def rows_of(name: str) -> dict[str, list[Any]]:
    shop = SHOPS[name]
    return {"web_clickstreams": list(shop.clicks()), "store_sales": list(shop.sales())}


def answer(name: str, query: int) -> list[tuple[Any, ...]]:
    question = questions.about(SHOPS[name])[query]
    return sequential.answer(query, question, rows_of(name)[question.stream])


@pytest.mark.parametrize("name", SHOPS)
@pytest.mark.parametrize("query", questions.QUERIES)
def test_each_question_has_an_answer_to_compare(name: str, query: int) -> None:
    found = answer(name, query)
    assert found
    if query == 4:
        assert found[0][0] > 0


@pytest.fixture(scope="module")
def spark() -> "Iterator[SparkSession]":
    pytest.importorskip("pyspark", reason="needs the extra spark")
    from pyspark.sql import SparkSession

    from callboard.spark import session

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    # So few rows are read sooner than code for reading them is made.
    conf: dict[str, str | int | bool] = {
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    started = session("local[1]", "TPCx-BB", log_level="OFF", **conf)
    yield started
    started.stop()


@SPARK_IS_SLOW
@pytest.mark.parametrize("name", SHOPS)
def test_spark_sql_gives_the_same_answers(spark: "SparkSession", name: str) -> None:
    from tpcxbb import spark_sql

    rows, shop = rows_of(name), SHOPS[name]
    for table, of_table in {**rows, "item": shop.items, "web_page": shop.pages}.items():
        spark_sql.load(spark, table, of_table)
    for query in questions.QUERIES:
        assert spark_sql.answer(spark, query) == answer(name, query), f"query {query}"
