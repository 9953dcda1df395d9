"""Opening gives what zarr opens, and reads each document once without an event loop."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.group import N5Group, standard_codecs
from n5zarr.errors import N5Error, N5Warning
from n5zarr.fast.array import N5Array
from n5zarr.metadata import inspect
from n5zarr.zarr_view.dataset_view import DatasetView

DATA = Path(__file__).parents[1] / "data"
CONTAINERS = sorted(
    path
    for path in DATA.rglob("*.n5")
    if path.is_dir()
    and ".n5" not in str(path.parent)
    and path.name not in ("5.0.0.n5", "10.0.0.n5")
    and "releases" not in path.parts  # test_releases.py opens them, in their formats
)


@pytest.fixture
def container(tmp_path: Path) -> Path:
    path = tmp_path / "c.n5"
    for name in ("s0", "s1", "s2"):
        n5zarr.create_array(
            path, path=f"em/{name}", shape=(5, 7, 11), chunks=(2, 3, 4), dtype="u2",
            axes="zyx", units=["nm"] * 3, resolution=[4, 4, 4], attributes={"list": [1]},
        )[...] = 3  # fmt: skip
    n5zarr.create_array(path, path="em/deep/a", shape=(3,), chunks=(2,), dtype="f4")
    for group in ("em", "em/deep"):
        (path / group / "attributes.json").write_text("{}")
    for file in path.rglob("*"):
        os.utime(file, (1e9, 1e9))  # written long ago: no lock is needed to read it
    return path


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch, container: Path) -> Counter[str]:
    """Record the files of the container that are opened, and the directories that are listed."""
    counts: Counter[str] = Counter()

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, str | os.PathLike) and Path(path).is_relative_to(container):
                counts[Path(path).relative_to(container).as_posix()] += 1
            return function(path, *args, **kwargs)

        return counted

    monkeypatch.setattr(os, "open", counting(os.open))
    monkeypatch.setattr(os, "scandir", counting(os.scandir))
    return counts


@pytest.fixture
def no_loop(monkeypatch: pytest.MonkeyPatch, container: Path) -> None:  # made before
    """Fail if zarr's event loop is used."""

    def refuse() -> None:
        raise AssertionError

    monkeypatch.setattr("zarr.core.sync._get_loop", refuse)


def opened(*args: Any, **options: Any) -> Any:
    return n5zarr.open(*args, **options)


def described(node: Any) -> dict[str, Any]:
    """Return everything that a user sees of a node."""
    seen = {"name": node.name, "attributes": node.attrs.asdict(), "store": node.store}
    if isinstance(node, zarr.Array):
        own = node.async_array.metadata.to_dict()
        return seen | {"metadata": own, "config": node.config, "grid": node.cdata_shape}
    return seen | {"metadata": node.metadata.to_dict()}


@pytest.mark.each_of(5)
@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.relative_to(DATA).as_posix())
@pytest.mark.parametrize(("axis_order", "mode"), [("C", "r"), ("F", "r"), ("C", "r+")])
def test_a_node_is_what_zarr_opens(path: Path, axis_order: Any, mode: Any) -> None:
    store = N5Store(path, codecs="n5", read_only=mode == "r", axis_order=axis_order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", N5Warning)
        expected: Any = zarr.open(store, mode=mode, zarr_format=3)
        found: Any = opened(path, mode, axis_order=axis_order)
        assert described(found) == described(expected)
        if not isinstance(expected, zarr.Group):
            return
        ours, theirs = dict(found.members(None)), dict(expected.members(None))
        assert {name: described(node) for name, node in ours.items()} == {
            name: described(node) for name, node in theirs.items()
        }
        for name, node in ours.items():
            alone = opened(path, mode, path=name, axis_order=axis_order)
            assert described(alone) == described(node)
            assert described(found[name]) == described(node)
            assert isinstance(node, N5Group) == isinstance(theirs[name], zarr.Group)
        assert dict(found.groups()).keys() == dict(expected.groups()).keys()
        assert dict(found.arrays()).keys() == dict(expected.arrays()).keys()


@pytest.mark.each_of(3)
@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.relative_to(DATA).as_posix())
def test_copies_get_the_codecs_that_zarr_shows(path: Path) -> None:
    store = N5Store(path, read_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", N5Warning)
        found: Any = zarr.open(store, mode="r", zarr_format=3)
        members: dict[str, Any] = {"": found}
        members |= dict(found.members(None)) if isinstance(found, zarr.Group) else {}
        for name, member in members.items():
            view = store.node(name)
            if isinstance(view, DatasetView):
                assert standard_codecs(view) == member.metadata.inner_codecs


@pytest.mark.parametrize("document", ["{", '{"dimensions":[1],"dataType":"x","compression":{}}'])
@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_a_broken_node_is_the_error_that_zarr_raises(
    container: Path, document: str, mode: Any
) -> None:
    (container / "em" / "s1" / "attributes.json").write_text(document)
    with pytest.raises(N5Error) as expected:
        zarr.open(N5Store(container, codecs="n5"), path="em/s1", mode=mode, zarr_format=3)
    group = opened(container, mode)
    ways: list[Callable[[], object]] = [
        lambda: opened(container, mode, path="em/s1"),
        lambda: group["em/s1"],
    ]
    for open_it in ways:
        with pytest.raises(type(expected.value)) as caught:
            open_it()
        assert (str(caught.value), caught.value.kind) == (str(expected.value), expected.value.kind)


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("path", ["em/none", "em/s0/0", "none/none"])
def test_nothing_there_is_the_error_that_zarr_raises(container: Path, path: str, mode: Any) -> None:
    store = N5Store(container, codecs="n5", read_only=mode == "r")
    with pytest.raises(FileNotFoundError) as expected:
        zarr.open(store, path=path, mode=mode, zarr_format=3)
    with pytest.raises(type(expected.value)) as caught:
        opened(container, mode, path=path)
    assert str(caught.value).startswith(f"{container}: /{path}: expected a group or dataset, got ")
    with pytest.raises(KeyError, match=path):
        opened(container)[path]


@pytest.mark.parametrize("mode", ["r+", "a", "w", "w-"])
def test_a_store_that_cannot_write_is_refused_as_by_zarr(container: Path, mode: Any) -> None:
    with pytest.raises(ValueError, match=f"read-only but mode is '{re.escape(mode)}'"):
        opened(N5Store(container, read_only=True, codecs="n5"), mode)


def test_an_array_opened_to_read_refuses_to_write(container: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_array(N5Store(container, mode="r"), path="em/s0", mode="r+")
    for array in (opened(container, path="em/s0"), opened(container)["em/s0"]):
        assert array.store.read_only
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_the_metadata_of_a_changed_dataset_are_new(container: Path) -> None:
    array: Any = opened(container, "r+", path="em/s0")
    array.resize((6, 7, 11))
    assert opened(container, path="em/s0").shape == (6, 7, 11)
    assert opened(container, path="em/s1").shape == (5, 7, 11)


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
@pytest.mark.usefixtures("no_loop")
def test_each_document_is_read_once(container: Path, opened_files: Counter[str], mode: Any) -> None:
    assert isinstance(opened(container, mode, path="em/s0"), N5Array)
    assert opened_files == {"attributes.json": 1, "em/s0/attributes.json": 1}
    opened_files.clear()
    group: Any = opened(container, mode)
    del opened_files["attributes.json"]
    assert isinstance(group["em/s0"], N5Array)
    assert opened_files == {"em/s0/attributes.json": 1}


@pytest.mark.usefixtures("no_loop")
def test_members_are_read_and_listed_once(container: Path, opened_files: Counter[str]) -> None:
    group: Any = opened(container)
    opened_files.clear()
    members = dict(group.members(None))
    assert list(members) == ["em", "em/deep", "em/deep/a", "em/s0", "em/s1", "em/s2"]
    documents = ["attributes.json", *(f"{name}/attributes.json" for name in members)]
    assert opened_files == dict.fromkeys([*documents, ".", "em", "em/deep"], 1)


def test_a_dataset_replaced_after_members_opened_it_is_not_read_as_the_old_one(
    container: Path,
) -> None:
    group: Any = opened(container)["em"]
    array: Any = dict(group.members())["s0"]
    n5zarr.create_array(
        container, path="em/s0", shape=(5, 7, 11), chunks=(5, 7, 11), dtype="u1", overwrite=True
    )[...] = 1
    with pytest.raises(N5Error, match="has replaced the dataset"):
        array[...]


ONE = ["attributes.json", "em/attributes.json", "em/s0/attributes.json"]
DIMS = [f"em/{dim}/attributes.json" for dim in "zyx"]  # coordinates that might be stored


@pytest.mark.usefixtures("no_loop")
def test_the_engine_reads_each_document_once(container: Path, opened_files: Counter[str]) -> None:
    found = xr.open_dataset(container, engine="n5", group="em/s0")
    assert found["s0"].shape == (5, 7, 11)
    assert opened_files == dict.fromkeys([*ONE, *DIMS], 1)
    opened_files.clear()
    found = xr.open_dataset(container, engine="n5", group="em")
    assert set(found) == {"s0", "s1", "s2"}
    levels = [f"em/s{i}/attributes.json" for i in range(3)]
    assert opened_files == dict.fromkeys([*ONE[:2], *levels, "em", "em/deep/attributes.json"], 1)


@pytest.mark.usefixtures("no_loop")
def test_a_tree_is_read_once(container: Path, opened_files: Counter[str]) -> None:
    assert len(xr.open_datatree(container, engine="n5").leaves) > 0
    assert set(opened_files.values()) == {1}


def test_coordinates_are_shown_with_each_document_read_once(
    container: Path, opened_files: Counter[str]
) -> None:
    shutil.rmtree(container / "em" / "deep")  # zarr would open this group, too
    zarr.open_group(N5Store(container), path="em").attrs["coordinates"] = "z y x"  # as xarray has
    opened_files.clear()
    store = N5Store(container, coords=True)
    found = xr.open_zarr(store, group="em", consolidated=False, chunks=None)
    assert set(found.variables) == {"s0", "s1", "s2", "z", "y", "x"}
    levels = [f"em/s{i}/attributes.json" for i in range(3)]
    assert opened_files == dict.fromkeys([*ONE[:2], *levels, "em"], 1)


def test_there_are_containers_to_compare() -> None:
    assert len(CONTAINERS) > 15


def test_members_by_kind(container: Path) -> None:
    """Where axes are arrays, a dataset is a group of them."""
    with_axes: Any = n5zarr.open_group(N5Store(container, coords=True), path="em")
    assert sorted(with_axes.group_keys()) == ["deep", "s0", "s1", "s2"]
    assert not list(with_axes.array_keys())
    assert sorted(with_axes["s0"].array_keys()) == ["s0", "x", "y", "z"]
    assert not list(with_axes["s0"].group_keys())


def test_information_is_a_mapping(container: Path) -> None:
    info = n5zarr.open_array(container, path="em/s0").info
    assert dict(info)["dimensions_n5"] == (11, 7, 5)
    assert len(info) == len([*info])


def test_opening_again_shows_the_document_that_is_there(tmp_path: Path) -> None:
    """Views of equal documents are shared between containers; what users change is not."""
    stored = {
        "dimensions": [7, 5], "blockSize": [3, 2], "dataType": "uint16",
        "compression": {"type": "raw"}, "note": {"a": [1]},
    }  # fmt: skip
    for name in ("c.n5/a", "c.n5/b", "d.n5/a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "attributes.json").write_text(json.dumps(stored))
    first: Any = n5zarr.open_array(tmp_path / "c.n5", path="a")
    first.attrs.asdict()["note"]["a"].append(2)
    first.metadata.attributes["other"] = 3
    for container, node in (("c.n5", "a"), ("c.n5", "b"), ("d.n5", "a")):
        again = n5zarr.open_array(tmp_path / container, path=node)
        assert (again.shape, dict(again.attrs)) == ((5, 7), {"note": {"a": [1]}})
        other = n5zarr.open_array(tmp_path / container, path=node, axis_order="F")
        assert (other.shape, other.chunks, dict(other.attrs)) == (
            (7, 5),
            (3, 2),
            {"note": {"a": [1]}},
        )
    writable = n5zarr.open_array(tmp_path / "c.n5", "r+", path="a")
    writable.attrs["note"] = 4
    writable.resize((11, 7))
    assert n5zarr.open_array(tmp_path / "c.n5", path="a").shape == (11, 7)
    assert dict(n5zarr.open_array(tmp_path / "c.n5", path="a").attrs) == {"note": 4}
    assert n5zarr.open_array(tmp_path / "c.n5", path="b").shape == (5, 7)
    assert dict(n5zarr.open_array(tmp_path / "c.n5", path="b").attrs) == {"note": {"a": [1]}}
    changed = stored | {"dataType": "float32"}
    (tmp_path / "d.n5/a/attributes.json").write_text(json.dumps(changed))
    assert n5zarr.open_array(tmp_path / "d.n5", path="a").dtype == "f4"


def test_attributes_of_equal_documents_are_not_shared(tmp_path: Path) -> None:
    """What a user changes in those of one dataset, another container does not show."""
    xarray = pytest.importorskip("xarray")
    for name in ("a.n5", "b.n5"):
        n5zarr.create_array(
            tmp_path / name, path="d", shape=(3, 5), dtype="u1", attributes={"key": {"is": [1]}}
        )
    xarray.open_dataset(tmp_path / "a.n5", engine="n5")["d"].attrs["key"]["is"].append(2)
    described: Any = inspect.describe(tmp_path / "a.n5", "d")
    described["attributes"]["key"]["is"].append(3)
    for name in ("a.n5", "b.n5"):
        assert n5zarr.open(tmp_path / name, path="d").attrs["key"] == {"is": [1]}
        described = inspect.describe(tmp_path / name, "d")
        assert described["attributes"]["key"] == {"is": [1]}
