"""The functions of ``tests.structure`` count right on a small package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import structure

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "__init__.py": '"""All."""\n',
    "errors.py": '"""Errors.\n\nAnd more.\n"""\n',
    "low/__init__.py": '"""Low."""\n\nfrom n5zarr.low.one import f\n',
    "low/one.py": '"""One."""\n\nfrom n5zarr.errors import E\nimport n5zarr.low.two\n',
    "low/two.py": (
        "from n5zarr import errors\n\n\ndef late():\n    from n5zarr.low import one\n"
        "    import n5zarr.high\n"
    ),
    "high.py": """from typing import Any

import n5zarr.low


class N5Store:
    limit: int

    def __init__(self, a: Any) -> None:  # noqa: D107
        self.a, self._b = a, 1
        self._c: dict[str, Any] = {}

    @property
    def name(self) -> "Any":
        '''The text '# noqa' is no comment.'''
        def inner():
            return 1  # type: ignore[misc]
        self.later = 2
        return inner
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "n5zarr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "n5zarr" / "data").mkdir()
    return tmp_path


@pytest.fixture
def modules(folder: Path) -> dict[str, structure.Module]:
    return structure.read_modules(folder)


def test_modules_are_named_as_they_are_imported(modules: dict[str, structure.Module]) -> None:
    assert set(modules) == {
        "n5zarr",
        "n5zarr.errors",
        "n5zarr.high",
        "n5zarr.low",
        "n5zarr.low.one",
        "n5zarr.low.two",
    }
    assert modules["n5zarr.errors"].summary == "Errors."
    assert modules["n5zarr.errors"].n_lines == 4


def test_imports_are_of_modules_also_where_names_are_taken(
    modules: dict[str, structure.Module],
) -> None:
    assert structure.module_graph(modules) == {
        "n5zarr": set(),
        "n5zarr.errors": set(),
        "n5zarr.high": {"n5zarr.low"},
        "n5zarr.low": {"n5zarr.low.one"},
        "n5zarr.low.one": {"n5zarr.errors", "n5zarr.low.two"},
        "n5zarr.low.two": {"n5zarr.errors", "n5zarr.low.one", "n5zarr.high"},
    }
    late = structure.imports_of(modules["n5zarr.low.two"], modules)
    assert late == {
        structure.Import("n5zarr.errors", in_function=False),
        structure.Import("n5zarr.low.one", in_function=True),
        structure.Import("n5zarr.high", in_function=True),
    }


def test_circles_chains_and_upward_imports(modules: dict[str, structure.Module]) -> None:
    graph = structure.module_graph(modules)
    assert structure.cycles(graph) == [
        ("n5zarr.high", "n5zarr.low", "n5zarr.low.one", "n5zarr.low.two")
    ]
    rooms = structure.room_graph(graph)
    assert rooms == {
        "__init__": set(),
        "errors": set(),
        "high": {"low"},
        "low": {"errors", "high"},
    }
    assert structure.cycles(rooms) == [("high", "low")]
    ranks = {"errors": 0, "low": 1, "high": 2, "__init__": 3}
    assert structure.upward(graph, ranks) == [("n5zarr.low.two", "n5zarr.high")]
    assert structure.upward({"n5zarr.low": {"n5zarr.new"}}, ranks) == [("n5zarr.low", "n5zarr.new")]


def test_the_longest_chain_is_counted_in_names() -> None:
    graph = {"a": {"b", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert structure.longest_chain(graph) == ("a", "b", "c", "d")
    assert structure.longest_chain({}) == ()
    assert len(structure.longest_chain({"a": {"b"}, "b": {"a"}})) == 2


def test_functions_are_measured_with_their_decorators(
    modules: dict[str, structure.Module],
) -> None:
    assert structure.functions(modules["n5zarr.high"]) == [
        structure.Function("N5Store.__init__", 3),
        structure.Function("N5Store.name", 7),
        structure.Function("N5Store.name.inner", 2),
    ]


def test_the_class_of_the_store_is_measured(modules: dict[str, structure.Module]) -> None:
    size = structure.class_size(modules["n5zarr.high"], "N5Store")
    assert size == structure.ClassSize(n_methods=2, n_lines=14, fields=("_b", "_c", "a", "later"))
    assert structure.class_size(modules["n5zarr.errors"], "N5Store") is None


def test_any_and_comments_are_counted_where_they_are_meant(
    modules: dict[str, structure.Module],
) -> None:
    high = modules["n5zarr.high"]
    assert structure.count_any(high) == 2
    assert structure.count_comments(high, r"#\s*noqa") == 1
    assert structure.count_comments(high, r"#\s*type:\s*ignore") == 1


def test_the_top_level_is_modules_and_packages(folder: Path) -> None:
    assert structure.top_level(folder) == ["__init__", "errors", "high", "low"]


def test_ranks_are_read_from_the_tree_that_is_measured(folder: Path) -> None:
    assert structure.read_ranks(folder)["errors"] == 0
    (folder / "tests").mkdir()
    (folder / "tests" / "test_architecture.py").write_text("LAYERS = (('high', 'low'), 'errors')\n")
    assert structure.read_ranks(folder) == {"high": 0, "low": 0, "errors": 1}


def test_the_map_has_a_line_for_each_module(modules: dict[str, structure.Module]) -> None:
    assert structure.map_of(modules).splitlines() == [
        "- `errors.py`: Errors.",
        "- `__init__.py`: All.",
        "- `high.py`: ",
        "- `low/`: Low.",
        "  - `low/one.py`: One.",
        "  - `low/two.py`: ",
    ]


def test_the_map_is_replaced_between_its_marks(folder: Path) -> None:
    page = folder / "CONTRIBUTING.md"
    page.write_text(f"a\n{structure.MAP_BEGINS}\nold\n{structure.MAP_ENDS}\nb\n")
    structure.write_map(folder)
    written = page.read_text()
    assert "old" not in written
    assert "- `errors.py`: Errors." in written
    assert written.startswith("a\n")
    assert written.endswith("\nb\n")
    structure.write_map(folder)
    assert page.read_text() == written


def test_the_table_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    structure.main([str(folder)])
    table = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert table["modules"].strip() == "6"
    assert table["N5Store, methods"].strip() == "2"
    assert table["imports in functions"].strip() == "2"
