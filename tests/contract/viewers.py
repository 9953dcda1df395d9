"""Interpret attributes by the rules of viewers, as their sources state them.

Each reader sees files only. ``tests/contract/test_viewers.py`` holds n5-universe's against what the
real parsers said of a container.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaozarrs
from yaozarrs._zarr import open_group
from yaozarrs.v04._storage import StorageValidatorV04

type Attributes = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """The place where a viewer sees a level: x, y, z; index 0 is the first element's centre."""

    scale: tuple[float, ...]
    translation: tuple[float, ...]
    unit: str


def attributes_of(path: Path) -> Attributes | None:
    document = path / "attributes.json"
    found: Attributes | None = json.loads(document.read_text()) if document.exists() else None
    return found


def is_dataset(attributes: Attributes | None) -> bool:
    return attributes is not None and {"dimensions", "dataType"} <= attributes.keys()


# --------------------------------------------------- n5-universe a4e759a4, n5-viewer a396fd0


def _doubles(attributes: Attributes, key: str, length: int | None = None) -> list[float] | None:
    """Convert as ``getAttribute(..., double[].class)`` does: None for what Gson cannot convert."""
    value = attributes.get(key)
    if not isinstance(value, list) or not all(isinstance(v, int | float) for v in value):
        return None
    return value if length in (None, len(value)) else None


def _mipmap(by: list[float], resolution: list[float]) -> tuple[list[float], list[float]]:
    """Compute scale and translation of a level as ``buildTransform`` of n5-universe does."""
    by, resolution = [*by, 1.0, 1.0][:3], [*resolution, 1.0, 1.0][:3]
    scale = [r * f for r, f in zip(resolution, by, strict=True)]
    return scale, [r * 0.5 * (f - 1) for r, f in zip(resolution, by, strict=True)]


def _cosem(name: str, attributes: Attributes) -> Seen | None:
    """Parse as ``N5CosemMetadata``: lists in C order unless ``ordering`` is F."""
    transform = attributes.get("transform")
    if not isinstance(transform, dict):
        return None
    step = 1 if transform.get("ordering") == "F" else -1
    of_space = (u for a, u in zip(transform["axes"], transform["units"], strict=True) if a in "xyz")
    return Seen(
        tuple(transform["scale"][::step]), tuple(transform["translate"][::step]), next(of_space)
    )


def _single_scale(name: str, attributes: Attributes) -> Seen | None:
    """Parse as ``N5SingleScaleMetadataParser``: resolution, factors, ``affineTransform``."""
    given = attributes.get("pixelResolution")
    if isinstance(given, dict):
        resolution, unit = given["dimensions"], given["unit"]
    else:
        resolution, unit = _doubles(attributes, "pixelResolution"), "pixel"
    if resolution is None:
        return None  # buildTransform throws, and the next parser is tried
    level = re.fullmatch(r"s?([0-9]+)", name)
    by = [float(2 ** int(level[1]))] * 3 if level else [1.0] * 3
    scale, translation = _mipmap(_doubles(attributes, "downsamplingFactors") or by, resolution)
    rows = attributes.get("affineTransform")
    if rows is not None:
        if not all(isinstance(row, list) for row in rows):
            return None  # AffineTransform3DJsonAdapter reads rows, and throws
        # preConcatenate of rows that do not mix axes
        scale = [rows[i][i] * scale[i] for i in range(3)]
        translation = [rows[i][i] * translation[i] + rows[i][3] for i in range(3)]
    return Seen(tuple(scale), tuple(translation), unit)


def _generic(name: str, attributes: Attributes) -> Seen | None:
    """Parse as ``N5GenericSingleScaleMetadataParser``: ``offset`` replaces the shift."""
    n = len(attributes["dimensions"])
    resolution = _doubles(attributes, "resolution", n) or [1.0] * n
    by = _doubles(attributes, "downsamplingFactors", n) or [1.0] * n
    scale, translation = _mipmap(by, resolution)
    offset = _doubles(attributes, "offset", n)
    unit = attributes.get("unit")
    return Seen(
        tuple(scale),
        tuple(translation if offset is None else offset),
        unit if isinstance(unit, str) else "pixel",
    )


# N5DatasetDiscoverer.DEFAULT_PARSERS; canonical metadata are not written
_PARSERS: tuple[Callable[[str, Attributes], Seen | None], ...] = (_cosem, _single_scale, _generic)


def n5_universe_dataset(path: Path) -> Seen | None:
    """Return the result of the first parser of ``DEFAULT_PARSERS`` that succeeds for a dataset."""
    attributes = attributes_of(path)
    if attributes is None or not is_dataset(attributes):
        return None
    seen = (parse(path.name, attributes) for parse in _PARSERS)
    return next((found for found in seen if found is not None), None)


def _ngff(group: Path, *, is_reversed: bool) -> dict[str, Seen]:
    """Parse as ``OmeNgffMetadataParser``; n5-viewer's default constructor reverses all lists."""
    attributes = attributes_of(group) or {}
    step = -1 if is_reversed else 1
    levels: dict[str, Seen] = {}
    images = attributes.get("ome", attributes).get("multiscales")
    for image in images if isinstance(images, list) else []:
        if "axes" not in image:
            return {}  # deserializeAxes throws: COSEM's
        axes = image["axes"][::step]
        unit = next(axis["unit"] for axis in axes if axis["type"] == "space")
        for dataset in image["datasets"]:
            scale, translation = [1.0] * len(axes), [0.0] * len(axes)
            for step_ in dataset["coordinateTransformations"]:
                if step_["type"] == "scale":
                    scale = step_["scale"][::step]
                else:
                    translation = step_["translation"][::step]
            levels[dataset["path"]] = Seen(tuple(scale), tuple(translation), unit)
    return levels


def n5_universe(group: Path, *, is_viewer: bool = False) -> dict[str, Seen]:
    """Return the levels of the image in a group: NGFF, else COSEM's or n5-viewer's.

    Parameters
    ----------
    group : Path
        Of the image.
    is_viewer : bool, optional
        Whether n5-viewer reads, with its own list of parsers (``N5ViewerCreator``).
    """
    levels = _ngff(group, is_reversed=is_viewer)
    if levels:
        return levels
    names = [path.name for path in group.iterdir() if re.fullmatch(r"s\d+", path.name)]
    seen = {name: n5_universe_dataset(group / name) for name in names}
    documents = {name: attributes_of(group / name) or {} for name in names}
    # CosemMultiScaleParser takes N5CosemMetadata only
    with_transform = {n: s for n, s in seen.items() if s and "transform" in documents[n]}
    return with_transform or {name: level for name, level in seen.items() if level is not None}


# -------------------------------------- Neuroglancer c0f79b10, datasource/n5/frontend.ts

# si_units.ts: the units that unitFromJson accepts
_EXPONENTS = {
    "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1, "": 0,
    "d": -1, "c": -2, "m": -3, "µ": -6, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21,
    "y": -24,
}  # fmt: skip
_UNITS = {
    f"{prefix}{unit}": (unit, exponent)
    for prefix, exponent in _EXPONENTS.items()
    for unit in ("m", "s", "Hz", "rad/s")
} | {"": ("", 0)}


class NeuroglancerError(Exception):
    """An error that Neuroglancer shows in place of the image."""


@dataclass(frozen=True)
class Space:
    """Neuroglancer's coordinate space, and each level's factors in it; N5 order."""

    names: list[str]
    units: list[str]
    scales: list[float]  # in metres, seconds
    factors: list[list[float]]

    def level(self, number: int, unit: str, size: float) -> Seen:
        """Convert a level to centres of elements; ``size`` is how many metres ``unit`` is."""
        pairs = [*zip(self.scales, self.factors[number], strict=True)]
        scale = tuple(s * f / size for s, f in pairs)
        # coordinates are those of corners: the centre of the first element is half of it further
        return Seen(scale, tuple(s * (f - 1) / 2 / size for s, f in pairs), unit)


def _merged(root: Path, path: Path) -> Attributes:
    """Merge as ``getAttributes``: of the node and all groups above, the nearest wins."""
    merged: Attributes = {}
    found = False
    for depth in range(len(path.relative_to(root).parts) + 1):
        at = root.joinpath(*path.relative_to(root).parts[:depth])
        attributes = attributes_of(at)
        found = found or attributes is not None
        merged |= attributes or {}
    if not found:
        message = f"N5 metadata not found at {path}"
        raise NeuroglancerError(message)
    return merged


def _positive(value: Any) -> list[float]:
    if not isinstance(value, list) or not all(
        isinstance(v, int | float) and v > 0 and v < float("inf") for v in value
    ):
        message = f"Expected positive numbers, got {value!r}"
        raise NeuroglancerError(message)
    return value


def _unit(value: Any) -> tuple[str, int]:
    if value not in _UNITS:
        message = f"Unsupported unit {value!r}"
        raise NeuroglancerError(message)
    return _UNITS[value]


def neuroglancer(root: Path, path: Path) -> Space:
    """Read a group or dataset as ``getMultiscaleMetadata`` and ``getAllScales`` do."""
    attributes = _merged(root, path)
    scales = _positive(attributes["resolution"]) if "resolution" in attributes else None
    names = attributes.get("axes")
    units = [_unit(u) for u in attributes["units"]] if "units" in attributes else None
    single, every = _factors(attributes)
    default = ("m", -9)
    if "pixelResolution" in attributes:
        default = _unit(attributes["pixelResolution"]["unit"])
        scales = _positive(attributes["pixelResolution"].get("dimensions", scales))
    given = (scales, names, units, single, *(every or ()), attributes.get("dimensions"))
    ranks = {len(values) for values in given if values is not None}
    if len(ranks) != 1:
        message = f"Rank mismatch: {ranks}"
        raise NeuroglancerError(message)
    (rank,) = ranks
    units, scales = units or [default] * rank, scales or [1.0] * rank
    levels = _levels(root, path, single or [1.0] * rank, every)
    for level, _ in levels:
        if not {"dataType", "dimensions", "blockSize"} <= _merged(root, level).keys():
            message = f"Error parsing array metadata at {level}"
            raise NeuroglancerError(message)
    return Space(
        names=names or ["x", "y", "z", "t", "c"][:rank],
        units=[unit for unit, _ in units],
        scales=[s * 10.0**exponent for s, (_, exponent) in zip(scales, units, strict=True)],
        factors=[list(map(float, by)) for _, by in levels],
    )


def _factors(attributes: Attributes) -> tuple[list[float] | None, list[list[float]] | None]:
    """Return ``downsamplingFactors`` of one level or of all; ``scales`` replaces them."""
    single, every = None, None
    factors = attributes.get("downsamplingFactors")
    if factors is not None and isinstance(factors[0], list):
        every = [_positive(by) for by in factors]
    elif factors is not None:
        single = _positive(factors)
    if "scales" in attributes:
        every = [_positive(by) for by in attributes["scales"]]
    return single, every


def _levels(
    root: Path, path: Path, single: list[float], every: list[list[float]] | None
) -> list[tuple[Path, list[float]]]:
    if "dimensions" in _merged(root, path):
        return [(path, single)]
    if every is not None:
        return [(path / f"s{k}", by) for k, by in enumerate(every)]
    listed = sorted(p for p in path.iterdir() if re.fullmatch(r"s(0|[1-9][0-9]*)", p.name))
    if not listed:
        message = "Not valid single-resolution or multi-resolution dataset"
        raise NeuroglancerError(message)
    return [(level, _own_factors(_merged(root, level), level)) for level in listed]


def _own_factors(attributes: Attributes, level: Path) -> list[float]:
    by = attributes.get("downsamplingFactors")
    if by is None and level.name != "s0":
        message = "Expected downsamplingFactors attribute"
        raise NeuroglancerError(message)
    return [1.0] * len(attributes["dimensions"]) if by is None else _positive(by)


# -------------------------------------- BigDataViewer 19911bd6, DefaultN5Properties


def bigdataviewer(root: Path, setup: int) -> tuple[str, list[list[float]]]:
    """Read a setup as ``getDataType`` and ``getMipmapResolutions`` do."""
    attributes = attributes_of(root / f"setup{setup}") or {}
    return attributes["dataType"], attributes["downsamplingFactors"]


def validate_ome(path: Path) -> None:
    """Validate a group of OME-Zarr 0.4 or 0.5 with yaozarrs, and all below it that it names."""
    if (path / "zarr.json").exists():
        yaozarrs.validate_zarr_store(path)
        return
    # asked directly, as it guesses versions: groups of 0.4 that are no images state none
    result = StorageValidatorV04.validate_group(open_group(path))
    assert result.is_valid, result.errors
