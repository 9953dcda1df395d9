"""The command ``info``, with the histogram of ``--stats``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import console
from n5zarr.cli.options import ACCESS, AsJson, Location, options_of
from n5zarr.cli.progress import progress_bar
from n5zarr.cli.tree import STYLES, setup_text
from n5zarr.metadata import inspect
from n5zarr.store.info import bytes_text, ranges, rows

if TYPE_CHECKING:
    from n5zarr import BlockStatistics

_MOST_CHILDREN = 1000  # of a group that is read
_PICTURE = 78  # columns of a histogram, at most
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ROWS = 16  # of a histogram, at most
_SHARE = 11  # columns beside the bars


@options_of(inspect.describe, only=ACCESS)
def info(
    location: Location,
    *,
    as_json: AsJson = False,
    size: Annotated[
        bool, typer.Option("--size/--no-size", help="Count blocks and bytes stored.")
    ] = True,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show range, histogram and empty blocks of a sample.")
    ] = False,
    all_blocks: Annotated[
        bool, typer.Option("--all-blocks", help="With --stats: read all blocks.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Decode every block, as validate --deep does.")
    ] = False,
    **options: Any,
) -> Result:
    """Print the metadata of a group or dataset.

    With --verify, also list damaged blocks and unfinished files of killed writers; the exit status
    is 2 if blocks are damaged. The command validate finds more.
    """
    description = inspect.describe(
        location, size=size, limit=None if as_json else _MOST_CHILDREN, **options
    )
    found = None
    if stats:
        sample: dict[str, Any] = {"n_blocks": None} if all_blocks else {}
        with progress_bar() as show:
            found = n5zarr.block_statistics(location, **sample, progress=show, **options)
        description["statistics"] = asdict(found)
    findings = n5zarr.validate(location, deep=True, **options).findings if verify else ()
    damage = [
        f"{description['container']}: {each}" for each in findings if each.severity == "error"
    ]
    unfinished = [each.file for each in findings if each.kind == "unfinished-file"]
    if verify:
        description |= {"damaged_blocks": [*damage], "unfinished_files": [*unfinished]}
    return Result(
        value=description,
        text=_text(description, found),
        problems=damage,
        warnings=[
            f"{name}: left by a killed writer; never read, can be removed" for name in unfinished
        ],
    )


def _text(node: Mapping[str, Any], found: BlockStatistics | None) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    stats = () if found is None else _statistics_rows(found)
    for row in (*rows(node), *_project_rows(node), *stats):
        table.add_row(*row)
    yield Text.assemble((node["container"], STYLES[node["kind"]]), f"  {node['path']}")
    yield table
    if found is not None:
        screen = console()
        yield from histogram_lines(
            found, min(screen.width, _PICTURE), ascii_only=screen.options.ascii_only
        )
    if node["attributes"]:
        yield Text("attributes", "dim")
        for key, value in node["attributes"].items():
            yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


def _project_rows(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows about BigDataViewer's XML; none without it."""
    project = node.get("project")
    if project is None:
        return
    yield "XML", project["xml"]
    timepoints = project["timepoints"]
    yield "time points", "not understood" if timepoints is None else ranges(timepoints)
    missing = [f"setup {v['setup']} at {v['timepoint']}" for v in project["missing_views"]]
    yield "missing views", ", ".join(missing) or "none"
    lists = [f"{label} ({n} lists)" for label, n in project["interest_points"].items()]
    yield "interest points", ", ".join(lists) or "none"
    for setup in project["setups"]:
        sizes = " x ".join(map(str, setup["size_n5"]))
        voxel = " x ".join(f"{size:g}" for size in setup["voxel_size_n5"])
        parts = [setup_text(setup), f"{sizes} voxels" if sizes else ""]
        parts.append(f"of {voxel} {setup['unit']}" if voxel else "")
        yield f"setup {setup['setup']}", "  ".join(filter(None, parts))


def _statistics_rows(found: BlockStatistics) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line."""
    how = "a sample of" if found.is_sample else "all"
    yield "statistics of", f"{how} {found.n_read} of {found.n_stored} stored blocks"
    if found.minimum is not None and found.maximum is not None:
        number = "d" if found.has_integers else ".10g"
        yield "range", f"{found.minimum:{number}} to {found.maximum:{number}}"
        yield "mean", f"{found.mean:.6g}"
    if found.n_nan or found.n_infinite:
        yield "not finite", f"{found.n_nan} NaN, {found.n_infinite} infinite"
    n_missing = found.n_blocks - found.n_stored
    of_sample = " in the sample" if found.is_sample else ""
    zero = f"{found.n_zero} of {found.n_read}{of_sample} hold only 0"
    share = "" if found.empty_share is None else f"{found.empty_share:.1%}: "
    yield "empty blocks", f"{share}{n_missing} of {found.n_blocks} are missing, {zero}"
    if found.compression_ratio is not None:
        stored = f"{bytes_text(found.n_bytes)} in {bytes_text(found.n_bytes_stored)}"
        yield "compression ratio", f"{found.compression_ratio:.2f} ({stored})"


def histogram_lines(found: BlockStatistics, width: int, *, ascii_only: bool) -> Iterator[str]:
    """Draw a histogram as horizontal bars.

    Parameters
    ----------
    found : BlockStatistics
        With the histogram.
    width : int
        Columns of the terminal.
    ascii_only : bool
        Whether to draw with ``#``.

    Yields
    ------
    str
        The values of a bar, the last one included if they are integers, the bar, and its share.
    """
    edges, counts = found.bin_edges, found.histogram
    size = max(1, -(-len(counts) // _ROWS))
    starts = range(0, len(counts), size)
    sums = [sum(counts[i : i + size]) for i in starts]
    names = [
        _values(edges[i], edges[min(i + size, len(counts))], are_integers=found.has_integers)
        for i in starts
    ]
    label = max(map(len, names), default=0)
    room = max(8, width - label - _SHARE)
    for name, n in zip(names, sums, strict=True):
        bar = _bar(n / max(sums) * room, ascii_only=ascii_only).ljust(room)
        yield f"{name.rjust(label)}  {bar} {n / sum(sums):8.2%}"


def _values(low: float, high: float, *, are_integers: bool) -> str:
    """Name the values of a bar, from ``low`` to below ``high``.

    Examples
    --------
    >>> _values(4.0, 8.0, are_integers=True), _values(4.0, 5.0, are_integers=True)
    ('4 to 7', '4')
    >>> _values(0.25, 0.5, are_integers=False)
    '0.25 to 0.5'
    """
    if are_integers:
        first, last = int(low), int(high) - 1
        return f"{first}" if first >= last else f"{first} to {last}"
    return f"{low:.6g} to {high:.6g}"


def _bar(length: float, *, ascii_only: bool) -> str:
    """Draw a bar of some columns; anything is visible."""
    if ascii_only:
        return "#" * (round(length) or int(length > 0))
    eighths = round(8 * length) or int(length > 0)
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
