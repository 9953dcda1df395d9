"""The name that programs import from ``z5py.group``."""

from n5zarr.compat.z5py.file import Group

__all__ = ["Group"]
