"""Releases, and packages of native actors, are built as docs/packaging.md describes."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

PIPELINE = """
from threading import Thread

from callboard import ActorSystem
from callboard.streams import entry
from stages import Account, Counts, Even, LineCounter, Stage, Sum

with ActorSystem() as system:
    total = system.spawn(Sum)
    first = system.spawn(Stage, system.spawn(Stage, total))
    first.tell_many(range(1000))
    lines = system.spawn(LineCounter)
    lines.tell(b"one\\ntwo\\n")
    system.drain(timeout=30.0)
    print(total.ask(0).result(timeout=30.0), lines.ask(0).result(timeout=30.0))
    run = system.run(entry("n").native(Even).native(Counts, partitions=4).collect())
    run.send("n", [2, 3, 4, 2, 2])
    print(*((row.tag, row.value) for row in run.finish(timeout=30.0)))
account = Account()
threads = [Thread(target=account.add_many, args=(amount, 200_000)) for amount in (1, 10, 100, 1000)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(account.balance)
"""


def named_blocks(page: str) -> dict[str, str]:
    """Return the page's blocks that name a file, by the file's name."""
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


def test_the_page_shows_the_examples_own_build(root: Path) -> None:
    page = (root / "docs/packaging.md").read_text()
    assert (root / "examples/native/setup.py").read_text() in page


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("backend", ["setuptools", "mesonpy"])
def test_another_packages_native_actors_run(backend: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip(backend)
    package, site = tmp_path / "package", tmp_path / "site"
    shutil.copytree(root / "examples/native", package)
    if backend == "mesonpy":
        for name, text in named_blocks((root / "docs/packaging.md").read_text()).items():
            (package / name).write_text(text)
        (package / "setup.py").unlink()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--target", site, package], env=environment, check=True)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PIPELINE],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    sums, counts, balance = ran.stdout.splitlines()
    assert balance == str(200_000 * 1111)
    assert sums.split() == [str(sum(range(1000)) + 2 * 1000), "2"]
    assert counts == "(2, 1) (4, 1) (2, 2) (2, 3)"


def read_project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def version_in(root: Path) -> str:
    """Return the version of the sources, which may be newer than what is installed."""
    found = re.search(r"^  version: '(.+)',$", (root / "meson.build").read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_the_changelog_begins_with_the_version_of_the_sources(root: Path) -> None:
    headings = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version_in(root) in headings[0]


def test_wheels_are_built_for_each_release_that_the_classifiers_promise(root: Path) -> None:
    pyproject = read_project(root)
    classifiers = "\n".join(pyproject["project"]["classifiers"])
    minors = re.findall(r":: 3\.(\d+)$", classifiers, re.MULTILINE)
    wheels = pyproject["tool"]["cibuildwheel"]["build"]
    assert {f"cp3{minor}-*" for minor in minors} == {each for each in wheels if "t" not in each}
    assert pyproject["project"]["requires-python"] == f">=3.{min(minors, key=int)}"


def test_the_classifiers_promise_releases_of_python_that_the_tests_have_run_on(root: Path) -> None:
    table = re.findall(r"^\| CPython (.*?) \|", (root / "docs/platforms.md").read_text(), re.M)
    tested = {release for row in table for release in re.findall(r"3\.\d+", row)}
    classifiers = "\n".join(read_project(root)["project"]["classifiers"])
    assert set(re.findall(r":: (3\.\d+)$", classifiers, re.M)) <= tested


def test_the_files_that_tests_of_wheels_read_are_there(root: Path) -> None:
    wheels = read_project(root)["tool"]["cibuildwheel"]
    listed = (root / "tests/wheel-args").read_text().split()
    named = [*wheels["test-sources"], *(each for each in listed if each.startswith("tests/"))]
    assert not [name for name in named if not (root / name).exists()]


def test_the_project_says_where_it_is_and_how_to_report(root: Path) -> None:
    urls = read_project(root)["project"]["urls"]
    assert set(urls) == {"Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
    assert "python -m callboard info" in (root / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    assert version_in(root).rpartition(".")[0] in (root / "SECURITY.md").read_text()


def test_a_source_distribution_holds_what_a_wheel_is_built_from(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("mesonpy")
    if not (root / ".git").exists():
        pytest.skip("source distributions are made from a git checkout")
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{root}", checkout], check=True)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    build = f"import mesonpy; print(mesonpy.build_sdist({str(tmp_path)!r}))"
    built = subprocess.run(
        [sys.executable, "-c", build],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    top = f"callboard-{version_in(checkout)}"
    with tarfile.open(tmp_path / f"{top}.tar.gz") as archive:
        names = set(archive.getnames())
    listed = subprocess.run(
        ["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert {f"{top}/{name}" for name in listed.stdout.splitlines()} <= names
    assert f"{top}/PKG-INFO" in names
