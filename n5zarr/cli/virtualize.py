"""The commands ``virtualize`` and ``sidecar``."""

from __future__ import annotations

import os
from typing import Any

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import counted
from n5zarr.cli.options import AsJson, options_of
from n5zarr.store.info import bytes_text

__all__ = ["sidecar", "virtualize"]

_SHOWN = 10  # datasets that are named one by one


@options_of(
    n5zarr.virtualize,
    format={"metavar": "FORMAT"},
    chunk_grid={"metavar": "GRID"},
    max_inlined={"metavar": "BYTES", "min": 0},
    message={"names": ["--message", "-m"]},
)
def virtualize(**given: Any) -> Result:
    """Write references to blocks, so that others can read the container as Zarr.

    zarr and xarray read them without n5zarr: through fsspec, as kerchunk references (*.json,
    *.parq), or through Icechunk. Blocks stay where they are; blocks that are not Zarr chunks
    (truncated, lz4, text) are copied.
    """
    os.environ.setdefault("ICECHUNK_LOG", "error")  # it warns of every local repository
    done = n5zarr.virtualize(**given)
    referenced, inlined = bytes_text(done.n_bytes_referenced), bytes_text(done.n_bytes_inlined)
    text = [
        f"{done.path}: {counted(done.n_arrays, 'array')}",
        f"{done.n_referenced:>12} chunks in blocks, {referenced}",
        f"{done.n_inlined:>12} chunks copied, {inlined}",
        f"{done.n_missing:>12} chunks without block",
    ]
    return Result(value=done, text=text)


@options_of(n5zarr.sidecar)
def sidecar(*, as_json: AsJson, **given: Any) -> Result:
    """Write zarr.json beside each document, so that the directory is Zarr, too.

    zarr reads it if n5zarr or zarr-n5 is installed; shapes are in N5 order (x, y, z). Run the
    command again when datasets have changed. It never changes a zarr.json of another program.
    """
    done = n5zarr.sidecar(**given)
    parts = [f"{done.n_removed} removed"] if done.n_removed or given["remove"] else []
    if not given["remove"]:
        parts = [f"{done.n_written} zarr.json written", f"{done.n_unchanged} unchanged", *parts]
    omitted = [f"{path or '/'}: omitted: {reason}" for path, reason in done.left_out.items()]
    if len(omitted) > _SHOWN:
        omitted[_SHOWN:] = [f"{len(omitted) - _SHOWN} more omitted (--json names all)"]
    text = [f"{done.container}: {', '.join(parts)}"]
    return Result(value=done, text=text, warnings=[] if as_json else omitted)
