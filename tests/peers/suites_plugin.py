"""Make tests of programs that write Zarr write N5, as a plugin.

What the program and its tests call ``MemoryStore``, ``LocalStore`` and ``FsspecStore``, and what
zarr makes for paths, dictionaries and nothing, is an ``N5Store`` over it. Without
``N5ZARR_SUITE_STORE`` it stays what it is.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
import zarr.storage
import zarr.storage._common
from zarr.abc.store import Store

from n5zarr import N5Store

IS_N5 = os.environ.get("N5ZARR_SUITE_STORE", "") not in ("", "0")
ONLY = frozenset(json.loads(os.environ.get("N5ZARR_SUITE_ONLY", "[]")))  # names of tests


class _Target(type):
    """A replacement of zarr's store classes that makes N5 stores over them."""

    wrapped: type[Store]

    def __call__(cls, *args: Any, read_only: bool = False, **kwargs: Any) -> N5Store:
        return N5Store(cls.wrapped(*args, **kwargs), read_only=read_only)

    def __instancecheck__(cls, instance: object) -> bool:
        inner = instance.store if isinstance(instance, N5Store) else instance
        return isinstance(inner, cls.wrapped)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.wrapped, name)

    async def open(cls, *args: Any, mode: str | None = None, **kwargs: Any) -> N5Store:
        made = cls(*args, **kwargs)
        if mode in ("r", "r+") and hasattr(made.store, "root") and not made.store.root.exists():
            raise FileNotFoundError(f"{made.store.root} does not exist")  # as LocalStore.open
        await made._ensure_open()
        return made

    def from_url(cls, url: Any, *, read_only: bool = False, **options: Any) -> N5Store:
        wrapped: Any = cls.wrapped
        return N5Store(wrapped.from_url(url, **options), read_only=read_only)


class MemoryTarget(metaclass=_Target):
    wrapped = zarr.storage.MemoryStore


class LocalTarget(metaclass=_Target):
    wrapped = zarr.storage.LocalStore


class FsspecTarget(metaclass=_Target):
    wrapped = zarr.storage.FsspecStore


TARGETS = (MemoryTarget, LocalTarget, FsspecTarget)
OURS = ("zarr", "n5zarr", "suites_plugin", "__main__")


def replace(module: Any) -> None:
    """Replace a module's names for zarr's stores."""
    for target in TARGETS:
        name = target.wrapped.__name__
        if vars(module).get(name) is target.wrapped:
            setattr(module, name, target)


if IS_N5:
    # loads what it needs of zarr, before the stores are replaced
    from n5zarr import N5Store, open_array
    from n5zarr.fast.default import make_default

    assert callable(open_array)
    make_default()
    replace(zarr.storage)
    replace(zarr.storage._common)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the chosen tests, and replace names that were imported before."""
    if ONLY:
        items[:] = [item for item in items if item.nodeid in ONLY]
    for name, module in list(sys.modules.items()) if IS_N5 else ():
        if name.partition(".")[0] not in OURS and hasattr(module, "__dict__"):
            replace(module)


if os.environ.get("N5ZARR_SUITE_Z5"):
    from n5zarr.compat import z5py

    sys.modules["z5py"], sys.modules["z5py.dataset"] = z5py, z5py.dataset
