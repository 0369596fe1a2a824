"""A headless Chromium for the tests, driven through its DevTools pipe: no driver, no web socket, no network.

with Browser() as browser:
    page = browser.open(path)
    page.run("document.title")
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
).split()
PATIENCE = 60.0  # seconds for any answer, on a busy machine


def found() -> str | None:
    """The browser's path, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    def __enter__(self) -> Browser:
        path = found()
        assert path, "no Chromium: apt-get install chromium"
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()

        def wire() -> None:  # the pipe's two ends have fixed numbers in the child
            ends = os.dup(to_read), os.dup(to_write)
            for end, number in zip(ends, (3, 4), strict=True):
                os.dup2(end, number)

        self._process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self._home.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=wire, start_new_session=True,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._count, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            os.close(self._to)
            os.close(self._from)
            self._home.cleanup()

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            more = os.read(self._from, 1 << 16) if ready else b""
            assert more, "the browser did not answer"
            self._rest += more
        one, self._rest = self._rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._count += 1
        asked = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            message = self._message(until)
            if message.get("id") == self._count:
                assert "error" not in message, message["error"]
                return message["result"]
            self.events.append(message)

    def open(
        self,
        path: Path,
        width: int = 1100,
        height: int = 900,
        dark: bool = False,
        fragment: str = "",
        scripts: bool = True,
    ) -> Page:
        """A page of its own, loaded, in the given colour scheme. fragment: what follows # in its address."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        self.call("Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1,
                  mobile=False)  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", session, features=scheme)
        page = Page(self, session)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", session, value=True)
        address = path.resolve().as_uri() + (f"#{fragment}" if fragment else "")
        self.call("Page.navigate", session, url=address)
        until = time.monotonic() + PATIENCE
        while page.run("document.readyState") != "complete" or page.run("location.href") == "about:blank":
            assert time.monotonic() < until, "the page did not load"
            time.sleep(0.02)
        return page


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, as JSON would have it."""
        got = self.browser.call(
            "Runtime.evaluate", self.session, expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                text = {"Enter": "\r", " ": " "}.get(key)
                extra = {"text": text} if text and kind == "keyDown" else {}
                arrows = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
                code = ({"Tab": 9, "Enter": 13, " ": 32} | arrows).get(key, 0)
                self.browser.call("Input.dispatchKeyEvent", self.session, type=kind, key=key,
                                  windowsVirtualKeyCode=code, **extra)  # fmt: skip

    def complaints(self) -> list[str]:
        """Everything that went to the console or was an uncaught error so far, and every request but the page's own."""
        said = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            name, what = event["method"], event.get("params", {})
            if name in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                said.append(json.dumps(what)[:500])
            if name == "Network.requestWillBeSent" and not what["request"]["url"].startswith("file:"):
                said.append(what["request"]["url"][:200])
        return said

    def picture(self, path: Path, whole: bool = False) -> bytes:
        got = self.browser.call("Page.captureScreenshot", self.session, format="png", captureBeyondViewport=whole)
        data = base64.b64decode(got["data"])
        path.write_bytes(data)
        return data
