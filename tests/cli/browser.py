"""A headless Chromium for tests, driven over the WebDriver protocol with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "ArrowRight": "\ue014", "Space": " "}


class Browser:
    """One window. Everything goes through real clicks and keys, except what only a script can read."""

    def __init__(self, base: str, session: str) -> None:
        self._base, self._session = base, session

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return _request(method, f"{self._base}/session/{self._session}{path}", body)

    def open(self, path: Path) -> None:
        self.call("POST", "/url", {"url": path.resolve().as_uri()})

    def read(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> str:
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        return str(found[_ELEMENT])

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, *names: str) -> None:
        """Keys for whatever has the focus."""
        steps = [
            {"type": kind, "value": KEYS.get(name, name)} for name in names for kind in ("keyDown", "keyUp")
        ]  # fmt: skip
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def drag(self, selector: str, dx: int, dy: int) -> None:
        origin = {_ELEMENT: self.find(selector)}
        steps = [
            {"type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 20, "origin": origin, "x": dx, "y": dy},
            {"type": "pointerUp", "button": 0},
        ]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def log(self) -> list[str]:
        """Errors of the page, among them everything that its policy blocked."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


def _request(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())["value"]
    except urllib.error.HTTPError as exc:
        raise AssertionError(json.loads(exc.read())["value"]["message"]) from exc


@contextmanager
def browser(profile: Path, *, width: int = 1400, height: int = 900, dark: bool = False) -> Iterator[Browser]:
    """Start Chromium and its driver, and end both."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    assert driver, "the page is tested in a browser: apt-get install chromium chromium-driver"
    assert chromium, "the page is tested in a browser: apt-get install chromium chromium-driver"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [driver, f"--port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HOME": str(profile)},
    )
    base = f"http://127.0.0.1:{port}"
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    words += [f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    options = {"goog:chromeOptions": {"binary": chromium, "args": words}, "goog:loggingPrefs": {"browser": "ALL"}}
    try:
        _wait(base, process)
        made = _request("POST", f"{base}/session", {"capabilities": {"alwaysMatch": options}})
        page = Browser(base, made["sessionId"])
        try:
            yield page
        finally:
            page.call("DELETE", "")
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(base: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "the driver of the browser ended"
        try:
            if _request("GET", f"{base}/status")["ready"]:
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    raise AssertionError("the driver of the browser does not answer")
