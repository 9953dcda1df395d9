"""Run a headless Chromium that renders in software, and take pictures of its pages."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root cannot have one
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)


@contextmanager
def chromium(folder: Path, width: int = 1300, height: int = 850) -> Iterator[Any]:
    """Start a browser that keeps its files in a folder; always end it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="uv sync installs it")
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    folders = f"--user-data-dir={folder / 'profile'}", f"--disk-cache-dir={folder / 'cache'}"
    for flag in (*_FLAGS, f"--window-size={width},{height}", *folders):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = {**os.environ, "HOME": str(folder)}
    service = webdriver.ChromeService(driver, env=environment)
    started = webdriver.Chrome(options=options, service=service)
    try:
        yield started
    finally:
        started.quit()


def pixels(browser: Any) -> npt.NDArray[np.uint8]:
    """Return the picture of a page: rows, columns, and red, green and blue."""
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    return np.asarray(picture)


def complaints(browser: Any) -> list[str]:
    """Return the errors in the browser's log, such as requests that fail and scripts refused."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def resize(browser: Any, width: int, height: int, *, dark: bool = False) -> None:
    """Set the size of the page, which may be smaller than any window, and the dark mode."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
