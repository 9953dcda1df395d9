"""The command ``validate``: check, show the findings in a table, repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.many import run_each
from n5zarr.cli.messages import complain, print_text
from n5zarr.cli.options import ACCESS, AsJson, options_of
from n5zarr.cli.progress import progress_bar
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.storage.secrets import named
from n5zarr.store.info import counted
from n5zarr.tools.jobs.reports import Report

if TYPE_CHECKING:
    from n5zarr import Finding, Validation

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_NODES = 5  # of one kind of finding, each with a row of its own
_COUNTED = 10  # datasets whose blocks are counted, each in a line of its own
_NAMED = 3  # files or nodes in one line
_OF_ONE = "clean", "quarantine", "repair_edges", "restore", "state", "part", "finish"

_Restore = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="First move blocks back from the quarantine in DIR."),
]


@options_of(n5zarr.validate, omit=("location", "progress"), state={"metavar": "FILE"})
def validate(
    locations: Annotated[
        list[str],
        typer.Argument(metavar="LOCATION", help="Container, node in one, or project's XML."),
    ],
    *,
    as_json: AsJson = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print one row for each problem, also for similar ones.")
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove leftovers of killed writers, if an hour old.")
    ] = False,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Move damaged blocks beside the container.")
    ] = False,
    repair_edges: Annotated[
        Literal["pad", "truncate"] | None,
        typer.Option(help="Pad or truncate all blocks at the end of datasets."),
    ] = None,
    restore: _Restore = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Change files without asking.")] = False,
    **given: Any,
) -> None:
    """Check every document and every block of a container, or of a part of it.

    Without --deep, check headers, sizes and both ends of each block; of OME-Zarr, check only the
    metadata. A note reports something legal but unusual. Missing blocks are legal and read as the
    fill value; the last lines count them.

    The exit status is 0 if there are no errors or warnings, or if repairs solved all of them; 1 if
    some are left; 2 if LOCATION cannot be checked. Of several, each gets a line, and the status
    is 1 if one has problems or cannot be checked.
    """
    location, *others = locations
    if others:
        own = {"clean": clean, "quarantine": quarantine, "repair_edges": repair_edges}
        _check_each(locations, given, {**own, "restore": restore}, as_json=as_json)
        return
    options = {name: given[name] for name in ACCESS if name in given}
    if restore is not None:
        back = n5zarr.restore_blocks(restore, location, **options)
        _report("moved back", back.moved, back.kept)
    with progress_bar() as show:
        result = n5zarr.validate(location, progress=show, **given)
    Result(value=result.to_json(), text=show_findings(result, show_all=show_all)).show(
        as_json=as_json
    )
    if clean:
        result = _clean(result, location, options, yes=yes)
    if quarantine:
        result = _quarantine(result, location, options, yes=yes)
    if repair_edges is not None:
        options |= {name: given[name] for name in ("scheduler", "n_workers") if name in given}
        _repair_edges(location, repair_edges, options, yes=yes)
    if not result.ok:
        raise typer.Exit(1)


def _check_each(
    locations: list[str], given: dict[str, Any], repairs: Mapping[str, Any], *, as_json: bool
) -> None:
    """Check several locations, each in one line."""
    for name in _OF_ONE:
        if {**repairs, **given}.get(name):
            option = name.replace("_", "-")
            raise typer.BadParameter(f"expected one LOCATION with --{option}, got several")
    run_each(locations, partial(_check, given), given, quiet=as_json).show(as_json=as_json)


def _check(given: Mapping[str, Any], location: str, report: Report | None) -> tuple[str, str]:
    """Check one of several locations, unless an interrupted run has."""
    same = {name: given[name] for name in ("deep", "expect_complete")}
    if report is not None and report.keep([location], ended=False, **same):
        return "ok", "was checked by the interrupted run"
    with progress_bar() as show:
        result = n5zarr.validate(location, report=report, progress=show, **given)
    worst = result.findings[0] if result.findings else None  # the first of all
    if worst is None or worst.severity == "note":
        return "ok", str(result)
    place = _place([worst])
    return "problems", f"{result}; {worst.kind}: {place}: {worst.message}"


def _clean(
    result: Validation, location: str, options: Mapping[str, Any], *, yes: bool
) -> Validation:
    """Ask the user, remove leftover files, and return the result without their findings."""
    files = [str(each.key) for each in result.findings if each.repair == "clean"]
    if not files or not _is_agreed(f"Remove {_count(files)}", yes=yes):
        return result
    done = n5zarr.clean_leftovers(location, result.findings, **options)
    _report("removed", done.removed, done.kept)
    return _without(result, done.removed)


def _quarantine(
    result: Validation, location: str, options: Mapping[str, Any], *, yes: bool
) -> Validation:
    """Move damaged blocks aside; return the result without them."""
    blocks = [str(each.key) for each in result.findings if each.repair == "quarantine"]
    question = f"Move {_count(blocks)} beside the container, so that they read as 0"
    if not blocks or not _is_agreed(question, yes=yes):
        return result
    done = n5zarr.quarantine_blocks(location, result.findings, **options)
    _report(f"moved to {done.quarantine}", done.moved, done.kept)
    return _without(result, done.moved)


def _repair_edges(
    location: str, to: Literal["pad", "truncate"], options: Mapping[str, Any], *, yes: bool
) -> None:
    loses = "; what they hold outside of it is lost" if to == "truncate" else " with 0"
    place = named(str(location))
    question = f"{to.capitalize()} all blocks at the end of each dataset below {place}{loses}"
    if not _is_agreed(question, yes=yes):
        return
    with progress_bar() as show:
        done = n5zarr.repair_edges(location, to=to, progress=show, **options)
    text = f"{done.n_rewritten} blocks written again, {done.n_as_wanted} were so already"
    lost = f"; {done.n_with_values} had values outside of the dataset" if to == "truncate" else ""
    print_text(f"{text}{lost}", stderr=True)
    _report("", (), done.skipped)


def _without(result: Validation, keys: Sequence[str]) -> Validation:
    return replace(result, findings=tuple(f for f in result.findings if f.key not in keys))


def _count(names: Sequence[str]) -> str:
    """Count files, and name some."""
    return f"{counted(len(names), 'file')} ({_some(names)})"


def _report(done: str, names: Sequence[str], kept: Mapping[str, str]) -> None:
    """Print the result of a repair on standard error."""
    if names:
        print_text(f"{done}: {_count(names)}", stderr=True)
    for name, why in kept.items():
        complain("warning", f"{name}: not changed: {why}")


def _is_agreed(question: str, *, yes: bool) -> bool:
    """Ask before files are changed; without a terminal, the answer is no."""
    if yes:
        return True
    print_text(f"{question}?", stderr=True)
    try:
        return typer.confirm("Do it?", err=True)
    except typer.Abort:
        complain("error", "nothing was changed, as nobody answered; --yes skips the question")
        raise typer.Exit(2) from None


def show_findings(result: Validation, *, show_all: bool) -> Iterator[RenderableType]:
    """Yield a table of findings, and a line about how much was checked.

    Parameters
    ----------
    result : Validation
        The result of a check.
    show_all : bool
        Whether each finding has a row.
    """
    if result.findings:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for may_fold in (False, False, True):
            table.add_column(no_wrap=not may_fold, overflow="fold")
        for severity, kind, where, message in _rows(result.findings, show_all=show_all):
            what = Text.assemble((where, "bold"), ": ", message)
            table.add_row(Text(severity, _STYLES[severity]), kind, what)
        yield table
    yield str(result)
    yield from _counts(result)


def _counts(result: Validation) -> Iterator[str]:
    """Count the stored blocks of each dataset; of many datasets, only of those that lack some."""
    counts = result.block_counts
    lacking = [each for each in counts if not each.is_complete]
    shown = counts if len(counts) <= _COUNTED else lacking[:_COUNTED]
    for each in shown:
        name = each.path or "/"
        yield f"  {name}: {each.n_stored} of {counted(each.n_blocks, 'block')} stored"
    if len(lacking) > len(shown):
        yield f"  ... and {len(lacking) - len(shown)} more that lack blocks (--json names all)"
    if len(counts) > _COUNTED and len(lacking) < len(counts):
        others = " other" if lacking else ""
        n = len(counts) - len(lacking)
        yield f"  all blocks of {n}{others} {'dataset' if n == 1 else 'datasets'} are stored"


def _rows(findings: Sequence[Finding], *, show_all: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yield severity, kind, place and message of each row."""
    if show_all:
        for each in findings:
            yield each.severity, each.kind, _place([each]), each.message
        return
    for (severity, kind), some in _grouped(findings, lambda f: (f.severity, f.kind)).items():
        if kind == "project":  # of which no two are similar
            yield from ((severity, kind, each.file or "/", each.message) for each in some)
            continue
        by_path = _grouped(some, lambda f: (f.path,))
        if len(by_path) <= _NODES:
            for alike in by_path.values():
                yield severity, kind, _place(alike), _message(alike)
        else:
            names = [path or "/" for (path,) in by_path]
            yield severity, kind, f"{len(names)} nodes: {_some(names)}", _message(some)


def _grouped[K: tuple[str, ...]](
    findings: Sequence[Finding], key: Callable[[Finding], K]
) -> dict[K, list[Finding]]:
    """Sort findings into groups, in the order in which the first of each comes."""
    groups: dict[K, list[Finding]] = {}
    for each in findings:
        groups.setdefault(key(each), []).append(each)
    return groups


def _place(alike: Sequence[Finding]) -> str:
    """Name the node with its blocks or files."""
    path = alike[0].path
    things = [
        block_path(N5Tuple(each.block)) if each.block is not None else each.file or ""
        for each in alike
    ]
    if not any(things):
        return path or "/"
    word = "block" if alike[0].block is not None else "file"
    names = [name.removeprefix(f"{path}/") if path else name for name in things]
    count = f"{word} " if len(names) == 1 else f"{len(names)} {word}s: "
    return f"{path or '/'}: {count}{_some(names)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _message(alike: Sequence[Finding]) -> str:
    """Return the message that they have in common, or an example."""
    first = alike[0].message
    is_common = all(each.message == first for each in alike)
    return first if is_common else f"{first} (the first)"
