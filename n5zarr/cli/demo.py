"""The command ``demo``: read, draw and write containers, as a user would."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import zarr
from rich.text import Text

import n5zarr
from n5zarr.cli.messages import print_text
from n5zarr.cli.tree import print_tree
from n5zarr.errors import N5MissingDependencyError, option_error
from n5zarr.metadata import inspect

_READING = (
    "path = n5zarr.sample_path()",
    'root = zarr.open(n5zarr.N5Store(path), mode="r")',
    'array = root["em/s0"]; array',
    "array.metadata.dimension_names",
    "array.attrs['resolution'], array.attrs['units']",
    "array[20, 40:44, 60:68]",
    "box = array[10:30, 20:80, 30:110]",
    "print(box.min(), box.mean().round(2), box.max())",
    'np.unique(n5zarr.open(path, path="labels/s0")[20])',
)
_WRITING = (
    "half = array[::2, ::2, ::2]; half.shape",
    """new = n5zarr.create_array("new.n5/em/half", shape=half.shape, dtype="uint8",
    chunks=(16, 20, 25), axes="zyx",
    units=["nm"] * 3, resolution=[40, 16, 16])""",
    "new[:] = half",
    '(zarr.open(n5zarr.N5Store("new.n5"), mode="r")["em/half"][:] == half).all()',
    'print(*json.loads(Path("new.n5/em/half/attributes.json").read_text()))',
)
_EXPLANATION = """\
The container is N5 as Java writes it: attributes.json files and one file for
each block, axes x first. n5zarr.N5Store showed it to zarr as Zarr v3, axes z
first, and passed full-size blocks through; n5zarr.open decoded the labels.
What was written is N5 again, for Java, tensorstore and z5py as for zarr."""


def demo(
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Picture to write.")
    ] = "n5zarr-demo.png",
) -> None:
    """Read the sample container, write a picture of it, and write a new container."""
    path = n5zarr.sample_path()
    names = {"n5zarr": n5zarr, "np": np, "Path": Path, "zarr": zarr, "json": json}
    print_text(Text.assemble(("The container", "bold"), "  n5zarr tree SAMPLE\n"))
    print_tree(inspect.describe_each(path, geometry=True))
    print_text(Text("\nReading it\n", "bold"), *_run(_READING, names), "")
    try:
        n5zarr.plot(f"{path}/em").savefig(output, dpi=120)
    except ValueError as err:
        raise option_error(f"output: {err}") from err
    except N5MissingDependencyError as err:
        print_text(f"No picture: {err}")
    else:
        print_text(f"Wrote {Path(output).resolve()}: slices through the middle of em.")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        print_text(Text("\nWriting\n", "bold"), *_run(_WRITING, names))
    print_text(Text("\nWhat happened\n", "bold"), _EXPLANATION)
    print_text(
        Text("\nWhat to try next\n", "bold"),
        f"  n5zarr info {path}/em/s0",
        f"  n5zarr view {n5zarr.sample_path('bigstitcher')}",
        "  n5zarr tree YOUR.n5",
        "  python -c \"import n5zarr; print(n5zarr.open('YOUR.n5/path/to/dataset'))\"",
    )


def _run(lines: Iterable[str], names: dict[str, object]) -> Iterator[str]:
    """Run lines of Python as a console does; yield each line, and what it prints."""
    for line in lines:
        yield ">>> " + line.replace("\n", "\n... ")
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(line, "demo", "single"), names)  # noqa: S102 - the lines above
        yield from printed.getvalue().splitlines()
