"""The N5 format in Python: documents, block headers, grid, orders, paths, versions.

Pure: numpy and the standard library, no input or output, no zarr.
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
