"""Say in a report what was copied, and where the elements are: axes, units, positions.

Source and copy are read from their documents as N5, in whatever convention these describe axes.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zarr.buffer import cpu
from zarr.storage import MemoryStore

from n5zarr.container.axes import read_placed
from n5zarr.conventions.axis_names import AXES_KEY
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.model import Axis, items_of, mapping
from n5zarr.conventions.units import is_count, ratio
from n5zarr.errors import N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.display import is_label
from n5zarr.images.ome_documents import ome_part
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.store.locating import Document
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.copies import ArrayCopy
from n5zarr.tools.convert.from_zarr import as_n5
from n5zarr.tools.jobs.nodes import for_reading
from n5zarr.tools.jobs.reports import RunReport
from n5zarr.tools.jobs.run import RunOptions

_NEAR = 1e-9  # the part of the distance of elements by which a conversion of units may round


def names_of(source: ArraySource) -> list[str]:
    """Return the names of an array, and of those that it is put together from."""
    names = source.name, *(name for part in source.parts if part for name in names_of(part))
    return [*dict.fromkeys(names)]


def add_copies(
    report: RunReport,
    copies: Mapping[str, ArrayCopy],
    target: object,
    options: RunOptions,
    max_memory: int,
    *,
    verified: bool,
) -> None:
    """Add what is written to the report, and hashes: of the source, and of a verified copy."""
    report.entry["result"] = {"verified": verified}
    report.entry["status"] = "part" if options.division.part else "running"
    both = {
        path: {"source": copy.source, "destination": _written(copy, join(str(target), path))}
        for path, copy in copies.items()
    }
    hashed = ("source", "destination")[: 0 if options.division.part else 1 + verified]
    report.add_arrays(both, options, hashed=hashed, max_memory=max_memory)


def _written(copy: ArrayCopy, name: str) -> ArraySource:
    values, chunks = for_reading(copy.target.encoded), copy.target.unit
    return replace(copy.source, name=name, values=values, dtype=values.dtype, chunks=chunks)


def add_places(
    entry: dict[str, Any], found: SourceTree, copied: SourceTree, copies: Mapping[str, ArrayCopy]
) -> bool:
    """Add to what a report says of a run where elements are, and the views of a project.

    Parameters
    ----------
    entry : dict
        What has the datasets; its status becomes ``"problems"`` if there are differences.
    found, copied : SourceTree
        The source and the copy.
    copies : mapping of str to ArrayCopy
        What was copied to each dataset.

    Returns
    -------
    bool
        Whether the elements of all datasets are where those of the source are.
    """
    paths = {array.name: path for path, array in found.arrays.items()}
    ours, theirs = _places_in(found), _places_in(copied)
    for dataset in entry["datasets"]:
        path = dataset["path"]
        of = [paths[name] for name in names_of(copies[path].source) if name in paths]
        pairs = [(ours[each], theirs.get(each if copied.document else path, {})) for each in of]
        wrong = [f"{path}: {text}" for pair in pairs for text in _differences(*pair)]
        both = dict(zip(("source", "destination"), pairs[0], strict=True)) if pairs else {}
        dataset["places"] = {"of": of, **both, "equal": not wrong, "differences": wrong}
    if found.document is not None:
        describe = found.document.describe_group
        views = {view_of(tuple(path.split("/"))) for path in paths.values()}
        entry["views"] = [
            {"setup": s, "timepoint": t, **mapping(describe(f"setup{s}").get("setup"))}
            for s, t in sorted(filter(None, views))
        ]
    all_wrong = [text for each in entry["datasets"] for text in each["places"]["differences"]]
    if all_wrong:
        entry["status"] = "problems"
        message = (
            f"{copied.name}: axes or positions are not those of the source: {all_wrong[0]}; the "
            f"report has all differences ({len(all_wrong)})"
        )
        warnings.warn(message, N5Warning, stacklevel=5)
    return not all_wrong


def _places_in(tree: SourceTree) -> dict[str, dict[str, Any]]:
    """Return where the elements of each array of a source are, by its path."""
    with warnings.catch_warnings(action="ignore"):  # the conversion has warned
        shown = as_n5(tree) if tree.container is None else tree
        store = tree.container or N5Store(MemoryStore(_documents(shown)), zarr_format=3)
        by_name = {
            array.name: _place(store, join(shown.path, path), array, tree.document)
            for path, array in shown.arrays.items()
        }
    return {path: by_name[array.name] for path, array in tree.arrays.items()}


def _documents(tree: SourceTree) -> dict[str, Any]:
    """Return the documents that a source has as N5, whatever the types of its elements."""
    found: dict[str, Mapping[str, JSON]] = {**tree.groups}
    for path, array in tree.arrays.items():
        names = array.dimension_names or ()
        lists = (
            (AXES_KEY, names if all(names) else None),
            ("units", array.units),
            ("resolution", array.resolution),
            ("offset", array.offset),
        )
        found[path] = {
            **{key: [*value][::-1] for key, value in lists if value},
            **array.attributes,
            "dimensions": [*array.shape[::-1]],
            "blockSize": [max(1, n) for n in array.shape[::-1]],
            "dataType": "uint8",
            "compression": {"type": "raw"},
        }
    return {
        join(path, ATTRIBUTES_JSON): cpu.Buffer.from_bytes(json.dumps({**each}).encode())
        for path, each in found.items()
    }


def _place(
    store: N5Store, path: str, array: ArraySource, document: Document | None
) -> dict[str, Any]:
    """Return what documents say of a dataset: axes in C order, registration, channels, labels."""
    view: Any = store.node(path)  # of a dataset
    project, numbers = getattr(document, "description", None), view_of(tuple(path.split("/")))
    setup = project.view(*numbers) if project and numbers else None  # as of shown OME-Zarr, too
    placed = store.run(read_placed(store.container.nodes, path, view, setup=setup))
    above = store.run(store.container.nodes.above(path))
    documents = [placed.attributes, view.attributes, *above]
    omero = [mapping(ome_part(each, "omero")).get("channels") for each in documents]
    labels = [mapping(channel).get("label") for each in omero for channel in items_of(each)]
    named = [*(axis.labels for axis in placed.axes.values()), labels if any(labels) else None]
    axes = [(dim, placed.axes.get(dim) or Axis(name=dim)) for dim in placed.dims]
    return {
        "axes": [
            {
                "name": None if dim in placed.made_up else dim,
                "size": placed.sizes[dim],
                "unit": axis.unit,
                "scale": axis.scale,
                "translation": axis.translation,
            }
            for dim, axis in axes
        ],
        "registration": next(filter(None, (d.get("registration") for d in documents)), None),
        "channels": next(([*each] for each in named if each), None),
        "labels": is_label(path, array.native_dtype, documents),
    }


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Say what a copy has differently; its axes may have another order, and more names."""
    sides = one["axes"], other.get("axes", [])
    is_named = all(axis["name"] for axes in sides for axis in axes)
    ours, theirs = ({a["name"] if is_named else i: a for i, a in enumerate(s)} for s in sides)
    others = {key: value for key, value in one.items() if value and key != "axes"}
    return [
        *(
            f"axis {k}: {_told(a, b)}"
            for k, a in ours.items()
            if not _is_same(a, b := theirs.get(k, {}))
        ),
        *(_told({k: v}, other) for k, v in others.items() if v != other.get(k)),
    ]


def _told(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    wrong = [key for key, value in one.items() if value != other.get(key)]
    return "; ".join(f"{key}: expected {one[key]}, got {other.get(key)}" for key in wrong)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether elements are at the same positions, also in reverse, as OME-Zarr has them."""
    if not other:
        return bool(one["size"] == 1)
    by = ratio(
        *(None if is_count(each["unit"] or "pixel") else each["unit"] for each in (other, one))
    )
    first_and_last = (
        (axis["translation"], axis["translation"] + axis["scale"] * (axis["size"] - 1))
        for axis in (one, other)
    )
    ends, near = zip(*map(sorted, first_and_last), strict=True), _NEAR * abs(one["scale"])
    return by is not None and all(
        math.isclose(a, b * by, rel_tol=_NEAR, abs_tol=near) for a, b in ends
    )
