"""The picture and the tables of a kept run of the comparisons."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")


def a_run(*, queries: tuple[str, ...]) -> dict[str, Any]:
    """Make the document of a run of two rounds, in which Bytewax does 100,000 rows a second."""
    competitors = {
        name: {"values": [rate, rate], "median": rate}
        for name, rate in (
            ("callboard, Arrow batches", 2.5e6),
            ("callboard", 3e5),
            ("Bytewax", 1e5),
        )
    }
    loader = {"SPDL, 2 workers": {"values": [400.0], "median": 400.0, "cpu_us": 5_200.0}}
    benchmarks = {f"nexmark_{query}": {"competitors": competitors} for query in queries}
    return {"benchmarks": {**benchmarks, "loader": {"competitors": loader}}}


def test_a_picture_for_light_and_one_for_dark_pages_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import compared_picture

    run = tmp_path / "run.json"
    run.write_text(json.dumps(a_run(queries=compared_picture.QUERIES)))
    compared_picture.main(str(run), str(tmp_path / "it"))
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert sorted(drawn) == ["it-dark.svg", "it-light.svg"]
    for text in drawn.values():
        assert all(f">{word}<" in text for word in ("q0", "q8", "Bytewax", "2.50M"))
    assert drawn["it-dark.svg"] != drawn["it-light.svg"]


def test_the_tables_have_thousand_rows_ratios_and_milliseconds() -> None:
    import compared_tables

    benchmarks = a_run(queries=("q1",))["benchmarks"]
    lines = compared_tables.nexmark(benchmarks).splitlines()
    cells = {line.split("|")[1].strip(): line.split("|")[3].strip() for line in lines}
    assert cells["**callboard**, Arrow batches"] == "2,500"
    assert cells["Bytewax, rows"] == "100"
    assert cells["Arrow batches against Bytewax's rows, times"] == "25"
    assert cells["rows against Bytewax's rows, times"] == "3"
    spdl = [line for line in compared_tables.loader(benchmarks).splitlines() if "SPDL" in line]
    assert [cell.strip() for cell in spdl[0].split("|")[2:-1]] == ["", "400", "", "5.2"]
