"""Every command has help, messages, completion and suggestions."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import n5zarr
from n5zarr.cli import messages
from n5zarr.cli.app import app
from n5zarr.errors import N5Warning
from tests.command import CliRunner, printed
from tests.prepared import commands

SAMPLE = n5zarr.sample_path()
JAVA = Path(__file__).parents[2] / "data" / "java"
JAVA4 = JAVA.with_name("java4") / "codecs.n5"


ALL = [words for words, _ in commands(get_command(app))]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_fits_80_columns(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short = CliRunner().invoke(app, [*words, "-h"])
    assert short.output == CliRunner().invoke(app, [*words, "--help"]).output
    assert short.exit_code == 0
    lines = short.output.splitlines()
    assert max(map(len, lines)) == 80
    # rich cuts what does not fit with an ellipsis; typer writes three dots, and only in usages
    assert "…" not in short.output
    assert "int range" not in short.output  # what typer shows without a metavar
    for option in ("--verbose", "--quiet", "-v", "-q", "-h"):
        assert any(f" {option} " in line for line in lines)
    # a paragraph is filled: no line ends where the next word would have fitted
    text = lines[4 : next((n for n, line in enumerate(lines) if line.startswith("╭")), None)]
    for line, after in pairwise(text):
        if line.strip() and after.strip():
            assert len(line.rstrip()) + 1 + len(after.split()[0]) > 78


# results of each command, as words; `c` is a copy of the sample, `o` a folder for what is written
JSON: dict[str, list[str]] = {
    "tree": ["c"], "info": ["c/em/s0"], "thumbnail": ["c", "-o", "o/em.png", "--size", "64"],
    "convert": ["c", "o/a.zarr"], "download": ["c", "o/d.n5"], "virtualize": ["c", "o/a.json"],
    "pyramid": ["c/labels", "--levels", "1"], "rechunk": ["c/em/s2", "--compression", "raw"],
    "attrs": ["c/em/s0", "units"], "attrs set": ["c/em/s0", "note", "5"],
    "attrs remove": ["c/em/s0", "units", "--remove"],
    "validate": ["c"], "diff": ["c/em/s0", "c/em/s0"], "rm-empty": ["c"],
}  # fmt: skip
# these print while they run: test_serve_command.py; and hdmf/test_convert.py
ELSEWHERE = {("serve",), ("view",), ("nwb", "convert")}
NO_RESULTS = {("demo",)}


def test_all_commands_with_results_print_them_as_json() -> None:
    last = {words for words in ALL if words and not [w for w in ALL if w[:-1] == words]}
    having = {words for words in last if "--json" in CliRunner().invoke(app, [*words, "-h"]).output}
    assert last - having == NO_RESULTS
    assert {(name.split()[0],) for name in JSON} == having - ELSEWHERE


@pytest.mark.parametrize("name", JSON)
def test_what_is_printed_is_json(name: str, tmp_path: Path) -> None:
    places = {"c": shutil.copytree(SAMPLE, tmp_path / "c.n5"), "o": tmp_path}
    words = [
        str(tmp_path.joinpath(places[w[0]], w[2:])) if w in "co" or w[1:2] == "/" else w
        for w in JSON[name]
    ]
    found = json.loads(printed(name.split(maxsplit=1)[0], "--json", *words))
    expected: dict[str, Any] = {
        "info": {"shape_c": [40, 96, 128]},
        "tree": {"kind": "group"},
        "thumbnail": {"width": 64, "images": ["em"], "n_images": 2},
        "attrs set": {"key": "note", "value": 5},
        "attrs remove": {"key": "units", "removed": True},
    }
    if name == "attrs":
        assert found == ["nm", "nm", "nm"]
    else:
        assert expected.get(name, {}).items() <= found.items()


LONG = JAVA / "metadata.n5/ngff-0.4-corder"
WORDS = [
    ["tree", "--size", SAMPLE], ["tree", JAVA4], ["info", LONG], ["validate", JAVA4],
    ["info", "--stats", f"{SAMPLE}/em/s0"], ["rm-empty", SAMPLE, "--dry-run"],
    ["convert", JAVA / "metadata.n5", "o.zarr", "--dry-run"],
    ["diff", f"{SAMPLE}/em", f"{SAMPLE}/labels"],
    ["pyramid", f"{SAMPLE}/em"], ["info", f"{SAMPLE}/em/s7"],
]  # fmt: skip


def shown(words: list[Any], width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command in a terminal; return what it shows."""
    screen = io.StringIO()
    terminal = messages._Console(
        file=screen, width=width, force_terminal=True, color_system=None, highlight=False
    )
    with monkeypatch.context() as patch:
        patch.setattr(messages, "_console_of", lambda _: terminal)
        CliRunner().invoke(app, ["-q", *map(str, words)])
    return screen.getvalue()


@pytest.mark.parametrize("words", WORDS, ids=range(len(WORDS)))
def test_a_terminal_shows_lines_folded_between_words(
    words: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text, whole = (shown(words, width, monkeypatch) for width in (80, 4000))
    assert max(map(len, whole.splitlines())) > 80 or words[0] in ("convert", "rm-empty", "diff")
    too_long = [line for line in text.splitlines() if len(line.rstrip()) > 80]
    assert [line for line in too_long if " " in line.strip()] == []  # but long addresses
    # but for guides of trees, bars of histograms, and seconds
    other = re.compile("[│├└─█▏▎▍▌▋▊▉]+|[0-9.]+ s\\b")
    folded, unfolded = (other.sub("", each).split() for each in (text, whole))
    assert not Counter(word for word in unfolded if len(word) < 40) - Counter(folded)
    # a longer word, such as the address of this folder, may be cut at the end of a table's column
    assert sorted("".join(folded)) == sorted("".join(unfolded))


@pytest.mark.parametrize("words", WORDS, ids=range(len(WORDS)))
def test_piped_output_has_a_record_in_each_line(
    words: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [*map(str, words)])
    wide = shown(words, 4000, monkeypatch)
    assert len((done.stdout + done.stderr).splitlines()) == len(wide.splitlines())
    assert [line for line in done.output.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("before", [True, False])
def test_verbosity_before_and_after_the_command(before: bool) -> None:
    def told(*options: str) -> str:
        words = [*options, "tree"] if before else ["tree", *options]
        return CliRunner().invoke(app, [*words, SAMPLE]).stderr

    assert told() == ""
    assert "DEBUG n5zarr.storage.requests: Get " in told("-vv")
    assert "DEBUG" not in told("-v")
    assert CliRunner().invoke(app, ["-v", "tree", "-v", SAMPLE]).stderr.count("DEBUG") > 3
    assert logging.getLogger("n5zarr").level == logging.NOTSET
    assert [type(h) for h in logging.getLogger("n5zarr").handlers] == [logging.NullHandler]


def test_quiet_hides_warnings_and_no_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe_each(*_: object, **__: object) -> Iterator[object]:
        warnings.warn("odd axes", N5Warning, stacklevel=1)
        yield from ()

    with monkeypatch.context() as patch:
        patch.setattr("n5zarr.metadata.inspect.describe_each", describe_each)
        assert CliRunner().invoke(app, ["tree", "x"]).stderr == "n5zarr: warning: odd axes\n"
        for words in (["-q", "tree", "x"], ["tree", "-q", "x"]):
            assert CliRunner().invoke(app, words).output == ""
    assert "does not exist" in CliRunner().invoke(app, ["-q", "tree", "no.n5"]).stderr


def test_warnings_go_above_the_progress_bar() -> None:
    code = """
import sys
sys.stderr.isatty = lambda: True
from n5zarr.cli.messages import complain, console
from n5zarr.cli.progress import progress_bar
before = sys.stderr, console(stderr=True)
with progress_bar() as show:
    show("blocks", 1, 2)
    assert sys.stderr is not before[0], "rich shows no progress"
    assert console(stderr=True) is before[1]
    complain("warning", "odd")
"""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "n5zarr: warning: odd\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tre", SAMPLE], "Did you mean 'tree'?"),
        (["tree", "--dept", "1", SAMPLE], "--depth"),
        (["info", f"{SAMPLE}/Em/s0"], "did you mean /em?"),
        (["info", f"{SAMPLE}/em/S0"], "did you mean /em/s0?"),
        (["info", SAMPLE.replace("sample", "sampel")], f"did you mean {SAMPLE}?"),
    ],
    ids=["command", "option", "group", "dataset", "container"],
)
def test_a_mistyped_word_names_what_was_meant(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_shells_complete_commands_and_leave_paths_to_themselves() -> None:
    def completed(line: str) -> str:
        words = line.split(" ")
        asked = {"_N5ZARR_COMPLETE": "complete_bash", "COMP_WORDS": line}
        asked["COMP_CWORD"] = str(len(words) - 1)
        return CliRunner().invoke(app, [], prog_name="n5zarr", env=asked).output

    assert completed("n5zarr tr").split() == ["tree"]
    assert "--depth" in completed("n5zarr tree --").split()
    assert completed("n5zarr tree sam").split() == []  # then bash offers files


def test_a_reader_that_stops_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def echo(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(typer, "echo", echo)
    result = CliRunner().invoke(app, ["tree", SAMPLE])
    assert result.exit_code == 1
    assert result.output == ""


def test_names_do_not_reach_the_terminal_as_commands(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="d", shape=(3, 5), chunks=(3, 5), dtype="i4")
    name = "\x1b]0;title\x07\x9b31mred\n\u202eno"
    (root / name).mkdir()
    document = json.loads((root / "d/attributes.json").read_text())
    document |= {"axes": ["\x1b[31mx", "y"], "units": ["\x1bnm", "nm"], "resolution": [1, 2]}
    (root / "d/attributes.json").write_text(json.dumps(document))
    (root / name / "attributes.json").write_text("{")
    for words in (["tree"], ["info"], ["info", "d"], ["validate"], ["tree", "--json"]):
        place = root.joinpath(*words[1:2]) if words[0] == "info" else root
        more = [word for word in words[1:] if word.startswith("-")]
        done = CliRunner().invoke(app, [words[0], str(place), *more])
        assert done.stdout
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout + done.stderr), words
    tree = CliRunner().invoke(app, ["tree", str(root)]).stdout
    assert "\\x1b]0;title\\x07\\x9b31mred\\n\\u202eno" in tree


def test_names_that_are_no_characters_are_printed(tmp_path: Path) -> None:
    for side in ("a.n5", "b.n5"):
        n5zarr.create_array(tmp_path / side, path="s0", shape=(3,), dtype="u1")
    (tmp_path / "a.n5" / os.fsdecode(b"\xff\xfe")).mkdir()
    words = ["diff", str(tmp_path / "a.n5"), str(tmp_path / "b.n5")]
    done = subprocess.run(
        [sys.executable, "-m", "n5zarr", *words], capture_output=True, check=False
    )
    assert done.returncode == 2  # the node cannot be compared
    assert rb"/\udcff\udcfe: only in A" in done.stdout
    assert b"Traceback" not in done.stderr
