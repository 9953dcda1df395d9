"""Commands work on whole containers: validate, info --stats, tree with limits."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console

import n5zarr
from n5zarr.cli import messages
from n5zarr.cli.app import app
from n5zarr.cli.info import histogram_lines
from n5zarr.cli.validate import show_findings
from tests.command import CliRunner

if TYPE_CHECKING:
    from typer.testing import Result

SAMPLE = n5zarr.sample_path()
JAVA = Path(__file__).parents[2] / "data" / "java"


def run(*arguments: object, status: int = 0, answer: str | None = None) -> Result:
    result = CliRunner().invoke(app, [*map(str, arguments)], input=answer)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write a container with a cut block, an empty one, and an old unfinished file."""
    root = Path(shutil.copytree(SAMPLE, tmp_path / "c.n5"))
    block = root / "em/s0/0/1/2"
    block.write_bytes(block.read_bytes()[:-9])
    for file in (root / "em/s0/1/1/1", root / f"em/s1/0.{'cd' * 16}.partial"):
        file.write_bytes(b"")
        os.utime(file, (1_000_000_000,) * 2)
    return root


def test_exit_statuses(root: Path, tmp_path: Path) -> None:
    assert run("validate", SAMPLE).stdout.startswith("no problems: 3 groups, 4 datasets, 63 blocks")
    assert "2 errors, 1 warning" in run("validate", root, status=1).stdout
    run("validate", root, "--deep", "--all", status=1)
    assert "note" in run("validate", JAVA / "varlen.n5").stdout  # notes are no problems
    assert "does not exist" in run("validate", tmp_path / "no.n5", status=2).stderr
    run("validate", root, "--scheduler", "nonsense", status=2)


def test_json_has_everything(root: Path) -> None:
    found = json.loads(run("validate", "--json", root, status=1).stdout)
    assert found["by_kind"] == {"empty-block": 1, "payload": 1, "unfinished-file": 1}
    assert (found["ok"], found["n_blocks"], found["deep"]) == (False, 63, False)
    places = {(f["path"], tuple(f["block"] or ())) for f in found["findings"]}
    assert places == {("em/s0", (0, 1, 2)), ("em/s0", (1, 1, 1)), ("em/s1", ())}


def test_repairs_ask_first(root: Path) -> None:
    before = sorted(root.rglob("*"))
    question = "Move 2 files (em/s0/1/1/1, em/s0/0/1/2) beside the container"
    assert question in run("validate", root, "--quarantine", status=1, answer="n\n").stderr
    assert "--yes skips the question" in run("validate", root, "--quarantine", status=2).stderr
    assert sorted(root.rglob("*")) == before
    run("validate", root, "--quarantine", status=1, answer="y\n")
    (moved,) = root.with_name("c.n5.quarantine").glob("*/em/s0/1/1/1")
    assert moved.read_bytes() == b""


def test_findings_that_are_repaired_are_no_failure(root: Path) -> None:
    result = run("validate", root, "--clean", "--quarantine", "--yes")
    assert "removed: 1 file" in result.stderr
    assert "moved to" in result.stderr
    assert run("validate", root).stdout.startswith("no problems")
    place = next(root.with_name("c.n5.quarantine").iterdir())
    assert "moved back: 2 files" in run("validate", root, "--restore", place, status=1).stderr


def test_edges_are_repaired(root: Path) -> None:
    result = run("validate", root / "em" / "s2", "--repair-edges", "pad", "-y")
    assert "0 blocks written again, 0 were so already" in result.stderr
    result = run("validate", root / "labels", "--repair-edges", "pad", "-y")
    assert "19 blocks written again, 0 were so already" in result.stderr
    assert run("validate", root / "labels", "--deep").stdout.startswith("no problems")


def test_alike_problems_share_a_row_of_80_columns(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = n5zarr.create_array(root, path="many", shape=(3000,), chunks=(3,), dtype="u1")
    array[:] = 1
    for name in range(1000):
        (root / "many" / str(name)).write_bytes(b"\0\0\0")
    result = n5zarr.validate(root)
    assert result.by_kind["header"] == 1000
    screen = io.StringIO()
    terminal = Console(file=screen, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(messages, "console", lambda **_: terminal)
    messages.print_text(*show_findings(result, show_all=False))
    lines = screen.getvalue().splitlines()
    assert len(lines) < 20
    assert max(map(len, lines)) <= 80
    assert "many: 1000 blocks: 0, 1, 2, ..." in screen.getvalue()
    screen.truncate(0)
    messages.print_text(*show_findings(result, show_all=True))
    assert screen.getvalue().count("many: block ") == 1000
    one = result.findings[0]
    each = tuple(replace(one, path=f"a{n}", message=f"got {n}") for n in range(7))
    messages.print_text(*show_findings(replace(result, findings=each), show_all=False))
    assert "7 nodes: a0, a1, a2, ...: got 0 (the first)" in screen.getvalue()


def test_info_shows_statistics() -> None:
    output = run("info", "--stats", f"{SAMPLE}/em/s0").stdout
    assert "all 27 of 27 stored blocks" in output
    assert "21 to 203" in output
    found = json.loads(run("info", "--stats", "--json", f"{SAMPLE}/em/s0").stdout)
    assert found["statistics"]["n_elements"] == 40 * 96 * 128
    assert "expected a dataset" in run("info", "--stats", SAMPLE, status=2).stderr


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("width", [40, 80])
def test_a_histogram_fits_and_is_in_proportion(width: int, ascii_only: bool) -> None:
    found = n5zarr.block_statistics(SAMPLE, "em/s0")
    lines = list(histogram_lines(found, width, ascii_only=ascii_only))
    assert 8 <= len(lines) <= 16
    assert max(map(len, lines)) <= width
    assert ascii_only == "".join(lines).isascii()
    shares = [float(line.split()[-1].rstrip("%")) for line in lines]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    bars = [sum(line.count(c) for c in "#█") for line in lines]
    longest = max(bars)
    for bar, share in zip(bars, shares, strict=True):
        assert abs(bar - share / max(shares) * longest) <= 1


def documents(root: Path, groups: dict[str, int]) -> Path:
    """Write groups with so many groups in each of them."""
    for group, n in groups.items():
        for i in range(n):
            folder = root / group / f"n{i:03}"
            folder.mkdir(parents=True)
            (folder / "attributes.json").write_text("{}")
    return root


def test_a_tree_of_many_nodes_is_cut(tmp_path: Path) -> None:
    documents(tmp_path / "c.n5", {"g": 120})
    assert len(run("tree", tmp_path / "c.n5").stdout.splitlines()) == 122
    lines = run("tree", "--limit", 100, tmp_path / "c.n5").stdout.splitlines()
    assert lines[-2] == "    └── ... and 20 more"
    assert "--limit 0 shows all" in lines[-1]
    assert len(lines) == 104
    assert len(run("tree", "--limit", 0, tmp_path / "c.n5").stdout.splitlines()) == 122
    whole = json.loads(run("tree", "--json", tmp_path / "c.n5").stdout)
    assert len(whole["children"][0]["children"]) == 120
    few = json.loads(run("tree", "--json", "--limit", 2, tmp_path / "c.n5").stdout)
    assert few["children"][0]["n_more"] == 118
    matching = run("tree", "--match", "g/n00[12]", tmp_path / "c.n5").stdout.splitlines()
    assert [line.split()[-1] for line in matching[2:]] == ["n001", "n002"]
    assert "n000, n001" in run("info", tmp_path / "c.n5" / "g").stdout


@pytest.mark.parametrize(
    ("groups", "n_lines", "n_shown"),
    [
        ({f"g{k:02}": 101 for k in range(19)}, 191, 8),  # 1 + 19 x (1 + 8 + 1)
        ({"a": 251, "b": 3}, 200, 193),  # 1 + (1 + 193 + 1) + (1 + 3)
        ({f"g{k:03}": 3 for k in range(149)}, 150, 0),  # no room below the groups
        # 1 + 11 x (1 + 3 + 1), and 3 x (3 + 1) below each
        ({f"g{k:02}/n{t:03}": 5 for k in range(11) for t in range(13)}, 188, 3),
    ],
)
def test_a_tree_has_200_lines_and_each_group_its_share(
    tmp_path: Path, groups: dict[str, int], n_lines: int, n_shown: int
) -> None:
    root = documents(tmp_path / "c.n5", groups)
    *lines, hint = run("tree", root).stdout.splitlines()
    assert "--limit 0 shows all" in hint
    assert len(lines) == n_lines
    first = {group.partition("/")[0] for group in groups}
    names = {line.split("─ ")[-1].strip() for line in lines}
    assert first <= names
    assert f"n{n_shown:03}" not in names
    assert not n_shown or f"n{n_shown - 1:03}" in names
    n_all = sum(groups.values()) + len(groups) + 1 + len(first - groups.keys())
    assert len(run("tree", "--limit", 0, root).stdout.splitlines()) == n_all
    found = json.loads(run("tree", "--json", root).stdout)
    assert "n_more" not in json.dumps(found)


def test_statistics_of_values_that_are_not_finite(tmp_path: Path) -> None:
    """NaN and infinity are counted; without any finite value there is no range."""
    array = n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(7,), chunks=(7,), dtype="f4")
    array[:] = [np.nan, np.inf, -np.inf, np.nan, np.nan, 2, 3]
    output = run("info", "--stats", tmp_path / "c.n5" / "a").stdout
    assert "3 NaN, 2 infinite" in output
    assert "2 to 3" in output
    array[:] = np.nan
    output = run("info", "--stats", tmp_path / "c.n5" / "a").stdout
    assert "7 NaN, 0 infinite" in output
    assert "range" not in output
    array.attrs["threshold"] = np.nan
    found = run("info", "--json", tmp_path / "c.n5" / "a").stdout
    assert json.loads(found, parse_constant=pytest.fail)["attributes"]["threshold"] == "NaN"


def test_a_refused_repair_changes_nothing(root: Path) -> None:
    """The answer no leaves the leftovers, and the sizes of blocks."""
    before = {file: file.stat().st_size for file in root.rglob("*")}
    assert "Remove 1 file" in run("validate", root, "--clean", status=1, answer="n\n").stderr
    asked = run("validate", root, "--repair-edges", "pad", status=1, answer="n\n").stderr
    assert "Pad all blocks at the end of each dataset" in asked
    assert {file: file.stat().st_size for file in root.rglob("*")} == before


def test_what_a_repair_leaves_is_told(root: Path) -> None:
    """A block that was written again after the quarantine is not replaced."""
    run("validate", root, "--quarantine", "--yes", status=1)
    place = next(root.with_name("c.n5.quarantine").iterdir())
    n5zarr.write_block(root, "em/s0", (1, 1, 1), np.full((16, 40, 50), 7))
    said = run("validate", root, "--restore", place, status=1).stderr
    assert "moved back: 1 file" in said
    assert "em/s0/1/1/1: not changed: there is a block again" in " ".join(said.split())
