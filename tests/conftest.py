"""Settings, profiles and fixtures of all tests.

Hypothesis draws the same examples each time, so that a change fails by what it changes. With
`--hypothesis-profile=thorough` it looks long for counterexamples, at others in each run; with
`--hypothesis-profile=brief` it draws few.
"""

import asyncio
import gc
import inspect
import json
import os
import signal
import sysconfig
from collections.abc import Generator, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.failures import Failures

if TYPE_CHECKING:
    from callboard.testing import ManualSystem

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=50,
    stateful_step_count=30,
    deadline=None,  # threads are as quick as the machine lets them
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "thorough", settings.get_profile("ci"), derandomize=False, max_examples=3_000
)


# Spark's Java is started some twenty times, for seconds each, and has ended before it pays to
# compile it well: that is more than a third of what a session costs.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK_SUBMIT_OPTS = f"{JAVA} '-Dspark.executor.defaultJavaOptions={JAVA}'"


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
    if file := os.environ.pop("FAILED_TESTS", None):  # which no process below this one gets
        config.pluginmanager.register(Failures(config, Path(file)))
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SPARK_SUBMIT_OPTS)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # With a GIL, Python actors share one worker unless a test says `workers=`. So they do without
    # one, too: else a test would be about something else there.
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.MonkeyPatch().setattr("callboard.scheduling.config.usable_cores", lambda: 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let Spark's tests come first: some take minutes, in which no other process should be idle."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/spark/"))


def pytest_collection_finish() -> None:
    """Have the garbage collector look at what a test makes, and not at thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters

    async def run() -> None:
        async with asyncio.timeout(60):
            await pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})

    asyncio.run(run())
    return True


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return Path(__file__).parent.parent


@pytest.fixture
def manual() -> "Iterator[ManualSystem]":
    """A system that the test steps through, and leaves idle."""
    from callboard.testing import ManualSystem

    with ManualSystem() as system:
        yield system


@pytest.fixture(scope="session")
def wheel() -> Distribution:
    """The installed distribution, if it came from a wheel."""
    installed = distribution("callboard")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        pytest.skip("callboard is installed in editable mode, so there is no wheel to look into")
    return installed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape lone surrogates in what a test has printed: they cannot be sent to another process."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture
def bench_modules(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the modules of benchmarks as in a run of them, and in child processes too."""
    bench = str(root / "tests" / "bench")
    monkeypatch.syspath_prepend(bench)
    monkeypatch.setenv("PYTHONPATH", bench, prepend=os.pathsep)
