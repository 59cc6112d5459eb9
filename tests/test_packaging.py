"""Another package's native actors build against the installed wheel, as docs/packaging.md says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
    print(total.ask(0).result(timeout=5.0), lines.ask(0).result(timeout=5.0))
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
def test_native_actors_of_another_package_run_in_a_pipeline(
    backend: str, root: Path, tmp_path: Path
) -> None:
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
