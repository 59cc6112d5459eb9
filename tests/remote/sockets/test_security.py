"""Addresses, secrets and certificates: valid ones are taken, others refused with a reason."""

import os
import shutil
import ssl
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import ConfigError
from callboard.remote import aconnect, connect
from callboard.remote.errors import ConnectionRejected
from callboard.remote.sockets.address import TCPAddress, UnixAddress, parse_address
from callboard.remote.sockets.security import Secret, client_context, find_secret, server_context
from tests.remote.conftest import DEADLINE, Start, eventually, logged, loss

SECRET = "0123456789abcdef" * 2
ANYWHERE = TCPAddress("192.0.2.1", 1)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/s", UnixAddress("/run/s")),
        ("unix:a:b", UnixAddress("a:b")),
        ("tcp:localhost:80", TCPAddress("localhost", 80)),
        ("tcp:0.0.0.0:0", TCPAddress("0.0.0.0", 0)),
        ("tcp:[::1]:65535", TCPAddress("::1", 65535)),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: Any) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", "unix:", "unix", "tcp:", "tcp:80", "tcp::80", "tcp:h:", "tcp:h:65536", "tcp:h:-1",
     "tcp:h:٣", "tcp:::1:80", "http://h:80", "unix:" + "x" * 108, "unix:a\0b", None, 3,
     "tcp:a..b:80", "tcp:" + "a" * 64 + ":80", "tcp:\ud800:80", "unix:\ud800"],
)  # fmt: skip
def test_a_wrong_address_is_refused(text: Any) -> None:
    with pytest.raises(ConfigError):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("localhost", True), ("127.3.2.1", True), ("::1", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_is_known(host: str, is_loopback: bool) -> None:
    assert TCPAddress(host, 1).is_loopback == is_loopback


@pytest.mark.parametrize("secret", ["", "short", "x" * 31, "ab" * 40, "0123456789" * 200])
def test_a_secret_of_fewer_than_128_bits_or_too_long_is_refused(secret: str) -> None:
    with pytest.raises(ConfigError, match="must have at least 128 bits") as caught:
        Secret(secret, "here")
    assert not secret or secret not in str(caught.value)


def test_a_secret_that_is_not_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="the secret from here has characters that UTF-8"):
        Secret("0123456789abcdef" * 2 + "\ud800", "here")
    assert Secret("0123456789abcdef" * 2 + "\udcff", "here").fits(b"0123456789abcdef" * 2 + b"\xff")


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(SECRET, "here")
    assert SECRET not in repr(secret) + str(secret) + f"{secret}"
    assert secret.fits(SECRET.encode())
    assert not secret.fits(SECRET.encode()[:-1])


def test_secrets_from_files_and_environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLBOARD_SECRET", raising=False)
    monkeypatch.delenv("CALLBOARD_SECRET_FILE", raising=False)
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)

    def found(**options: Any) -> bytes | None:
        secret = find_secret(**options)
        return None if secret is None else secret.value

    assert found() is None
    assert found(secret_file=path) == SECRET.encode()
    monkeypatch.setenv("CALLBOARD_SECRET", SECRET[::-1])
    assert found() == SECRET[::-1].encode()
    monkeypatch.setenv("CALLBOARD_SECRET_FILE", str(path))
    assert found() == SECRET.encode()
    assert found(secret=SECRET.upper()) == SECRET.upper().encode()
    with pytest.raises(ConfigError, match="got both"):
        find_secret(SECRET, path)


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o604)
    with pytest.raises(ConfigError, match="has the mode 0604"):
        find_secret(secret_file=path)
    path.chmod(0o440)
    assert find_secret(secret_file=path) is not None
    with pytest.raises(ConfigError, match="cannot be read"):
        find_secret(secret_file=tmp_path / "none")


def test_a_path_of_a_wrong_type_is_named() -> None:
    for refused, said in (
        (lambda: find_secret(secret_file=5), "secret_file expects a path, got 5"),  # type: ignore[arg-type]
        (lambda: find_secret(secret_file="a\0b"), "cannot be read: embedded null byte"),
        (lambda: client_context(ANYWHERE, 5), "ca_file expects a path, got 5"),  # type: ignore[arg-type]
        (lambda: client_context(ANYWHERE, "a\0b"), r"'a\\x00b' cannot be used: "),
        (lambda: server_context(ANYWHERE, 5, "key"), "certificate expects a path, got 5"),  # type: ignore[arg-type]
        (lambda: server_context(ANYWHERE, "certificate", 5), "key expects a path, got 5"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match=said):
            refused()


def test_tcp_wants_a_secret_and_off_loopback_a_certificate(start: Start) -> None:
    with pytest.raises(ConfigError, match="needs a secret"):
        start("tcp:127.0.0.1:0")
    with pytest.raises(ConfigError, match="needs TLS"):
        start("tcp:0.0.0.0:0", secret=Secret(SECRET, "the test"))
    with pytest.raises(ConfigError, match="one of them is missing"):
        start("tcp:127.0.0.1:0", certificate="cert.pem")
    with pytest.raises(ConfigError, match="does not use TLS"):
        server_context(UnixAddress("s"), "cert.pem", "key.pem")
    with pytest.raises(ConfigError, match="cannot be used"):
        server_context(ANYWHERE, "no.pem", "no.pem")
    with pytest.raises(ConfigError, match="cannot be used"):
        client_context(ANYWHERE, "no.pem")


def test_a_client_off_loopback_always_speaks_tls() -> None:
    context = client_context(ANYWHERE, None)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert client_context(TCPAddress("localhost", 1), None) is None
    assert client_context(UnixAddress("s"), None) is None


def test_tcp_on_loopback_goes_without_tls(start: Start) -> None:
    server = start("tcp:127.0.0.1:0", secret=Secret(SECRET, "the test"))
    with connect(str(server.address), secret=SECRET, timeout=DEADLINE) as connection:
        notes = connection.ref("notes")
        notes.tell_many(range(1_000))
        assert len(notes.ask("all").result(DEADLINE)) == 1_000


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate of one's own for 127.0.0.1, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=callboard", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
         "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


def test_a_trusted_certificate_serves_tls(start: Start, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    secret = Secret(SECRET, "the test")
    server = start("tcp:127.0.0.1:0", secret=secret, certificate=cert, key=key)
    address = str(server.address)
    with connect(address, secret=SECRET, ca_file=cert, timeout=DEADLINE) as connection:
        notes = connection.ref("notes")
        notes.tell_many([("x" * 1_000, number) for number in range(5_000)])
        assert notes.ask("all").result(DEADLINE)[-1] == ("x" * 1_000, 4_999)
        notes.tell("y" * 5_000_000)
        assert len(notes.ask("all").result(DEADLINE)[-1]) == 5_000_000


def test_a_client_that_does_not_trust_the_certificate_says_nothing(
    start: Start, certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = certificate
    secret = Secret(SECRET, "the test")
    server = start("tcp:127.0.0.1:0", secret=secret, certificate=cert, key=key)
    port = server.address.port  # type: ignore[union-attr]

    def speaks_without_tls() -> bool:  # and is not answered
        loss(partial(connect, f"tcp:127.0.0.1:{port}", **known))
        return logged(caplog, "client refused", "no TLS")()

    known: dict[str, Any] = {"secret": SECRET, "timeout": 0.3}
    with pytest.raises(
        ConnectionRejected, match=r"certificate is not trusted.*CERTIFICATE_VERIFY_FAILED"
    ):
        connect(f"tcp:localhost:{port}", ca_file=cert, secret=SECRET, timeout=DEADLINE)
    with pytest.raises(ConnectionRejected, match="certificate is not trusted"):
        aconnect(f"tcp:localhost:{port}", ca_file=cert, secret=SECRET).result(DEADLINE)
    eventually(speaks_without_tls, "it is in the log")
    with connect(str(server.address), secret=SECRET, ca_file=cert, timeout=DEADLINE) as connection:
        assert connection.ref("notes").ask(1).result(DEADLINE) == 1


def test_a_client_without_a_certificate_is_told_that_the_server_may_want_tls(
    start: Start, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    secret = Secret(SECRET, "the test")
    server = start("tcp:127.0.0.1:0", secret=secret, certificate=cert, key=key)

    def is_told() -> bool:
        said = loss(partial(connect, str(server.address), secret=SECRET, timeout=0.3))
        return said.endswith("; if the server needs TLS, give ca_file=")

    eventually(is_told, "it is tried in time")


def test_a_client_with_a_certificate_is_told_that_the_server_speaks_no_tls(
    start: Start, certificate: tuple[Path, Path]
) -> None:
    server = start("tcp:127.0.0.1:0", secret=Secret(SECRET, "the test"))
    known: dict[str, Any] = {"secret": SECRET, "ca_file": certificate[0], "timeout": 0.3}

    def is_told() -> bool:
        said = loss(partial(connect, str(server.address), **known))
        return (
            "the server does not speak TLS, or another version: [SSL: WRONG_VERSION_NUMBER]" in said
        )

    eventually(is_told, "it is tried in time")


def test_a_key_that_others_may_read_is_a_warning(
    certificate: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key.pem"
    shutil.copy(certificate[1], key)
    for mode, is_said in [(0o600, False), (0o640, False), (0o644, True)]:
        caplog.clear()
        key.chmod(mode)
        assert server_context(ANYWHERE, certificate[0], key) is not None
        assert logged(caplog, "may read or write the TLS key", str(key))() == is_said


def test_a_file_of_a_secret_may_be_a_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, SECRET.encode())
    os.close(writing)
    assert find_secret(secret_file=f"/dev/fd/{reading}") is not None
    os.close(reading)
