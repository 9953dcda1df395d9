"""The commands that write arrays or references: ``convert``, ``pyramid``, ``virtualize``, ..."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.many import outputs_of, run_each
from n5zarr.cli.messages import next_step
from n5zarr.cli.options import ACCESS, AsJson, Progress, options_of
from n5zarr.format.path import join
from n5zarr.store.info import bytes_text, counted
from n5zarr.tools.jobs.reports import Report
from n5zarr.tools.nwb_places import places_of

if TYPE_CHECKING:
    from n5zarr import Conversion, Pyramid, PyramidLevel

_MOST_ROWS = 20
_OF_DESTINATION = ("destination_options", "destination_backend")


_RARE = (
    *("ome_version", "labels", "paintera_labels", "coords", "part", "finish"),
    *("backend", "max_memory", "scheduler", "n_workers"),
)

_TO = {
    "metavar": "FORMAT",
    "help": "zarr (v3), zarr2, n5 or ome-zarr. Default: by the suffix of DESTINATION; a project "
    "needs n5 or ome-zarr.",
}


def _check_places(ctx: typer.Context, places: list[str]) -> list[str]:
    """Refuse other than two places, but with ``--into``, which is parsed before."""
    if ctx.params.get("into") is None and len(places) != 2:
        message = "Missing argument 'DESTINATION'" if len(places) < 2 else "got several places"
        raise typer.BadParameter(f"{message}; SOURCE... --into DIR takes any number")
    return places


@options_of(n5zarr.convert, omit=("source", "destination", *_OF_DESTINATION), rare=_RARE, to=_TO)
def convert(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE DESTINATION",
            callback=_check_places,
            help="What to copy: N5, Zarr (also zipped), HDF5, TIFF, BigDataViewer's XML, or a node "
            "in one; and where: *.n5, *.zarr, or an XML for a whole project.",
        ),
    ],
    *,
    as_json: AsJson = False,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", is_eager=True, help="Copy all SOURCEs into DIR; without DESTINATION."
        ),
    ] = None,
    **given: Any,
) -> Result:
    """Copy N5, Zarr, HDF5 or TIFF to N5 or Zarr: a dataset, a group or a container.

    If chunks and compression stay, copy the stored bytes. Sizes are in C order (z, y, x).
    DESTINATION can be opened only when it is complete.

    Of several sources, as in 'n5zarr convert *.n5 --into out/', one that fails does not keep others
    from being copied; the same command again goes on.
    """
    if into is not None:
        outputs = outputs_of(places, into, given)
        work = partial(_convert_into, outputs, given)
        return run_each(places, work, given, quiet=as_json)
    source, destination = places
    done = _convert(source, destination, given)
    text = _text(done, given.get("part"))
    return Result(value=done, text=text, status=int(done.same_places is False))


def _convert(source: str, destination: str, given: Mapping[str, Any]) -> Conversion:
    options = {name: value for name, value in given.items() if name not in ACCESS}
    access = [given.get(name) for name in ACCESS]
    for place, names in ((source, ACCESS), (destination, _OF_DESTINATION)):
        options |= dict(zip(names, access, strict=True)) if "://" in place else {}
    return n5zarr.convert(source, destination, **options)


def _convert_into(
    outputs: Mapping[str, str], given: Mapping[str, Any], source: str, report: Report | None
) -> tuple[str, str]:
    """Copy one of several sources, unless an earlier run has."""
    places, verify = (source, outputs[source]), given["verify"]
    options = {**given, "resume": not given["overwrite"]}
    if not (given["overwrite"] or given["dry_run"]) and _was_finished(places, options):
        was_checked = report.keep(places, ended=True, verify=verify) if report else not verify
        if was_checked:
            state = "compared" if verify else "finished"
            return "ok", f"{outputs[source]} was {state} by an earlier run, and not read again"
    done = _convert(*places, {**options, "report": report})
    *_, text = _text(done, given.get("part"))
    status = "part" if given.get("part") else "ok"
    return "problems" if done.same_places is False else status, str(text)


def _was_finished(places: tuple[str, str], options: Mapping[str, Any]) -> bool:
    """Whether an earlier run has finished the copy, and the source is complete if it must be."""
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # converting it raises, too
        for is_complete in sorted({False, options["expect_complete"]}):
            planned = {**options, "expect_complete": is_complete, "dry_run": True}
            if not _convert(*places, planned).was_finished:
                return False
        return True
    return False


@options_of(n5zarr.rechunk)
def rechunk(location: str, **given: Any) -> Result:
    """Change the block size or compression of the datasets below LOCATION, in place.

    Write the new datasets beside the container, into .NAME.rechunk, and compare them; then each
    replaces the old one. Only for local containers that no other program is writing.
    """
    done = replace(n5zarr.rechunk(location, **given), destination=location)
    return Result(value=done, text=_text(done, given.get("part")))


def _text(done: Conversion, part: str | None) -> Iterator[RenderableType]:
    table = Table.grid(*(Column(overflow="fold") for _ in range(4)), padding=(0, 2))
    for array in done.arrays[:_MOST_ROWS]:
        shards = f" in shards {array.shards}" if array.shards else ""
        chunks = f"chunks {array.chunks}{shards}"
        table.add_row(array.path or "/", str(array.shape), chunks, _WAYS[array.way])
    yield table
    if len(done.arrays) > _MOST_ROWS:
        yield f"... and {len(done.arrays) - _MOST_ROWS} more"
    if part is not None and not done.dry_run:
        n_written = sum(array.n_written for array in done.arrays)
        written = f"{done.destination}: {counted(n_written, 'chunk')} written"
        yield f"{written}, in {done.seconds:.1f} s; {next_step(part)}"
    else:
        yield str(done)


_WAYS = {
    "blocks": "blocks passed through",
    "chunks": "chunks passed through",
    "shards": "chunks joined into shards",
    "values": "encoded anew",
}


@options_of(n5zarr.build_pyramid)
def pyramid(**given: Any) -> Result:
    """Write coarser levels s1, s2, ... beside the dataset s0.

    LOCATION is s0 or its group; of OME-Zarr 0.4 to 0.6, the image or its first level. Any other
    dataset of N5 is copied to s0 with --to. The levels appear when all are complete; you can
    resume an interrupted run. Blocks with only zeros are not written.
    """
    made = n5zarr.build_pyramid(**given)
    part = given.get("part")
    verb = "would be" if given["dry_run"] else "were" if part is None else "are being"
    return Result(value=made, text=_levels_text(made, verb, part))


def _levels_text(made: Pyramid, verb: str, part: str | None) -> Iterator[RenderableType]:
    yield Text(f"{made.container}  /{made.path}", "bold")
    if made.source:
        one = verb.replace("were", "was")
        yield f"{made.source} {one} copied to /{join(made.path, 's0')}"
    if not made.levels:
        yield "s0 is small enough: no levels"
        return
    if made.removed:
        yield f"{'to be removed' if verb == 'would be' else 'removed'}: {', '.join(made.removed)}"
    yield f"{verb} made with {made.method}, described as {made.convention}:"
    table = Table.grid(*(Column(overflow="fold") for _ in range(6)), padding=(0, 2, 0, 0))
    table.add_row("", "shape", "of s0", "voxel size", "blocks", "size", style="dim")
    for level in made.levels:
        table.add_row(*_row(level))
    yield table
    if part is not None:
        yield next_step(part)


def _row(level: PyramidLevel) -> tuple[str, ...]:
    blocks, size = f"{level.n_blocks}", f"{bytes_text(level.n_bytes)} unpacked"
    if level.n_blocks_stored is not None and level.n_bytes_stored is not None:
        blocks = f"{level.n_blocks_stored} of {level.n_blocks}"
        size = bytes_text(level.n_bytes_stored)
    units = list(dict.fromkeys(unit for unit in level.units if unit))
    voxel = _list([f"{size:g}" for size in level.scale])
    return (
        level.path.rpartition("/")[2],
        _list(level.shape),
        _list(level.factors),
        f"{voxel} {units[0]}" if len(units) == 1 else voxel,
        blocks,
        size,
    )


def _list(values: Sequence[object]) -> str:
    return f"({', '.join(map(str, values))})"


@options_of(
    n5zarr.download,
    directory={"metavar": "DIR"},
    paths={"metavar": "PATH", "names": ["--path"]},
    select={"metavar": "GLOB"},
)
def download(**given: Any) -> Result:
    """Copy a part of a container to local files, as N5, byte for byte.

    Datasets keep their paths and dimensions; blocks outside the --box are missing and read as 0.
    The documents of the parent groups are copied, too. In a pyramid the --box counts elements of
    the largest level; the other levels use the same physical region. There, : is a whole axis.

    Blocks that exist with the same size are not loaded again: repeat an interrupted command to
    continue, or download another --box into the same DIR.
    """
    done = n5zarr.download(**given)
    loaded = "would be loaded" if given["dry_run"] else "loaded"
    n_there = done.n_blocks - done.n_loaded
    there = f"; {n_there} were there" if n_there else ""
    text = (
        f"{done.container}: {done.n_loaded} of {done.n_blocks} blocks {loaded}, "
        f"{bytes_text(done.n_bytes_loaded)}, of {counted(len(done.datasets), 'dataset')}{there}"
    )
    return Result(value=done, text=[text])


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


def convert_nwb(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="NWB file as HDF5, N5 or Zarr.")],
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="*.n5, *.zarr or *.nwb (HDF5).")
    ],
    *,
    progress: Progress,
    to: Annotated[
        Literal["hdf5", "n5", "zarr"] | None,
        typer.Option(help="Format of DESTINATION. Default: chosen by its suffix."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing result.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify", help="Compare DESTINATION with SOURCE, value by value."
        ),
    ] = True,
) -> Result:
    """Copy an NWB file to another format.

    DESTINATION appears only when it is complete and verified: every group, dataset, link,
    attribute, data type, value and specification. Targets of links into other files are copied.
    """
    places_of(source, destination, to, overwrite=overwrite)  # hdmf takes seconds to import
    from n5zarr import hdmf  # noqa: PLC0415 - the extra may be missing

    hdmf.convert(source, destination, to=to, overwrite=overwrite, verify=verify, progress=progress)
    checked = f"equal to {source}" if verify else "not compared"
    value = {"source": source, "destination": destination, "verified": verify}
    return Result(value=value, text=[f"{destination}: written, {checked}"])
