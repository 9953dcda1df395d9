"""Check OME-Zarr: the metadata of each group, and with ``deep`` every stored chunk."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import batched, chain, product
from typing import Literal, NamedTuple

import numpy as np
from zarr.types import AnyArray

from n5zarr.arrays.boxes import StoredChunks, box_at
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_in, listed_levels
from n5zarr.conventions.model import MisfitError, mapping
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import is_name, join
from n5zarr.format.raw_json import nonfinite_note
from n5zarr.images.ome_06 import is_06
from n5zarr.images.ome_documents import (
    arrays_of_images,
    as_05,
    image_in,
    named_nodes,
    ome_part,
    paths_in,
)
from n5zarr.images.ome_rules import (
    check_image,
    check_lists,
    check_version,
    paths_out,
)
from n5zarr.ome_zarr.location import OmeLocation, find_ome
from n5zarr.ome_zarr.scene import read_scene
from n5zarr.storage.place import Place
from n5zarr.storage.requests import list_each, read_each
from n5zarr.tools.jobs.nodes import for_reading
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.validate.findings import Finding, Severity, finding
from n5zarr.tools.validate.gaps import Gaps, StoredGrid

_CHUNKS = 64  # in a task


def find_check(place: Place, path: str, *, deep: bool, expect_complete: bool) -> OmeCheck | None:
    """Return a check of the OME-Zarr at a location; None of anything else."""
    found = find_ome(place, path)
    return None if found is None else OmeCheck(found, deep, expect_complete)


@dataclass
class OmeCheck:
    """A check of OME-Zarr, while it runs.

    Parameters
    ----------
    location : OmeLocation
        Where it begins.
    deep : bool
        Whether to decode every chunk.
    expect_complete : bool
        Whether a missing chunk is an error.
    """

    location: OmeLocation
    deep: bool
    expect_complete: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    gaps: Gaps = field(default_factory=Gaps)
    _nodes: dict[str, _Node] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the hierarchy."""
        return str(self.location.storage)

    @property
    def path(self) -> str:
        """The node at which the check begins."""
        return self.location.path

    def run(self, run: RunOptions, state: object = None) -> Iterator[Finding]:
        """Check the groups, then the chunks; yield each finding as soon as possible."""
        require(
            state is None and run.division.is_whole,
            "state, part, finish: expected none with OME-Zarr, whose check is not continued",
        )
        arrays: dict[str, AnyArray] = {}
        pending, seen = [self.location.path], set[str]()
        while pending:
            path = pending.pop()
            if path not in seen:
                seen.add(path)
                yield from self._check_node(path, arrays)
                pending += reversed(self._below(path))
        for path, array in arrays.items() if self.deep or self.expect_complete else ():
            yield from self._check_chunks(path, array, run)
        yield from self.gaps.errors() if self.expect_complete else self.gaps.notes()

    # ------------------------------------------------------------------ groups

    def _check_node(self, path: str, arrays: dict[str, AnyArray]) -> Iterator[Finding]:
        """Check a node; collect it if it is an array."""
        node = self._read(path)
        note = nonfinite_note({"attributes": node.attributes})
        if note:
            yield finding("json", path, f"expected JSON, which other programs need, got {note}")
        if node.problem:
            yield finding("json", path, node.problem)
        elif node.kind == "array":
            found = self._array(path)
            if isinstance(found, Exception):
                yield finding("ome-zarr", path, f"expected an array of Zarr, got {found}")
                return
            arrays[path] = found
            self.counts["datasets"] += 1
        elif node.kind == "group":
            self.counts["groups"] += 1
            if listed_levels(node.attributes):
                self.gaps.groups[path] = node.attributes
            yield from self._check_group(path, node.attributes)
            yield from self._check_labels(path, node.attributes)

    def _read(self, path: str) -> _Node:
        """Read the documents of a node, once."""
        if path not in self._nodes:
            is_v3 = self.location.zarr_format == 3
            names = ["zarr.json"] if is_v3 else [".zarray", ".zgroup", ".zattrs"]
            data = self.location.storage.run(read_each([join(path, name) for name in names]))
            self._nodes[path] = _parse(data, is_v3=is_v3)
        return self._nodes[path]

    def _array(self, path: str) -> AnyArray | Exception:
        try:
            return self.location.array(path)
        except (ValueError, TypeError, KeyError, FileNotFoundError) as err:
            return err

    def _below(self, path: str) -> list[str]:
        """Return the paths of the nodes below a group: those that are listed or named."""
        node = self._read(path)
        if node.kind == "array":
            return []
        try:
            (entries,) = self.location.storage.run(list_each([path]))
        except N5UnsupportedError as err:
            if err.kind != "listing":
                raise
            entries = []
        listed = [e.name for e in entries if e.is_dir is not False and is_name(e.name)]
        below = {*listed, *arrays_of_images(node.attributes), *self._named(path)}
        return [each for each in (join(path, name) for name in sorted(below)) if self._read(each)]

    def _named(self, path: str) -> list[str]:
        """Return the paths of the nodes that the metadata of a group name, other than levels."""
        attributes, series = self._read(path).attributes, []
        if ome_part(attributes, "bioformats2raw.layout") is not None:
            series = paths_in(ome_part(self._read(join(path, "OME")).attributes, "series"))
        return [*named_nodes(attributes), *series]

    def _check_group(self, path: str, attributes: Mapping[str, JSON]) -> Iterator[Finding]:
        """Check the metadata of a group of Zarr."""
        images, problems = ome_part(attributes, "multiscales"), []
        if "ome" in attributes or images is not None:
            # ome-zarr-py states none in lists of labels
            severity: Severity | None = "warning" if images is None else None
            for problem in check_version(attributes, self.location.zarr_format):
                yield finding("ome-zarr", path, problem, severity=severity)
        if images is not None and not (isinstance(images, list) and images):
            problems.append(f"multiscales: expected a list of images, got {images!r:.40}")
        for image in images if isinstance(images, list) else ():
            problems += self._check_image(path, image)
        problems += [*check_lists(attributes), *paths_out(attributes)]
        problems += self._check_scene(path, attributes)
        for problem in dict.fromkeys(problems):
            yield finding("ome-zarr", path, problem)
        for name in self._named(path):
            if name not in ("labels", "OME") and not self._read(join(path, name)):
                yield finding(
                    "ome-zarr", path, f"expected a node at {name!r}, which is listed, got none"
                )

    def _check_scene(self, path: str, attributes: Mapping[str, JSON]) -> list[str]:
        named = [join(path, name) for name in named_nodes(attributes)]
        scene = read_scene(path, attributes, {each: self._read(each).attributes for each in named})
        unknown = sorted(scene.joined.keys() - scene.systems.keys()) if scene else []
        return [
            f"scene: expected a coordinate system of {inner or 'the scene'}, got {name!r}"
            for inner, name in unknown
        ]

    def _check_image(self, path: str, image: JSON) -> list[str]:
        members = mapping(image)
        try:
            members = as_05(members, 0) if is_06(members) else members
        except MisfitError as err:
            return [str(err)]
        return [*check_image(members, self._levels(path, members))]

    def _levels(self, path: str, image: Mapping[str, JSON]) -> dict[str, AnyArray | None]:
        """Open the arrays of an image; None in the place of one that is missing or broken."""
        inner = paths_in(entries_in(image))
        opened = {each: self._array(join(path, each)) for each in inner}
        return {p: None if isinstance(array, Exception) else array for p, array in opened.items()}

    def _check_labels(self, path: str, attributes: Mapping[str, JSON]) -> Iterator[Finding]:
        """Check that label images have integers, and as many levels as their image."""
        image = image_in(attributes)
        if image is None:
            return
        if ome_part(attributes, "image-label") is not None:
            for inner, array in self._levels(path, image).items():
                if array is not None and array.dtype.kind not in "iub":
                    yield finding(
                        "ome-zarr",
                        path,
                        f"{inner}: expected integers, as these are labels, got {array.dtype}",
                    )
        group = self._read(join(path, "labels")).attributes
        for label in paths_in(ome_part(group, "labels")):
            at = join(path, "labels", label)
            below = image_in(self._read(at).attributes)
            wanted, got = len(entries_in(image)), len(entries_in(below or {}))
            if below is not None and wanted != got:
                yield finding(
                    "levels",
                    at,
                    f"multiscales: expected the {wanted} levels of their image, got {got}; "
                    "n5zarr pyramid writes them",
                )

    # ------------------------------------------------------------------ chunks

    def _check_chunks(self, path: str, array: AnyArray, run: RunOptions) -> Iterator[Finding]:
        """Count the stored chunks, or shards, of an array; with ``deep``, decode them."""
        listed = stored_chunks(array)
        if listed is not None:
            stored = self.gaps.grids[path] = StoredGrid(array.shape, listed.unit)
            listed = listed._replace(rows=_added(listed.rows, stored))
        elif self.expect_complete:
            raise N5UnsupportedError(
                f"{self.name}: /{path}: expect_complete (--expect-complete): expected storage that "
                "lists chunks, got one that does not; download the image first",
                kind="listing",
            )
        if not self.deep:
            for _ in () if listed is None else listed.rows:
                pass
            return
        work = partial(_decode, for_reading(array))
        for task, found in run.each(work, _tasks(array, listed), "validate", array.nbytes):
            self.counts["blocks"] += len(task.positions)
            self.counts["bytes"] += task.n_bytes
            for position, message in found:
                chunk = f"chunk {', '.join(map(str, position))}"
                yield finding("payload", path, f"{chunk}: {message}")


def _added(rows: Iterable[np.ndarray], stored: StoredGrid) -> Iterator[np.ndarray]:
    """Yield positions of chunks while they are counted."""
    for some in rows:
        stored.add(some)
        yield some


class _Node(NamedTuple):
    """A node of Zarr; true if there is one.

    Parameters
    ----------
    kind : {"array", "group"} or None
        What it is; None if it has no valid document.
    attributes : mapping
        Its attributes.
    problem : str, optional
        Why its document cannot be read.
    """

    kind: Literal["array", "group"] | None
    attributes: Mapping[str, JSON]
    problem: str = ""

    def __bool__(self) -> bool:
        return self.kind is not None or bool(self.problem)


def _parse(data: Sequence[bytes | None], *, is_v3: bool) -> _Node:
    """Parse the documents of a node: ``zarr.json``; or those of v2, the attributes last."""
    if all(each is None for each in data):
        return _Node(None, {})
    try:
        document = json.loads(data[-1] or b"{}")
    except ValueError as err:
        return _Node(None, {}, f"expected the document of a node of Zarr, got {err}")
    if not isinstance(document, dict):
        return _Node(None, {}, f"expected an object as document, got {document!r:.40}")
    attributes = mapping(document.get("attributes")) if is_v3 else document
    is_array = document.get("node_type") == "array" if is_v3 else data[0] is not None
    return _Node("array" if is_array else "group", attributes)


class _Chunks(NamedTuple):
    """Some chunks, or shards, of an array: positions in C order, and bytes of their elements."""

    positions: Sequence[tuple[int, ...]]
    n_bytes: int


def _tasks(array: AnyArray, listed: StoredChunks | None) -> Iterator[_Chunks]:
    """Yield all stored chunks, or all chunks if storage does not list."""
    sizes = zip(array.shape, array.shards or array.chunks, strict=True)
    rows = (
        product(*(range(-(-n // size)) for n, size in sizes))
        if listed is None
        else chain.from_iterable(each.tolist() for each in listed.rows)
    )
    n_bytes = math.prod(array.shards or array.chunks) * array.dtype.itemsize
    for some in batched(map(tuple, rows), _CHUNKS):
        yield _Chunks(some, len(some) * n_bytes)


def _decode(array: AnyArray, task: _Chunks) -> list[tuple[tuple[int, ...], str]]:
    """Decode chunks, and return those that are damaged, with the reason."""
    damaged = []
    unit = array.shards or array.chunks
    for position in task.positions:
        try:
            array[box_at(position, unit, array.shape)]
        except Exception as err:
            damaged.append((position, f"{type(err).__name__}: {err}"))
    return damaged
