"""Several store objects and another program work on one container, against a model.

Every store object reads what the model holds, whoever wrote it, and so does tensorstore.
``N5ZARR_STRESS=1`` makes 100 000 steps, another number as many.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5Error
from tests.contract.test_kernel import python_only
from tests.memory import MEMORY
from tests.property import outside
from tests.property.model import Box, Container, Dataset, Node, is_at_or_below, parents, pattern

STRESS = os.environ.get("N5ZARR_STRESS", "")
N_STEPS = {"": 0, "1": 100_000}.get(STRESS) or int(STRESS or 0)

_log = logging.getLogger(__name__)  # tells how far the long form is: --log-cli-level=INFO

pytestmark = [
    # zarr's own warnings, of what no specification has
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part:UserWarning"),
    # a store object lists all but what others have put in place of arrays that it created
    pytest.mark.filterwarnings(
        "ignore:.*expected the elements and blocks with which:n5zarr.N5Warning"
    ),
]

NAMES = ["a", "g", "g/b", "g/0", "g/0/c"]
NATIVE = ["uint8", "int16", "uint16", "int32", "uint64", "float32", "float64", "bool"]
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 1, "useZlib": False},
    {"type": "gzip", "level": 1, "useZlib": True},
    {"type": "zstd", "level": 3},
    {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"type": "bzip2", "blockSize": 1},
    {"type": "xz", "preset": 0},
]
SHAPES = [(5, 7), (7, 3), (11, 5), (13,), (2, 5, 3)]  # unequal primes
CHUNKS = [(2, 3), (3, 2), (5, 3), (3,), (1, 2, 3)]

OPTIONS: dict[str, dict[str, Any]] = {
    "v3": {"zarr_format": 3},
    "v2": {"zarr_format": 2},
    "own": {"zarr_format": 3, "codecs": "n5"},
    "python": {"zarr_format": 3, "codecs": "n5"},
    "any": {},
    "F": {"zarr_format": 3, "codecs": "portable", "axis_order": "F"},
}
"""Of the ways to use a store object."""

REMOVE, UPDATE = 1, 2  # of the ways to change attributes

ways = st.sampled_from([*OPTIONS])
shapes = st.sampled_from(range(len(SHAPES)))
numbers = st.integers(0, 9)
corners = st.tuples(*[st.integers(0, 12)] * 6)
keys = st.sampled_from(["x", "y", "long name"])
java_values = st.sampled_from([0, 1, 2.5, "text", [1, [2]], {"in": {"er": 1}}])
json_values = st.one_of(java_values, st.sampled_from([None, math.nan]))


def box_in(shape: tuple[int, ...], corners: tuple[int, ...]) -> Box:
    """Choose a box that is not empty."""
    starts = [corner % n for corner, n in zip(corners, shape, strict=False)]
    lengths = [c % (n - s) for c, n, s in zip(corners[3:], shape, starts, strict=False)]
    return tuple(slice(s, s + n + 1) for s, n in zip(starts, lengths, strict=True))


@dataclass
class Way:
    """A store object that lives until it is opened again, and a way of opening arrays."""

    name: str
    store: N5Store
    # by path: the type and block size of the arrays that were created through it
    created: dict[str, tuple[np.dtype, tuple[int, ...]]] = field(default_factory=dict)
    # by path: attributes and shape that it gave or took last, from which a change starts
    served: dict[str, tuple[dict[str, Any], tuple[int, ...] | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, root: Path | MemoryStore) -> Way:
        how = OPTIONS[name]
        if name == "python" and isinstance(root, Path):
            how = how | {"durability": "overwrite"}
        return cls(name, N5Store(root, **how))

    def using(self) -> AbstractContextManager[None]:
        return python_only() if self.name == "python" else nullcontext()

    def open(self, path: str) -> Any:
        if self.store.codecs == "n5":
            return n5zarr.open(self.store, "r+", path=path)
        return zarr.open(self.store, path=path, mode="r+")

    def presented(self, each: Any) -> Any:
        return each if self.name != "F" else each[::-1]

    def read(self, array: Any, box: Box) -> np.ndarray:
        with self.using():
            values = np.asarray(array[self.presented(box)])
        return values.T if self.name == "F" else values

    def write(self, array: Any, box: Box, values: np.ndarray) -> None:
        with self.using():
            array[self.presented(box)] = values.T if self.name == "F" else values


@dataclass
class Held:
    """A node that was opened before, and is still used."""

    way: Way
    path: str
    node: Any
    attributes: dict[str, Any]


@dataclass
class HeldArray(Held):
    """An open array, which keeps its old shape and fill value."""

    dataset: Dataset
    shape: tuple[int, ...]
    fill: Any


class States(RuleBasedStateMachine):
    """A state machine in which every reader sees the model, whoever writes."""

    is_local = True
    n_steps = 0  # of all runs

    @initialize()
    def start(self) -> None:
        self.root: Any = MemoryStore()
        if self.is_local:
            self.root = Path(tempfile.mkdtemp(dir=MEMORY)) / "c.n5"
        zarr.create_group(N5Store(self.root))
        self.model = Container({"": Node()})
        self.ways = {name: Way.of(name, self.root) for name in OPTIONS}
        self.held: list[Held] = []
        self.n_checks = 0

    def teardown(self) -> None:
        if hasattr(self, "root"):
            for way in self.ways.values():
                self.check(way)
            if self.is_local:
                self.check_tensorstore()
                shutil.rmtree(self.root.parent)

    # ------------------------------------------------------------------ what the model knows

    def arrays(self) -> list[str]:
        return [path for path, node in self.model.nodes.items() if node.dataset is not None]

    def dataset(self, path: str) -> Dataset:
        found = self.model.nodes[path].dataset
        assert found is not None
        return found

    def absent(self) -> list[str]:
        """Return the paths at which a node can be made."""
        taken = self.model.nodes
        return [p for p in NAMES if p not in taken and not self.model.is_below_array(p)]

    @staticmethod
    def one_of[T](each: list[T], number: int) -> T:
        return each[number % len(each)]

    def serve_all(self, way: Way) -> None:
        """Record that a store object has shown the documents of all nodes."""
        for path, node in self.model.nodes.items():
            shape = None if node.dataset is None else node.dataset.shape
            way.served[path] = dict(node.attributes), shape

    def is_changed(self, way: Way, path: str) -> bool:
        """Return whether others have replaced an array that this store object created."""
        dataset = self.model.nodes[path].dataset
        now = None if dataset is None else (dataset.dtype, dataset.chunks)
        return now is not None and way.created.get(path, now) != now

    def opened(self, way: Way, path: str) -> Any:
        """Open a node; with a new store object if others have replaced an array of the old one."""
        if self.is_changed(way, path):
            with pytest.raises(N5Error) as caught:
                way.open(path)
            assert caught.value.kind == "changed"
            self.anew(way)
        found = way.open(path)
        node = self.model.nodes[path]
        shape = None if node.dataset is None else node.dataset.shape
        way.served[path] = dict(node.attributes), shape
        return found

    def anew(self, way: Way) -> None:
        self.held = [held for held in self.held if held.way is not way]
        fresh = Way.of(way.name, self.root)
        way.store, way.created, way.served = fresh.store, {}, {}

    def drop_held(self, path: str) -> None:
        self.held = [held for held in self.held if not is_at_or_below(held.path, path)]

    def drop_above(self, way: Way, path: str) -> None:
        """Drop open groups above a new node, as zarr reads these again."""
        above = parents(path)
        self.held = [held for held in self.held if held.way is not way or held.path not in above]

    def hold(self, way: Way, path: str, found: Any) -> None:
        node = self.model.nodes[path]
        held = (way, path, found, dict(node.attributes))
        if (dataset := node.dataset) is None:
            self.held.append(Held(*held))
        else:
            self.held.append(HeldArray(*held, dataset, dataset.shape, dataset.fill))
        del self.held[:-4]

    # ------------------------------------------------------------------ through the stores

    @rule(
        way=st.sampled_from(["v3", "v2", "own", "python", "any"]), where=numbers, which=shapes,
        dtype=st.sampled_from(NATIVE), number=numbers, fill=st.sampled_from([0, 0, 1]),
        compression=st.sampled_from(COMPRESSIONS), overwrite=st.booleans(),
    )  # fmt: skip
    def create_array(
        self, *, way: str, where: int, which: int, dtype: str, number: int, fill: int,
        compression: Any, overwrite: bool,
    ) -> None:  # fmt: skip
        path = self.one_of([p for p in NAMES if not self.model.is_below_array(p)], where)
        by = self.ways[way]
        if path in self.model.nodes and not overwrite:
            self.refuse_to_create(by, path)
            return
        made = Dataset(SHAPES[which], CHUNKS[which], np.dtype(dtype), compression, fill)
        made.fill = made.dtype.type(fill)
        found = n5zarr.create_array(
            by.store, path=path, shape=made.shape, chunks=made.chunks, dtype=dtype,
            compression=compression, fill_value=made.fill, overwrite=overwrite,
            attributes={"n": number},
        )  # fmt: skip
        self.forget(by, path)
        self.model.remove(path)
        self.model.add(path, Node({"n": number}, made))
        self.drop_above(by, path)
        by.created[path] = made.dtype, made.chunks
        by.served[path] = {"n": number}, made.shape
        # a store without a format is copied as one of v3
        self.hold(by, path, found if by.store.zarr_format else self.opened(by, path))

    def refuse_to_create(self, way: Way, path: str) -> None:
        """Check that an existing node is not replaced without a request."""
        if self.is_changed(way, path):
            self.anew(way)
        with pytest.raises((FileExistsError, ValueError)):
            n5zarr.create_array(way.store, path=path, shape=(5,), chunks=(2,), dtype="u1")
        self.held = [each for each in self.held if each.way is not way or each.path != path]

    def forget(self, way: Way, path: str) -> None:
        """Drop a removed node from the records of a store object, and its open nodes."""
        self.drop_held(path)
        way.created = {p: c for p, c in way.created.items() if not is_at_or_below(p, path)}
        way.served = {p: s for p, s in way.served.items() if not is_at_or_below(p, path)}

    @precondition(lambda self: self.absent())
    @rule(way=ways, which=numbers, number=numbers)
    def create_group(self, way: str, which: int, number: int) -> None:
        path, by = self.one_of(self.absent(), which), self.ways[way]
        zarr.create_group(
            by.store, path=path, attributes={"n": number}, zarr_format=by.store.zarr_format or 3
        )
        self.model.add(path, Node({"n": number}))
        self.drop_above(by, path)

    @precondition(lambda self: self.arrays())
    @rule(way=ways, which=numbers, corners=corners, number=numbers)
    def write(self, way: str, which: int, corners: Any, number: int) -> None:
        path = self.one_of(self.arrays(), which)
        by = self.ways[way]
        array, dataset = self.opened(by, path), self.dataset(path)
        box = box_in(dataset.shape, corners)
        self.write_box(by, array, dataset, box, number, dataset.fill)

    def write_box(
        self, way: Way, array: Any, dataset: Dataset, box: Box, number: int, fill: Any
    ) -> None:
        shape = tuple(b.stop - b.start for b in box)
        values = pattern(shape, dataset.dtype, number, fill)
        way.write(array, box, values)
        dataset.write(box, values, fill)

    @precondition(lambda self: self.arrays())
    @rule(way=ways, which=numbers, sizes=corners, appended=st.booleans())
    def resize(self, way: str, which: int, sizes: Any, appended: bool) -> None:
        path = self.one_of(self.arrays(), which)
        by, dataset = self.ways[way], self.dataset(path)
        array, before = self.opened(by, path), dataset.shape
        if appended:
            axis = sizes[0] % len(before)
            more = (*before[:axis], 1 + sizes[1] % 4, *before[axis + 1 :])
            values = pattern(more, dataset.dtype, 1 + sizes[2], dataset.fill)
            axis_shown = axis if by.name != "F" else len(before) - 1 - axis
            with by.using():
                array.append(values.T if by.name == "F" else values, axis=axis_shown)
            after = (*before[:axis], before[axis] + more[axis], *before[axis + 1 :])
            box = tuple(slice(a if a != b else 0, b) for a, b in zip(before, after, strict=True))
            dataset.resize(after)
            dataset.write(box, values, dataset.fill)
        else:
            after = tuple(size + 1 for size in sizes[: len(before)])
            array.resize(by.presented(after))
            dataset.resize(after)
        by.served[path] = by.served[path][0], after
        self.hold(by, path, array)

    @rule(way=ways, which=numbers, key=keys, value=json_values, how=st.integers(0, 3))
    def change_attributes(self, way: str, which: int, key: str, value: Any, how: int) -> None:
        path = self.one_of(list(self.model.nodes), which)
        by, node = self.ways[way], self.model.nodes[path]
        found = self.opened(by, path)
        self.change(found.attrs, node.attributes, key, value, how)
        by.served[path] = dict(node.attributes), by.served[path][1]
        self.hold(by, path, found)

    @staticmethod
    def change(attrs: Any, model: dict[str, Any], key: str, value: Any, how: int) -> None:
        """Set, remove, update or replace attributes of a node and of a dict alike."""
        each: Any
        for each in (attrs, model):
            match how:
                case 0:
                    each[key] = value
                case _ if how == REMOVE:
                    if key in each:
                        del each[key]
                case _ if how == UPDATE:
                    each.update({key: value, "n": 7})
                case _:
                    new = {key: value}
                    if each is attrs:
                        attrs.put(new)
                    else:
                        model.clear()
                        model.update(new)

    @rule(which=numbers, key=keys, value=json_values, removed=st.booleans())
    def set_one_attribute(self, which: int, key: str, value: Any, removed: bool) -> None:
        path = self.one_of(list(self.model.nodes), which)
        attributes = self.model.nodes[path].attributes
        if removed:
            assert n5zarr.remove_attribute(self.root, path, key) is (key in attributes)
            attributes.pop(key, None)
        else:
            n5zarr.set_attribute(self.root, path, key, value)
            attributes[key] = value

    @precondition(lambda self: len(self.model.nodes) > 1)
    @rule(way=ways, which=numbers)
    def delete(self, way: str, which: int) -> None:
        path = self.one_of([p for p in self.model.nodes if p], which)
        by = self.ways[way]
        sync(by.store.delete_dir(path))
        self.forget(by, path)
        self.model.remove(path)
        self.forget_prefixes(path)

    def forget_prefixes(self, path: str) -> None:
        """Remove groups in memory without document and members, as no directory keeps them."""
        for above in reversed(parents(path)[1:]):
            is_bare = not self.is_local and f"{above}/attributes.json" not in self.root._store_dict
            if is_bare and not any(p.startswith(f"{above}/") for p in self.model.nodes):
                self.drop_held(above)
                self.model.remove(above)

    @rule(way=ways)
    def open_anew(self, way: str) -> None:
        self.anew(self.ways[way])

    @rule(way=ways, which=numbers)
    def open_and_hold(self, way: str, which: int) -> None:
        path = self.one_of(list(self.model.nodes), which)
        self.hold(self.ways[way], path, self.opened(self.ways[way], path))

    @rule(way=st.sampled_from(["v3", "v2", "any"]))
    def consolidate(self, way: str) -> None:
        """Consolidate the metadata, and record that the root shows those of all nodes."""
        by = self.ways[way]
        if not any(self.is_changed(by, path) for path in self.arrays()):
            zarr.consolidate_metadata(by.store, zarr_format=by.store.zarr_format or 3)
            self.serve_all(by)

    # ------------------------------------------------------------------ through what is open

    @precondition(lambda self: self.held_arrays())
    @rule(which=numbers, corners=corners, number=numbers)
    def write_held(self, which: int, corners: Any, number: int) -> None:
        """Write through an open array, which keeps its shape, where old and new shapes agree."""
        held = self.one_of(self.held_arrays(), which)
        both = tuple(map(min, zip(held.shape, held.dataset.shape, strict=True)))
        if 0 not in both:
            box = box_in(both, corners)
            self.write_box(held.way, held.node, held.dataset, box, number, held.fill)

    @precondition(lambda self: self.held_arrays())
    @rule(which=numbers, corners=corners)
    def read_held(self, which: int, corners: Any) -> None:
        held = self.one_of(self.held_arrays(), which)
        both = tuple(map(min, zip(held.shape, held.dataset.shape, strict=True)))
        box = box_in(both, corners)
        values = held.way.read(held.node, box)
        np.testing.assert_array_equal(values, held.dataset.read(box, held.fill))

    @precondition(lambda self: self.held_arrays())
    @rule(which=numbers, sizes=corners)
    def resize_held(self, which: int, sizes: Any) -> None:
        held = self.one_of(self.held_arrays(), which)
        after = tuple(size + 1 for size in sizes[: len(held.shape)])
        held.node.resize(held.way.presented(after))
        held.dataset.remove_outside(after, held.shape)
        held.shape = after
        self.write_document(held)

    @precondition(lambda self: self.held)
    @rule(which=numbers, key=keys, value=json_values, how=st.integers(0, 3))
    def change_attributes_held(self, which: int, key: str, value: Any, how: int) -> None:
        held = self.one_of(self.held, which)
        if how == REMOVE and key not in held.attributes:
            return
        if how != UPDATE:
            self.change(held.node.attrs, held.attributes, key, value, how)
            self.write_document(held)
            return
        for each in ({key: value}, {"n": 7}):  # zarr writes a document for each key
            held.node.attrs.update(each)
            held.attributes.update(each)
            self.write_document(held)

    def write_document(self, held: Held) -> None:
        """Apply the change of a document since the store object last saw it to the model."""
        node = self.model.nodes[held.path]
        before, shape = held.way.served[held.path]
        for key in before.keys() - held.attributes.keys():
            node.attributes.pop(key, None)
        for key, value in held.attributes.items():
            if key not in before or not same_attributes({key: before[key]}, {key: value}):
                node.attributes[key] = value
        known = held.shape if isinstance(held, HeldArray) else None
        if isinstance(held, HeldArray) and held.shape != shape:
            held.dataset.shape = held.shape
        held.way.served[held.path] = dict(held.attributes), known

    def held_arrays(self) -> list[HeldArray]:
        return [held for held in self.held if isinstance(held, HeldArray)]

    # ------------------------------------------------------------------ another program

    @precondition(lambda self: self.is_local and self.arrays())
    @rule(which=numbers, corners=corners, number=st.integers(1, 9), size=st.integers(0, 2))
    def write_block_outside(self, which: int, corners: Any, number: int, size: int) -> None:
        """Write a block as large as the array, in full size, or smaller."""
        path = self.one_of(self.arrays(), which)
        dataset = self.dataset(path)
        coords = tuple(c % n for c, n in zip(corners, dataset.grid, strict=False))
        shape = [dataset.extent(coords), dataset.chunks, (1,) * len(coords)][size]
        block = pattern(shape, dataset.dtype, number, 0)
        stored = block.astype("u1") if block.dtype == bool else block
        outside.write_block(self.root / path, coords, stored)
        dataset.blocks[coords] = block

    @precondition(lambda self: self.is_local and self.arrays())
    @rule(which=numbers, corners=corners)
    def remove_block_outside(self, which: int, corners: Any) -> None:
        path = self.one_of(self.arrays(), which)
        dataset = self.dataset(path)
        coords = tuple(c % n for c, n in zip(corners, dataset.grid, strict=False))
        outside.remove_block(self.root / path, coords)
        dataset.blocks.pop(coords, None)

    @precondition(lambda self: self.is_local and self.absent())
    @rule(
        where=numbers, which=shapes, dtype=st.sampled_from(NATIVE[:-1]), number=numbers,
        compression=st.sampled_from(COMPRESSIONS),
    )  # fmt: skip
    def create_outside(
        self, where: int, which: int, dtype: str, number: int, compression: Any
    ) -> None:
        path = self.one_of(self.absent(), where)
        made = Dataset(SHAPES[which], CHUNKS[which], np.dtype(dtype), compression)
        made.fill = made.dtype.type(0)
        members = outside.describe(made.shape, made.chunks, made.dtype, made.compression)
        outside.write_document(self.root / path, {"n": number, **members})
        self.model.add(path, Node({"n": number}, made))

    @precondition(lambda self: self.is_local and self.absent())
    @rule(which=numbers)
    def make_directory(self, which: int) -> None:
        path = self.one_of(self.absent(), which)
        (self.root / path).mkdir(parents=True)
        self.model.add(path, Node())

    @precondition(lambda self: self.is_local)
    @rule(which=numbers, key=keys, value=java_values)
    def merge_outside(self, which: int, key: str, value: Any) -> None:
        path = self.one_of(list(self.model.nodes), which)
        outside.merge_document(self.root / path, {key: value})
        self.model.nodes[path].attributes[key] = value

    @precondition(lambda self: self.is_local and len(self.model.nodes) > 1)
    @rule(which=numbers, number=numbers)
    def replace_outside(self, which: int, number: int) -> None:
        """Replace a node by another; a dataset keeps N5's keys."""
        path = self.one_of([p for p in self.model.nodes if p], which)
        node = self.model.nodes[path]
        if node.dataset is not None and node.dataset.dtype == bool:
            return
        document = outside.read_document(self.root / path)
        own = {k: document[k] for k in ("dataType", "compression", "blockSize", "dimensions")
               if node.dataset is not None}  # fmt: skip
        outside.write_document(self.root / path, {"n": number, **own})
        node.attributes = {"n": number}
        if node.dataset is not None and node.dataset.fill:
            self.drop_held(path)  # their next document would bring the fill value back
            for coords in node.dataset.blocks:  # a resize has filled some, which stay as they are
                size = outside.block_shape(self.root / path, coords)
                filled = node.dataset.padded(coords, size, node.dataset.fill)
                node.dataset.blocks[coords] = filled
            node.dataset.fill = node.dataset.dtype.type(0)

    @precondition(lambda self: self.is_local and len(self.model.nodes) > 1)
    @rule(which=numbers)
    def remove_outside(self, which: int) -> None:
        path = self.one_of([p for p in self.model.nodes if p], which)
        outside.remove_node(self.root / path)
        self.drop_held(path)
        self.model.remove(path)

    # ------------------------------------------------------------------ what everybody reads

    @invariant()
    def everybody_reads_the_model(self) -> None:
        """Check that one store object after the other sees the model."""
        if not hasattr(self, "root"):
            return
        self.n_checks += 1
        type(self).n_steps += 1
        self.check(list(self.ways.values())[self.n_checks % len(self.ways)])
        if self.is_local and self.n_checks % 4 == 0:
            self.check_tensorstore()

    def check(self, way: Way) -> None:
        for path, node in self.model.nodes.items():
            found = self.opened(way, path)
            assert same_attributes(dict(found.attrs), node.attributes), (way.name, path)
            assert isinstance(found, zarr.Array) is (node.dataset is not None)
            if node.dataset is not None:
                self.check_array(way, path, found, node.dataset)
        group: Any = zarr.open_group(way.store, mode="r+", zarr_format=way.store.zarr_format)
        listed = {name for name, _ in group.members(max_depth=None)}
        assert listed == self.model.nodes.keys() - {""}, way.name

    def check_array(self, way: Way, path: str, found: Any, dataset: Dataset) -> None:
        assert found.shape == way.presented(dataset.shape), (way.name, path)
        assert found.chunks == way.presented(dataset.chunks)
        assert found.dtype.newbyteorder("=") == dataset.dtype
        values = way.read(found, tuple(slice(0, n) for n in dataset.shape))
        np.testing.assert_array_equal(values, dataset.values(), err_msg=f"{way.name}: {path}")

    def check_tensorstore(self) -> None:
        for path in self.arrays():
            dataset = self.dataset(path)
            spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{self.root}/{path}"}}
            found = tensorstore.open(spec).result().read().result().T
            stored, values = dataset.is_stored(), dataset.values()
            np.testing.assert_array_equal(found[stored], values[stored], err_msg=path)
            assert set(np.unique(found[~stored]).tolist()) <= {0, dataset.fill.item()}


def same_attributes(one: Any, other: Any) -> bool:
    return repr(sorted(one.items())) == repr(sorted(other.items()))


class StatesInMemory(States):
    """The same state machine in memory, where no time shows that others have written."""

    is_local = False
    n_steps = 0


SHORT = settings(max_examples=5, stateful_step_count=20, suppress_health_check=list(HealthCheck))
LONG = settings(
    max_examples=100, stateful_step_count=50, suppress_health_check=list(HealthCheck),
    derandomize=False, phases=[Phase.generate],  # making a failure shorter takes minutes
)  # fmt: skip


@pytest.mark.parametrize(("machine", "share"), [(States, 0.8), (StatesInMemory, 0.2)])
def test_everybody_reads_the_model(
    machine: type[States], share: float, record_property: Callable[[str, object], None]
) -> None:
    run_state_machine_as_test(machine, settings=SHORT)
    while machine.n_steps < share * N_STEPS:
        run_state_machine_as_test(machine, settings=LONG)
        _log.info("%s: %d steps", machine.__name__, machine.n_steps)
    where = "" if machine.is_local else " in memory"
    record_property(f"states of containers{where}", {"steps": machine.n_steps})
