"""Keep Spark's start from filling the screen: only errors are shown, not the usual lines."""

from __future__ import annotations

import os
from pathlib import Path

from callboard.spark.sessions.java import home_with, installed

# From these levels on Spark has nothing to say at a start that goes well.
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
# By this one Spark tells whether the level was meant: it sets its own default else, and says so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
# Hive calls each table that is looked for and not there an error.
logger.hive.name = org.apache.hadoop.hive.metastore.RetryingHMSHandler
logger.hive.level = fatal
"""

# Java itself warns of a module that Spark asks for, and knows no option against it.
_LAUNCHER = """\
#!/usr/bin/env bash
exec "{java}" "$@" 2> >(
  LC_ALL=C exec sed -u '/^WARNING: Using incubator modules: jdk.incubator.vector$/d' >&2
)
"""


def log_options(level: str, folder: Path) -> dict[str, str]:
    """Return Spark's setting for a Java that logs from this level on, from its first line.

    None, if the machine's Spark was given a configuration of its logs.
    """
    home = os.environ.get("SPARK_HOME", "")
    if Path(os.environ.get("SPARK_CONF_DIR", Path(home, "conf")), "log4j2.properties").exists():
        return {}
    file = folder / "log4j2.properties"
    file.write_text(_LOG4J2.format(level=level.lower()))
    # These stand before `extraJavaOptions`, which may say otherwise.
    return {"spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={file.as_uri()}"}


def quiet_home(folder: Path) -> Path:
    """Lay out in `folder` a JAVA_HOME that runs the machine's Java without that warning."""
    return home_with(folder, _LAUNCHER.format(java=installed()))
