"""Options of pytest: the tests near to a file, the quick tests, and files shared by processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.near.shares import OwnFiles, share_of, shares_of
from tests.near.table import REPOSITORY, Table, changed_lines, changed_tests, within

STRUCTURE = ("tests/test_architecture.py", "tests/test_public_api.py")  # of any change
SESSION = pytest.StashKey[pytest.Session]()
LEFT = pytest.StashKey[list[str]]()
SHARES = pytest.StashKey[Mapping[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("n5zarr")
    group.addoption(
        "--near", action="append", nargs="?", const="", metavar="FILE",
        help="run the tests that run FILE, nearest first, for a minute; without FILE, changed "
        "tests, and those that run what the branch changes",
    )  # fmt: skip
    group.addoption(
        "--quick", action="store_true", help="run some files of tests, which run most of the core"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.near is not None:
        config.args[:], config.stash[LEFT] = _near(config.option.near)
    elif config.option.quick:
        config.args[:] = Table.read().quick
    if "n5zarr_share" in _worker(config):
        seconds = Table.read().seconds
        config.stash[SHARES] = shares_of(seconds, _worker(config)["workercount"])
        # pytest asks of folders only what to ignore
        config.args[:] = [each for each in config.args if not _is_of_others(Path(each), config)]


def _worker(config: pytest.Config) -> dict[str, Any]:
    """Return what pytest-xdist tells a process that runs tests, empty for others."""
    return getattr(config, "workerinput", {})


def _near(files: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of pytest for the tests near to files, and a line for each left out."""
    names = [Path(file).resolve().relative_to(REPOSITORY).as_posix() for file in files if file]
    if odd := [name for name in names if not name.endswith((".py", ".c"))]:
        raise pytest.UsageError(f"--near: expected files of Python or C, got {', '.join(odd)}")
    whole = [name for name in names if Path(name).name.startswith("test_")]
    lines: dict[str, set[int] | None] = dict.fromkeys(name for name in names if name not in whole)
    if not names:
        whole, lines = [*changed_tests(), *STRUCTURE], changed_lines()
        if not lines and whole == list(STRUCTURE):
            raise pytest.UsageError("--near: the branch changes no modules and no tests; name one")
    kept, left = within(Table.read().nearest(lines))
    if not kept and not whole:
        raise pytest.UsageError(f"--near: no test of the table runs {', '.join(lines)}")
    others = [each.name for each in kept if each.name.partition("::")[0] not in whole]
    return [*whole, *others], [f"{each.name} ({each.seconds} s)" for each in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the nearest tests that did not fit into the minute."""
    if left := terminalreporter.config.stash.get(LEFT, []):
        terminalreporter.section("near, but not run within a minute")
        terminalreporter.write_line("\n".join(left))


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[SESSION] = session


def is_shared(config: pytest.Config) -> bool:
    """Whether each process collects its own files: for all tests and for the quick ones."""
    is_choice = config.option.keyword or config.option.markexpr
    return not is_choice and (config.option.quick or any(map(os.path.isdir, config.args)))


class Sharing:
    """The hooks of pytest-xdist in the process that directs."""

    def __init__(self) -> None:
        self.shares = Counter[int]()

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a process which share is its own: its number, or that of the one it replaces."""
        if is_shared(node.config):
            n = node.workerinput["workercount"]
            share = min(range(n), key=lambda k: self.shares[k])
            self.shares[share] += 1
            node.workerinput["n5zarr_share"] = share

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note that the share of a process that ends in the middle is free."""
        if error and "n5zarr_share" in node.workerinput:
            self.shares[node.workerinput["n5zarr_share"]] -= 1

    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> OwnFiles | None:
        """Schedule files where processes collect their own; else as pytest-xdist does."""
        if is_shared(config):
            return OwnFiles(config.stash[SESSION], len(config.getvalue("tx")))
        return None


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    if type(plugin).__name__ == "DSession" and not manager.has_plugin("n5zarr-sharing"):
        manager.register(Sharing(), "n5zarr-sharing")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if SHARES in config.stash and _is_of_others(collection_path, config) else None


def _is_of_others(path: Path, config: pytest.Config) -> bool:
    if path.suffix != ".py":
        return False
    own, worker = path.resolve().relative_to(REPOSITORY).as_posix(), _worker(config)
    share = share_of(own, config.stash[SHARES], worker["workercount"])
    return bool(share != worker["n5zarr_share"])
