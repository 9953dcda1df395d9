"""Locations are split into a container's root and a node; what is there is opened."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zarr
from zarr.storage import LocalStore, StorePath

from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Place, place_of
from n5zarr.store import locating, location
from n5zarr.store.locating import Located, locate, open_container
from n5zarr.store.location import (
    check_writable_store,
    named_root,
    root_of,
    sample_path,
    split_at_topmost,
    split_place,
)
from n5zarr.store.url_adapter import N5UrlAdapter
from tests.refusals import refused
from tests.unit.store.made import SIMPLE, memory, on_disk
from tests.unit.store.test_blocks import Shown

BUCKET = "s3://bucket/a.n5"


def test_small_data_come_along() -> None:
    assert Path(sample_path(), "em/s0/attributes.json").is_file()
    assert sample_path() == sample_path("n5")
    assert isinstance(sample_path(), str)
    assert b"SpimData" in Path(sample_path("bigstitcher")).read_bytes()
    with pytest.raises(N5UnrepresentableError, match="name: expected one of 'n5', 'bigstitcher'"):
        sample_path("bdv")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "n", "expected"),
    [
        (Path("/a/b/c"), None, (Path("/a/b/c"), "")),
        (Path("/a/b/c"), 2, (Path("/a"), "b/c")),
        (Path("/a/x/../b/c"), 3, (Path("/a/b"), "c")),
        ("s3://b/x/y", 3, ("s3://b", "x/y")),
        ("s3://b/x/y/", None, ("s3://b/x/y", "")),
        ("http://h/x%20y/z%20w?t=1", 4, ("http://h/x%20y?t=1", "z w")),
        ("HTTPS://h/x/z%20w", 4, ("HTTPS://h/x", "z w")),
        ("s3://b/x/z%20w", 4, ("s3://b/x", "z%20w")),
        ("s3://b/x//y", 4, ("s3://b/x", "y")),
    ],
)
def test_a_place_is_split_after_some_names(given: Any, n: int | None, expected: Any) -> None:
    for path in ("", "node"):
        found = split_place(Place(given, path, {"anon": True}), n)
        joined = "/".join(filter(None, (expected[1], path)))
        assert found == Place(expected[0], joined, {"anon": True})


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert split_place(Place(Path("a.n5/b"))).location == tmp_path / "a.n5/b"
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/below")
    assert root_of(Place(Path("link/../c.n5/x"))) == Place(tmp_path / "real/c.n5", "x")
    assert root_of(Place(Path("link/c.n5/x"))) == Place(tmp_path / "link/c.n5", "x")


@pytest.mark.parametrize(
    ("given", "forms", "expected"),
    [
        (f"{BUCKET}/em/b.n5/s0", ("n5",), (BUCKET, "em/b.n5/s0")),
        ("s3://bucket/em/s0", ("n5",), None),
        (BUCKET, ("zarr",), None),
        (Path("/x/a.zarr/b.n5"), ("n5", "zarr"), (Path("/x/a.zarr"), "b.n5")),
        (Path("/x/a.zarr/b.n5/c"), ("n5",), (Path("/x/a.zarr/b.n5"), "c")),
    ],
)
def test_a_name_tells_the_root(given: Any, forms: Any, expected: Any) -> None:
    assert named_root(Place(given), *forms) == (expected and Place(*expected))


def test_a_store_is_not_split() -> None:
    for place in (Place(memory()), Place(memory(), "g")):
        assert named_root(place, "n5") is None
        assert split_place(place, 1) is place
        assert root_of(place) is place
        assert split_at_topmost(place, ["attributes.json"]) is place
    inner = Place(Path("/x/a.n5"), "em")
    assert root_of(inner) is inner


def documents(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "attributes.json").write_text("{}")


@pytest.mark.parametrize(
    ("written", "given", "or_above", "expected"),
    [
        (("a", "a/b", "a/b/c"), "a/b/c", False, ("a", "b/c")),
        (("a", "a/b/c"), "a/b/c", False, ("a/b/c", "")),
        (("a", "a/b"), "a/b/c", False, ("a/b/c", "")),
        (("a", "a/b"), "a/b/c", True, ("a", "b/c")),
        (("a/b/c",), "a/b/c", True, ("a/b/c", "")),
        (("a",), "a/b/c", True, ("a/b/c", "")),
        ((), "a/b/c", True, ("a/b/c", "")),
    ],
)
def test_the_topmost_directory_of_a_chain(
    tmp_path: Path, written: Any, given: str, or_above: bool, expected: Any
) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    documents(tmp_path, *written)
    found = split_at_topmost(Place(tmp_path / given), ["attributes.json", "x"], or_above=or_above)
    assert found == Place(tmp_path / expected[0], expected[1])
    if not or_above:
        assert root_of(Place(tmp_path / given)) == found
    url = f"s3://bucket/{given}"
    assert split_at_topmost(Place(url), ["attributes.json"]) == Place(url)


def test_a_directory_that_may_not_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(tmp_path, "a", "a/b")

    def is_file(path: Path) -> bool:
        if path.parent == tmp_path / "a":
            raise PermissionError
        return os.path.isfile(path)  # noqa: PTH113 - not the one that is replaced

    monkeypatch.setattr(Path, "is_file", is_file)
    assert root_of(Place(tmp_path / "a/b")) == Place(tmp_path / "a/b")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Answer requests for documents of URLs from a dictionary; note what is asked for."""

    def serve(**answers: Any) -> list[str]:
        asked: list[str] = []

        def opened(place: Place, *, read_only: bool = False) -> Any:
            asked.append(str(place.location))
            answer = answers.get(str(place.location).rpartition("/")[2])
            assert (read_only, place.path) == (True, "")
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(run=lambda _: answer)

        monkeypatch.setattr(location, "open_storage", opened)
        return asked

    return serve


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"c": b"{}", "b": b" {}"}, ("http://h/a/b", "c")),
        ({"c": b"{}", "b": b" \n<html>"}, ("http://h/a/b/c", "")),
        ({"c": b"{}", "b": PermissionError()}, ("http://h/a/b/c", "")),
        ({"b": b"{}", "a": b"{}"}, ("http://h/a/b/c", "")),
        ({"c": b"{}", "b": b"{}", "a": b"{}"}, ("http://h/a", "b/c")),
        ({"c": b"{}", "b": b"{}", "a": b"{}", "h": b"{}"}, ("http://h", "a/b/c")),
        ({"c": bytearray(b"{}")}, ("http://h/a/b/c", "")),
    ],
)
def test_documents_on_a_server_are_looked_for_upwards(
    server: Callable[..., list[str]], answers: Any, expected: Any
) -> None:
    asked = server(**answers)
    assert root_of(Place("http://h/a/b/c")) == Place(*expected)
    assert asked == [f"http://h{path}" for path in ("/a/b/c", "/a/b", "/a", "")][: len(asked)]


@pytest.mark.parametrize("url", ["simplecache::http://h/a/b", "zip://a/b", "ZIP://a::s3://b/c.zip"])
def test_a_chain_is_not_searched(server: Callable[..., list[str]], url: str) -> None:
    asked = server()
    assert root_of(Place(url)) == Place(url)
    assert asked == []


def test_a_store_that_is_read_only_says_so() -> None:
    check_writable_store(N5Store(memory()))
    store = N5Store(memory(read_only=True))
    with pytest.raises(N5UnsupportedError, match=r"n5zarr.convert copies it") as caught:
        check_writable_store(store)
    assert (caught.value.kind, caught.value.where) == ("read-only", str(store))
    with pytest.raises(N5UnsupportedError, match=r"^here: expected what can be written"):
        check_writable_store(N5Store(Shown(read_only=True)), "here")


# ------------------------------------------------------------------------------------- locate


class Named:
    """A document that names a container."""

    def __str__(self) -> str:
        return "the document"

    def describe(self) -> dict[str, Any]:
        return {}

    def describe_group(self, name: str) -> dict[str, Any]:
        return {"name": name}


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the rooms of other formats by one that knows one place."""
    asked: list[str] = []

    class Doors:
        def __init__(self, point: str, name: str) -> None:
            self.point, self.name = point, name

        def found(self) -> Any:
            asked.append(f"{self.point} {self.name}")
            return None if self.name == "absent" else self.look

        def look(self, place: Place, path: str) -> Located | None:
            if self.name == "known" or "xml" in str(place.location):
                return Located(self.name, place, path)
            return None

        def __class_getitem__(cls, _: object) -> type:
            return cls

    monkeypatch.setattr(locating, "Door", Doors)
    return asked


@pytest.mark.parametrize(
    ("given", "formats", "kind", "asked"),
    [
        (Path("/a.n5/b"), ("known",), "n5", []),
        (BUCKET, ("known",), "n5", []),
        (Path("/a/b"), ("absent", "other", "known", "last"), "known",
         ["location absent", "location other", "location known"]),
        (Path("/a/b"), ("bdv", "other"), "n5", ["location other"]),
        (Path("/a/b.xml"), ("bdv", "other"), "bdv", ["location bdv"]),
        (Path("/a.n5/b.xml"), ("bdv", "other"), "bdv", ["location bdv"]),
        (memory(), ("known",), "known", ["location known"]),
        (Shown(), ("known",), "n5", []),
        (N5Store(memory()), ("known",), "n5", []),
    ],
)  # fmt: skip
def test_formats_are_looked_for_unless_a_name_tells(
    looked: list[str], given: Any, formats: Any, kind: str, asked: list[str]
) -> None:
    place = Place(given)
    assert locate(place, "p", formats) == Located(kind, place, "p")
    assert looked == asked


def test_an_open_container_keeps_what_it_was_given(tmp_path: Path) -> None:
    on_disk(tmp_path / "c.n5")
    store, path = open_container(place_of(tmp_path / "c.n5/g"), "/a/")
    assert (str(store), path) == (str(tmp_path / "c.n5"), "g/a")
    shown = (store.codecs, store.zarr_format, store.axis_order, store.durability, store.read_only)
    assert shown == ("n5", 3, "C", "atomic", False)
    options: Any = {"axis_order": "F", "durability": "durable", "writes": False}
    store, _ = open_container(place_of(tmp_path / "c.n5"), **options)
    assert (store.axis_order, store.durability, store.read_only) == ("F", "durable", True)
    formats: Any = (None, 2, 3)
    given = N5Store(memory())
    for zarr_format in formats:
        given = N5Store(memory(), zarr_format=zarr_format, codecs="portable")
        store, path = open_container(Place(given, "g"), "a", durability="atomic", writes=True)
        assert (store.zarr_format, store.codecs, path) == (zarr_format or 3, "portable", "g/a")
        assert (store is given) == (zarr_format is not None)
    with pytest.raises(N5UnrepresentableError, match="that of the store, 'atomic', or none, got"):
        open_container(Place(given), durability="durable")


def test_what_only_a_document_names_is_not_created() -> None:
    with refused(N5UnsupportedError, "read-only", ": g/a: expected a writable store"):
        open_container(Place(memory(read_only=True)), "g/a", writes=True)
    with pytest.raises(N5UnsupportedError, match=": /: expected a writable store"):
        open_container(Place(memory(read_only=True)), writes=True)
    place = Place(memory(), "g")
    assert Located("n5", place, "new", Named()).open(writes=True)[1] == "g/new"
    missing = Located("n5", replace(place, path="x"), "", Named())
    assert missing.open(writes=False)[1] == "x"
    with pytest.raises(NotFoundError, match="/x: expected a group or dataset, got nothing"):
        missing.open(writes=True)
    for located, match in [(missing, "^the document: its container: x$"),
                           (Located("n5", place), "^x$")]:  # fmt: skip
        with pytest.raises(FileNotFoundError, match=match), located.named():
            raise FileNotFoundError("x")
    with pytest.raises(ValueError, match=r"^x$"), missing.named():
        raise ValueError("x")


# ---------------------------------------------------------------------------------- url_adapter


@dataclass
class Resolution:
    """What is to the left in a pipeline."""

    store: Any
    path: str


@pytest.mark.parametrize(
    ("path", "body", "read_only", "expected"),
    [
        ("", "em/s0", True, ("c.n5", "em/s0")),
        ("c.n5", "/em//s0/", False, ("c.n5", "em/s0")),
        ("c.n5/em", "s0", True, ("c.n5", "em/s0")),
        ("c.n5/em/s0", "", False, ("c.n5", "em/s0")),
    ],
)
def test_a_pipeline_opens_the_container(
    tmp_path: Path, path: str, body: str, read_only: bool, expected: Any
) -> None:
    on_disk(tmp_path / "c.n5", {**SIMPLE, "em/s0/attributes.json": SIMPLE["g/a/attributes.json"]})
    root = tmp_path if path else tmp_path / "c.n5"

    def opened(*, is_left_read_only: bool = False) -> Any:
        left = Resolution(LocalStore(root, read_only=is_left_read_only), path)

        async def resolve() -> Resolution:
            return left

        context = SimpleNamespace(resolve_preceding=resolve, read_only=read_only)
        segment = SimpleNamespace(query=None, body=body, raw=f"n5:{body}")
        return asyncio.run(N5UrlAdapter.open_pipeline_segment(segment, context))

    found = opened()
    assert (found.store.root, found.path) == (tmp_path / expected[0], expected[1])
    assert (found.store.read_only, found.store._is_open) == (read_only, True)
    assert opened(is_left_read_only=True).store.read_only
    assert zarr.open_array(StorePath(found.store, found.path), mode="r").shape == (5, 7)


def test_a_pipeline_has_no_query() -> None:
    segment = SimpleNamespace(query="a=1", body="x", raw="n5:x?a=1")
    with pytest.raises(N5UnrepresentableError, match=r"no query behind '|n5:', got 'n5:x?a=1'"):
        asyncio.run(N5UrlAdapter.open_pipeline_segment(segment, None))
