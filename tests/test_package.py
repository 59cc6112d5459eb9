"""The contents of an installed callboard."""

import importlib
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

import pytest

import callboard

PACKAGES = {
    "core": "callboard/core",
    "mailbox": "callboard/mailbox",
    "scheduling": "callboard/scheduling",
    "actors": "callboard",
}
SHIPPED = {".py", ".pyi", ".pxd", ".hpp"}

IMPORT_ALL = """
import importlib, pkgutil, sys
import callboard
for module in pkgutil.walk_packages(callboard.__path__, "callboard."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as missing:  # an extra that is not installed
        if missing.name.partition(".")[0] == "callboard":
            raise
    print(module.name)
"""


def shipped(root: Path) -> dict[PurePosixPath, Path]:
    """Map each place in the wheel to the source that belongs there."""
    return {
        PurePosixPath(package) / source.relative_to(root / folder): source
        for folder, package in PACKAGES.items()
        for source in (root / folder).rglob("*")
        if source.suffix in SHIPPED or source.name == "py.typed"
    }


def extensions(wheel: Distribution) -> list[PurePosixPath]:
    return [file for file in wheel.files or [] if file.suffix == ".so"]


def run_python(program: str, cwd: Path, *options: str) -> str:
    """Run a program in a new interpreter that sees only the installed package."""
    command = [sys.executable, *options, "-c", program]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_standard_librarys_mailbox_stays_importable() -> None:
    stdlib = Path(sysconfig.get_path("stdlib"))
    mailbox = importlib.import_module("mailbox")
    assert Path(str(mailbox.__file__)).parent.samefile(stdlib)
    assert mailbox.Maildir.__module__ == "mailbox"


def test_the_wheel_adds_one_name_at_the_top_level(wheel: Distribution) -> None:
    tops = {file.parts[0] for file in wheel.files or [] if file.parts[0] != ".."}
    assert tops == {"callboard", f"callboard-{wheel.version}.dist-info"}


def test_the_wheel_holds_every_source_that_users_build_or_type_check_with(
    wheel: Distribution, root: Path
) -> None:
    expected = shipped(root)
    missing = set(expected) - {PurePosixPath(file) for file in wheel.files or []}
    assert missing == set(), "list these in meson.build"
    assert PurePosixPath("callboard/py.typed") in expected


def test_the_wheel_is_built_from_these_sources(wheel: Distribution, root: Path) -> None:
    stale = [
        place
        for place, source in shipped(root).items()
        if Path(str(wheel.locate_file(place))).read_bytes() != source.read_bytes()
    ]
    assert stale == []


def test_the_packages_give_about_ninety_names() -> None:
    features = ("frequency", "remote", "spark", "streams", "testing")
    packages = ["callboard", *(f"callboard.{name}" for name in features)]
    names = [name for each in packages for name in importlib.import_module(each).__all__]
    assert len(names) <= 112, "errors and policies have modules of their own"


def test_every_public_compiled_module_has_a_stub(wheel: Distribution) -> None:
    stubs = {file.with_suffix("") for file in wheel.files or [] if file.suffix == ".pyi"}
    modules = {file.with_name(file.name.partition(".")[0]) for file in extensions(wheel)}
    # Below are insides, as is a module with an underscore.
    public = {each for each in modules if len(each.parts) <= 3 and not each.name.startswith("_")}
    assert public
    assert public - stubs == set()


def test_every_module_imports_without_a_warning(tmp_path: Path) -> None:
    imported = run_python(IMPORT_ALL, tmp_path, "-W", "error").split()
    assert {"callboard.core", "callboard.mailbox", "callboard.scheduling"} <= set(imported)


@pytest.mark.parametrize("call", ["session()", "register(None)"])
def test_spark_without_pyspark_says_what_to_install(tmp_path: Path, call: str) -> None:
    program = f"""
import sys
sys.modules["pyspark"] = None
import callboard.spark
try:
    callboard.spark.{call}
except ModuleNotFoundError as error:
    print(error.name, error)
"""
    printed = run_python(program, tmp_path)
    assert printed.startswith("pyspark")
    assert printed.endswith(" callboard.spark needs PySpark: pip install 'callboard[spark]'\n")


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL"
)
def test_no_module_turns_the_gil_back_on(tmp_path: Path) -> None:
    program = IMPORT_ALL + "print(sys._is_gil_enabled())"
    assert run_python(program, tmp_path).split()[-1] == "False"


def test_the_version_is_the_distributions() -> None:
    assert callboard.__version__ == distribution("callboard").version
