"""z5py's names over n5zarr.

Knows the names, defaults and errors of z5py 3.0.2, and ``util`` of 2.x. May import all packages
below the room. Must not hold logic of N5. ``from n5zarr.compat import z5py`` is what programs write
in place of ``import z5py``.

For users: docs/migration/z5py.md.
"""

from n5zarr.compat.z5py import group, util
from n5zarr.compat.z5py.dataset import Dataset, set_json_decoder, set_json_encoder
from n5zarr.compat.z5py.file import File, Group, N5File, ZarrFile

__version__ = "3.0.2"  # of the z5py whose names these are

__all__ = [
    "Dataset",
    "File",
    "Group",
    "N5File",
    "ZarrFile",
    "group",
    "set_json_decoder",
    "set_json_encoder",
    "util",
]

_WAYS = {
    "S3File": 'n5zarr.open("s3://bucket/file.n5") opens N5, zarr.open_group Zarr',
    "converter": 'n5zarr.convert("file.h5/path", "file.n5") converts HDF5',
}


def __getattr__(name: str) -> object:
    way = _WAYS.get(name, "n5zarr's way for each call is in docs/migration/z5py.md")
    raise AttributeError(f"n5zarr.compat.z5py has no {name!r}: {way}")
