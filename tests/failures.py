"""Record the tests that failed in a file. `.ci/rerun` runs each of them again by itself."""

import json
import sys
from pathlib import Path

import pytest


class Failures:
    """A plugin for the process that gets the reports of all tests."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._file = file
        self._texts: dict[str, str] = {}  # of the first failure, by test
        self._were_collected = True
        # -P: without it, the folder `mailbox` would hide the standard module of that name.
        self._command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        for option in ("--capture", "--hypothesis-profile"):
            if value := config.getoption(option, None):
                self._command.append(f"{option}={value}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._were_collected = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._texts.setdefault(report.nodeid, report.longreprtext)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.TESTS_FAILED and self._were_collected:
            self._file.write_text(json.dumps({"command": self._command, "tests": self._texts}))
