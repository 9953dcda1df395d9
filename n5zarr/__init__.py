"""Read and write N5 containers as Zarr hierarchies.

>>> import n5zarr, zarr
>>> root = zarr.open(n5zarr.N5Store(n5zarr.sample_path()), mode="r")  # any Zarr code
>>> array = n5zarr.open(n5zarr.sample_path(), path="em/s0")  # the fast way

Names are loaded when they are first used. So ``n5zarr.format``, ``n5zarr.codecs`` and
``n5zarr.conventions`` work without zarr, and only names such as ``to_n5`` need xarray.
"""

import logging
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING

from n5zarr.errors import N5Error, N5MissingDependencyError, N5Warning
from n5zarr.rooms import Door, lacking

if TYPE_CHECKING:
    from collections.abc import Callable

    from n5zarr.arrays.creating import create_array
    from n5zarr.arrays.many_boxes import read_boxes
    from n5zarr.arrays.opening import open_array, open_group
    from n5zarr.arrays.opening import open_node as open  # noqa: A004 - as zarr.open
    from n5zarr.bigdataviewer.opening import open_bdv
    from n5zarr.bigdataviewer.register import read_registrations, register
    from n5zarr.bigdataviewer.registrations import ViewTransform
    from n5zarr.bigdataviewer.stored_points import InterestPoints, read_interest_points
    from n5zarr.bigdataviewer.write import write_bdv
    from n5zarr.bigdataviewer.write_points import write_interest_points
    from n5zarr.codecs.block import Block
    from n5zarr.codecs.multisets import LabelMultisets
    from n5zarr.codecs.single_block import decode_block, encode_block
    from n5zarr.metadata.attributes import get_attribute, remove_attribute, set_attribute
    from n5zarr.metadata.geometry import ArrayGeometry, geometry
    from n5zarr.metadata.set_geometry import set_geometry
    from n5zarr.paintera.fragment_segments import (
        read_fragment_segments,
        segments_of,
        write_fragment_segments,
    )
    from n5zarr.paintera.label_multisets import read_label_multisets, write_label_multisets
    from n5zarr.storage.cache import CacheOptions
    from n5zarr.store.block_codec import N5Block, N5BlockCodec
    from n5zarr.store.blocks import read_block, write_block
    from n5zarr.store.location import sample_path
    from n5zarr.store.n5_fs_store import N5FSStore
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.convert.convert import convert
    from n5zarr.tools.convert.download import Downloaded, download
    from n5zarr.tools.convert.writing import Conversion, ConvertedArray
    from n5zarr.tools.crops import Crops
    from n5zarr.tools.diff.arrays import ArrayDifference, ElementDifference, compare_arrays
    from n5zarr.tools.diff.model import Comparison, Difference
    from n5zarr.tools.diff.nodes import compare
    from n5zarr.tools.pyramid.build import build_pyramid
    from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel
    from n5zarr.tools.rechunk import rechunk
    from n5zarr.tools.rewriting import (
        BlockRemoval,
        EdgeRepair,
        remove_empty_blocks,
        repair_edges,
    )
    from n5zarr.tools.statistics import BlockStatistics, block_statistics
    from n5zarr.tools.stored_blocks import stored_blocks
    from n5zarr.tools.validate.check import find_problems, validate
    from n5zarr.tools.validate.findings import BlockCount, Finding, Validation
    from n5zarr.tools.validate.repairs import (
        Cleanup,
        Quarantine,
        Restoration,
        clean_leftovers,
        quarantine_blocks,
        restore_blocks,
    )
    from n5zarr.tools.virtualize.parser import N5Parser
    from n5zarr.tools.virtualize.virtualizing import Virtualization, virtualize
    from n5zarr.viewing.napari import napari_layers
    from n5zarr.viewing.picture_plot import plot
    from n5zarr.viewing.serve.run import NeuroglancerView, Server, serve, view
    from n5zarr.viewing.thumbnail import thumbnail
    from n5zarr.xarray.accessor import open_level, pyramid_levels
    from n5zarr.xarray.write import to_n5

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until a program listens

__version__ = "0.1.0"

__all__ = [
    "ArrayDifference",
    "ArrayGeometry",
    "Block",
    "BlockCount",
    "BlockRemoval",
    "BlockStatistics",
    "CacheOptions",
    "Cleanup",
    "Comparison",
    "Conversion",
    "ConvertedArray",
    "Crops",
    "Difference",
    "Downloaded",
    "EdgeRepair",
    "ElementDifference",
    "Finding",
    "InterestPoints",
    "LabelMultisets",
    "N5Block",
    "N5BlockCodec",
    "N5Error",
    "N5FSStore",
    "N5Parser",
    "N5Store",
    "N5Warning",
    "NeuroglancerView",
    "Pyramid",
    "PyramidLevel",
    "Quarantine",
    "Restoration",
    "Server",
    "Validation",
    "ViewTransform",
    "Virtualization",
    "block_statistics",
    "build_pyramid",
    "clean_leftovers",
    "compare",
    "compare_arrays",
    "convert",
    "create_array",
    "decode_block",
    "download",
    "encode_block",
    "find_problems",
    "geometry",
    "get_attribute",
    "napari_layers",
    "open",
    "open_array",
    "open_bdv",
    "open_group",
    "open_level",
    "plot",
    "pyramid_levels",
    "quarantine_blocks",
    "read_block",
    "read_boxes",
    "read_fragment_segments",
    "read_interest_points",
    "read_label_multisets",
    "read_registrations",
    "rechunk",
    "register",
    "remove_attribute",
    "remove_empty_blocks",
    "repair_edges",
    "restore_blocks",
    "sample_path",
    "segments_of",
    "serve",
    "set_attribute",
    "set_geometry",
    "stored_blocks",
    "thumbnail",
    "to_n5",
    "validate",
    "view",
    "virtualize",
    "write_bdv",
    "write_block",
    "write_fragment_segments",
    "write_interest_points",
    "write_label_multisets",
]

_MODULES = {
    "ElementDifference": "tools.diff.arrays",
    "ConvertedArray": "tools.convert.writing",
    "PyramidLevel": "tools.pyramid.model",
    "Pyramid": "tools.pyramid.model",
    "EdgeRepair": "tools.rewriting",
    "Restoration": "tools.validate.repairs",
    "Quarantine": "tools.validate.repairs",
    "Cleanup": "tools.validate.repairs",
    "ArrayDifference": "tools.diff.arrays",
    "ArrayGeometry": "metadata.geometry",
    "Block": "codecs.block",
    "BlockCount": "tools.validate.findings",
    "BlockStatistics": "tools.statistics",
    "CacheOptions": "storage.cache",
    "Conversion": "tools.convert.writing",
    "Crops": "tools.crops",
    "Comparison": "tools.diff.model",
    "Difference": "tools.diff.model",
    "Downloaded": "tools.convert.download",
    "Finding": "tools.validate.findings",
    "InterestPoints": "bigdataviewer.stored_points",
    "LabelMultisets": "codecs.multisets",
    "N5Block": "store.block_codec",
    "N5BlockCodec": "store.block_codec",
    "N5FSStore": "store.n5_fs_store",
    "N5Parser": "tools.virtualize.parser",
    "N5Store": "store.n5_store",
    "convert": "tools.convert.convert",
    "build_pyramid": "tools.pyramid.build",
    "BlockRemoval": "tools.rewriting",
    "compare": "tools.diff.nodes",
    "compare_arrays": "tools.diff.arrays",
    "Virtualization": "tools.virtualize.virtualizing",
    "Validation": "tools.validate.findings",
    "NeuroglancerView": "viewing.serve.run",
    "block_statistics": "tools.statistics",
    "clean_leftovers": "tools.validate.repairs",
    "create_array": "arrays.creating",
    "decode_block": "codecs.single_block",
    "download": "tools.convert.download",
    "encode_block": "codecs.single_block",
    "find_problems": "tools.validate.check",
    "geometry": "metadata.geometry",
    "get_attribute": "metadata.attributes",
    "napari_layers": "viewing.napari",
    "open": "arrays.opening",
    "open_array": "arrays.opening",
    "open_bdv": "bigdataviewer.opening",
    "open_group": "arrays.opening",
    "open_level": "xarray.accessor",
    "plot": "viewing.picture_plot",
    "pyramid_levels": "xarray.accessor",
    "quarantine_blocks": "tools.validate.repairs",
    "read_block": "store.blocks",
    "read_boxes": "arrays.many_boxes",
    "read_fragment_segments": "paintera.fragment_segments",
    "read_label_multisets": "paintera.label_multisets",
    "rechunk": "tools.rechunk",
    "read_interest_points": "bigdataviewer.stored_points",
    "remove_attribute": "metadata.attributes",
    "remove_empty_blocks": "tools.rewriting",
    "repair_edges": "tools.rewriting",
    "restore_blocks": "tools.validate.repairs",
    "sample_path": "store.location",
    "segments_of": "paintera.fragment_segments",
    "Server": "viewing.serve.run",
    "serve": "viewing.serve.run",
    "set_attribute": "metadata.attributes",
    "set_geometry": "metadata.set_geometry",
    "stored_blocks": "tools.stored_blocks",
    "thumbnail": "viewing.thumbnail",
    "to_n5": "xarray.write",
    "virtualize": "tools.virtualize.virtualizing",
    "validate": "tools.validate.check",
    "view": "viewing.serve.run",
    "write_block": "store.blocks",
    "write_fragment_segments": "paintera.fragment_segments",
    "write_label_multisets": "paintera.label_multisets",
    "write_interest_points": "bigdataviewer.write_points",
    "ViewTransform": "bigdataviewer.registrations",
    "read_registrations": "bigdataviewer.register",
    "register": "bigdataviewer.register",
    "write_bdv": "bigdataviewer.write",
}
_INNER_NAMES = {"open": "open_node"}
_EXTRAS = {  # that install what modules import
    "xarray.": "xarray",
    "bigdataviewer.": "xarray",
    "viewing.serve.": "view",
}


# Two threads that import a package and a module in it wait for each other; Python then gives one of
# them a module that is not yet complete.
_IMPORTS = RLock()


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        message = f"module 'n5zarr' has no attribute {name!r}"
        raise AttributeError(message)
    try:
        with _IMPORTS:
            module = import_module(f"n5zarr.{_MODULES[name]}")
    except ModuleNotFoundError as err:
        if err.name == f"n5zarr.{_MODULES[name].partition('.')[0]}":
            raise lacking(f"n5zarr.{name}", err.name) from err
        extra = next((e for folder, e in _EXTRAS.items() if _MODULES[name].startswith(folder)), "")
        if not extra:
            raise
        package = (err.name or extra).partition(".")[0]
        raise N5MissingDependencyError(package, f"n5zarr.{name}", extra) from err
    value: object = getattr(module, _INNER_NAMES.get(name, name))
    globals()[name] = value  # so that Python does not call this function for it again
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


_MAKE_DEFAULT: "Door[Callable[[], None]]" = Door("speed", "default pipeline")
if (make_default := _MAKE_DEFAULT.found()) is not None:
    make_default()  # where zarr has its own pipeline
