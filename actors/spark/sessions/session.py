"""Makes Spark sessions that work on a machine that was not set up for Spark."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.core.checks import one_of
from callboard.core.errors import ConfigError
from callboard.spark.errors import without_pyspark
from callboard.spark.sessions.java import (
    LEVELS,
    OLDEST,
    QUIET,
    bundled_home,
    installed_version,
    log_options,
    quiet_home,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "true",  # shows a native crash in the error
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",  # a container's name may not resolve
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(
    master: str = "local[2]",
    app_name: str = "callboard",
    *,
    log_level: str = "ERROR",
    **conf: str | int | bool,
) -> SparkSession:
    """Return the active Spark session unchanged, or make one that works immediately.

    A new session runs its workers with this interpreter, and with the Java runtime of the
    `spark-jre` extra if the machine has no Java that Spark can use. Environment variables that are
    already set (`PYSPARK_PYTHON`, `JAVA_HOME` of a usable Java, `SPARK_HOME`) are respected, and
    none stays changed. If the session is still running when the process ends, it is stopped.

    Args:
        master: The Spark master, such as `local[2]` or `local-cluster[2,1,1024]`.
        app_name: The name of the application.
        log_level: The log level of Spark's driver. Spark's own default, "WARN", prints eight lines
            about the machine at the start.
        **conf: Spark settings, which override those made here: `session(**{"spark.ui.enabled":
            "true"})`.

    Raises:
        ConfigError: There is no usable Java, or the level is unknown.
        ModuleNotFoundError: PySpark is not installed.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise without_pyspark(error) from error
    level = str(conf.pop("spark.log.level", log_level)).upper()
    one_of("log_level", level, LEVELS, error=ConfigError)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    settings: dict[str, str | int | bool] = dict(_DEFAULTS)
    if master.startswith("local"):
        settings |= _LOCAL_DEFAULTS
    fresh = SparkContext._active_spark_context is None
    quiet = level in QUIET
    settings |= log_options(level, _scratch("log-")) if quiet else {"spark.log.level": level}
    settings |= conf
    with _environment(_variables(master, quiet=quiet)):
        builder = SparkSession.builder.master(master).appName(app_name)
        for name, value in settings.items():
            builder = builder.config(name, value)
        made = builder.getOrCreate()
    if fresh:  # its Java may have been started for an earlier one
        made.sparkContext.setLogLevel(level)
    atexit.register(_stop_if_active, made)  # runs before the folders that it uses are removed
    return made


def _variables(master: str, *, quiet: bool) -> dict[str, str]:
    """Return the environment variables that this machine lacks for a session with that master."""
    variables = {}
    if "PYSPARK_PYTHON" not in os.environ:
        variables["PYSPARK_PYTHON"] = sys.executable
    if (installed_version() or 0) < OLDEST:
        variables["JAVA_HOME"] = str(bundled_home(_scratch("java-")))
    elif quiet:
        variables["JAVA_HOME"] = str(quiet_home(_scratch("java-")))
    # Also for `local`: a later session in this process may have another master, on the same JVM.
    if master.startswith("local") and "SPARK_HOME" not in os.environ:
        variables["SPARK_HOME"] = str(_spark_home(_scratch("spark-")))
    return variables


def _stop_if_active(made: SparkSession) -> None:
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is made:
        made.stop()


def _spark_home(folder: Path) -> Path:
    """Fill a folder with links to PySpark's parts: local clusters write into SPARK_HOME/work."""
    import pyspark

    for part in ("bin", "sbin", "jars", "python"):
        (folder / part).symlink_to(Path(pyspark.__file__).parent / part)
    return folder


def _scratch(prefix: str) -> Path:
    """Make a folder that is removed when this process ends; executors use it until then."""
    folder = tempfile.mkdtemp(prefix="callboard-" + prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Spark starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
