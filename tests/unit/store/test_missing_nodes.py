"""Errors of missing nodes say what exists instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from n5zarr import N5Store
from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5Error, N5FormatError, N5UnsupportedError, N5Warning
from n5zarr.storage.not_found import NotFoundError
from n5zarr.store import missing_nodes
from n5zarr.store.missing_nodes import (
    check_group,
    datasets_below,
    existing_node,
    not_found,
    selected_nodes,
)
from tests.refusals import refused
from tests.unit.store.made import ROOT, document, memory, on_disk

DEEP = {
    "attributes.json": ROOT, "em/attributes.json": b"{}",
    "em/raw/image/attributes.json": document(), "em/raw/image/0/0": b"\0",
}  # fmt: skip
GROUP = b'{"zarr_format": 3, "node_type": "group"}'


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("x", "; in /: em"),
        ("e", "; in /: em; did you mean /em?"),
        ("em/row", "; in /em: raw; did you mean /em/raw?"),
        ("em/row/a", "; in /em: raw; did you mean /em/raw?"),
        ("em/raw/imag/b/c", "; in /em/raw: image; did you mean /em/raw/image?"),
        ("em/raw/image/0", "; /em/raw/image is a dataset, and below it are its blocks"),
        ("em/raw/image/0/1", "; /em/raw/image is a dataset, and below it are its blocks"),
        ("c.n5/em", "; c.n5 is given twice"),
    ],
)
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_missing_node_is_described(tmp_path: Path, where: str, path: str, message: str) -> None:
    root = on_disk(tmp_path / "c.n5", DEEP)
    store = N5Store(root if where == "disk" else memory(DEEP))
    if where == "memory" and "twice" in message:
        message = "; in /: em"
    error = not_found(store, path, "a dataset")
    assert (type(error), str(error)) == (
        NotFoundError,
        f"{store}: /{path}: expected a dataset, got nothing{message}",
    )


def test_a_group_without_nodes_and_other_roots() -> None:
    empty = N5Store(memory({"attributes.json": ROOT}))
    with pytest.raises(NotFoundError, match=r"/x: expected a group or dataset, got nothing; in /: "
                       "nothing$"):  # fmt: skip
        existing_node(empty, "x")
    assert existing_node(empty, "") is not None
    none = N5Store(memory({}))
    assert "expected an N5 container, got nothing" in str(not_found(none, "x"))
    zarr = N5Store(memory({"zarr.json": GROUP}))
    assert "got a Zarr v3 group; open it" in str(not_found(zarr, "x"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("lost"), "/x: expected a group or dataset, got nothing"),
        (N5FormatError("bad", kind="json"), "/x: expected a group or dataset, got nothing"),
        (N5FormatError("Zarr", kind="foreign"), "Zarr"),
    ],
)
def test_an_error_of_the_search_does_not_hide_the_node(
    monkeypatch: pytest.MonkeyPatch, error: Exception, expected: str
) -> None:
    store = N5Store(memory())

    def fail(_: str) -> Any:
        raise error

    monkeypatch.setattr(store, "node", fail)
    assert str(not_found(store, "x")).removeprefix(f"{store}: ") == expected


def test_the_nearest_node_is_found_with_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    store, asked = N5Store(memory(DEEP)), []
    node = store.node

    def noting(path: str) -> Any:
        asked.append(path)
        return node(path)

    monkeypatch.setattr(store, "node", noting)
    below = "em/raw/x/a/b/c/d/e/f/g/h"
    assert "in /em/raw: image" in str(not_found(store, below))
    assert len(asked) <= 8


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, ""), (1, "s0"), (4, "s0, s1, s2, s3"), (5, "s0, s1, s2, s3, ..."),
     (7, "s0, s1, s2, s3, ...")],
)  # fmt: skip
def test_a_few_datasets_are_named(n: int, expected: str) -> None:
    values = {f"g/s{i}/attributes.json": document() for i in range(n)}
    store = N5Store(memory({"attributes.json": ROOT, "g/attributes.json": b"{}", **values}))
    assert datasets_below(store, "g") == expected.replace("s", "g/s")
    assert datasets_below(store, "x") == ""


def test_the_search_for_datasets_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {f"g{i}/attributes.json": b"{}" for i in range(3)}
    store = N5Store(memory({"attributes.json": ROOT, **groups, "z/attributes.json": document()}))
    for most, expected in [(5, "z"), (4, "")]:  # the root is one of them
        monkeypatch.setattr(missing_nodes, "_NODES", most)
        assert datasets_below(store, "") == expected

    def fail(_: str) -> Any:
        raise N5UnsupportedError("no listing", kind="listing")

    monkeypatch.setattr(store, "node", fail)
    assert datasets_below(store, "") == ""


def test_a_thousand_nodes_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Endless:
        def __init__(self, *_: object) -> None: ...

        def run(self, *_: object) -> Any:
            while True:
                taken.append(1)
                yield Endless, False

        node = None

    monkeypatch.setattr(missing_nodes, "Walk", Endless)
    assert datasets_below(N5Store(memory()), "") == ""
    assert len(taken) == 1000


def test_patterns_select_nodes(tmp_path: Path) -> None:
    root = on_disk(tmp_path / "c.n5", {"em/attributes.json": b"{}", **DEEP})
    store = N5Store(root)

    def found(path: str, **patterns: Any) -> list[str]:
        return [each.path for each in selected_nodes(store, path, PathPatterns(**patterns))]

    every = ["", "em", "em/raw", "em/raw/image"]
    assert found("") == every
    assert found("em", select=["raw"]) == every[1:]
    assert found("em", exclude=["raw/image"]) == every[1:3]
    with pytest.raises(NotFoundError, match="/x: expected a group or dataset"):
        selected_nodes(store, "x", PathPatterns())
    (root / "other").mkdir()
    (root / "other/attributes.json").write_text("{}")
    (root / "link").symlink_to("em")
    (root / "em/raw/more").symlink_to("../../other")
    with pytest.warns(N5Warning, match="c.n5: /link/raw/more: omitted, as it is a group behind a"):
        assert found("link") == ["link", "link/raw", "link/raw/image"]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({}, None),
        ({"g/attributes.json": b"{}"}, None),
        ({"g/a/attributes.json": b"{}"}, None),
        ({"g/attributes.json": b"{}", "g/zarr.json": GROUP}, None),
        ({"g/zarr.json": GROUP, "g/x": b""}, ": g: .*Zarr v3 group"),
    ],
)
def test_a_group_of_zarr_that_seems_empty(tmp_path: Path, values: Any, match: Any) -> None:
    store = N5Store(memory(values))
    if match is None:
        check_group(store, "g")
        return
    with refused(N5Error, "foreign", match):
        check_group(store, "g")
    with pytest.raises(N5Error, match=r": /: .*Zarr v2 group"):
        check_group(N5Store(memory({".zgroup": b"{}"})), "")
    check_group(N5Store(on_disk(tmp_path / "c.n5", values)), "g")  # found when it is opened
