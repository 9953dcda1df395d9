"""What the packages beside the core add to it.

A feature has a package of its own, a *room*, with its documents, reading, writing and steps of
jobs. The core names no room: it asks here for what is added at a point of extension, which is
imported then. Without the folder of a room, what it adds is missing, and all else works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from n5zarr.errors import N5UnsupportedError

type Point = Literal["location", "source file", "axes", "images", "step", "speed", "server"]
"""The points at which rooms add something; `ADDED` says what, and where it is.

``location`` and ``source file`` open what is not N5, ``axes`` and ``images`` read what documents
beside a container say, ``step`` does a part of a job or of ``create_array``, ``server`` opens URLs
and answers requests as each service does it best, and ``speed`` does the same as the core in less
time, or returns None.
"""

ADDED: Mapping[Point, Mapping[str, str]] = {
    # functions of a place and a path; None for a location that they leave to the next one
    "location": {
        "bdv": "n5zarr.bigdataviewer.project:locate",
        "ome-zarr": "n5zarr.ome_zarr.location:locate",
    },
    # functions of a path and a path in the file that return a `SourceTree`, or None likewise; the
    # names are those of `Format` in format/foreign.py, which the end of a file's name tells
    "source file": {
        "hdf5": "n5zarr.other_sources.hdf5:hdf5_tree",
        "tiff": "n5zarr.other_sources.tiff:tiff_tree",
    },
    # flows of the path of a dataset
    "axes": {"view": "n5zarr.bigdataviewer.finding:find_view"},
    # views for viewers, and for the engine of xarray; a `SourceTree` of OME-Zarr, converted to N5
    "images": {
        "views": "n5zarr.bigdataviewer.images:find_in_bdv",
        "views as arrays": "n5zarr.bigdataviewer.opening:open_described",
        "HTML": "n5zarr.viewing.picture_html:make_html",
        "OME-Zarr as N5": "n5zarr.ome_zarr.from_ome:from_ome",
        "OME-Zarr in a version": "n5zarr.ome_zarr.versions:in_version",
    },
    # what `convert`, `build_pyramid`, `validate` and `create_array` do differently for a format
    "step": {
        "write a project": "n5zarr.bigdataviewer.resave:new_project",
        "levels of OME-Zarr": "n5zarr.ome_zarr.pyramid:find_image",
        "check of files": "n5zarr.tools.validate.files:check_group_files",
        "report": "n5zarr.tools.evidence.report:Report",
        "check of a project": "n5zarr.bigdataviewer.validate:find_check",
        "check of OME-Zarr": "n5zarr.ome_zarr.validate:find_check",
        "elements of label multisets": "n5zarr.paintera.label_multisets:labels_to_write",
        "create label multisets": "n5zarr.paintera.label_multisets:make_multisets",
        "convert to label sources": "n5zarr.paintera.convert:as_paintera",
        "copy label multisets": "n5zarr.paintera.copying:MultisetCopy",
        "levels of label multisets": "n5zarr.paintera.pyramid:MultisetPass",
        "describe a label source": "n5zarr.paintera.pyramid:describe_labels",
    },
    "server": {
        "URL": "n5zarr.servers.opening:open_url",
        "store": "n5zarr.servers.served:served",
        "objects": "n5zarr.servers.served:of_objects",
    },
    "speed": {
        "array": "n5zarr.fast.array:N5Array",
        "pipeline": "n5zarr.fast.pipeline:N5CodecPipeline",
        "default pipeline": "n5zarr.fast.default:make_default",
        "boxes": "n5zarr.fast.many_boxes:read_many",
        "cells": "n5zarr.fast.cells:Cells",
        "cells of blocks": "n5zarr.fast.many_boxes:read_cells",
        "whole blocks": "n5zarr.fast.whole_blocks:read_whole",
        "ends of files": "n5zarr.fast.many_files:read_ends",
        "stamps": "n5zarr.fast.many_files:stamps",
    },
}


@dataclass(frozen=True)
class Door[T]:
    """What a room adds, for the module that asks for it, which declares its type.

    Such as ``_SHARPEN: Door[Callable[[np.ndarray], np.ndarray]] = Door("step", "sharpen")``.
    ``tests/test_doors.py`` compares these types with what rooms have.

    Parameters
    ----------
    point, name : str
        The point of extension, and the name there.
    """

    point: Point
    name: str

    def found(self) -> T | None:
        """Import and return what the room adds; None if the room is not there."""
        module, _, attribute = ADDED[self.point][self.name].partition(":")
        package = module.rpartition(".")[0]
        try:
            added: T = getattr(import_module(module), attribute)
        except ModuleNotFoundError as err:
            if err.name not in (package, module):
                raise
            return None
        return added

    def needed(self) -> T:
        """Import and return what the room adds.

        Raises
        ------
        N5UnsupportedError
            The room is not there (``kind="option"``).
        """
        found = self.found()
        if found is None:
            module = ADDED[self.point][self.name].partition(":")[0]
            raise lacking(self.name, module.rpartition(".")[0])
        return found

    def leads_to(self, made: T) -> bool:
        """Whether this is what the room adds; mypy compares the types."""
        return self.found() is made


def lacking(name: str, package: str) -> N5UnsupportedError:
    """Make the error of a name that is missing as the package of its room is not there."""
    message = f"{name}: expected the package {package}, which this copy of n5zarr lacks"
    return N5UnsupportedError(message, kind="option")
