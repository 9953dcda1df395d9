"""Execute the notebooks, and store their outputs.

Run ``uv run python -m tests.notebooks`` to make the stored outputs anew. They are read where they
lie, so they are small, and the same on every machine: no paths of it, no times, no addresses.
"""

from __future__ import annotations

import base64
import io
import re
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

import n5zarr

__all__ = ["NOTEBOOKS", "execute", "read"]

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
_COLOURS = 64  # of a stored picture
_PATHS = {str(Path(n5zarr.sample_path()).parent): "n5zarr/data"}
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def execute(notebooks: Sequence[Any], folder: Path, *, times: int = 1) -> list[Any]:
    """Execute notebooks in a folder, and return them with outputs as they are stored.

    They share a kernel, so that libraries are imported once, but no variables. A cell that fails
    has the error as its output.

    Parameters
    ----------
    notebooks : sequence of nbformat.NotebookNode
        The notebooks; they stay as they are.
    folder : path
        The working directory.
    times : int, optional
        How often each is executed; the outputs are those of the last time.
    """
    made = [deepcopy(notebook) for notebook in notebooks]
    code = [[c for c in notebook.cells if c.cell_type == "code"] for notebook in made]
    runs = [["%reset -f", *(cell.source for cell in cells)] for cells in code for _ in range(times)]
    run = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for sources in runs for source in sources]
    )
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        run, timeout=120, iopub_timeout=60, allow_errors=True, resources=resources
    ).execute()
    done = iter(run.cells)
    for notebook, cells in zip(made, code, strict=True):
        for _ in range((times - 1) * (1 + len(cells)) + 1):  # all before, and the last %reset
            next(done)
        for cell in cells:
            outputs = [_stored(output, folder) for output in _joined(next(done).outputs)]
            cell.update(execution_count=None, outputs=outputs)
        for cell in notebook.cells:
            cell.metadata = {}
    return made


def _joined(outputs: list[Any]) -> list[Any]:
    """Join output that was printed in several pieces, as the pieces depend on the time."""
    joined: list[Any] = []
    for output in outputs:
        is_more = joined and output.output_type == "stream" == joined[-1].output_type
        if is_more and output.name == joined[-1].name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _stored(output: Any, folder: Path) -> Any:
    if "execution_count" in output:
        output.execution_count = None
    if "text" in output:
        output.text = _without_machine(output.text, folder)
    if "data" in output:
        output.metadata = {}
        data = output.data
        if "image/png" in data:
            data.pop("image/jpeg", None)
            data["image/png"] = _small(data["image/png"])
        for kind in ("text/plain", "text/html"):
            if kind in data:
                data[kind] = _without_machine(data[kind], folder)
    return output


def _without_machine(text: str, folder: Path) -> str:
    for path, name in {**_PATHS, f"{folder}/": "", tempfile.gettempdir(): "/tmp"}.items():  # noqa: S108
        text = text.replace(path, name)
    return _ADDRESS.sub("", text)


def _small(png: str) -> str:
    """Return a picture with few colours."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    buffer = io.BytesIO()
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = execute([read(path) for path in NOTEBOOKS], Path(folder))
    for path, notebook in zip(NOTEBOOKS, made, strict=True):
        nbformat.write(notebook, path)
        print(path.name, f"{path.stat().st_size / 1024:.0f} KiB")  # noqa: T201


if __name__ == "__main__":
    _main()
