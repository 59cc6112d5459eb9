"""A session's log shows Spark's errors and the level asked for, in fresh processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from callboard.core.errors import ConfigError
from callboard.spark import session
from callboard.spark.sessions.java import log_options, quiet_home

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

START = """\
import sys
from callboard.spark import session

spark = session("local[1]", {options})
assert spark.sparkContext.parallelize(range(4), 2).sum() == 6
assert spark.range(10).count() == 10
print("so far", file=sys.stderr, flush=True)
"""
FAIL = """\
try:
    spark.sql("select raise_error('broken on purpose')").collect()
except Exception:
    pass
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=Path.home())


def test_a_session_starts_and_runs_jobs_without_a_word_and_shows_errors() -> None:
    done = run(START.format(options="") + FAIL)
    assert done.returncode == 0
    assert done.stdout == ""
    # At its end Spark may kill a worker in the middle of a line.
    said, _, then = done.stderr.partition("so far\n")
    assert said == ""
    assert "ERROR Executor: Exception in task" in then
    assert "broken on purpose" in then
    assert "WARN" not in then


def test_a_java_that_does_not_start_says_why() -> None:
    options = '**{"spark.driver.extraJavaOptions": "-XX:MaxMetaspaceSize=none"}'
    done = run(START.format(options=options))
    assert done.returncode == 1
    assert "Improperly specified VM option 'MaxMetaspaceSize=none'" in done.stderr


@pytest.mark.parametrize("options", ['log_level="warn"', '**{"spark.log.level": "WARN"}'])
def test_warnings_are_shown_to_those_who_ask_for_them(options: str) -> None:
    done = run(START.format(options=options))
    assert done.returncode == 0
    assert "WARN" in done.stderr


def test_a_level_that_spark_does_not_have_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(ConfigError, match=r"log_level must be one of .*WARN, ERROR.*, got 'LOUD'"):
        session(log_level="loud")


def test_only_javas_warning_is_kept_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text(
        "#!/bin/sh\n"
        "echo 'WARNING: Using incubator modules: jdk.incubator.vector' >&2\n"
        "echo 'WARNING: another' >&2\n"
        "printf 'no text: \\377\\n' >&2\n"
        "printf '%s|' \"$@\"\n"
        "read line && echo $line\n"
        "exit 3\n"
    )
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path('/usr/bin')}:/bin")
    launcher = quiet_home(tmp_path / "home") / "bin" / "java"
    done = subprocess.run([launcher, "a b", ""], input=b"read\n", capture_output=True)
    assert done.returncode == 3
    assert done.stdout == b"a b||read\n"
    assert done.stderr == b"WARNING: another\nno text: \xff\n"


def test_the_machines_log_settings_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    ours = tmp_path / "ours"
    ours.mkdir()
    (options,) = log_options("ERROR", ours).values()
    assert str(ours / "log4j2.properties") in options
    (tmp_path / "log4j2.properties").touch()
    assert log_options("ERROR", ours) == {}
