"""Rooms can be deleted, and all else works; the core does not know them."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import n5zarr
from n5zarr.errors import N5UnsupportedError
from n5zarr.rooms import ADDED, Door
from tests.outputs import python
from tests.structure import LAYERS, REPOSITORY, imports_of, read_modules, room

MODULES = read_modules(REPOSITORY)
# the most statements, and names in `rooms.ADDED`; docs/design/rooms.md says why one grew
BUDGETS = {
    "paintera": (428, 6),
    "other_sources": (278, 2),
    "ome_zarr": (981, 5),
    "bigdataviewer": (3219, 6),
    "fast": (1567, 9),
    "servers": (1223, 3),
    "compat": (700, 0),
}
# what one person holds: without conventions, which are beside it
CORE = ("format", "codecs", "zarr_view", "container", "store", "storage", "arrays")
MOST_OF_CORE = 10_908  # statements
ALL = os.environ.get("N5ZARR_ALL") == "1"
# tests of what is nearest to each room
NEAREST = {
    "paintera": ["contract/test_blocks.py", "contract/test_build_pyramid.py"],
    "other_sources": ["contract/test_convert_mistakes.py", "contract/test_places.py"],
    "ome_zarr": [
        "contract/test_opening.py", "contract/test_build_pyramid.py", "contract/test_ome_zarr.py",
        "unit/tools/test_validate.py", "viewing/test_serve.py", "bigdataviewer/test_register.py",
    ],
    "bigdataviewer": [
        "contract/test_geometry.py", "contract/test_viewers.py", "contract/test_convert.py",
        "unit/tools/test_validate.py", "viewing/test_serve.py", "ome_zarr/test_to_n5.py",
    ],
    "compat": ["contract/test_opening.py"],
}  # fmt: skip
# cases of these tests that do not need the room
NEEDLESS = {
    "ome_zarr": "not mirrored_images_are_reversed",  # it compares with the OME-Zarr
    "paintera": "not multiset and not paintera",
    "other_sources": "not hdf5 and not tif",
}
# uv installs the repository with a finder that has its modules where the copy lacks them
WITHOUT_REPOSITORY = """import sys
sys.meta_path[:] = [each for each in sys.meta_path if "Editable" not in repr(each)]
"""
ABOVE = LAYERS[LAYERS.index("hdmf") :]


def doors(name: str) -> list[str]:
    """Return what a room adds."""
    each = [where for names in ADDED.values() for where in names.values()]
    return [where for where in each if where.startswith(f"n5zarr.{name}.")]


def test_nothing_below_imports_a_room() -> None:
    for module in MODULES.values():
        if module.room not in ABOVE:
            known = {room(each.target) for each in imports_of(module, MODULES)} - {module.room}
            assert known.isdisjoint(BUDGETS), module.name


def test_the_core_keeps_its_budget() -> None:
    n_statements = sum(each.n_statements for each in MODULES.values() if each.room in CORE)
    assert n_statements <= MOST_OF_CORE


@pytest.mark.parametrize("name", BUDGETS)
def test_a_room_keeps_its_budget(name: str) -> None:
    n_statements = sum(each.n_statements for each in MODULES.values() if each.room == name)
    most, most_doors = BUDGETS[name]
    assert n_statements <= most
    assert len(doors(name)) <= most_doors


@pytest.mark.parametrize(
    ("module", "name"), [("array", "N5Array"), ("pipeline", "N5CodecPipeline")]
)
def test_names_in_pickles_and_configurations_lead_to_the_room(module: str, name: str) -> None:
    old = import_module(f"n5zarr.arrays.{module}")
    door: Door[object] = Door("speed", module)
    assert getattr(old, name) is door.found()
    with pytest.raises(AttributeError, match="other"):
        old.other  # noqa: B018


def test_a_missing_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"paint": "n5zarr.nowhere.paint:paint"}
    monkeypatch.setitem(ADDED, "step", steps)
    door: Door[object] = Door("step", "paint")
    assert door.found() is None
    with pytest.raises(N5UnsupportedError, match=r"paint: expected the package n5zarr\.nowhere"):
        door.needed()
    monkeypatch.setitem(n5zarr._MODULES, "paint", "nowhere.paint")
    with pytest.raises(N5UnsupportedError, match=r"n5zarr\.paint: expected the package n5zarr\.no"):
        n5zarr.paint  # noqa: B018


def test_a_file_names_the_room_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.tif").touch()
    tiff = {"tiff": "n5zarr.nowhere.tiff:tiff_tree"}
    monkeypatch.setitem(ADDED, "source file", tiff)  # not the name, which modules import
    with pytest.raises(N5UnsupportedError, match=r"tiff: expected the package n5zarr\.nowhere"):
        n5zarr.convert(tmp_path / "a.tif", tmp_path / "a.n5")


@pytest.mark.long
@pytest.mark.parametrize("name", NEAREST if ALL else ["paintera"])
def test_all_else_works_without_a_room(name: str, tmp_path: Path) -> None:
    for folder in ("n5zarr", "tests", "docs"):
        shutil.copytree(
            REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / file, tmp_path)
    for folder in ("n5zarr", "tests"):
        shutil.rmtree(tmp_path / folder / name)
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_REPOSITORY)
    others = [each for each in MODULES if each.split(".")[1:2] not in ([name], ["cli"])]
    code = f"import importlib, n5zarr\nfor name in {others}:\n    importlib.import_module(name)\n"
    code += f"assert n5zarr.__file__.startswith({str(tmp_path)!r}), n5zarr.__file__\n"
    code += f"assert importlib.util.find_spec('n5zarr.{name}') is None"
    environment = {"PYTHONPATH": str(tmp_path)}
    python("-c", code, cwd=tmp_path, env=environment)
    tests = [f"tests/{file}" for file in NEAREST[name]]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", NEEDLESS.get(name, "")]
    python("-m", "pytest", *options, *tests, cwd=tmp_path, env=environment)
