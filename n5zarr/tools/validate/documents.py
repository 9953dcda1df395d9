"""Check the documents of groups and datasets for errors and contradictions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from n5zarr.container.axes import Placed, read_placed, read_placed_by_each
from n5zarr.container.block_listing import Ask
from n5zarr.container.node_names import Broken
from n5zarr.container.nodes import Nodes
from n5zarr.container.walk import Unreadable
from n5zarr.conventions.find import BY_NAME, problems_of_level
from n5zarr.conventions.levels import entries_in, images_in, path_of
from n5zarr.conventions.model import MisfitError, level_of, resolution_in
from n5zarr.conventions.ngff import misread_images
from n5zarr.conventions.units import ratio
from n5zarr.errors import N5AttributesError, N5Error, N5UnsupportedError
from n5zarr.format.attributes import GroupAttributes, dataset_keys, missing_dataset_keys
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.version import VERSION_KEY
from n5zarr.images.ome_documents import level_paths
from n5zarr.storage.requests import each_once
from n5zarr.tools.validate.findings import KINDS, Finding, KindOfFinding, Severity, finding
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.record import Record

_FULL_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)
_RELATIVE = ("factors", "shapes")  # conventions of levels that follow those of the finest one
_SAME = 0.01  # largest relative difference of voxel sizes due to rounding
_SPELLINGS = {"blocksize": "blockSize", "datatype": "dataType", "compressiontype": "compression"}
_SPELLINGS |= {"dimensions": "dimensions", "compression": "compression"}


def _of_document(
    kind: KindOfFinding, path: str, message: str, severity: Severity | None = None
) -> Finding:
    return finding(kind, path, f"attributes.json: {message}", severity=severity)


def check_broken(path: str, node: Broken | Unreadable) -> Iterator[Finding]:
    """Describe the defect of a node that cannot be read."""
    error = node.error
    if isinstance(node, Unreadable) or not isinstance(error, N5Error):
        yield finding("unreadable", path, f"{type(error).__name__}: {error}")
    elif isinstance(error, N5AttributesError):
        for problem in error.problems:
            kind = problem.kind if problem.kind in KINDS else "member"
            yield _of_document(kind, path, str(problem))  # type: ignore[arg-type]
    elif error.kind in ("foreign", "path"):  # not of the document
        yield finding("foreign" if error.kind == "foreign" else "name", path, error.message)
    elif error.kind == "version":
        yield _of_document("version", path, error.message)
    else:
        is_unsupported = isinstance(error, N5UnsupportedError)
        yield _of_document("unsupported" if is_unsupported else "member", path, error.message)


def check_version_form(document: JSON) -> Iterator[Finding]:
    """Check that Java can parse the version of a container; the document is the root's.

    N5 spec, "File-system specification", item 3. Java: ``N5Reader.Version``.
    """
    if not isinstance(document, Mapping) or VERSION_KEY not in document:
        return
    version = document[VERSION_KEY]
    text = version if isinstance(version, str) else None
    # Java ignores a version without digits
    if text is None or (re.search("[0-9]", text) and not _FULL_VERSION.search(text)):
        yield finding(
            "version",
            "",
            f'n5: expected three numbers in quotes, such as "4.0.0", got {version!r:.40}: '
            "Java fails to open it",
            severity="warning",
        )


# ---------------------------------------------------------------------- datasets


def check_dataset(ask: Ask, nodes: Nodes, path: str, view: DatasetView) -> Iterator[Finding]:
    """Check the document of a readable dataset, and its description of the axes.

    Parameters
    ----------
    ask : callable
        Runs a flow.
    nodes : Nodes
        The container.
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset.
    """
    dataset = view.dataset
    misses = [*_near_misses(path, dataset.attributes)]
    yield from misses
    if not (dataset.has_block_size or misses):
        yield _of_document(
            "no-block-size",
            path,
            f"expected blockSize, got none: read as {dataset.block_size}; Java N5 4 takes it for a "
            "group: add it",
        )
    try:
        placed = ask(each_once(read_placed(nodes, path, view)))
    except N5Error as err:
        yield _of_document("axes", path, err.message)
        return
    for problem in (*placed.problems, *problems_of_level(placed.geometry)):
        is_unusual = problem.startswith("the registration") or problem.endswith("is known")
        yield _of_document("axes", path, problem, "note" if is_unusual else None)
    geometry = placed.geometry
    if geometry is not None and geometry.convention != "bdv":  # where registrations mirror
        text = "a scale below 0, which Neuroglancer refuses; OME-Zarr gets the image in reverse"
        mirrored = [repr(axis.name) for axis in geometry.axes if axis.scale < 0]
        yield from (_of_document("axes", path, f"axis {x}: {text}", "note") for x in mirrored)
    if not placed.problems:
        yield from _contradictions(ask, nodes, placed)


def _near_misses(path: str, attributes: Mapping[str, JSON]) -> Iterator[Finding]:
    """Find attributes that are spelled like keys of datasets."""
    for key, value in attributes.items():
        meant = _meant(key, value)
        if meant is not None:
            yield _of_document(
                "near-miss", path, f"expected the key {meant!r}, got {key!r}: correct it"
            )


def _meant(key: str, value: JSON) -> str | None:
    """Return the key of a dataset that an attribute looks like; None for other attributes.

    Examples
    --------
    >>> _meant("blocksize", [64, 64]), _meant("data_type", "uint8"), _meant("data_type", "Image")
    ('blockSize', 'dataType', None)
    """
    meant = _SPELLINGS.get(key.casefold().replace("_", ""))
    if meant in (None, key) or key == "compressionType":
        return None
    fits = {
        "dimensions": isinstance(value, list),
        "blockSize": isinstance(value, list),
        "dataType": isinstance(value, str) and value.lower() in DataType,
        "compression": isinstance(value, str | Mapping),
    }
    return meant if fits[meant or ""] else None


def _contradictions(ask: Ask, nodes: Nodes, placed: Placed) -> Iterator[Finding]:
    """Compare the voxel size of the chosen convention with those of all others."""
    chosen = placed.geometry
    if chosen is None or not chosen.is_stated or chosen.convention == "bdv":
        return  # a registration may stretch and mirror what others know as the voxel size
    mine = _sizes(placed)
    names = BY_NAME.keys() - {chosen.convention, *_RELATIVE, "bdv", "names"}
    found = ask(each_once(read_placed_by_each(nodes, placed.path, placed.view, sorted(names))))
    for name, other in found.items():
        if other.geometry is None or other.problems or len(other.geometry.axes) != len(mine):
            continue
        theirs = _sizes(other)
        # n5-viewer multiplies by the factors a resolution that COSEM and others give per level
        stated = resolution_in(placed.view.dataset.attributes) if name == "n5viewer" else None
        if _agree(mine, theirs) or (stated and _agree(mine, [(s, mine[0][1]) for s in stated])):
            continue
        yield _of_document(
            "contradiction",
            placed.path,
            f"{chosen.convention} states voxels of {_text(mine)}, {name} of "
            f"{_text(theirs)}, x first; n5zarr.set_geometry writes one of them",
        )


type _Size = tuple[float, str | None]


def _sizes(placed: Placed) -> list[_Size]:
    axes = () if placed.geometry is None else placed.geometry.axes
    return [(abs(axis.scale), axis.unit) for axis in axes]


def _agree(mine: Sequence[_Size], theirs: Sequence[_Size]) -> bool:
    """Whether sizes are equal if units are comparable, and otherwise have the same proportions."""
    ratios = []
    for (one, unit), (two, other) in zip(mine, theirs, strict=True):
        factor = ratio(unit, other)
        if factor is None or None in (unit, other):
            ratios.append(one / two)
        elif not math.isclose(one * factor, two, rel_tol=_SAME):
            return False
    return all(math.isclose(each, ratios[0], rel_tol=_SAME) for each in ratios)


def _text(sizes: Sequence[_Size]) -> str:
    return " x ".join(f"{size:g}{f' {unit}' if unit else ''}" for size, unit in sizes)


# ---------------------------------------------------------------------- groups


def check_is_object(path: str, document: JSON) -> Iterator[Finding]:
    """Check that the document of a group is an object, if there is one."""
    if document is not None and not isinstance(document, dict):
        yield _of_document(
            "not-an-object",
            path,
            f"expected an object, got {document!r:.40}: a group without attributes",
        )


def check_group(
    path: str, group: GroupAttributes, children: Sequence[str] | None
) -> Iterator[Finding]:
    """Check the attributes of a group.

    Parameters
    ----------
    path : str
        Path of the group.
    group : GroupAttributes
        The group.
    children : sequence of str or None
        Names in it; None if it was not listed.
    """
    attributes = group.attributes
    present = [key for key in dataset_keys(attributes) if key != "codecs"]
    missing = missing_dataset_keys(attributes)
    recorded = Record.from_json(group.record).attributes.keys()
    if len(present) >= 2:
        misses = [*_near_misses(path, attributes)]
        yield from misses
        if not misses and len(present) >= 3 and missing and not set(missing) & recorded:
            yield _of_document(
                "near-miss",
                path,
                f"expected a dataset, got a group: it has {', '.join(present)}, but no "
                f"{', '.join(missing)}",
            )
    yield from _images(path, attributes)
    if children is not None:
        yield from _levels(path, attributes, children)


def _images(path: str, attributes: Mapping[str, JSON]) -> Iterator[Finding]:
    """Find images whose levels overlap, or that n5-universe cannot read together."""
    for image in images_in(attributes):
        try:
            level_paths(image)
        except MisfitError as err:
            yield _of_document("levels", path, str(err))
    misread = misread_images(attributes)
    if misread is not None:
        yield _of_document(
            "levels",
            path,
            f"multiscales: {misread}: n5-universe (Fiji) reads none: put each image into a group "
            "of its own",
        )


def _levels(
    path: str, attributes: Mapping[str, JSON], children: Sequence[str]
) -> Iterator[Finding]:
    """Find levels that a group lists and that do not exist."""
    there = f"there are {', '.join(sorted(children)[:8]) or 'none'}"
    # also of OME-NGFF 0.5's ``ome``
    listed = [path_of(entry) for image in images_in(attributes) for entry in entries_in(image)]
    for name in dict.fromkeys(filter(None, listed)):
        if name.partition("/")[0] not in children:
            yield _of_document(
                "levels", path, f"multiscales lists {name!r}, which does not exist: {there}"
            )
    numbers = [int(name[1:]) for name in children if level_of(name) is not None]
    if not numbers:
        return  # of BigDataViewer's setups: the levels are below the time points
    for key in ("downsamplingFactors", "scales"):
        value = attributes.get(key)
        if not isinstance(value, list) or not all(isinstance(v, list) for v in value):
            continue
        lacking = [f"s{k}" for k in range(len(value)) if k not in numbers]
        if lacking:
            yield _of_document(
                "levels",
                path,
                f"{key} has {len(value)} levels, but no {', '.join(lacking)}: {there}",
            )
