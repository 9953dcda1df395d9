"""The command ``diff``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import n5zarr
from n5zarr.cli.common import (
    AsJson,
    Debug,
    Library,
    Options,
    Scheduler,
    Workers,
    complain_of_each,
    errors_in_one_line,
    print_json,
    say,
    storage_options,
)
from n5zarr.cli.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.tools.diff.arrays import ArrayDifference
    from n5zarr.tools.diff.nodes import Comparison, Difference

__all__ = ["diff"]

_LONGEST = 60  # characters of a value in a line


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="N5 or Zarr: path or URL of a node.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The node to compare it with.")],
    attributes: Annotated[
        bool, typer.Option("--attributes/--no-attributes", help="Compare attributes.")
    ] = True,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="Compare the values of arrays.")
    ] = True,
    tolerance: Annotated[
        float, typer.Option(min=0, metavar="X", help="Ignore differences of numbers up to X.")
    ] = 0,
    as_json: AsJson = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Compare two arrays, groups or containers, of N5 or Zarr.

    Print the differences: nodes, shapes, data types, axes, attributes, values. Ignore how they are
    stored. A missing block equals the fill value, and NaN equals NaN.

    The exit status is 0 if they are equal, 1 if they differ, and 2 if a node cannot be read.
    """
    with errors_in_one_line(debug=debug), progress_bar() as show:
        found = n5zarr.compare(
            first,
            second,
            attributes=attributes,
            values=values,
            tolerance=tolerance,
            storage_options=storage_options(option),
            backend=backend,
            scheduler=scheduler,
            n_workers=workers,
            progress=show,
        )
    problems = [str(problem) for problem in found.problems]
    if as_json:
        print_json({**asdict(found), "problems": problems, "is_equal": found.is_equal})
    else:
        for line in _lines(found):
            say(line)
    complain_of_each(problems)
    if not found.is_equal:
        raise typer.Exit(2 if problems else 1)


def _lines(found: Comparison) -> Iterator[str]:
    for difference in found.differences:
        yield from _described(difference)
    n = len(found.differences)
    counted = f"{_number(found.n_groups, 'group')} and {_number(found.n_arrays, 'array')} compared"
    elements = f", {found.n_elements} elements" if found.n_elements else ", no values"
    yield f"{_number(n, 'difference') if n else 'equal'}: {counted}{elements}"


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _described(difference: Difference) -> Iterator[str]:
    """Yield the line of a difference, and one for each of the first elements that differ."""
    place = f"/{difference.path}"
    if difference.values is not None:
        yield f"{place}: {_values(difference.values)}"
        for element in difference.values.elements:
            where = ", ".join(map(str, element.position))
            yield f"  [{where}]: {element.first!r}, then {element.second!r}"
    elif difference.what == "missing":
        side = "B" if difference.first is None else "A"
        yield f"{place}: only in {side}: {difference.first or difference.second}"
    else:
        what = f"{difference.what.replace('-', ' ')} {difference.key}".rstrip()
        yield f"{place}: {what}: {_short(difference.first)}, then {_short(difference.second)}"


def _values(values: ArrayDifference) -> str:
    share = values.n_differing / values.n_elements
    most = "" if values.largest is None else f", by at most {values.largest:g}"
    return f"values: {values.n_differing} of {values.n_elements} differ ({share:.2g}){most}"


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
