"""N5 containers as Zarr hierarchies.

>>> import n5zarr, zarr
>>> root = zarr.open(n5zarr.N5Store(n5zarr.sample_path()))  # any Zarr code
>>> array = n5zarr.open(n5zarr.sample_path(), path="em/s0")  # the fast way
"""

from n5zarr.codecs.block import Block, decode_block, encode_block
from n5zarr.containers import create_array, read_block, sample_path
from n5zarr.containers import open_node as open  # noqa: A004 - as zarr.open
from n5zarr.errors import N5Error, N5Warning
from n5zarr.store import N5Store
from n5zarr.zarr_codecs import N5Block, N5BlockCodec

__version__ = "0.1.0.dev0"

__all__ = [
    "Block",
    "N5Block",
    "N5BlockCodec",
    "N5Error",
    "N5Store",
    "N5Warning",
    "create_array",
    "decode_block",
    "encode_block",
    "open",
    "read_block",
    "sample_path",
]
