"""Print the findings of ``validate``: similar findings share a row of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from n5zarr.cli.common import console
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from n5zarr.tools.validate.findings import Finding, Validation

__all__ = ["print_validation"]

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_NODES = 5  # of one kind of finding, each with a row of its own
_NAMED = 3  # of those in one row


def print_validation(result: Validation, *, show_all: bool) -> None:
    """Print a table of findings, and how much was checked.

    Parameters
    ----------
    result : Validation
        The result of a check.
    show_all : bool
        Whether each finding has a row.
    """
    screen = console()
    if result.findings:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for may_fold in (False, False, True):
            table.add_column(no_wrap=not may_fold, overflow="fold")
        for severity, kind, where, message in _rows(result.findings, show_all=show_all):
            style = _STYLES[severity]
            what = Text.assemble((where, "bold"), ": ", message)
            table.add_row(Text(severity, style), Text(kind), what)
        screen.print(table)
    screen.print(escape(_summary(result)))


def _rows(findings: Sequence[Finding], *, show_all: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yield severity, kind, place and message of each row."""
    if show_all:
        for each in findings:
            yield each.severity, each.kind, _place([each]), each.message
        return
    for (severity, kind), some in _grouped(findings, lambda f: (f.severity, f.kind)).items():
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


def _summary(result: Validation) -> str:
    found = [
        f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in result.by_severity.items() if n
    ]
    how = "decoded" if result.deep else "checked"
    return (
        f"{', '.join(found) or 'no problems'}: {_count(result.n_groups, 'group')}, "
        f"{_count(result.n_datasets, 'dataset')}, {_count(result.n_blocks, 'block')} of "
        f"{bytes_text(result.n_bytes)} {how} in {result.seconds:.1f} s"
    )


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
