"""Where peers are required, nothing is skipped because something is missing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

CASES = """
import pytest

def test_of_a_missing_peer():
    pytest.importorskip("no_such_peer", reason="uv sync installs it")

def test_of_the_kernel():
    pytest.skip("no compiled kernel")

@pytest.mark.skipif(True, reason="no compiled kernel either")
def test_marked():
    pass

def test_of_the_system():
    pytest.skip("no timers here")

@pytest.mark.xfail(raises=ZeroDivisionError)
def test_expected():
    1 / 0
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("required", "outcome"),
    [
        pytest.param("0", "5 skipped, 1 xfailed", id="optional"),
        # a mark is looked at before the test, a module before all: errors, says pytest
        pytest.param("1", "2 failed, 1 skipped, 1 xfailed, 2 errors", id="required"),
    ],
)
def test_a_missing_peer_fails_where_peers_are_required(
    tmp_path: Path, required: str, outcome: str
) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such')\n")
    assert outcome in run(tmp_path, required, "--continue-on-collection-errors")


def run(folder: Path, required: str, *arguments: str) -> str:
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "N5ZARR_REQUIRE_PEERS": required, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def accepts_anything(node: ast.AST) -> bool:
    """Return whether a piece of code accepts any exception or ignores any warning."""
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or bool(names(node.type) & {"Exception", "BaseException"})
    if isinstance(node, ast.Call) and node.args:
        function, first = ast.unparse(node.func).rpartition(".")[2], node.args[0]
        if function in ("raises", "suppress"):
            return bool(names(first) & {"Exception", "BaseException"})
        if function in ("filterwarnings", "simplefilter") and isinstance(first, ast.Constant):
            is_blanket = first.value == "ignore" or str(first.value).startswith("ignore::")
            return is_blanket and len(node.args) + len(node.keywords) == 1
    return False


def names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def test_nothing_accepts_any_exception_and_nothing_ignores_any_warning() -> None:
    counts = {
        path.relative_to(TESTS).as_posix(): sum(
            map(accepts_anything, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        )
        for path in TESTS.rglob("*.py")
        if "data" not in path.relative_to(TESTS).parts
    }
    assert {name: n for name, n in counts.items() if n} == {}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pytest.raises(Exception)", True),
        ("pytest.raises((ValueError, Exception), match='x')", True),
        ("pytest.raises(ValueError)", False),
        ("contextlib.suppress(BaseException)", True),
        ("try: f()\nexcept Exception: pass", True),
        ("try: f()\nexcept: pass", True),
        ("try: f()\nexcept (KeyError, OSError): pass", False),
        ("pytest.mark.filterwarnings('ignore')", True),
        ("pytest.mark.filterwarnings('ignore::UserWarning')", True),
        ("pytest.mark.filterwarnings('ignore:a message:UserWarning')", False),
        ("warnings.simplefilter('ignore')", True),
        ("warnings.filterwarnings('ignore', message='m', category=UserWarning)", False),
        ("warnings.simplefilter('error')", False),
    ],
)
def test_code_that_accepts_anything_is_recognised(code: str, expected: bool) -> None:
    assert any(map(accepts_anything, ast.walk(ast.parse(code)))) is expected
