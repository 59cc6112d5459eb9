"""Chromium without a window, driven through a pipe (the DevTools protocol)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60.0
"""Seconds within which a page shows what is waited for."""


class Browser:
    """A browser with one page. Leave it as a context manager to end it."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        theirs, self._to = os.pipe()
        self._of, ours = os.pipe()
        command = [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
        ]
        script = f'exec "$0" "$@" 3<&{theirs} 4>&{ours}'  # where it reads and writes
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, *command],
            pass_fds=(theirs, ours),
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        os.close(theirs)
        os.close(ours)
        self._heard = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 2 * PATIENCE
        while True:
            answer = self._hear(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        """Open a page, whose script has begun then."""
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """Return what an expression is in the page; a promise's value when it is there."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        limit = int(1000 * PATIENCE)
        found = self.value(
            "new Promise(done => { const end = Date.now() + "
            f"{limit}; const see = () => {{ let v; try {{ v = {condition}; }} catch (e) {{ }}"
            " v || Date.now() > end ? done(!!v) : setTimeout(see, 20); }; see(); })"
        )
        assert found, f"{condition} in {self.text()[:3000]}"

    def text(self) -> str:
        """Return what the page shows, as text."""
        found: str = self.value("document.body.innerText")
        return found

    def resize(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Have a screen of this size, and the user's wish for dark or light colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale}
        self.call("Emulation.setDeviceMetricsOverride", **metrics, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Write a picture of the page."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def kill(self) -> None:
        """End it at once, as by `kill -9`."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._to)
        os.close(self._of)

    def _hear(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._heard:
            ready, _, _ = select.select([self._of], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._of, 1 << 20)
            assert data, "the browser has ended"
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found
