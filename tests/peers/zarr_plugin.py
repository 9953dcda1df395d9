"""Run zarr's own tests with n5zarr imported, or on its stores, as a plugin.

``N5ZARR_ZARR_WAY`` is ``plain``; or ``imported``: its pipeline is zarr's default in each test; or
``store``: what the tests call ``MemoryStore`` and ``LocalStore`` are ``N5Store`` over them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import zarr.storage
import zarr.storage._common
from zarr.abc.store import Store

WAY = os.environ.get("N5ZARR_ZARR_WAY", "plain")

if WAY != "plain":
    from zarr.buffer import default_buffer_prototype

    from n5zarr import N5Store
    from n5zarr._zarr import sync
    from n5zarr.fast.default import make_default

    @pytest.fixture(autouse=True)
    def _default_pipeline(reset_config: None) -> None:
        """Set the default pipeline again, as the tests reset the configuration."""
        make_default()


if WAY == "store":

    class Shown(N5Store):
        """A store of N5 with the members of a ``MemoryStore`` that the tests use."""

        def __init__(self, store: Any = None, store_dict: Any = None, **options: Any) -> None:
            super().__init__(zarr.storage.MemoryStore() if store is None else store, **options)
            for key, value in (store_dict or {}).items():
                writable: N5Store = self.with_read_only(read_only=False)
                sync(writable.set(key, value))

        @property
        def _store_dict(self) -> dict[str, Any]:
            """Return the values that the store shows, by key."""
            content: dict[str, Any] = sync(_content(self))
            return content

    async def _content(store: N5Store) -> dict[str, Any]:
        prototype = default_buffer_prototype()
        return {key: await store.get(key, prototype) async for key in store.list()}

    # `info` names the class; arrays are pickled
    SHOWN = {n: type(n, (Shown,), {"__module__": __name__}) for n in ("MemoryStore", "LocalStore")}
    globals().update(SHOWN)


class _Target(type):
    """A replacement of zarr's store classes that makes N5 stores over them."""

    wrapped: type[Store]

    def __call__(cls, *args: Any, read_only: bool = False, **kwargs: Any) -> N5Store:
        inner = cls.wrapped(*args, **kwargs)
        made: N5Store = SHOWN[cls.wrapped.__name__](inner, read_only=read_only)
        return made

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


class MemoryTarget(metaclass=_Target):
    wrapped = zarr.storage.MemoryStore


class LocalTarget(metaclass=_Target):
    wrapped = zarr.storage.LocalStore


TARGETS = {"MemoryStore": MemoryTarget, "LocalStore": LocalTarget}

if WAY == "store":
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr.storage, "MemoryStore", MemoryTarget)
        import zarr.testing.strategies  # draws stores

    for name, target in TARGETS.items():  # for paths, dictionaries and None
        setattr(zarr.storage._common, name, target)

    def pytest_collection_modifyitems(items: list[Any]) -> None:
        """Replace the names that zarr's modules of tests have imported."""
        for module in {item.module for item in items}:
            for place in (module, __import__("tests.conftest", fromlist=[""])):
                for name, target in TARGETS.items():
                    if hasattr(place, name):
                        setattr(place, name, target)
