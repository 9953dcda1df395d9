"""The N5 specification in Python: documents, block headers, grid, axis order, paths, versions.

Knows what the specification says and what Java does beyond it. May import numpy and `errors`. Must
not import compression libraries or zarr, nor do input or output.

The specification is the README of N5, version 4.0.0:
https://github.com/saalfeldlab/n5/blob/7ba6b144959f32469db78b951bc4f4ef5228a2fa/README.md

Its "File-system specification" has nine items, and these functions begin to implement them:

====  =========================================  ==================================================
item  clause                                     where
====  =========================================  ==================================================
1     every directory is a group                 `container.nodes.Nodes.node`
2     attributes are in ``attributes.json``      `attributes.parse_attributes`
3     the root has the version, ``n5``           `version.check_version`
4     the keys that make a dataset               `attributes.parse_attributes`
5     the file of a block is its grid position   `grid.block_path`
6     a block may be missing                     `container.chunks.Chunks.read`
7     a block has at most 2 GiB                  `codecs.block.check_header`
8     blocks at the end of an axis are smaller   `grid.block_extent`, `codecs.block.pad_or_truncate`
9     the bytes of a block: header, elements     `block.BlockHeader`, `codecs.block`
====  =========================================  ==================================================

Code that implements a clause names it in a docstring or comment: `git grep "N5 spec"` finds them
all. Marked beside them: `Java`, what the reference implementation (same commit) does beyond
the specification or against it; `Deviation`, what n5zarr does differently from Java, and why.
"""

from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    GroupAttributes,
    is_dataset,
    parse_attributes,
)
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Compression, compression_to_json, parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_extent, block_path, grid_shape
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import AxisOrder, to_c, to_n5
from n5zarr.format.path import normalize_path
from n5zarr.format.version import check_version, parse_version

__all__ = [
    "ATTRIBUTES_JSON",
    "JSON",
    "AxisOrder",
    "BlockHeader",
    "BlockMode",
    "Compression",
    "DataType",
    "DatasetAttributes",
    "GroupAttributes",
    "block_extent",
    "block_path",
    "check_version",
    "compression_to_json",
    "grid_shape",
    "is_dataset",
    "normalize_path",
    "parse_attributes",
    "parse_compression",
    "parse_json",
    "parse_version",
    "to_c",
    "to_n5",
]
