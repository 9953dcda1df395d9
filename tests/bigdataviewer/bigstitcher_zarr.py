"""Write the BigStitcher project of :mod:`tests.contract.bigstitcher` with images in OME-Zarr.

Loader: multiview-reconstruction ``XmlIoAllenOMEZarrLoader``: version 1.0 as of 2024-10-31 (commit
00a435e6), 2.0 as of 2025-02-07, 3.0 as of 2025-04-29, unchanged on 2025-11-05 (commit 58d0e657).
Names ``sN-tM.zarr``, levels ``0``, ``1`` and the attributes of images: ``N5ApiTools``
(``viewIdToDatasetBdv``, ``setupBdvDatasetsOMEZARR``) and ``OMEZarrAttibutes`` of the same commit,
BigStitcher-Spark ``SparkResaveN5`` of 2026-06-25 (commit 17dc0543). One container for all views
with ``indicies``: ``AllenOMEZarrLoader.OMEZARREntry``, in which the index of the channel is first.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import zarr

from tests.contract import bigstitcher as project
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS, elements, levels

CHUNKS = (2, 3, 5)


class Kind(NamedTuple):
    """A way in which some version of BigStitcher writes OME-Zarr."""

    version: str
    zarr_format: Literal[2, 3] = 2
    ndim: int = 5
    shards: tuple[int, int, int] | None = None


KINDS = {
    "2024": Kind("1.0"), "2025": Kind("2.0"), "3.0": Kind("3.0"),
    "3.0 of three axes": Kind("3.0", 2, 3), "Zarr v3": Kind("3.0", 3),
    "sharded": Kind("3.0", 3, 5, (2, 6, 10)),
}  # fmt: skip


def image_attributes(number: int, ndim: int = 5, *, zarr_format: int = 2) -> dict[str, Any]:
    """Return ``multiscales`` of 0.4 or 0.5; the voxel size is 1, as BigStitcher resaves."""
    axes: list[dict[str, str]] = [
        {"type": "time", "name": "t", "unit": "millisecond"},
        {"type": "channel", "name": "c"},
        *({"type": "space", "name": name, "unit": "micrometer"} for name in "zyx"),
    ]
    datasets = []
    for level, by in enumerate(levels(SETUPS[number])):
        scale = [1.0, 1.0, *map(float, by[::-1])]
        shift = [0.0, 0.0, *((f - 1) / 2 for f in by[::-1])]
        transforms = [
            {"type": "scale", "scale": scale[-ndim:]},
            {"type": "translation", "translation": shift[-ndim:]},
        ]
        # Java writes "/0" up to 2025
        path = f"/{level}" if zarr_format == 2 else f"{level}"
        datasets.append({"path": path, "coordinateTransformations": transforms})
    image = {"name": "/", "axes": axes[-ndim:], "datasets": datasets}
    if zarr_format == 2:
        return {"multiscales": [image | {"version": "0.4"}]}
    return {"ome": {"version": "0.5", "multiscales": [image]}}


def write_array(root: Path, path: str, values: np.ndarray[Any, Any], kind: Kind) -> None:
    """Write an array with zarr-python, as Java's n5-zarr would: nested keys, zstd."""
    above = (1,) * (values.ndim - 3)
    encoding: dict[str, Any] = {}
    if kind.zarr_format == 2:
        encoding = {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    encoding["shards"] = None if kind.shards is None else (*above, *kind.shards)
    array = zarr.create_array(
        str(root), name=path, shape=values.shape, dtype=values.dtype, chunks=(*above, *CHUNKS),
        fill_value=0, zarr_format=kind.zarr_format, **encoding,
    )  # fmt: skip
    array[...] = values


def write_project(folder: Path, kind: Kind, numbers: Collection[int] = SETUPS) -> Path:
    """Write ``dataset.xml`` and ``dataset.ome.zarr``: an image for each view; return the XML."""
    root = folder / "dataset.ome.zarr"
    zarr.create_group(str(root), zarr_format=kind.zarr_format)
    entries: dict[tuple[int, int], tuple[str, str]] = {}
    for number in numbers:
        for timepoint in TIMEPOINTS:
            name = f"s{number}-t{timepoint}.zarr"
            if (number, timepoint) == MISSING:
                continue
            entries[number, timepoint] = name, "0 0" if kind.ndim == 5 else "[]"
            options: Any = {"zarr_format": kind.zarr_format}
            attributes = image_attributes(number, kind.ndim, **options)
            zarr.create_group(str(root), path=name, attributes=attributes, **options)
            for level in range(len(levels(SETUPS[number]))):
                values = elements(number, timepoint, level)
                values = values.reshape((1,) * (kind.ndim - 3) + values.shape)
                write_array(root, f"{name}/{level}", values, kind)
    xml = folder / "dataset.xml"
    xml.write_text(with_loader(project.project_xml(numbers=numbers), loader(kind.version, entries)))
    return xml


def loader(version: str, entries: dict[tuple[int, int], tuple[str, str]]) -> str:
    """Write the element of the loader; ``entries``: path and indices of each view."""
    lines = []
    for (setup, timepoint), (path, indices) in entries.items():
        match version:
            case "1.0":
                start = f'<zgroup setup="{setup}" timepoint="{timepoint}">'
                lines.append(f"{start}<path>{path}</path></zgroup>")
            case "2.0":
                lines.append(f'<zgroup setup="{setup}" tp="{timepoint}" path="{path}" />')
            case _:
                start = f'<zgroup setup="{setup}" tp="{timepoint}" path="{path}"'
                lines.append(f'{start} indicies="{indices}" />')
    return f"""<ImageLoader format="bdv.multimg.zarr" version="{version}">
      <zarr type="relative">dataset.ome.zarr</zarr>
      <zgroups>{"".join(lines)}</zgroups>
    </ImageLoader>"""


def with_loader(text: str, element: str) -> str:
    """Replace the loader of an XML."""
    before, _, rest = text.partition("<ImageLoader")
    return before + element + rest.partition("</ImageLoader>")[2]
