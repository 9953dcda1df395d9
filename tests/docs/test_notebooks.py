"""The notebooks run twice in one folder, and show the stored outputs, which are small."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.notebooks import NOTEBOOKS, execute, read

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 200_000  # of a notebook
PICTURE = re.compile(r"(?<=base64,)[^\"]+")
OF_A_MACHINE = re.compile(
    r"0x[0-9a-f]{6,}"  # addresses
    r"|[0-9a-f]{8}-[0-9a-f]{4}-"  # identifiers that are made anew
    r"|(?<![\w.])/(?:home|root|tmp|work|usr|Users|var|private)/"
    r"|\d\d:\d\d:\d\d"
)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def shown(notebook: Any) -> list[Any]:
    """Return the outputs of the cells: text as it is, and a mark for each picture."""
    found: list[Any] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                found.append((cell.id, output.name, output.text))
                continue
            assert output.output_type != "error", output.evalue
            data = {
                kind: "a picture" if kind == "image/png" else PICTURE.sub("a picture", value)
                for kind, value in output.data.items()
            }
            found.append((cell.id, output.output_type, data))
    return found


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("notebooks")
    made = execute([read(path) for path in NOTEBOOKS], folder, times=2)
    assert list(folder.iterdir()) == []
    return {path.name: notebook for path, notebook in zip(NOTEBOOKS, made, strict=True)}


@pytest.mark.long
@every_notebook
def test_a_notebook_runs_twice_and_shows_what_is_stored(
    path: Path, executed: dict[str, Any]
) -> None:
    assert shown(executed[path.name]) == shown(read(path))


@every_notebook
def test_stored_outputs_are_small_and_name_no_machine(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    notebook = read(path)
    found = shown(notebook)
    assert any("a picture" in str(output) for output in found)
    assert not OF_A_MACHINE.search(str(found))
    assert notebook.metadata.keys() == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        assert cell.get("execution_count") is None
    assert re.search(r'pip install "n5zarr\[[\w,]+\]"', notebook.cells[0].source)
