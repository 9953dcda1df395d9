"""The command ``validate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from n5zarr.cli.common import (
    AsJson,
    Debug,
    Library,
    Location,
    Options,
    Scheduler,
    complain,
    console,
    errors_in_one_line,
    print_json,
    storage_options,
)
from n5zarr.cli.findings import print_validation
from n5zarr.cli.progress import progress_bar
from n5zarr.tools.validate import check
from n5zarr.tools.validate.edges import repair_edges
from n5zarr.tools.validate.leftovers import clean_leftovers
from n5zarr.tools.validate.quarantine import quarantine_blocks, restore_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.tools.validate.findings import Validation

__all__ = ["validate"]

_SHOWN = 3  # names in one line


_All = Annotated[
    bool, typer.Option("--all", help="One row for each problem, also for similar ones.")
]
_Clean = Annotated[
    bool, typer.Option("--clean", help="Remove leftovers of killed writers, if an hour old.")
]
_Quarantine = Annotated[
    bool, typer.Option("--quarantine", help="Move damaged blocks beside the container.")
]
_Edges = Annotated[
    Literal["pad", "truncate"] | None,
    typer.Option("--repair-edges", help="Pad or truncate all blocks at the end of datasets."),
]
_Restore = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="First move blocks back from the quarantine in DIR."),
]
_State = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Record progress in FILE; continue if interrupted."),
]


def validate(
    location: Location,
    deep: Annotated[bool, typer.Option("--deep", help="Decode every block.")] = False,
    as_json: AsJson = False,
    show_all: _All = False,
    clean: _Clean = False,
    quarantine: _Quarantine = False,
    edges: _Edges = None,
    restore: _Restore = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Change files without asking.")] = False,
    state: _State = None,
    scheduler: Scheduler = None,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Check every document and every block of a container, or of a part of it.

    Without --deep, check headers, sizes and both ends of each block.
    A note reports something legal but unusual.

    The exit status is 0 if there are no errors or warnings, or if repairs
    solved all of them; 1 if some are left; 2 if PATH cannot be checked.
    """
    with errors_in_one_line(debug=debug):
        options: Any = {"storage_options": storage_options(option), "backend": backend}
        if restore is not None:
            back = restore_blocks(restore, location, **options)
            _say("moved back", list(back.moved), back.kept)
        with progress_bar() as show:
            result = check.validate(
                location,
                deep=deep,
                state=state,
                **options,
                scheduler=scheduler,
                progress=show,
            )
        if as_json:
            print_json(result.to_json())
        else:
            print_validation(result, show_all=show_all)
        if clean:
            result = _clean(result, location, options, yes=yes)
        if quarantine:
            result = _quarantine(result, location, options, yes=yes)
        if edges is not None:
            _repair_edges(location, edges, options, scheduler, yes=yes)
    if not result.ok:
        raise typer.Exit(1)


def _clean(
    result: Validation, location: str, options: Mapping[str, Any], *, yes: bool
) -> Validation:
    """Remove leftovers; return the result without them."""
    files = [each.file for each in result.findings if each.repair == "clean"]
    if not _is_agreed(f"Remove {_files(files)}", len(files), yes=yes):
        return result
    cleaned = clean_leftovers(location, result.findings, **options)
    _say("removed", list(cleaned.removed), cleaned.kept)
    return _without(result, {*cleaned.removed})


def _quarantine(
    result: Validation, location: str, options: Mapping[str, Any], *, yes: bool
) -> Validation:
    """Move damaged blocks aside; return the result without them."""
    blocks = [each.key for each in result.findings if each.repair == "quarantine"]
    question = f"Move {_files(blocks)} beside the container, so that they read as 0"
    if not _is_agreed(question, len(blocks), yes=yes):
        return result
    moved = quarantine_blocks(location, result.findings, **options)
    _say(
        f"moved to {moved.quarantine}" if moved.quarantine else "moved",
        list(moved.moved),
        moved.kept,
    )
    return _without(result, {*moved.moved})


def _repair_edges(
    location: str,
    to: Literal["pad", "truncate"],
    options: Mapping[str, Any],
    scheduler: str | None,
    *,
    yes: bool,
) -> None:
    loses = "; what they hold outside of it is lost" if to == "truncate" else " with 0"
    question = f"{to.capitalize()} all blocks at the end of each dataset below {location}{loses}"
    if not _is_agreed(question, 1, yes=yes):
        return
    with progress_bar() as show:
        done = repair_edges(location, to=to, scheduler=scheduler, progress=show, **options)
    screen = console(stderr=True)
    screen.print(
        f"{done.n_rewritten} blocks written again, {done.n_as_wanted} were so already"
        + (f"; {done.n_with_values} had values outside of the dataset" if loses[0] == ";" else ""),
        soft_wrap=True,
    )
    for name, why in done.skipped.items():
        complain("warning", f"{name}: not changed: {why}")


def _without(result: Validation, keys: set[str]) -> Validation:
    left = tuple(each for each in result.findings if each.key not in keys)
    return replace(result, findings=left)


def _files(names: list[str | None]) -> str:
    """Count files, and name some."""
    some = ", ".join(map(str, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    return f"{len(names)} file{'' if len(names) == 1 else 's'} ({some})"


def _say(done: str, names: list[str], kept: Mapping[str, str]) -> None:
    """Print the result of a repair on standard error."""
    screen = console(stderr=True)
    if names:
        screen.print(escape(f"{done}: {_files([*names])}"), soft_wrap=True)
    for name, why in kept.items():
        complain("warning", f"{name}: not changed: {why}")


def _is_agreed(question: str, n: int, *, yes: bool) -> bool:
    """Ask before files are changed; without a terminal, the answer is no."""
    if n == 0 or yes:
        return n > 0
    try:
        return typer.confirm(f"{question}?", err=True)
    except typer.Abort:
        complain("error", "nothing was changed, as nobody answered; --yes skips the question")
        raise typer.Exit(2) from None
