"""The systemd unit and the container file of examples/serve start, are healthy, and end in time.

There is no systemd and no container engine in the tests. They run the commands of these files, in
the environment that the files ask for.
"""

import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from callboard.remote import connect

DEADLINE = 60.0  # seconds, on a busy machine
SERVE = Path(__file__).parents[2] / "examples/serve"
PYTHON = "/srv/words/venv/bin/python"
PORT = "7878"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, such as a Unix socket wants, with the program and a secret."""
    with tempfile.TemporaryDirectory(prefix="words-") as name:
        path = Path(name)
        shutil.copy(SERVE / "words.py", path)
        (path / "secret").write_text(secrets.token_hex(32))
        (path / "secret").chmod(0o400)
        yield path


@contextmanager
def running(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def health(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a health check; return the state that it prints."""
    checked = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert checked.returncode == 0, checked.stderr
    state: str = json.loads(checked.stdout)["state"]
    return state


def count_a_word(address: str, **options: Path) -> None:
    with connect(address, timeout=DEADLINE, **options) as connection:
        words = connection.ref("words")
        words.tell_many(["to", "be", "to"])
        assert words.ask(1).result(DEADLINE) == [("to", 2)]


def read_unit(text: str) -> ConfigParser:
    unit = ConfigParser(delimiters=["="], comment_prefixes=["#"], interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    return unit


def fill_unit(folder: Path) -> str:
    """Return the unit, for the program in this folder and the Python that runs the tests."""
    text = (SERVE / "words.service").read_text()
    return text.replace(PYTHON, sys.executable).replace("=/srv/words\n", f"={folder}\n")


def test_the_unit_serves_is_well_and_ends_in_the_time_that_it_gives(folder: Path) -> None:
    service = read_unit(fill_unit(folder))["Service"]
    specifiers = {"%t": str(folder), "%d": str(folder)}

    def filled(key: str) -> str:
        text = service[key]
        for specifier, value in specifiers.items():
            text = text.replace(specifier, value)
        assert "%" not in text, "the test does not know this specifier"
        return text

    assert service["LoadCredential"].startswith("secret:")
    (folder / service["RuntimeDirectory"]).mkdir()
    environment = dict([filled("Environment").split("=", 1)])
    command = filled("ExecStart").split()
    with running(command, Path(service["WorkingDirectory"]), environment) as process:
        assert health(filled("ExecStartPost").split(), folder, environment) == "serving"
        address = command[command.index("--bind") + 1]
        count_a_word(address, secret_file=folder / "secret")
        process.terminate()
        _, errors = process.communicate(timeout=float(service["TimeoutStopSec"]))
        assert process.returncode == 0, errors


def test_the_unit_gives_more_time_to_stop_than_the_server_takes_for_its_messages() -> None:
    service = read_unit((SERVE / "words.service").read_text())["Service"]
    found = re.search(r"--drain-timeout (\d+)", service["ExecStart"])
    assert found
    assert float(service["TimeoutStopSec"]) > float(found[1])


def test_systemd_finds_nothing_wrong_with_the_unit(folder: Path) -> None:
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed")
    unit = folder / "words.service"
    unit.write_text(fill_unit(folder))
    checked = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def read_container(text: str) -> dict[str, str]:
    """Map a container file's instructions to what the last of each says."""
    lines = text.replace("\\\n", " ").splitlines()
    return dict(line.split(" ", 1) for line in lines if line)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a certificate, which names the host as the health check does, and its key."""
    openssl = shutil.which("openssl") or pytest.skip("openssl makes the certificate")
    made = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=words", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
         "-out", "cert.pem"],
        cwd=made, check=True, capture_output=True,
    )  # fmt: skip
    return made


def as_pid_1() -> list[str]:
    """Return a command's words that make it the first process of a namespace, or skip."""
    words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    try:
        allowed = subprocess.run([*words, "true"], capture_output=True, timeout=DEADLINE)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if allowed.returncode:
        pytest.skip(f"no namespace for processes: {allowed.stderr.decode().strip()}")
    return words


def unused_port() -> int:
    """Return a port that nobody uses, outside the range of ephemeral ports."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.socket() as unused:
            unused.bind(("127.0.0.1", port))
            return port
    raise AssertionError("100 ports are in use")


@pytest.mark.parametrize("first", [False, True], ids=["as any process", "as process 1"])
def test_the_container_is_well_and_stops(first: bool, folder: Path, certificate: Path) -> None:
    port = str(unused_port())
    for name in ("cert.pem", "key.pem"):
        shutil.copy(certificate / name, folder)
    text = (SERVE / "Containerfile").read_text()
    said = read_container(text.replace("/run/secrets", str(folder)).replace(PORT, port))
    environment = dict([said["ENV"].split("=", 1)])

    def words(text: str) -> list[str]:
        python, *others = json.loads(text)
        assert python == "python"
        return [sys.executable, *others]

    command = words(said["ENTRYPOINT"]) + json.loads(said["CMD"])
    check = words(said["HEALTHCHECK"].partition(" CMD ")[2])
    before = as_pid_1() if first else []
    with running([*before, *command], folder, environment) as process:
        assert health([*check, "--timeout", str(DEADLINE)], folder, environment) == "serving"
        address = f"tcp:127.0.0.1:{port}"
        count_a_word(address, secret_file=folder / "secret", ca_file=folder / "cert.pem")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        server = int(children.read_text()) if first else process.pid
        os.kill(server, signal.Signals[said["STOPSIGNAL"]])
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, errors


def test_the_page_shows_the_files_as_they_are(root: Path) -> None:
    page = (root / "docs/howto/run-as-service.md").read_text()
    for name in ("words.service", "Containerfile"):
        assert (SERVE / name).read_text() in page, name
