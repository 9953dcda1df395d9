"""Of two objects of one node in one store, neither undoes what the other has written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.compat import zarr2
from n5zarr.zarr_view.keys import MetadataKey

VALUES = np.arange(7 * 5, dtype="u2").reshape(7, 5)


@pytest.fixture(params=["n5zarr", "zarr v2", "compat"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    path = str(tmp_path / "c.n5")
    if request.param == "compat":
        found: Any = zarr2.open(path, "w")
        found.create_dataset("x", data=VALUES, chunks=(3, 2))
        return found
    made: Any = n5zarr.open(path, "w")
    made.create_dataset("x", data=VALUES, chunks=(3, 2))
    is_v2 = request.param == "zarr v2"
    return n5zarr.open(n5zarr.N5Store(path, zarr_format=2) if is_v2 else path, "r+")


def stored(root: Any) -> Any:
    return n5zarr.open(root.store.path)


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda node: node.attrs.__setitem__("k", 1),
    "update": lambda node: node.attrs.update({"k": 1}),
    "at once": lambda node: node.update_attributes({"k": 1}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_older_array_keeps_attributes_and_shape_of_a_newer_one(root: Any, change: Any) -> None:
    older, newer = root["x"], root["x"]
    newer.attrs["resolution"] = [4, 4, 40]
    newer.append(VALUES)
    change(older)
    assert dict(stored(root)["x"].attrs) == {"resolution": [4, 4, 40], "k": 1}
    assert (stored(root)["x"][...] == np.concatenate([VALUES, VALUES])).all()
    assert older.shape == (14, 5)
    assert older.nchunks == newer.nchunks == 5 * 3


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_older_group_keeps_attributes_of_a_newer_one(root: Any, change: Any) -> None:
    older = root.create_group("g")
    root["g"].attrs["a"] = 2
    change(older)
    assert dict(stored(root)["g"].attrs) == {"a": 2, "k": 1} == dict(older.attrs)


def test_what_another_has_removed_stays_removed(root: Any) -> None:
    older = root["x"]
    older.attrs["a"] = 1
    del root["x"].attrs["a"]
    older.attrs["b"] = 2
    assert dict(stored(root)["x"].attrs) == {"b": 2}
    root["x"].attrs["c"] = 3
    del older.attrs["b"]
    assert dict(stored(root)["x"].attrs) == {"c": 3}


def test_put_replaces_what_others_have_written(root: Any) -> None:
    older = root["x"]
    root["x"].attrs["a"] = 1
    older.attrs.put({"b": 2})
    assert dict(stored(root)["x"].attrs) == {"b": 2}


def test_both_append(root: Any) -> None:
    one, two = root["x"], root["x"]
    one.append(VALUES)
    two.append(VALUES + 1)
    assert (stored(root)["x"][...] == np.concatenate([VALUES, VALUES, VALUES + 1])).all()


def test_a_resize_keeps_attributes_of_another(root: Any) -> None:
    older = root["x"]
    root["x"].attrs["a"] = 1
    older.resize((11, 3))
    assert dict(stored(root)["x"].attrs) == {"a": 1}
    assert stored(root)["x"].shape == (11, 3)


@pytest.mark.parametrize("given", [{"chunks": (2, 2)}, {"dtype": "f4", "chunks": (3, 2)}])
def test_an_array_that_was_replaced_is_not_changed(root: Any, given: dict[str, Any]) -> None:
    older = root["x"]
    data = VALUES[:5].astype(given.get("dtype", "u2"))
    root.create_dataset("x", data=data, overwrite=True, chunks=given["chunks"])
    for change, argument in ((older.attrs.update, {"a": 1}), (older.resize, (3, 3))):
        with pytest.raises(n5zarr.N5Error, match="which has replaced it; open it again") as raised:
            change(argument)
        assert raised.value.kind == "changed"
    assert stored(root)["x"].shape == (5, 5)
    assert not stored(root)["x"].attrs


def test_attributes_stay_where_the_store_has_forgotten_their_document(tmp_path: Path) -> None:
    root: Any = n5zarr.open(n5zarr.N5Store(tmp_path / "c.n5", zarr_format=2), "w")
    for node in (root.create_group("g"), root.create_dataset("x", data=VALUES, chunks=(3, 2))):
        node.attrs["a"] = 1
        node.store.container.memory.served.pop(MetadataKey(node.path, ".zattrs"))
        node.attrs["b"] = 2
        assert dict(stored(root)[node.path].attrs) == {"a": 1, "b": 2}
