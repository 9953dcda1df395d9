"""N5 containers as Zarr hierarchies.

>>> import n5zarr, zarr
>>> root = zarr.open(n5zarr.N5Store(n5zarr.sample_path()), mode="r")  # any Zarr code
>>> array = n5zarr.open(n5zarr.sample_path(), path="em/s0")  # the fast way
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from n5zarr.caching import CacheOptions
from n5zarr.codecs.block import Block, decode_block, encode_block
from n5zarr.containers import create_array, read_block, sample_path
from n5zarr.containers import open_node as open  # noqa: A004 - as zarr.open
from n5zarr.errors import N5Error, N5MissingDependencyError, N5Warning
from n5zarr.store import N5Store
from n5zarr.zarr_codecs import N5Block, N5BlockCodec

if TYPE_CHECKING:
    from n5zarr.xarray.pyramids import open_level, pyramid_levels
    from n5zarr.xarray.views import open_bdv
    from n5zarr.xarray.write import to_n5

__version__ = "0.1.0.dev0"

__all__ = [
    "Block",
    "CacheOptions",
    "N5Block",
    "N5BlockCodec",
    "N5Error",
    "N5Store",
    "N5Warning",
    "create_array",
    "decode_block",
    "encode_block",
    "open",
    "open_bdv",
    "open_level",
    "pyramid_levels",
    "read_block",
    "sample_path",
    "to_n5",
]

# loaded when first used: they need xarray, and open_bdv dask
_LATER = {
    "open_bdv": "n5zarr.xarray.views",
    "open_level": "n5zarr.xarray.pyramids",
    "pyramid_levels": "n5zarr.xarray.pyramids",
    "to_n5": "n5zarr.xarray.write",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
    if name not in _LATER:
        message = f"module 'n5zarr' has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(_LATER[name]), name)
    except ModuleNotFoundError as err:
        raise N5MissingDependencyError(err.name or "", f"n5zarr.{name}", "xarray") from err


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
