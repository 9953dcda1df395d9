"""Record each test that pytest runs: ``-p tests.near.recorded``."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.near.recording import SECONDS_ONLY, Recorder, function_of

STARTED = str(Path(__file__).with_name("started"))


class _Plugin:
    def __init__(self) -> None:
        self.recorder = Recorder()
        if SECONDS_ONLY not in os.environ:
            self.recorder.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.recorder.begin()
        began = time.monotonic()
        result = yield
        self.recorder.end(function_of(item.nodeid), time.monotonic() - began)
        return result


def pytest_configure(config: pytest.Config) -> None:
    paths = (STARTED, os.environ.get("PYTHONPATH"))
    if SECONDS_ONLY not in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Plugin())
