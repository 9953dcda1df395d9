"""Values become zarr's buffers, a store a mapping; a container's root is read or described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.buffer import cpu

from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5FormatError
from n5zarr.storage.not_found import NotFoundError
from n5zarr.store.buffers import StoreMapping, as_buffer, as_bytes
from n5zarr.store.flows import read_root, root_message, undoing
from tests.unit.store.made import ROOT, SIMPLE, document, memory, on_disk, values_of

PROTOTYPE = cpu.buffer_prototype


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, b"abcdefg"),
        (RangeByteRequest(2, 5), b"cde"),
        (RangeByteRequest(0, 99), b"abcdefg"),
        (OffsetByteRequest(2), b"cdefg"),
        (SuffixByteRequest(2), b"fg"),
        (SuffixByteRequest(7), b"abcdefg"),
        (SuffixByteRequest(9), b"abcdefg"),
    ],
)
def test_a_range_of_a_value(wanted: Any, expected: bytes) -> None:
    found: Any = as_buffer(b"abcdefg", PROTOTYPE, wanted)
    assert (type(found), found.to_bytes()) == (PROTOTYPE.buffer, expected)
    assert as_buffer(None, PROTOTYPE, wanted) is None


def test_what_is_no_range_or_buffer_is_refused() -> None:
    wrong: Any = (2, 5)
    with pytest.raises(TypeError, match=r"Unexpected byte_range, got \(2, 5\)"):
        as_buffer(b"abc", PROTOTYPE, wrong)
    with pytest.raises(TypeError, match=r"must be a Buffer instance. Got <class 'bytes'>"):
        as_bytes(b"abc")  # type: ignore[arg-type]
    found = as_bytes(cpu.Buffer.from_bytes(b"abc"))
    assert (type(found), bytes(found)) == (memoryview, b"abc")


def test_a_mapping_of_a_store() -> None:
    store = memory({"a": b"1", "b/c": b"2"})
    mapping = StoreMapping(store)
    assert (sorted(mapping), len(mapping), mapping["b/c"]) == (["a", "b/c"], 2, b"2")
    number: Any = 1
    assert ["a" in mapping, "x" in mapping, number in mapping] == [True, False, False]
    mapping["d"] = b"3"
    del mapping["a"]
    assert values_of(store) == {"b/c": b"2", "d": b"3"}
    for key in ("a", "x"):
        with pytest.raises(KeyError, match=key):
            mapping[key]
        with pytest.raises(KeyError, match=key):
            del mapping[key]
    assert repr(mapping) == f"StoreMapping({store!r})"


def test_a_root_is_described() -> None:
    for values, version in [(SIMPLE, "4.0.0"), ({"attributes.json": b"{}"}, None)]:
        store = N5Store(memory(values))
        assert read_root(store, read_only=True) == {
            "container": str(store), "kind": "container", "n5": version,
        }  # fmt: skip
    assert read_root(N5Store(memory({})), read_only=False)["n5"] is None
    assert "backend" in read_root(N5Store("memory://n5zarr-flows.n5"), read_only=False)


ZARR = json.dumps({"zarr_format": 3, "node_type": "group"}).encode()
NOTHING = "got nothing; check the location; if the server does not list, open a dataset"


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({}, NOTHING),
        ({"zarr.json": ZARR}, "got a Zarr v3 group; "),
        ({".zgroup": b"{}"}, "got a Zarr v2 group; "),
        ({".zarray": b"{}"}, "got a Zarr v2 array; "),
        ({"": b"\x89HDF\r\n\x1a\n"}, "got an HDF5 file; "),
        ({"": b" <SpimData version=2>"}, "got an XML file of BigDataViewer; "),
        ({"": b" \n<html>"}, NOTHING),
        ({"zarr.json": b"<html>"}, NOTHING),
        ({"": b"<html>", "zarr.json": ZARR}, "got a Zarr v3 group; "),
        ({"": b"PK\3\4", "zarr.json": ZARR}, "got a Zarr v3 group; "),
        ({"": b""}, NOTHING),
    ],
)
def test_what_is_at_the_location_of_no_container(values: Any, match: str) -> None:
    """A web server may answer any request with a page."""
    store = N5Store(memory(values))
    assert root_message(store).startswith(f"{store}: expected an N5 container, {match}")


def test_a_store_that_has_no_empty_key(monkeypatch: pytest.MonkeyPatch) -> None:
    store = N5Store(memory({}))

    def fail(*_: object) -> Any:
        raise ValueError("no such key")

    monkeypatch.setattr(store.storage, "run", fail)
    assert NOTHING in root_message(store)


def test_a_missing_root(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="expected an N5 container, got nothing"):
        read_root(N5Store(memory({})), read_only=True)
    with pytest.raises(NotFoundError, match="does not exist; the nearest existing directory"):
        read_root(N5Store(tmp_path / "c.n5"), read_only=True)
    assert str(tmp_path / "c.n5 does not exist") in root_message(N5Store(tmp_path / "c.n5"))
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(NotFoundError, match="got a file"):
        read_root(N5Store(tmp_path / "file"), read_only=False)
    with pytest.raises(N5FormatError, match="zarr"):
        read_root(N5Store(memory({"zarr.json": ZARR, "x/zarr.json": ZARR})), read_only=True)


def test_a_node_is_found_by_any_spelling_of_its_path() -> None:
    store = N5Store(memory())
    assert type(store.node("/g//a/")).__name__ == "DatasetView"
    assert type(store.node("h")).__name__ == "GroupAttributes"
    assert store.node("x") is None
    assert store.locate("g/a/c/1/2") == f"{store}: g/a: block 2/1"
    assert store.locate("h/zarr.json") == f"{store}: h"


class Interrupted(BaseException):
    """Ends what is under way, as Ctrl-C."""


@pytest.mark.parametrize("error", [None, ValueError, Interrupted])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_zarr_wrote_is_undone(tmp_path: Path, where: str, error: Any) -> None:
    on_disk(tmp_path / "c.n5")
    inner = memory()
    store = N5Store(inner if where == "memory" else tmp_path / "c.n5", zarr_format=3)
    old = json.loads(sync(store.get("h/zarr.json")).to_bytes())  # type: ignore[union-attr]
    array = json.loads(sync(store.get("g/a/zarr.json")).to_bytes())  # type: ignore[union-attr]

    def put(key: str, value: Any) -> None:
        sync(store.set(key, cpu.Buffer.from_bytes(json.dumps(value).encode())))

    def act() -> None:
        with undoing(store):
            put("h/zarr.json", {**old, "attributes": {"x": 2}})
            put("new/zarr.json", array)
            put("group/zarr.json", {"zarr_format": 3, "node_type": "group"})
            assert "new" in store.container.memory.created
            if error is not None:
                raise error

    def found() -> dict[str, bytes]:
        if where == "memory":
            return values_of(inner)
        files = [path for path in (tmp_path / "c.n5").rglob("*") if path.is_file()]
        return {str(p.relative_to(tmp_path / "c.n5")): p.read_bytes() for p in files}

    if error is None:
        act()
        assert json.loads(found()["h/attributes.json"]) == {"x": 2}
        assert "new/attributes.json" in found()
    else:
        with pytest.raises(error):
            act()
        assert {k: v for k, v in found().items() if k != "group/attributes.json"} == SIMPLE
        attributes: Any = store.node("h")
        assert attributes.attributes == {"x": 1}
        assert store.node("new") is None
        put("h/zarr.json", {**old, "attributes": {"x": 1, "y": 1}})  # from the old one
        assert json.loads(found()["h/attributes.json"]) == {"x": 1, "y": 1}
    assert store.container.memory.before is None
    assert found()["attributes.json"] == ROOT
    assert found()["g/a/attributes.json"] == document()
