"""Imports point one way: errors, format, codecs, translate, then what knows zarr."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "n5zarr"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = (
    "errors",
    "_zarr_private",
    "format",
    "codecs",
    "conventions",
    "zarr_view",
    "storage",
    "container",
    "store",
    "arrays",
    "xarray",
    "hdmf",
    "__init__",
    "cli",
    "__main__",
)
RANK = {name: rank for rank, name in enumerate(LAYERS)}
PURE = ("errors", "format", "codecs", "zarr_view", "conventions")
IMPURE = {"zarr", "xarray", "asyncio", "os", "pathlib", "fsspec"}


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> set[str]:
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            inner = {f"n5zarr.{alias.name}" for alias in node.names}
            names |= inner if node.module == "n5zarr" else {node.module or ""}
    return names


def module_name(path: Path) -> str:
    return "n5zarr." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_module_imports_only_from_its_own_layer_or_below(path: Path) -> None:
    own = layer(module_name(path))
    for name in imports(path):
        if name == "n5zarr" or name.startswith("n5zarr."):
            other = layer(name)
            assert other == own or RANK[other] < RANK[own], f"{own} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_pure_modules_do_no_input_or_output(path: Path) -> None:
    if layer(module_name(path)) in PURE:
        assert not {name.split(".")[0] for name in imports(path)} & IMPURE


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_private_names_of_zarr_stand_in_one_module(path: Path) -> None:
    private = {name for name in imports(path) if name.startswith(("zarr.core", "zarr._"))}
    assert not private or path.name == "_zarr_private.py"


def test_formats_and_translations_know_no_compression_library() -> None:
    for path in MODULES:
        if layer(module_name(path)) in ("format", "conventions", "zarr_view"):
            roots = {name.split(".")[0] for name in imports(path)}
            assert not roots & {"numcodecs", "deflate", "isal", "zlib", "lzma", "bz2", "lz4", "PIL"}
