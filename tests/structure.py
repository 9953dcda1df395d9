"""Measure the structure of the package: imports, sizes, and gaps of the type checker.

Run ``uv run python -m tests.structure`` for the table, with a folder or a revision of git to
measure another tree, with ``--since`` and a revision for what changed in each package, with
``--map`` for the map of all modules, of which CONTRIBUTING.md holds the packages. The tests of the
architecture use the same functions.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import runpy
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PACKAGE = "n5zarr"
REPOSITORY = Path(__file__).parents[1]
MAX_MODULE = 450  # lines
MAP_BEGINS, MAP_ENDS = "<!-- map -->", "<!-- end of the map -->"  # in CONTRIBUTING.md

# An entry may import the entries before it, and no other.
LAYERS = (
    "errors", "rooms", "cores", "_zarr", "format", "codecs", "conventions", "zarr_view", "storage",
    "container", "store", "shown", "metadata", "arrays", "fast", "servers", "xarray", "images",
    "viewing", "tools", "paintera", "other_sources", "ome_zarr", "bigdataviewer", "compat", "hdmf",
    "__init__", "cli", "__main__",
)  # fmt: skip

type Ranks = dict[str, int]
type Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Function:
    """One function or method, with its decorators, without its docstring."""

    name: str
    n_lines: int


@dataclass(frozen=True)
class ClassSize:
    """How large a class is."""

    n_methods: int
    n_lines: int
    fields: tuple[str, ...]  # that ``__init__`` sets, read-only ones too


@dataclass(frozen=True)
class Import:
    """One import of a module of the package by another."""

    target: str
    in_function: bool


@dataclass(frozen=True)
class Module:
    """One file of Python, with its dotted name: a package is named as its folder."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(imported_names(self.tree))

    @cached_property
    def imports(self) -> set[tuple[str, bool]]:
        """Return all imported names, and whether a function imports each."""
        inner = {
            name
            for function in ast.walk(self.tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for name in imported_names(function)
        }
        outer = set(_imports_outside_functions(self.tree))
        return {(name, True) for name in inner} | {(name, False) for name in outer}

    @property
    def n_lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def n_statements(self) -> int:
        """Count all statements but docstrings."""
        nodes = list(ast.walk(self.tree))
        holders = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        docstrings = [ast.get_docstring(node) for node in nodes if isinstance(node, holders)]
        n_docstrings = sum(each is not None for each in docstrings)
        return sum(isinstance(node, ast.stmt) for node in nodes) - n_docstrings

    @property
    def package(self) -> str:
        """Return the dotted name of the folder that holds the file."""
        return self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]

    @property
    def summary(self) -> str:
        return (ast.get_docstring(self.tree) or "").partition("\n")[0]

    @property
    def room(self) -> str:
        """Return the name below the package that holds the module."""
        return room(self.name)


def room(name: str) -> str:
    """Return the part of the package that a module belongs to; ``__init__`` for the package.

    >>> room("n5zarr.format.block"), room("n5zarr.errors"), room("n5zarr")
    ('format', 'errors', '__init__')
    """
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@cache
def read_modules(folder: Path) -> dict[str, Module]:
    """Read all modules of the package in ``folder``, by dotted name."""
    package = folder / PACKAGE
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(package).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path)
    return modules


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Return the names in import statements: modules, and objects from them.

    >>> list(imported_names(ast.parse("import a.b; from c import d, e")))
    ['a.b', 'c.d', 'c.e']
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{a.name}" for a in node.names)


def _known(name: str, names: Iterable[str]) -> str | None:
    """Return the module that an imported name is or comes from."""
    if name in names:
        return name
    above = name.rpartition(".")[0]
    return above if above in names else None


def imports_of(module: Module, modules: Mapping[str, Module]) -> set[Import]:
    """Return a module's imports of other modules of the package, those for types too."""
    known = {(_known(name, modules), in_function) for name, in_function in module.imports}
    return {Import(target, inside) for target, inside in known if target not in (None, module.name)}


def _imports_outside_functions(tree: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from imported_names(child)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports_outside_functions(child)


def module_graph(modules: Mapping[str, Module]) -> Graph:
    return {
        name: {each.target for each in imports_of(module, modules)}
        for name, module in modules.items()
    }


def room_graph(graph: Graph) -> Graph:
    """Return, for each name at the top level, the names that it imports."""
    rooms: Graph = {room(name): set() for name in graph}
    for importer, imported in graph.items():
        rooms[room(importer)] |= {room(name) for name in imported} - {room(importer)}
    return rooms


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Return each group of names that import each other in a circle, sorted."""
    reachable = {name: _reachable(name, graph) for name in graph}
    groups = {
        tuple(sorted(other for other in reachable[name] if name in reachable[other]))
        for name in graph
        if name in reachable[name]
    }
    return sorted(groups)


def _reachable(start: str, graph: Graph) -> set[str]:
    seen = set[str]()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return seen


def longest_chain(graph: Graph) -> tuple[str, ...]:
    """Return the longest chain of imports, importer first; names in a circle count once."""
    best: dict[str, tuple[str, ...]] = {}

    def chain(name: str, above: frozenset[str]) -> tuple[str, ...]:
        if name not in best:
            others = (other for other in sorted(graph[name]) if other not in above)
            below = (chain(other, above | {name}) for other in others)
            best[name] = (name, *max(below, key=len, default=()))
        return best[name]

    return max((chain(name, frozenset({name})) for name in sorted(graph)), key=len, default=())


def upward(graph: Graph, ranks: Ranks) -> list[tuple[str, str]]:
    """Return the imports of a name whose layer is above the importer's or not known."""
    return sorted(
        (importer, name)
        for importer, imported in graph.items()
        for name in imported
        if room(name) != room(importer)
        and ranks.get(room(name), len(ranks)) >= ranks.get(room(importer), len(ranks))
    )


def read_ranks(folder: Path) -> Ranks:
    """Read the ranks of the layers that a tree states in its tests, else take those of this one."""
    for file in ("structure.py", "test_architecture.py"):
        path = folder / "tests" / file
        tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
                layers = enumerate(ast.literal_eval(node.value))
                each = (
                    (rank, [names] if isinstance(names, str) else names) for rank, names in layers
                )
                return {name: rank for rank, names in each for name in names}
    return {name: rank for rank, name in enumerate(LAYERS)}


def functions(module: Module) -> list[Function]:
    """Return all functions and methods of a module, with their lines besides the docstring."""
    return list(_functions(module.tree, ""))


def _functions(tree: ast.AST, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{node.name}."
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            text = node.body[:1] if ast.get_docstring(node, clean=False) else []
            of_text = sum((each.end_lineno or 0) - each.lineno + 1 for each in text)
            n_lines = (node.end_lineno or start) - start + 1 - of_text
            yield Function(prefix + node.name, n_lines)
        yield from _functions(node, inner)


def class_size(module: Module, name: str) -> ClassSize | None:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            kinds = ast.FunctionDef | ast.AsyncFunctionDef
            methods = [child for child in node.body if isinstance(child, kinds)]
            fields = {field for method in methods for field in _fields(method)}
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            return ClassSize(len(methods), n_lines, tuple(sorted(fields)))
    return None


def _fields(method: ast.AST) -> Iterator[str]:
    nodes = (n for n in ast.walk(method) if isinstance(n, ast.Attribute))
    stored = (n for n in nodes if isinstance(n.ctx, ast.Store))
    return (n.attr for n in stored if ast.unparse(n.value) == "self")


def count_any(module: Module) -> int:
    """Count the uses of ``typing.Any``, without its import."""
    return sum(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(module.tree))


def count_comments(module: Module, pattern: str) -> int:
    """Count the comments in which ``pattern`` occurs."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return sum(bool(t.type == tokenize.COMMENT and re.search(pattern, t.string)) for t in tokens)


def top_level(folder: Path) -> list[str]:
    """Return the names at the top level of the package: modules and folders of modules."""
    entries = (folder / PACKAGE).iterdir()
    return sorted(p.stem for p in entries if p.suffix == ".py" or (p / "__init__.py").exists())


def map_of(modules: Mapping[str, Module]) -> str:
    """Return the map: a line for each module, under its package, in the order of the layers."""
    order = {name: rank for rank, name in enumerate(LAYERS)}
    names = sorted(modules, key=lambda name: (order.get(room(name), len(order)), name))
    return "\n".join(map_line(modules[name]) for name in names)


def packages(modules: Mapping[str, Module]) -> dict[str, Module]:
    """Return what the map of CONTRIBUTING.md has: packages, and the modules beside them."""
    return {n: m for n, m in modules.items() if m.path.stem == "__init__" or n.count(".") == 1}


def map_line(module: Module) -> str:
    """Return the line of one module in the map: its file and the first line of its docstring."""
    parts = module.name.split(".")[1:]
    if module.path.stem == "__init__":
        label = "/".join([*parts, ""]) if parts else "__init__.py"
    else:
        label = "/".join(parts) + ".py"
    indent = "  " if len(parts) > 1 else ""
    return f"{indent}- `{label}`: {module.summary}"


def write_map(folder: Path) -> None:
    """Replace the map in CONTRIBUTING.md, between its two marks, by that of the packages."""
    page = folder / "CONTRIBUTING.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(MAP_BEGINS)
    _, _, after = rest.partition(MAP_ENDS)
    lines = map_of(packages(read_modules(folder)))
    page.write_text(f"{before}{MAP_BEGINS}\n\n{lines}\n\n{MAP_ENDS}{after}", encoding="utf-8")


def _graph_rows(folder: Path, modules: Mapping[str, Module]) -> dict[str, str]:
    graph = module_graph(modules)
    rooms = room_graph(graph)
    ranks = read_ranks(folder)
    climbs = upward(graph, ranks)
    chain = longest_chain(rooms)
    imports = [each for module in modules.values() for each in imports_of(module, modules)]
    return {
        "modules": str(len(graph)),
        "names at the top level": f"{len(rooms)}: {', '.join(top_level(folder))}",
        "arrows between modules": str(sum(map(len, graph.values()))),
        "arrows between top-level names": str(sum(map(len, rooms.values()))),
        "ranks of layers": str(len(set(ranks.values()))),
        "longest chain of top-level names": f"{len(chain)}: {' > '.join(chain)}",
        "longest chain of modules": str(len(longest_chain(graph))),
        "cycles of modules": str(len(cycles(graph))),
        "cycles of top-level names": str(len(cycles(rooms))),
        "upward arrows": f"{len(climbs)} {climbs or ''}".strip(),
        "imports in functions": str(sum(each.in_function for each in imports)),
    }


def _size_rows(modules: Mapping[str, Module]) -> dict[str, str]:
    n_lines = sum(module.n_lines for module in modules.values())
    largest = max(modules.values(), key=lambda module: module.n_lines)
    long = sorted(name for name, module in modules.items() if module.n_lines > MAX_MODULE)
    lengths = sorted(f.n_lines for module in modules.values() for f in functions(module))
    percentiles = statistics.quantiles(lengths, n=100)
    counts = {"Any": sum(map(count_any, modules.values()))}
    for name, pattern in {"noqa": r"#\s*noqa", "type: ignore": r"#\s*type:\s*ignore"}.items():
        counts[name] = sum(count_comments(module, pattern) for module in modules.values())
    return {
        "lines of Python": str(n_lines),
        **{f"{k} in 1000 lines": f"{1000 * n / n_lines:.1f} ({n})" for k, n in counts.items()},
        "largest module": f"{largest.n_lines} {largest.name}",
        f"modules above {MAX_MODULE} lines": f"{len(long)}: {', '.join(long)}",
        "functions": str(len(lengths)),
        "lines of a function, p50/p95/max": (
            f"{percentiles[49]:.0f}/{percentiles[94]:.0f}/{lengths[-1]}"
        ),
    }


def _store_rows(modules: Mapping[str, Module]) -> dict[str, str]:
    for name, module in modules.items():
        if size := class_size(module, "N5Store"):
            return {
                "N5Store is in": name,
                "N5Store, methods": str(size.n_methods),
                "N5Store, lines": str(size.n_lines),
                "N5Store, fields": f"{len(size.fields)}: {', '.join(size.fields)}",
            }
    return {"N5Store is in": "no module"}


def measure(folder: Path) -> dict[str, str]:
    """Measure the package in a folder; return the values as text by name."""
    modules = read_modules(folder)
    counts = {f"statements, {name}": str(n) for name, n in sorted(statements(modules).items())}
    return _graph_rows(folder, modules) | _store_rows(modules) | _size_rows(modules) | counts


def statements(modules: Mapping[str, Module]) -> Counter[str]:
    """Count the statements of each package, without its packages, and of all together."""
    counts = Counter[str]()
    for module in modules.values():
        counts[module.package] += module.n_statements
        counts["all"] += module.n_statements
    return counts


def changes(folder: Path, before: Path) -> dict[str, str]:
    """Return the statements and modules of each package in one folder, and in one before."""
    modules, old = read_modules(folder), read_modules(before)
    counts, old_counts = statements(modules), statements(old)
    pairs = {f"statements, {n}": (old_counts[n], counts[n]) for n in sorted(old_counts | counts)}
    pairs["modules"] = len(old), len(modules)
    return {name: f"{a:6} -> {b:6}  {b - a:+}" for name, (a, b) in pairs.items()}


@contextmanager
def _tree(given: str) -> Iterator[Path]:
    """Give a folder that holds the package, or a temporary one with that of a revision of git."""
    if (Path(given) / PACKAGE).is_dir():
        yield Path(given)
        return
    command = ["git", "-C", str(REPOSITORY), "archive", given, "--", PACKAGE, "tests"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
        yield Path(folder)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("tree", nargs="?", default=str(REPOSITORY), help="a folder or a revision")
    parser.add_argument("--since", help="print what changed since this folder or revision")
    parser.add_argument("--map", action="store_true", help="print the map of all modules instead")
    parser.add_argument("--walks", action="store_true", help="count what calls enter: tests.walks")
    parser.add_argument("--write-map", action="store_true", help="put it into CONTRIBUTING.md")
    options = parser.parse_args(arguments)
    if options.write_map:
        write_map(REPOSITORY)
        return
    if options.walks:  # which imports all of n5zarr
        runpy.run_module("tests.walks", run_name="__main__")
    with ExitStack() as stack:
        folder = stack.enter_context(_tree(options.tree))
        if options.map:
            sys.stdout.write(map_of(read_modules(folder)) + "\n")
            return
        if options.since:
            rows = changes(folder, stack.enter_context(_tree(options.since)))
        else:
            rows = measure(folder)
    width = max(map(len, rows))
    sys.stdout.writelines(f"{name:{width}}  {value}\n" for name, value in rows.items())


if __name__ == "__main__":
    main(sys.argv[1:])
