"""The table of tests names the nearest ones of a line, and processes share all files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.near.recording import FOLDER, SECONDS_ONLY
from tests.near.shares import OwnFiles
from tests.near.table import REPOSITORY, Table, functions_of, recorded, table_of
from tests.outputs import python

FILE = "n5zarr/format/grid.py"


def bits(*lines: int) -> int:
    return sum(1 << line for line in lines)


def first_line(name: str) -> int:
    text = (REPOSITORY / FILE).read_text(encoding="utf-8")
    return next(first for each, first, _ in functions_of(text) if each == name)


@pytest.fixture(scope="module")
def table() -> Table:
    shape, cut = first_line("grid_shape"), first_line("block_extent")
    known: Any = {
        "tests/a.py::far": (1.0, {FILE: bits(shape + 1, cut + 1), "n5zarr/errors.py": 2}),
        "tests/a.py::near": (3.0, {FILE: bits(cut + 1, cut + 2)}),
        "tests/b.py::none": (2.0, {}),
    }
    return Table(table_of(known))


def names(table: Table, *lines: int) -> list[str]:
    return [each.name for each in table.near(FILE, lines or None)]


def test_the_tests_of_a_line_come_nearest_first(table: Table) -> None:
    shape, cut = first_line("grid_shape"), first_line("block_extent")
    assert names(table) == ["tests/a.py::near", "tests/a.py::far"]
    assert names(table, cut + 1) == ["tests/a.py::near", "tests/a.py::far"]
    assert names(table, cut + 2) == ["tests/a.py::near"]
    assert names(table, shape + 1) == ["tests/a.py::far"]
    assert names(table, shape) == ["tests/a.py::far"]  # of its function
    assert names(table, 1) == ["tests/a.py::near", "tests/a.py::far"]  # of the file


def test_a_table_of_today_is_not_old_and_one_that_lacks_a_file_is(table: Table) -> None:
    assert table.age == 0
    unrun = {file: names for file, names in table.document["unrun"].items() if "files" not in file}
    assert 0 < Table(table.document | {"unrun": unrun}).age < 0.1


def test_quick_files_run_lines_of_the_core(table: Table) -> None:
    assert table.quick[0] == "tests/a.py"


def test_what_a_test_and_the_processes_that_it_starts_run_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "import subprocess, sys\n"
        "from n5zarr.format.grid import grid_shape\n"
        "def test_here(): grid_shape((7, 5), (3, 2))\n"
        "CODE = 'from n5zarr.format.order import check_axis_order'\n"
        "def test_there(): subprocess.run([sys.executable, '-c', CODE], check=True)\n"
    )
    folder = tmp_path / "recorded"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.delenv(SECONDS_ONLY, raising=False)
    config = ("-c", REPOSITORY / "pyproject.toml", "--rootdir", tmp_path)
    python(
        "-m", "pytest", "-q", "-n", 0, "-p", "tests.near.recorded", *config, test, cwd=REPOSITORY
    )
    known = {name.rpartition("::")[2]: set(lines) for name, (_, lines) in recorded(folder).items()}
    assert FILE in known["test_here"]
    assert "n5zarr/format/order.py" in known["test_there"]
    assert "n5zarr/format/order.py" not in known["test_here"]


class Node:
    """A process of pytest-xdist, which notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.told += numbers

    def shutdown(self) -> None:
        self.told.append("end")


def test_the_tests_of_a_process_that_crashes_are_run_by_another() -> None:
    one, two, new = Node(), Node(), Node()
    session: Any = type("Session", (), {"testscollected": 0})()
    scheduler = OwnFiles(session, 2)
    scheduler.add_node(one)
    scheduler.add_node(two)
    scheduler.add_node_collection(one, ["a", "b", "c"])
    assert not scheduler.tests_finished
    scheduler.add_node_collection(two, ["d"])
    scheduler.schedule()
    assert (one.told, two.told, session.testscollected) == ([0, 1, 2, "end"], [0, "end"], 4)
    scheduler.mark_test_complete(two, 0)
    scheduler.mark_test_complete(one, 0)
    assert scheduler.remove_node(two) is None
    assert scheduler.remove_node(one) == "b"
    scheduler.add_node(new)
    assert not scheduler.tests_finished
    scheduler.add_node_collection(new, ["a", "b", "c"])
    assert new.told == [2, "end"]
    scheduler.mark_test_complete(new, 2)
    assert scheduler.tests_finished
