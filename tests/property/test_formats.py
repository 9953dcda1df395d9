"""Containers with nodes of both Zarr formats show each node once, by a model."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from zarr.errors import ContainsArrayError, ContainsGroupError

from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5Error
from tests.memory import MEMORY
from tests.property.model import is_at_or_below, parents

NAMES = ("a", "b", "c", "0")  # two of them are also parts of chunk keys
DOCUMENTS = {2: {".zarray", ".zattrs", ".zgroup", ".zmetadata"}, 3: {"zarr.json"}}
REFUSED = (ContainsArrayError, ContainsGroupError, N5Error)

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
formats = st.sampled_from([2, 3])


@dataclass
class Node:
    """A node of the model."""

    is_array: bool = False
    named: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


class Containers(RuleBasedStateMachine):
    """A state machine in which zarr and another program write, and all stores show the same."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(dir=MEMORY)) / "c.n5"
        self.nodes: dict[str, Node] = {}
        self.store = N5Store(self.root, zarr_format=None)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root.parent)

    # ------------------------------------------------------------------ the model

    def format_of(self, path: str) -> Any:
        while True:
            named = self.nodes[path].named if path in self.nodes else None
            if named is not None or not path:
                return named or 3
            path = path.rpartition("/")[0]

    def is_below_array(self, path: str) -> bool:
        return any(p in self.nodes and self.nodes[p].is_array for p in parents(path))

    def has_children(self, path: str) -> bool:
        return any(p.startswith(f"{path}/") for p in self.nodes)

    def make_parents(self, path: str, zarr_format: int) -> None:
        """Add the groups to the model that Zarr makes above a new node."""
        for parent in parents(path):
            if parent not in self.nodes:
                is_2 = "" in self.nodes and self.format_of(parent) == 2
                self.nodes[parent] = Node(named=2 if zarr_format == 2 else 3 if is_2 else None)

    # ------------------------------------------------------------------ Zarr writes

    @rule(path=st.one_of(st.just(""), paths), zarr_format=formats, number=st.integers(0, 9))
    def create_group(self, path: str, zarr_format: Any, number: int) -> None:
        if self.is_below_array(path):
            return  # zarr does not look above either
        known = self.nodes.get(path)
        try:
            zarr.create_group(
                self.store, path=path, zarr_format=zarr_format, attributes={"n": number}
            )
        except REFUSED:
            assert known is not None
            assert known.is_array or self.format_of(path) == zarr_format
            return
        assert known is None or not known.is_array
        self.make_parents(path, zarr_format)
        is_named = zarr_format == 2 or self.format_of(path.rpartition("/")[0]) == 2
        attributes = {} if known is None else known.attributes
        named = zarr_format if is_named and (zarr_format == 2 or path) else None
        self.nodes[path] = Node(named=named, attributes={**attributes, "n": number})

    @rule(path=paths, zarr_format=formats, number=st.integers(1, 99))
    def create_array(self, path: str, zarr_format: Any, number: int) -> None:
        if self.is_below_array(path) or self.has_children(path):
            return
        known = self.nodes.get(path)
        try:
            array = zarr.create_array(
                self.store, name=path, shape=(5, 3), chunks=(2, 3), dtype="u2",
                zarr_format=zarr_format, fill_value=0,
            )  # fmt: skip
        except REFUSED:
            assert known is not None
            return
        assert known is None
        array[...] = number
        self.make_parents(path, zarr_format)
        is_named = zarr_format == 2 or self.format_of(path.rpartition("/")[0]) == 2
        self.nodes[path] = Node(
            is_array=True, named=zarr_format if is_named else None, attributes={"value": number}
        )
        zarr.open_array(self.store, path=path).attrs["value"] = number

    @rule(data=st.data(), number=st.integers(0, 9))
    def change_attributes(self, data: st.DataObject, number: int) -> None:
        if self.nodes:
            path = data.draw(st.sampled_from(sorted(self.nodes)))
            zarr.open(self.store, path=path, mode="r+").attrs["m"] = number
            self.nodes[path].attributes["m"] = number

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        below = sorted(path for path in self.nodes if path)
        if below:
            path = data.draw(st.sampled_from(below))
            sync(self.store.delete_dir(path))
            self.nodes = {p: n for p, n in self.nodes.items() if not is_at_or_below(p, path)}

    @rule()
    def open_anew(self) -> None:
        self.store = N5Store(self.root, zarr_format=None)

    # ------------------------------------------------------------------ another program writes

    @rule(path=paths, is_array=st.booleans(), number=st.integers(0, 9))
    def write_plainly(self, path: str, is_array: bool, number: int) -> None:
        """Write as N5's Java does: a document for the node, and directories above."""
        above = path.rpartition("/")[0]
        if "" not in self.nodes or self.is_below_array(path) or path in self.nodes:
            return
        if above and above not in self.nodes:
            return
        document: dict[str, Any] = {"n": number}
        if is_array:
            document |= {
                "dataType": "uint16", "compression": {"type": "raw"}, "blockSize": [3, 2],
                "dimensions": [3, 5],
            }  # fmt: skip
        folder = self.root / path
        folder.mkdir(parents=True)
        (folder / "attributes.json").write_text(json.dumps(document))
        self.nodes[path] = Node(is_array=is_array, attributes={"n": number})

    # ------------------------------------------------------------------ what is shown

    @invariant()
    def each_node_is_shown_once(self) -> None:
        if not hasattr(self, "root"):
            return
        for store in (self.store, N5Store(self.root, read_only=True, zarr_format=None)):
            for path, node in self.nodes.items():
                expected = self.format_of(path)
                found: Any = zarr.open(store, path=path, mode="r")
                assert found.metadata.zarr_format == expected, (path, self.nodes)
                assert isinstance(found, zarr.Array) is node.is_array, path
                assert dict(found.attrs) == node.attributes, path
                if node.is_array and "value" in node.attributes:
                    expected_values = np.full((5, 3), node.attributes["value"])
                    np.testing.assert_array_equal(found[...], expected_values)
                with pytest.raises(FileNotFoundError):
                    zarr.open(store, path=path, mode="r", zarr_format=5 - expected)

    @invariant()
    def listings_have_all_nodes(self) -> None:
        if not hasattr(self, "root"):
            return
        listed = {2: set[str](), 3: set[str]()}
        for key in sync(_keys(N5Store(self.root, zarr_format=None))):
            path, _, name = key.rpartition("/")
            for zarr_format, names in DOCUMENTS.items():
                if name in names:
                    listed[zarr_format].add(path)
        by_format = {2: set[str](), 3: set[str]()}
        for path in self.nodes:
            by_format[self.format_of(path)].add(path)
        assert listed == by_format
        each: tuple[Any, ...] = (2, 3)
        for zarr_format in each:
            fixed = N5Store(self.root, zarr_format=zarr_format)
            if self.nodes:
                group: Any = zarr.open_group(fixed, mode="r", zarr_format=zarr_format)
                shown = dict(group.members(max_depth=None))
                assert shown.keys() == self.nodes.keys() - {""}


async def _keys(store: N5Store) -> list[str]:
    return [key async for key in store.list()]


TestContainers = Containers.TestCase
TestContainers.settings = settings(
    max_examples=settings().max_examples // 4, stateful_step_count=12
)
