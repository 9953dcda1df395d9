"""Names of zarr-python 2.18.

Knows which modules of zarr 2 have which names: a module here has the same ones, for
``from n5zarr.compat import zarr2 as zarr``. A path or URL that ends in ``.n5`` is N5, any other is
Zarr v2. Arrays and groups are those of n5zarr, with additional
names. May import all packages below but other rooms. Must not be imported by any of them, nor warn.
"""

import sys

import numcodecs

from n5zarr.compat.zarr2.core import Array, array, create, empty, open_array, zeros
from n5zarr.compat.zarr2.errors import absent
from n5zarr.compat.zarr2.hierarchy import Group, copy, copy_all, group, load, open, open_group, save
from n5zarr.compat.zarr2.n5 import N5FSStore, N5Store
from n5zarr.compat.zarr2.storage import (
    DirectoryStore,
    MemoryStore,
    NestedDirectoryStore,
    ProcessSynchronizer,
    ThreadSynchronizer,
)

__all__ = [
    "Array",
    "DirectoryStore",
    "Group",
    "MemoryStore",
    "N5FSStore",
    "N5Store",
    "NestedDirectoryStore",
    "ProcessSynchronizer",
    "ThreadSynchronizer",
    "array",
    "convenience",
    "copy",
    "copy_all",
    "create",
    "creation",
    "empty",
    "group",
    "load",
    "open",
    "open_array",
    "open_group",
    "save",
    "zeros",
]

convenience = creation = sys.modules[__name__]
__version__ = "2.18.3"  # by which programs choose their calls

_WAYS = {
    "LRUStoreCache": "n5zarr.N5Store(url, cache=n5zarr.CacheOptions(bytes=...))",
    "consolidate_metadata": "nothing: n5zarr.open needs no copy of the documents",
    "copy_store": "n5zarr.convert(source, destination)",
    "full": "n5zarr.create_array(..., fill_value=...), which other programs of N5 read as 0",
    "ones": "n5zarr.create_array(..., fill_value=1), which other programs of N5 read as 0",
    "open_consolidated": "n5zarr.open(path)",
    "tree": "group.tree()",
}


def __getattr__(name: str) -> object:
    if not name.startswith("_") and hasattr(numcodecs, name):  # as zarr 2: zarr.GZip, zarr.Blosc
        return getattr(numcodecs, name)
    raise absent(__name__, name, _WAYS)  # `hasattr` asks
