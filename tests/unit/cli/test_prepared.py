"""Help and completion come from what typer has made, without what is slow to import."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import n5zarr
from n5zarr.cli import prepared
from tests.outputs import python
from tests.prepared import line_of, packages, typers

SLOW = {"zarr", "numpy", "numcodecs", "typer", "rich", "pydantic", "asyncio", "no-collector"}
TREE = ["tree", n5zarr.sample_path()]
IS_SAME = prepared.load()[""]["made with"] == packages()
as_noted = pytest.mark.skipif(not IS_SAME, reason="other versions say it in other words")


def run(words: list[str], **variables: str) -> tuple[int, str, set[str]]:
    """Run the command; return its status, what it prints, and the slow packages that it imports."""
    code = """
import gc, sys
from n5zarr.__main__ import main
try:
    main()
finally:
    print(*sys.modules, "" if gc.isenabled() else "no-collector", file=sys.stderr)
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")}
    environment |= {"PYTHONIOENCODING": "utf-8", **variables}
    command: Any = [sys.executable, "-c", code, *words]
    how: Any = {"capture_output": True, "encoding": "utf-8"}
    done = subprocess.run(command, env=environment, check=False, **how)
    return done.returncode, done.stdout, {*done.stderr.split()} & SLOW


def test_what_is_prepared_is_what_typer_makes() -> None:
    """``uv run python -m tests.prepared`` writes the file again.

    A process of its own makes it: other tests may have changed what commands are made from.
    """
    code = "import json; from tests.prepared import made; print(json.dumps(made()))"
    found, noted = json.loads(python("-c", code, cwd=Path(__file__).parents[3])), prepared.load()
    one, other = (
        {command: {after: [*words] for after, words in each["words"].items()}
         for command, each in of.items()}
        for of in (found, noted)
    )  # fmt: skip
    assert one == other
    if IS_SAME:
        assert found == noted


@pytest.mark.parametrize(
    ("words", "status", "begin"),
    [
        (["--version"], 0, f"n5zarr {n5zarr.__version__} (with"),
        ([], 2, "Usage: n5zarr [OPTIONS] COMMAND"),
        (["-h"], 0, "Usage: n5zarr [OPTIONS] COMMAND"),
        (["tree", "--help"], 0, "Usage: n5zarr tree [OPTIONS]"),
        (["nwb", "convert", "-h"], 0, "Usage: n5zarr nwb convert [OPTIONS]"),
        (["convert", "--help-all"], 0, "Usage: n5zarr convert [OPTIONS]"),
    ],
    ids=["version", "bare", "top", "command", "below a group", "all"],
)
def test_without_slow_packages(words: list[str], status: int, begin: str) -> None:
    done, text, imported = run(words)
    assert (done, imported) == (status, set())
    assert text.strip().startswith(begin)
    assert "\x1b" not in text


def test_a_command_casts_without_pydantic_and_collects_garbage() -> None:
    status, text, imported = run([*TREE, "--size"])
    assert (status, imported) == (0, SLOW - {"pydantic", "no-collector"})
    assert "27 of 27 blocks" in text


@pytest.mark.parametrize(("columns", "encoding"), [("60", "utf-8"), ("100", "ascii")])
def test_typer_makes_other_help(
    columns: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert prepared.help_of(["tree", "-h"]) is None


@pytest.mark.parametrize(("variable", "has"), [("TERM", True), ("NO_COLOR", False)])
def test_a_terminal_has_colours(
    variable: str, has: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "132")
    text = prepared.help_of(["info", "--help"]) or ""
    assert ("\x1b[1;36m" in text) is has
    assert "Print the metadata of a group or dataset." in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no such file")
def test_a_full_disk_is_an_error() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        words = [sys.executable, "-m", "n5zarr", "--version"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "n5zarr: [Errno 28] No space left on device\n")


LINES = [
    [""], ["t"], ["-"], ["--ver"], ["-v", "tree", "--d"], ["nope", ""], ["nwb", ""], ["nwb", "c"],
    ["tree", ""], ["tree", "sam"], ["tree", "--backend", ""], ["tree", "--backend", "f"],
    ["tree", "--depth", ""], ["tree", "convert", "--"], ["convert", "a", "b", "--to", "z"],
    ["nwb", "convert", "a", "--to", ""], ["tree", "'a b", "-"], ["convert", "--to=z"],
]  # fmt: skip


@as_noted
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_shells_are_told_what_typer_tells_them(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_N5ZARR_COMPLETE", f"complete_{shell}")
    answers = []
    for words in LINES:
        for name, value in line_of(shell, *words).items():
            monkeypatch.setenv(name, value)
        answers.append(prepared.completion())
    left = len(LINES) - 2 if shell != "powershell" else 0
    assert answers[left:] == [None] * (len(LINES) - left)
    for words, answer in zip(LINES, answers[:left], strict=False):
        told = (re.split(r"\n|\(\(|\)\)", text) for text in (answer or "", typers(shell, *words)))
        assert sorted(next(told)) == sorted(next(told)), words  # in the order of words


@pytest.mark.parametrize(("words", "status"), [("n5zarr tr", 0), ("n5zarr tree ", 1)])
def test_fish_asks_whether_it_completes_files(words: str, status: int) -> None:
    asked: dict[str, Any] = {"_N5ZARR_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": words}
    done, text, imported = run([], **asked, _TYPER_COMPLETE_FISH_ACTION="is-args")
    assert (done, text, imported) == (status, "", set())


@pytest.mark.parametrize("between", [" ", "\n"])  # typer's script for bash has ends of lines
def test_tab_is_answered_without_slow_packages(between: str) -> None:
    line = between.join(("n5zarr", "tree", "--", "x"))
    asked = {"_N5ZARR_COMPLETE": "complete_bash", "COMP_WORDS": line}
    done, text, imported = run([], **asked, COMP_CWORD="2")
    assert (done, imported) == (0, set())
    assert re.search(r"^--depth$", text, re.MULTILINE)
