"""Set up all tests: processes, hypothesis, a mark of xarray's tests, and permitted skips.

Folders of tests run in two processes more than there are cores, as many tests wait; files and what
is chosen by ``-k`` run in this one, and ``-n`` chooses otherwise.

Folders run in a short form: without tests that are marked ``long``, which ``-m long`` chooses, and
of tests that are marked ``each_of(n)``, each n-th case. ``N5ZARR_ALL=1`` runs all of them, and
``N5ZARR_HYPOTHESIS=nightly`` many more examples. ``N5ZARR_REQUIRE_PEERS=1``, as in CI, makes a
test fail that would be skipped because something is missing that can be had: a peer, an extra, the
compiled kernel. Only the skips that ``RIGHT_SKIPS`` lists remain.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

BYTECODE = Path(__file__).parents[1] / ".pytest_cache/bytecode"

if sys.dont_write_bytecode:
    # Containers often set PYTHONDONTWRITEBYTECODE. Each of the hundreds of processes of the tests
    # would compile zarr and xarray anew, which takes two thirds of the time of a short one. They
    # share what they compile here, and the folders of the sources stay as they are.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the processes that are started inherit this

from hypothesis import HealthCheck, settings  # noqa: E402 - it is compiled where that says

# Reasons of skips, as regular expressions, and why nothing that could be installed would help.
RIGHT_SKIPS = {
    "no timers": "the system has no such signals",
    "(on Linux, flock and record locks|no compiled kernel, so that a handler)": (
        "the other runs of .ci/run, without `-p tests.macos`, do these tests"
    ),
    "locks that exclude Java's": "they are Linux's",
    "there are no such (locks|signals|limits)": "the system is Windows",
    "Windows has no fork and replaces no open file": "the other runs of .ci/run do these tests",
    "the system is not Windows": "`-p tests.windows` runs them in a step of .ci/run",
    "no LD_PRELOAD as on Linux|the file systems and limits are Linux's": "others have none",
    "this user may not mount": "containers of CI may forbid it",
    "Linux counts what is read": "other systems do not",
    "this Python's zlib is not the zlib of Java": "its streams are right, and others",
    "the wrapped store has no synchronous methods": "the test is of those",
    "as the server with lists": "the same test runs there",
    "fsspec's file systems belong to zarr's loop": "elsewhere it is an error of aiohttp's",
    "no Python without its lock": "few machines have one; the rest is tested with the lock",
    "there are no such subinterpreters": "before Python 3.13",
    "no Chromium|no node, or no zarrita": "not every machine lets .ci/run install them",
    "installs several other projects": "it takes minutes, and changes with their releases only",
    "torch takes 5 GB": "the other projects of tests/peers/stuck go the same way",
    # of xarray's own tests
    "requires (cftime|netcdf)": "calendars and netCDF4 files are no matter of a Zarr store",
    "float32 will be treated as float64 in zarr": "xarray's, of every Zarr store",
    "uint8 data can't be written to non-NetCDF4 data": "xarray's, of every Zarr store",
    "No unlimited_dims handled in zarr": "xarray's, of every Zarr store",
    "Unsupported with zarr_format=[23]": "xarray's; the test is of the other format",
    "This works on pre ZDtype Zarr-Python": "xarray's, of every Zarr store",
}
FAST = ("tests/unit/", "n5zarr/")  # are last, so that all processes end at one time
# messages about what clients of other libraries leave; errors in development mode. A socket of a
# server has no address of a client (raddr): one of ours that is left stays an error
LEFT_SOCKETS = [r"unclosed <socket.socket .*raddr=.'127\.0\.0\.1'"]
if sys.flags.dev_mode:
    LEFT_SOCKETS.clear()
ALL = os.environ.get("N5ZARR_ALL", "") not in ("", "0")
REQUIRED = os.environ.get("N5ZARR_REQUIRE_PEERS", "") not in ("", "0")

settings.register_profile("any", deadline=None, derandomize=True, database=None)
settings.load_profile("any")  # from which the others inherit
settings.register_profile("default", max_examples=12)
settings.register_profile("thorough", max_examples=50)
slow = [HealthCheck.too_slow]
settings.register_profile("nightly", max_examples=2000, suppress_health_check=slow)
settings.load_profile(os.environ.get("N5ZARR_HYPOTHESIS", "thorough" if ALL else "default"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a script that starts the tests with "&" ignores it, and so would the commands that they try
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # until all tests are collected: a fifth of the time would go into it


def pytest_collection_finish() -> None:
    """Look no more for garbage among what was collected: 20 000 tests and 3000 modules."""
    gc.enable()
    gc.freeze()  # a collection after a test takes milliseconds, else a third of a second


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the compiled files of modules that tests have made in temporary folders."""
    for text in LEFT_SOCKETS:  # pytest collects them once more after this
        warnings.filterwarnings("ignore", text, ResourceWarning)
    if not hasattr(config, "workerinput"):
        temporary = Path(tempfile.gettempdir()).resolve()
        shutil.rmtree(BYTECODE.joinpath(*temporary.parts[1:]), ignore_errors=True)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect coroutines that zarr leaves behind failed requests, and ignore their warning."""
    if any("never awaited" in mark.args[0] for mark in item.iter_markers("filterwarnings")):
        gc.collect()


def is_choice(config: pytest.Config) -> bool:
    """Return whether words or marks choose tests."""
    return bool(config.option.keyword or config.option.markexpr)


def has_folder(config: pytest.Config) -> bool:
    """Return whether whole folders of tests run, and not a choice of them."""
    is_part = is_choice(config) or config.option.collectonly
    return not is_part and any(Path(argument).is_dir() for argument in config.args)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Choose how many processes run the tests; 0 is this one."""
    if config.option.quick:
        return os.cpu_count() or 1
    return 2 + (os.cpu_count() or 1) if has_folder(config) and not config.option.near else 0


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests and, of one marked ``each_of(n)``, all but each n-th case."""
    seen: Counter[int] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("each_of")
        is_kept = item.get_closest_marker("long") is None
        if mark is not None:
            is_kept = is_kept and seen[id(mark)] % mark.args[0] == 0
            seen[id(mark)] += 1
        (kept if is_kept else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    """Ignore connections to servers of tests that a client has left, but in development mode.

    Clients of other libraries close some when they are collected, perhaps during another test.
    """
    for text in LEFT_SOCKETS:
        config.addinivalue_line("filterwarnings", f"ignore:{text}:ResourceWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the short form, and skip some parameters, as xarray's conftest does."""
    is_folder = hasattr(config, "workerinput") or has_folder(config) or config.option.near
    if is_folder and not ALL and not is_choice(config):
        leave_out(config, items)
    items.sort(key=lambda item: item.nodeid.startswith(FAST))
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        for mark in item.iter_markers("skip_if_param"):
            wanted = {k: v for k, v in mark.kwargs.items() if k not in ("reason", "condition")}
            fits = all(parameters.get(name) == value for name, value in wanted.items())
            if mark.kwargs.get("condition", True) and fits:
                item.add_marker(pytest.mark.skip(reason=mark.kwargs["reason"]))


def is_right(reason: str) -> bool:
    """Return whether a skip for this reason is permitted where all peers are installed."""
    return any(re.match(f"(Skipped: )?{known}", reason) for known in RIGHT_SKIPS)


def fail_if_missing(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if something is missing that can be installed."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        details = report.longrepr
        reason = str(details[2]) if isinstance(details, tuple) else str(details)
        if not is_right(reason):
            report.outcome = "failed"
            report.longrepr = f"N5ZARR_REQUIRE_PEERS is set, but this is skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips of tests into failures where peers are required."""
    report = yield
    if REQUIRED:
        fail_if_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn skips of whole modules into failures where peers are required."""
    report = yield
    if REQUIRED:
        fail_if_missing(report)
    return report


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    """Close the sessions of web file systems that zarr makes: nothing else does."""
    yield
    web, google = map(sys.modules.get, ("fsspec.implementations.http", "gcsfs.core"))
    kinds = [web and web.HTTPFileSystem, google and google.GCSFileSystem]
    for each in [each for kind in kinds if kind for each in kind._cache.values()]:
        if each.asynchronous and (session := each._session):
            from n5zarr._zarr import sync  # noqa: PLC0415 - `-p tests.windows` comes first

            each._session = None  # the next test that takes it has another
            sync(session.close())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note the requests to local files."""
    from n5zarr.storage.local import LocalFiles  # noqa: PLC0415 - `-p tests.windows` comes first

    noted: list[Any] = []
    answer = LocalFiles.answer

    def noting(self: LocalFiles, request: Any, warn: Any) -> object:
        noted.append(request)
        return answer(self, request, warn)

    monkeypatch.setattr(LocalFiles, "answer", noting)
    return noted
