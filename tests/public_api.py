"""List the public names with their parameters: one line for each.

``uv run python -m tests.public_api`` writes ``tests/public_api.txt`` again, where a change
of the API is visible as a difference.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from typing import Any

import xarray as xr
from zarr.abc.store import Store

import n5zarr

SNAPSHOT = Path(__file__).parent / "public_api.txt"
MODULES = ("n5zarr", "n5zarr.xarray", "n5zarr.hdmf", "n5zarr.format", "n5zarr.errors")
# Public to the modules of the package, and no part of what users may rely on.
INTERNALS = {
    "assuming", "container", "dataset_of", "locate", "node", "reopened", "run", "run_async",
    "showing", "storage",
}  # fmt: skip


def signature(value: Any) -> str:
    """Return the parameters of a function or class, without types."""
    if not callable(value) or isinstance(value, EnumType):
        return ""
    try:
        found = inspect.signature(value)
    except ValueError:  # of classes that have none
        return ""
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def members(cls: type) -> Iterator[str]:
    """List the public members of a class, without those that it has from zarr as they are."""
    for name in sorted(dir(cls)):
        value = inspect.getattr_static(cls, name)
        is_inherited = value is inspect.getattr_static(Store, name, None)
        if not (name.startswith("_") or name in INTERNALS or is_inherited):
            is_method = not isinstance(value, property)
            yield f"{name}{signature(getattr(cls, name)) if is_method else ''}"


def names_of(module: str) -> list[str]:
    return sorted(getattr(importlib.import_module(module), "__all__", ()))


def listed() -> list[str]:
    """Return a line for each public name: modules, the store, and the accessor of xarray."""
    lines = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        lines += [f"{module}.{n}{signature(getattr(loaded, n))}" for n in names_of(module)]
    lines += [f"N5Store.{each}" for each in members(n5zarr.N5Store)]
    lines += [f"Dataset.n5.{each}" for each in members(type(xr.Dataset().n5))]
    return lines


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(listed()) + "\n")
