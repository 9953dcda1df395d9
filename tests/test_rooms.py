"""Rooms can be deleted, and all else works; the core does not know them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from n5zarr.errors import N5UnsupportedError
from n5zarr.rooms import ADDED, added, needed
from tests.structure import LAYERS, REPOSITORY, Module, imports_of, read_modules, room

if TYPE_CHECKING:
    from pathlib import Path

MODULES = read_modules(REPOSITORY)
# the largest number of statements, and of what `rooms.ADDED` names; a record says why one grew
BUDGETS = {"paintera": (400, 6), "other_sources": (290, 2)}
# tests of what is nearest to each room
NEAREST = {
    "paintera": ["test_blocks.py", "test_build_pyramid.py"],
    "other_sources": ["test_convert_mistakes.py", "test_places.py"],
}
ABOVE = LAYERS[LAYERS.index("hdmf") :]


def doors(name: str) -> list[str]:
    """Return what a room adds."""
    each = [where for names in ADDED.values() for where in names.values()]
    return [where for where in each if where.startswith(f"n5zarr.{name}.")]


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_nothing_below_imports_a_room(module: Module) -> None:
    if module.room in (*BUDGETS, *ABOVE):
        return
    known = {room(each.target) for each in imports_of(module, MODULES)}
    assert known.isdisjoint(BUDGETS)


@pytest.mark.parametrize("name", BUDGETS)
def test_a_room_keeps_its_budget(name: str) -> None:
    n_statements = sum(each.n_statements for each in MODULES.values() if each.room == name)
    most, most_doors = BUDGETS[name]
    assert n_statements <= most
    assert len(doors(name)) <= most_doors


def test_what_rooms_add_is_there() -> None:
    for point, names in ADDED.items():
        for name in names:
            assert callable(added(point, name))


def test_a_missing_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"paint": "n5zarr.nowhere.paint:paint"}
    monkeypatch.setattr("n5zarr.rooms.ADDED", {"step": steps})
    assert added("step", "paint") is None
    with pytest.raises(N5UnsupportedError, match=r"paint: expected the package n5zarr\.nowhere"):
        needed("step", "paint")


@pytest.mark.long
@pytest.mark.parametrize("name", BUDGETS)
def test_all_else_works_without_a_room(name: str, tmp_path: Path) -> None:
    for folder in ("n5zarr", "tests", "docs"):
        shutil.copytree(
            REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / file, tmp_path)
    for folder in ("n5zarr", "tests"):
        shutil.rmtree(tmp_path / folder / name)
    others = [each for each in MODULES if each.split(".")[1:2] not in ([name], ["cli"])]
    code = f"import importlib, n5zarr\nfor name in {others}:\n    importlib.import_module(name)\n"
    code += f"assert n5zarr.__file__.startswith({str(tmp_path)!r}), n5zarr.__file__"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    tests = [f"tests/contract/{file}" for file in NEAREST[name]]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", "not multiset and not paintera"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-5000:]
