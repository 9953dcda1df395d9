"""What n5zarr relies on beyond public names of zarr, xarray and hdmf-zarr is listed, and tested."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from xarray.backends.zarr import ZarrArrayWrapper

import n5zarr
from n5zarr import _zarr
from n5zarr.xarray.lazy_arrays import LazyArray
from tests.outputs import python
from tests.structure import REPOSITORY, Module, read_modules

MODULES = read_modules(REPOSITORY)
LIBRARIES = r"(zarr|xarray|hdmf|hdmf_zarr)\."
PRIVATE = re.compile(rf"{LIBRARIES}((\w+\.)*_(?!_)|core\.)|(xarray\.core|zarr\.core)\b")
OTHERS = {  # private names of Python, of other libraries, and of n5zarr's own objects
    "_getframe", "_current_frames", "_is_gil_enabled",  # sys
    "_initializing",  # importlib
    "_call", "_call_s3",  # s3fs
    "_iterdir", "_join", "_lsdir", "_pid",  # fsspec
    "_forget", "_place", "_set_up",  # n5zarr
}  # fmt: skip


def entries() -> list[str]:
    """Return the entries of the list, of private names and of behaviours."""
    return re.split(r"\n- ", _zarr.__doc__ or "")[1:]


def literals(entry: str) -> list[str]:
    return re.findall(r"``([^`]+)``", entry)


def listed() -> set[str]:
    """Return the last parts of the names that the list has."""
    names = [name for entry in entries() for name in literals(entry)]
    return {
        name.split(".")[-1] for name in names if not name.startswith("test_") and "/" not in name
    }


def imported(module: Module) -> Iterator[str]:
    """Yield the private names that a module imports when it runs, or imports by their names."""
    for_types = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names) if id(node) not in for_types:
                found = [each.name for each in names]
            case ast.ImportFrom(source, names) if id(node) not in for_types:
                found = [f"{source}.{each.name}" for each in names]
            case ast.Constant(str(text)) if re.fullmatch(r"[\w.]+", text):
                found = [text]
            case _:
                continue
        yield from (name.split(".")[-1] for name in found if PRIVATE.match(name))


def taken(module: Module) -> Iterator[str]:
    """Yield the members of others' objects that a module takes or sets, and may not."""
    lines = module.text.splitlines()
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(of, name) if "noqa: SLF001" in lines[node.lineno - 1]:
                if name.startswith("_") and ast.unparse(of) != "self":  # ruff refuses others
                    yield name
            case ast.Constant(str(text)) if found := re.fullmatch(r"_[A-Z]\w*?(__\w+)", text):
                yield found[1]  # as Python mangles it
            case ast.Call(function, [of, ast.Constant(str(name)), *_]):
                yield from _by_name(ast.unparse(function), ast.unparse(of), name, module.room)
            case _:
                pass


def _by_name(function: str, of: str, name: str, room: str) -> list[str]:
    """Return the name that a call takes or sets, if it may not."""
    is_private = re.match(r"_[^_]", name) is not None or (room == "_zarr" and of != "os")
    is_taken = function in ("getattr", "hasattr") and is_private
    is_set = function == "object.__setattr__" and of != "self"
    return [name] if is_taken or is_set else []


def test_the_list_has_what_the_code_takes() -> None:
    found = {name for module in MODULES.values() for name in (*imported(module), *taken(module))}
    assert found >= OTHERS
    assert found - OTHERS <= listed()
    first = [name for entry in entries() for name in literals(entry)[:1]]
    private = {name.split(".")[-1] for name in first if PRIVATE.match(name) or "._" in name}
    assert private - found <= {"_array"}  # a member of a class that n5zarr derives from
    assert {"sync", "LocalStore", "indexing", "_store", "__dci_queue", "codec_pipeline"} <= found


def test_each_entry_names_a_test() -> None:
    text = "\n".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    known = set(re.findall(r"def (test_\w+)", text))
    assert len(entries()) > 15
    for entry in entries():
        tests = {name for name in literals(entry) if name.startswith("test_")}
        assert tests, entry
        assert tests <= known, entry


def test_a_lazy_array_is_read_as_that_of_xarray(tmp_path: Path) -> None:
    values = np.arange(35, dtype="u2").reshape(5, 7)
    array = n5zarr.create_array(tmp_path / "c.n5", path="a", data=values, chunks=(2, 3))
    of_xarray: Any = ZarrArrayWrapper
    ours, theirs = cast("Any", LazyArray(array)), of_xarray(array)
    assert ours.get_array() is theirs.get_array() is array
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    indexing = _zarr.xarray_indexing()
    some, points = np.array([0, 3]), np.array([6, 1])
    for key, expected in (
        (indexing.BasicIndexer((slice(1, 3), 4)), values[1:3, 4]),
        (indexing.OuterIndexer((some, slice(0, 7, 2))), values[some, ::2]),
        (indexing.VectorizedIndexer((some, points)), values[some, points]),
    ):
        np.testing.assert_array_equal(ours[key], expected)
        np.testing.assert_array_equal(theirs[key], expected)


MOVED = """
import sys
import xarray as xr, xarray.backends.zarr
import numpy as np
class Nowhere:
    def find_spec(self, name, *_):
        if name == "xarray.core.indexing":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nowhere())
del sys.modules["xarray.core.indexing"]
with xr.open_dataset(sys.argv[1], engine="n5", group="a") as found:
    lazy = found["a"].variable
    assert not lazy._in_memory
    print(lazy[1:3, 4].values.tolist(), lazy._in_memory)
"""


def test_the_engine_finds_the_classes_that_xarray_has_moved(tmp_path: Path) -> None:
    values = np.arange(35, dtype="u2").reshape(5, 7)
    n5zarr.create_array(tmp_path / "c.n5", path="a", data=values, chunks=(2, 3))
    assert python("-c", MOVED, tmp_path / "c.n5").split("\n")[0] == "[11, 18] False"
