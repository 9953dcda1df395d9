"""The versions of OME-Zarr that n5zarr writes, and all that differs between them.

- 0.5 is Zarr v3: https://ngff.openmicroscopy.org/0.5/. One attribute, ``ome``, has the metadata and
  the version.
- 0.6rc0 is a draft, as 0.5 with coordinate systems: :mod:`n5zarr.conventions.ome_draft`.
- 0.4 is Zarr v2: https://ngff.openmicroscopy.org/0.4/. Each part of the metadata is an attribute,
  and those that describe images have the version. Groups that hold levels name their axes, too.

Images and groups are described without a version, and get that of the destination last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from n5zarr.conventions.axis_names import XARRAY_KEY
from n5zarr.conventions.model import first_of, mapping
from n5zarr.conventions.ome_draft import DRAFT, as_06

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["DEFAULT_VERSION", "OME_FORMATS", "OmeVersion", "ome_attributes"]

type OmeVersion = Literal["0.4", "0.5", "0.6rc0"]

OME_FORMATS: Mapping[OmeVersion, ZarrFormat] = {"0.4": 2, "0.5": 3, "0.6rc0": 3}
"""The format of Zarr that each version prescribes."""

DEFAULT_VERSION: OmeVersion = "0.5"

_VERSIONED_IN_0_4 = {"omero", "image-label", "plate", "well"}  # beside each image of multiscales


def ome_attributes(version: OmeVersion, metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """Make the attributes of a group from its metadata of OME-Zarr.

    Parameters
    ----------
    version : {"0.4", "0.5", "0.6rc0"}
        The version to write.
    metadata : mapping
        ``multiscales``, ``omero``, ``labels`` and so on, without a version.

    Examples
    --------
    >>> ome_attributes("0.5", {"labels": ["cells"]}), ome_attributes("0.4", {"labels": ["cells"]})
    ({'ome': {'version': '0.5', 'labels': ['cells']}}, {'labels': ['cells']})
    >>> ome_attributes("0.4", {"multiscales": [{"axes": [{"name": "x"}]}], "image-label": {}})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'multiscales': [{'version': '0.4', 'axes': [{'name': 'x'}]}],
     'image-label': {'version': '0.4'},
     '_ARRAY_DIMENSIONS': ['x']}
    """
    attributes = dict(metadata)
    for key in metadata.keys() & _VERSIONED_IN_0_4:
        attributes[key] = _stated(metadata[key], version if version == "0.4" else None)
    images = metadata.get("multiscales")
    if version == DRAFT and isinstance(images, list):
        attributes["multiscales"] = [as_06(mapping(image)) for image in images]
    if version != "0.4":
        return {"ome": {"version": version, **attributes}}
    if isinstance(images, list):
        attributes["multiscales"] = [_stated(image, version) for image in images]
        axes = first_of(images).get("axes")
        names: JSON = [mapping(axis).get("name") for axis in axes] if isinstance(axes, list) else []
        attributes[XARRAY_KEY] = names
    return attributes


def _stated(part: JSON, version: OmeVersion | None) -> dict[str, JSON]:
    """Return a part of the metadata with the version in it, or without any."""
    others = {key: value for key, value in mapping(part).items() if key != "version"}
    return others if version is None else {"version": version, **others}
