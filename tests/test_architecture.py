"""The package keeps its rules: layers, sizes, and tasks of a single place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.outputs import python
from tests.structure import (
    LAYERS,
    MAX_MODULE,
    PACKAGE,
    REPOSITORY,
    Module,
    cycles,
    functions,
    imported_names,
    imports_of,
    map_line,
    module_graph,
    packages,
    read_modules,
    room,
    top_level,
    upward,
)

MODULES = read_modules(REPOSITORY)
IMPORTS = [(module, each) for module in MODULES.values() for each in imports_of(module, MODULES)]
RANK = {name: rank for rank, name in enumerate(LAYERS)}
# What is no subject of its own: the package's names, its command, the private names of zarr.
BESIDES = {"__init__", "__main__", "_zarr"}
MAX_NAMES = 26  # 18 of the core and of tools, the list of what rooms add, and each room
MAX_FUNCTION = 54  # lines, besides its docstring
MAX_WORDS = 1200  # of CONTRIBUTING.md, with the map

PURE = ("errors", "format", "codecs", "conventions", "zarr_view")
IMPURE = {"zarr", "xarray", "asyncio", "os", "pathlib", "fsspec"}
COMPRESSION_LIBRARIES = {
    "numcodecs", "deflate", "isal", "zlib", "lzma", "bz2", "lz4", "PIL", "cramjam",
}  # fmt: skip

# Sizes above the limits, in lines. An entry may only shrink, and goes when it is not needed.
LONG_MODULES = {
    "n5zarr.store.n5_store": 513,  # zarr's interface of stores has 30 methods; 13 options
    "n5zarr.zarr_view.dataset_view": 465,
}
LONG_FUNCTIONS = {
    # most of their lines are options
    "n5zarr.arrays.creating.create_array": 73,
    "n5zarr.tools.convert.convert.convert": 77,
    "n5zarr.xarray.write.to_n5": 64,
}
# Modules that import others of the package inside functions, with the reason.
LATE_IMPORTS = {
    # what few programs need, and half of what they would import
    ("n5zarr.fast.pipeline", "n5zarr.fast.batches"): "only arrays of an N5Store read blocks",
    ("n5zarr.arrays.described", "n5zarr.metadata.inspect"): "only `.info` needs projects, images",
    ("n5zarr.arrays.group", "n5zarr.arrays.creating"): "only new datasets write conventions",
    ("n5zarr.container.container", "n5zarr.container.updates"): "only writing changes documents",
    ("n5zarr.store.n5_store", "n5zarr.container.coords_view"): "only coordinates read conventions",
    ("n5zarr.__main__", "n5zarr.cli.app"): "typer is an extra: its absence is one plain line",
    ("n5zarr.cli.convert", "n5zarr.hdmf"): "hdmf is an extra, and takes seconds to import",
}
# Modules outside of storage that ask for the class of a store. An entry goes when it is not needed.
ASKS_FOR_LOCAL_STORE: set[str] = set()

every_package = pytest.mark.parametrize(
    "module",
    [m for m in MODULES.values() if m.path.stem == "__init__" and m.name != PACKAGE],
    ids=lambda module: module.name,
)


def roots(module: Module) -> set[str]:
    return {name.split(".")[0] for name in module.names}


# ------------------------------------------------------------------------------------- layers


def test_every_name_at_the_top_level_has_its_own_layer() -> None:
    assert sorted(LAYERS) == top_level(REPOSITORY)
    assert len(set(LAYERS)) == len(LAYERS)
    assert len(set(LAYERS) - BESIDES) <= MAX_NAMES


def test_a_module_imports_only_from_its_own_layer_or_below() -> None:
    assert upward(module_graph(MODULES), RANK) == []


def test_every_import_of_the_package_names_a_module_of_it() -> None:
    names = {(module.name, name) for module in MODULES.values() for name in module.names}
    own = {(by, name) for by, name in names if name.split(".")[0] in (PACKAGE, "")}
    assert not {each for each in own if not {each[1], each[1].rpartition(".")[0]} & MODULES.keys()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycles(module_graph(MODULES)) == []


def test_own_modules_are_imported_at_run_time_but_where_little_may_load() -> None:
    code = "import sys, n5zarr.fast.pipeline; print(*(n for n in sys.modules if 'n5zarr' in n))"
    light = set(run_without(set(), code).split())  # what every N5Store needs before its first array
    for_types = {
        (name, target)
        for name, module in MODULES.items()
        if name not in light and module.room != "cli"
        for block in module.tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for target in imported_names(block)
        if target.startswith(PACKAGE)
        and "._zarr." not in target
        and not target.startswith("n5zarr.tools.validate.")
    }
    assert not for_types


def test_imports_inside_functions_are_listed_with_a_reason() -> None:
    late = {(module.name, each.target) for module, each in IMPORTS if each.in_function}
    assert late == LATE_IMPORTS.keys()
    assert all(LATE_IMPORTS.values())


def test_storage_does_not_know_containers() -> None:
    targets = {room(each.target) for module, each in IMPORTS if module.room == "storage"}
    assert targets <= {"storage", "codecs", "format", "errors", "rooms", "_zarr"}


def test_pure_modules_do_no_input_or_output() -> None:
    for module in MODULES.values():
        if module.room in PURE:
            assert not roots(module) & IMPURE, module.name


def test_formats_and_translations_know_no_compression_library() -> None:
    for module in MODULES.values():
        if module.room in ("format", "conventions", "zarr_view"):
            assert not roots(module) & COMPRESSION_LIBRARIES, module.name


# -------------------------------------------------------------------- what one place alone does


def names_in(module: Module) -> Iterator[str]:
    """Return the dotted names that a module imports or reads, such as ``zarr.core.sync``."""
    yield from module.names
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def test_private_names_of_zarr_and_xarray_stand_in_one_module() -> None:
    pattern = r"^((zarr|xarray)\.core\b|zarr\.(\w+\.)*_(?!_))|\._store$|\._ensure_open$"
    private = {
        (module.name, name)
        for module in MODULES.values()
        if module.room != "_zarr"
        for name in names_in(module)
        if re.search(pattern, name)
    }
    assert not private


def asks_for_local_store(module: Module) -> bool:
    """Return whether a module compares a type with ``LocalStore``, or calls ``isinstance``."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare | ast.Call) and (
            isinstance(node, ast.Compare) or ast.unparse(node.func) in ("isinstance", "issubclass")
        ):
            parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.Call)]
            if any(re.search(r"\bLocalStore\b", ast.unparse(part)) for part in parts):
                return True
    return False


def test_only_storage_asks_whether_a_store_is_local() -> None:
    others = (module for module in MODULES.values() if module.room != "storage")
    assert {each.name for each in others if asks_for_local_store(each)} == ASKS_FOR_LOCAL_STORE


# -------------------------------------------------------------------------------------- sizes


def too_long(sizes: dict[str, int], limit: int, exceptions: dict[str, int]) -> list[str]:
    """Return what is longer than permitted, and permissions that are not needed any more."""
    allowed = {name: exceptions.get(name, limit) for name in sizes}
    lines = [
        f"{name} has {n} lines, at most {allowed[name]}; split it"
        for name, n in sizes.items()
        if n > allowed[name]
    ]
    return lines + [
        f"{name} needs no exception any more; take it off the list"
        for name in exceptions
        if sizes.get(name, 0) <= limit
    ]


def test_no_module_is_too_long() -> None:
    sizes = {name: module.n_lines for name, module in MODULES.items()}
    assert too_long(sizes, MAX_MODULE, LONG_MODULES) == []


def test_no_function_is_too_long() -> None:
    sizes = {
        f"{name}.{function.name}": function.n_lines
        for name, module in MODULES.items()
        for function in functions(module)
    }
    assert too_long(sizes, MAX_FUNCTION, LONG_FUNCTIONS) == []


# ---------------------------------------------------------------------------------- docstrings


@every_package
def test_a_package_says_what_it_knows_may_import_and_must_not(module: Module) -> None:
    paragraphs = (ast.get_docstring(module.tree) or "").split("\n\n")
    assert len(paragraphs) >= 2
    text = " ".join(paragraphs[1].split())
    assert re.search(r"^Knows .* May import .* Must not ", text), text


def test_a_module_begins_with_what_it_is_for() -> None:
    assert [name for name, module in MODULES.items() if not module.summary.endswith(".")] == []


def test_the_map_of_contributing_is_complete() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    is_entry = re.compile(r" *- `(\w+/)*(\w+\.py)?`: ")
    there = [line for line in text.splitlines() if is_entry.match(line)]
    wanted = [map_line(module) for module in packages(MODULES).values()]
    message = "\n".join(
        [
            "the map in CONTRIBUTING.md: `uv run python -m tests.structure --write-map` mends it",
            *(f"add:    {line}" for line in wanted if line not in there),
            *(f"remove: {line}" for line in there if line not in wanted),
        ]
    )
    assert sorted(there) == sorted(wanted), message
    assert len(text.split()) <= MAX_WORDS


# ------------------------------------------------------------------------------ lean imports

REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""

USE_PURE_PACKAGES = """
import importlib, pkgutil
import numpy as np

for package in ("n5zarr.format", "n5zarr.codecs", "n5zarr.conventions", "n5zarr.zarr_view"):
    path = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(path, package + "."):
        importlib.import_module(module.name)
        print(module.name)

from n5zarr import format, codecs
from n5zarr.conventions.describe import describe_axes
from n5zarr.conventions.model import Axis
from n5zarr.zarr_view.keys import MetadataKey, parse_key

assert format.grid_shape((7, 5), (3, 2)) == (3, 3)
block = np.arange(6, dtype=">u2").reshape(2, 3)
raw = {"type": "raw"}
data = codecs.encode_block(block, compression=raw)
assert (codecs.decode_block(data, data_type="uint16", compression=raw) == block).all()
axis = Axis(name="x", scale=4.0, translation=2.0, unit="nm")
assert "transform" in describe_axes("cosem", [axis], "s0").attributes
assert isinstance(parse_key("a/zarr.json", 3), MetadataKey)
"""


def run_without(packages: set[str], code: str) -> str:
    """Run code in a process without some packages; return its output."""
    return python("-c", f"REFUSED = {packages!r}\n{REFUSE}\n{code}", cwd=REPOSITORY)


def test_a_process_without_zarr_cannot_import_it() -> None:
    code = "try:\n    import zarr.storage\nexcept ModuleNotFoundError as err:\n    print(err)"
    assert run_without({"zarr"}, code) == "No module named 'zarr'\n"


def test_the_pure_packages_work_without_zarr() -> None:
    imported = run_without({"zarr"}, USE_PURE_PACKAGES).split()
    pure = {name for name, m in MODULES.items() if m.room in PURE and name.count(".") == 2}
    assert set(imported) == pure


def test_n5zarr_is_imported_without_zarr_and_xarray() -> None:
    assert run_without({"zarr", "xarray"}, "import n5zarr; print(n5zarr.__name__)") == "n5zarr\n"
