"""Open containers of mutated documents in every way, and check the results."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Error, N5Store
from n5zarr.images.find import find_images
from tests.fuzz.judge import Case, judged, said
from tests.fuzz.mutate_json import mutated_document

__all__ = ["Documents"]

DATA = Path(__file__).parents[1] / "data"
OWN = {"dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs", "n5"}
TYPES = {f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)}
TYPES |= {"float32", "float64"}
_BLOCK_SIZE = re.compile(rb'"blockSize"\s*:\s*\[((?:\s*[0-9]{1,9}\s*,)*\s*[0-9]{1,9}\s*)\]')


@dataclass(frozen=True)
class Seed:
    """A document of a container."""

    root: Path  # the container
    file: Path  # the document

    @property
    def path(self) -> str:
        """Return the path of the node."""
        return "/".join(self.file.parent.relative_to(self.root).parts)

    def __str__(self) -> str:
        return f"{self.root.name}/{self.path}"


# ---------------------------------------------------------------------- ways to open


def by_zarr(seed: Seed, zarr_format: Any) -> Any:
    node = zarr.open(N5Store(seed.root, zarr_format=zarr_format), path=seed.path, mode="r")
    return node, node.attrs.asdict()


def members(seed: Seed) -> object:
    group = zarr.open_group(N5Store(seed.root), mode="r")
    return [name for name, _ in group.members(max_depth=None)]


def engine(seed: Seed) -> object:
    with xr.open_dataset(seed.root, engine="n5", group=seed.path, chunks=None) as dataset:
        return [(name, variable.shape) for name, variable in dataset.variables.items()]


def tree(seed: Seed) -> object:
    with xr.open_datatree(seed.root, engine="n5", chunks=None) as found:
        return repr(found)


def first_element(seed: Seed) -> object:
    array = n5zarr.open_array(seed.root, path=seed.path)
    return array[(0,) * array.ndim] if array.size else None


def changed_attribute(seed: Seed) -> object:
    """Set an attribute, and check that all others stay, or that wrong ones are refused."""
    before = seed.file.read_bytes()
    n5zarr.set_attribute(seed.root, seed.path, "fuzzed", 7)
    found = n5zarr.get_attribute(seed.root, seed.path, "")
    expected, written = plain(before), plain(seed.file.read_bytes())
    is_simple = isinstance(expected, dict) and "zarr" not in expected  # which says what they are
    if is_simple and not _is_same(written, expected | {"fuzzed": 7}):
        message = f"set_attribute wrote other attributes: {written!r:.300}"
        raise AssertionError(message)
    return found


WAYS: dict[str, Callable[[Seed], object]] = {
    "zarr.open, v3": lambda seed: by_zarr(seed, 3),
    "zarr.open, v2": lambda seed: by_zarr(seed, 2),
    "zarr.open, each in its format": lambda seed: by_zarr(seed, None),
    "members": members,
    "xarray's engine": engine,
    "xarray's engine, tree": tree,
    "find_images": lambda seed: find_images(seed.root),
    "geometry": lambda seed: n5zarr.geometry(seed.root, seed.path),
    "pyramid_levels": lambda seed: n5zarr.pyramid_levels(seed.root, seed.path),
    "validate": lambda seed: n5zarr.validate(seed.root),
    "get_attribute": lambda seed: n5zarr.get_attribute(seed.root, seed.path, "axes[0]"),
    "set_attribute": changed_attribute,
    "first element": first_element,
    "info": lambda seed: str(n5zarr.open(seed.root, path=seed.path).info),
}


# ---------------------------------------------------------------------- seeds


def make_seeds(directory: Path) -> list[Seed]:
    """Make containers of all conventions, of zarr-python 2 and of Zarr's own types."""
    _of_java(directory)
    _single(directory)
    _of_zarr(directory)
    found = sorted(directory.rglob("attributes.json"))
    seeds = [Seed(directory / file.relative_to(directory).parts[0], file) for file in found]
    return [seed for seed in seeds if isinstance(plain(seed.file.read_bytes()), dict)]


def _of_java(directory: Path) -> None:
    """Copy each convention into a container of its own, with few blocks."""
    for group in sorted((DATA / "java" / "metadata.n5").iterdir()):
        if group.is_dir():
            root = directory / f"{group.name}.n5"
            shutil.copytree(group, root / "g")
            (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    for name in ("zarr2", "strings", "labels", "v0"):
        shutil.copytree(DATA / "java" / f"{name}.n5", directory / f"{name}.n5")


def _single(directory: Path) -> None:
    """Write documents of public repositories, each as that of a node beside levels."""
    for k, file in enumerate(sorted((DATA / "attributes").glob("*.json"))):
        root = directory / f"public{k}.n5"
        (root / "g" / "s0").mkdir(parents=True)
        (root / "attributes.json").write_text('{"n5":"2.5.1"}')
        (root / "g" / "attributes.json").write_bytes(file.read_bytes())
        level = {
            "dimensions": [5, 7, 3], "blockSize": [2, 7, 3], "dataType": "uint8",
            "compression": {"type": "raw"}, "downsamplingFactors": [2, 2, 1],
        }  # fmt: skip
        (root / "g" / "s0" / "attributes.json").write_text(json.dumps(level))


def _of_zarr(directory: Path) -> None:
    """Write containers to start from: arrays that need a record, and one of xarray."""
    for zarr_format in (2, 3):
        root = directory / f"record{zarr_format}.n5"
        store: Any = N5Store(root, zarr_format=zarr_format)
        zarr.create_group(store, zarr_format=zarr_format, attributes={"a": [1, {"b": None}]})
        for dtype in ("bool", "complex64", "str", "datetime64[s]", "uint16"):
            name = dtype.partition("[")[0]
            with warnings.catch_warnings(action="ignore"):  # of types without a specification
                zarr.create_array(
                    store, name=f"g/{name}", shape=(5, 7), chunks=(2, 7), dtype=dtype,
                    fill_value=3 if dtype == "uint16" else None, zarr_format=zarr_format,
                    attributes={"units": "nm"},
                )  # fmt: skip
    root = directory / "xarray.n5"
    values = xr.DataArray(np.zeros((3, 5, 7), "u2"), dims=("z", "y", "x"), name="em")
    values = values.assign_coords(z=[0.0, 4.0, 8.0], x=np.arange(7) * 2.5, y=list("abcde"))
    n5zarr.to_n5(values.to_dataset(), root)


# ---------------------------------------------------------------------- judgement


class Documents:
    """The documents of all seeds, in containers of this process."""

    def __init__(self, directory: Path) -> None:
        self.seeds = make_seeds(directory)
        self.whole = {seed: seed.file.read_bytes() for seed in self.seeds}
        self.others = list(self.whole.values())
        self.times = count(10**9)

    def case(self, seed: str) -> Case:
        """Make the mutation of a seed of random numbers."""
        rng = random.Random(seed)
        document = rng.choice(self.seeds)
        # of the nodes above, whose documents others inherit, each convention has few
        data = mutated_document(rng, self.whole[document], self.others)
        return Case(str(document), data, document)

    def kept(self, name: str, data: bytes) -> Case:
        """Make the case of a kept input."""
        (document,) = (seed for seed in self.seeds if str(seed) == name)
        return Case(name, data, document)

    def run(self, case: Case, number: int) -> list[str]:
        """Open a container, and in one way all of its nodes; return the problems."""
        seed = case.target
        time = next(self.times)
        seed.file.write_bytes(case.data)
        os.utime(seed.file, (time, time))  # readers wait for files that are being written
        try:
            name = tuple(WAYS)[number % len(WAYS)]
            wrong = self._opened(seed, case.data)
            found = said(WAYS[name], seed)
            # beside the document others may be wrong, too, whose paths the message names
            return wrong + judged(name, found, (str(seed.root),), _expected(found))
        finally:
            seed.file.write_bytes(self.whole[seed])
            os.utime(seed.file, (time, time))

    def _opened(self, seed: Seed, data: bytes) -> list[str]:
        found = said(lambda: n5zarr.open(seed.root, path=seed.path))
        wrong = judged("n5zarr.open", found, (str(seed.root), seed.path), _expected(found))
        if isinstance(found, Exception) and not isinstance(found, N5Error):
            return wrong
        return wrong + _compared(found, plain(data), is_root=not seed.path)

    def allowed(self, case: Case) -> int:
        """Return the bytes of memory for opening: a list in two characters has 60 bytes.

        And four blocks, as a block that does not fit may be read by zarr's own pipeline.
        """
        stated = _BLOCK_SIZE.search(case.data)
        sizes = [int(size) for size in stated[1].split(b",")] if stated else [0]
        block = 8 * math.prod(sizes)
        return 128 * len(case.data) + 64 * 10**6 + 4 * min(block, 2**31)


def _expected(found: object) -> tuple[type[Exception], ...]:
    """Return errors that are right: a path without an array, or without a node."""
    is_right = isinstance(found, FileNotFoundError) and ".n5" in str(found)
    return (FileNotFoundError,) if is_right else ()


def plain(data: bytes) -> Any:
    """Parse standard JSON without n5zarr; return ``...`` for all else."""
    try:
        found = json.loads(data.decode("utf-8-sig"), parse_constant=int)  # refuses NaN
    except (ValueError, RecursionError):
        return ...
    return found if _depth(found) <= 255 else ...


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level := [v for v in level if isinstance(v, list | dict)]:
        depth += 1
        level = [c for v in level for c in (v.values() if isinstance(v, dict) else v)]
    return depth


def _is_same(found: object, expected: object) -> bool:
    """Return whether two JSON values are equal; NaN is NaN."""
    return json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def _compared(  # noqa: C901 - a case in each line
    found: object, document: Any, *, is_root: bool
) -> list[str]:
    """Compare a node with those members of its document that are plain."""
    if document is ... or (isinstance(document, dict) and "zarr" in document):
        return []  # only lenient readers take it, or the record says something else
    if not isinstance(document, dict):
        document = {}
    keys = document.keys()
    is_dataset = {"dimensions", "dataType"} <= keys and bool(
        keys & {"compression", "compressionType"} or isinstance(document.get("codecs"), list)
    )
    if isinstance(found, N5Error):
        is_plain = _is_plain(document) if is_dataset else not (is_root and "n5" in document)
        return [f"n5zarr.open: refused, though it is plain: {found}"] if is_plain else []
    if is_dataset and not isinstance(found, zarr.Array):
        marked = document.get("downsamplingFactors")  # as BigStitcher marks groups
        return [] if isinstance(marked, list) else ["n5zarr.open: a group, though it is a dataset"]
    if not is_dataset and not isinstance(found, zarr.Group):
        return ["n5zarr.open: an array, though it is no dataset"]
    wrong = []
    if isinstance(found, zarr.Array):
        sizes = [int(n) for n in document["dimensions"]]
        if list(found.shape) != sizes[::-1] or found.ndim != len(sizes):
            wrong.append(f"n5zarr.open: shape {found.shape}, of {sizes}")
        blocks = [int(n) for n in document.get("blockSize", [max(n, 1) for n in sizes])]
        if list(found.chunks) != blocks[::-1]:
            wrong.append(f"n5zarr.open: chunks {found.chunks}, of {blocks}")
        is_shown = document["dataType"] in TYPES and document.get("isLabelMultiset") is not True
        if is_shown and found.dtype.name != document["dataType"]:
            wrong.append(f"n5zarr.open: {found.dtype}, of {document['dataType']}")
    return wrong + list(_attributes(found, document))


def _attributes(found: Any, document: dict[str, Any]) -> Iterator[str]:
    """Compare users' attributes: none is lost, and none is changed."""
    attributes = found.attrs.asdict()
    names = [name or "" for name in getattr(found.metadata, "dimension_names", None) or []]
    if names:  # of one of two attributes
        attributes = {"axes": names[::-1], "_ARRAY_DIMENSIONS": names} | attributes
    for name, value in document.items():
        if name not in OWN and not (name in attributes and _is_same(attributes[name], value)):
            yield f"n5zarr.open: attribute {name!r:.80} is {attributes.get(name)!r:.80}"


def _is_plain(document: dict[str, Any]) -> bool:
    """Return whether a dataset is one that every reader has to open."""
    sizes, blocks = document["dimensions"], document.get("blockSize")
    kinds = {"raw": 1, "gzip": 1, "bzip2": 1, "xz": 1, "lz4": 1}
    compression = document.get("compression")
    return (
        "codecs" not in document
        and isinstance(sizes, list)
        and isinstance(blocks, list)
        and 0 < len(sizes) == len(blocks) < 20
        and all(type(n) is int and 0 < n < 2**31 for n in [*sizes, *blocks])
        and bool(np.prod([float(n) for n in blocks]) < 2**27)
        and isinstance(document["dataType"], str)
        and document["dataType"] in TYPES
        and isinstance(compression, dict)
        and len(compression) == 1
        and isinstance(compression.get("type"), str)
        and compression["type"] in kinds
    )
