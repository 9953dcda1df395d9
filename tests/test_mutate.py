"""Faults that are planted change what they say, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import mutate
from tests.mutate import faults_in

HEAD = "def f(a, b, log):\n    "


def changes(body: str) -> set[str]:
    """Return the bodies that a function gets."""
    text = (HEAD + body).encode()
    planted = [fault.planted(text).decode() for fault in faults_in(Path("m.py"), text)]
    return {ast.unparse(ast.parse(each)).split("\n", 1)[1].strip() for each in planted}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a in b", {"x = a not in b"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = a[3]", {"x = a[4]", "x = a[2]"}),
        ("x = a.g(b, a, key=b)", {"x = a.g(a, b, key=b)"}),
        ("x = a.g(b)", {"x = b"}),
        ("a.g(b)", {"pass", "b"}),
        ("return a, b", {"return (b, a)"}),
        ("return True", {"return False"}),
        ("return a", {"return None"}),
        ("if a:\n        x = b", {"if not a:\n        x = b"}),
    ],
)
def test_each_kind_of_fault(body: str, expected: set[str]) -> None:
    assert changes(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        '"""Return 3."""',
        "raise ValueError(a, 3)",
        "x: tuple[3] = b",
        'x = f"{a.g(3)}"',
        "_log.debug(a, b, 3)",
        "if TYPE_CHECKING:\n        x = 3",
        "x = a.g(b, b)",
        "return None",
    ],
)
def test_what_is_said_to_people_and_type_checkers_stays(body: str) -> None:
    assert not changes(body)


def test_lines_keep_their_numbers() -> None:
    text = "def f(a, é):\n    a.g(\n        é,\n    ); x = 1\n    return a\n".encode()
    for fault in faults_in(Path("m.py"), text):
        assert fault.function == "f"
        assert fault.planted(text).count(b"\n") == 5
        assert ast.parse(fault.planted(text)).body[0].end_lineno == 5


def test_a_fault_is_found_and_another_survives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a package of two functions, a test calls one; its source stays as it is."""
    (tmp_path / "n5zarr/p").mkdir(parents=True)
    source = "def f(a):\n    return a\n\n\ndef g(a):\n    return a\n"
    (tmp_path / "n5zarr/p/m.py").write_text(source)
    test = "import importlib\n\n\ndef test_f():\n"
    test += "    assert importlib.import_module('n5zarr.p.m').f(5) == 5\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_m.py").write_text(test)
    monkeypatch.setattr(mutate, "REPOSITORY", tmp_path)
    monkeypatch.setattr(mutate, "_COPIED", ("n5zarr", "tests"))
    mutate.main(["--package", "p", "--tests", "tests/test_m.py", "-j", "1", "--seconds", "60"])
    output = capsys.readouterr().out
    assert "m.py:2 f: return a -> return None\n    found by tests/test_m.py::test_f," in output
    assert "m.py:6 g: return a -> return None\n    survived," in output
    assert output.endswith("2 of 2 faults: 1 found, 1 survived, 0 timed out\n")
    assert (tmp_path / "n5zarr/p/m.py").read_text() == source
