"""Run a command for each of several locations: one line each, one summary, one status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from errno import EDQUOT, ENOSPC
from typing import Any

from rich.text import Text

from n5zarr.cli.command import Result
from n5zarr.cli.messages import print_text
from n5zarr.container.options import require
from n5zarr.format.foreign import format_of_name
from n5zarr.storage.place import place_of
from n5zarr.storage.secrets import named
from n5zarr.store.info import counted
from n5zarr.tools.jobs.reports import Report, new_report

type Work = Callable[[str, Report | None], tuple[str, str]]

_STYLES = {"ok": "green", "part": "cyan", "problems": "yellow", "failed": "bold red"}


def run_each(locations: Sequence[str], work: Work, given: dict[str, Any], *, quiet: bool) -> Result:
    """Run a function for each location, also after one that fails.

    Parameters
    ----------
    locations : sequence of str
        The locations.
    work : callable
        Takes a location and the report; returns ``"ok"``, ``"part"`` or ``"problems"``, and what
        to say.
    given : dict
        The options of the user, of which ``report`` is taken.
    quiet : bool
        Whether to print the summary alone.
    """
    path = given.pop("report", None)
    report = None if path is None else new_report(path, is_shared=True)
    done, problems = [], []
    try:
        for location in locations:
            try:
                status, text = work(location, report)
            except Exception as err:
                is_full = isinstance(err, OSError) and err.errno in (ENOSPC, EDQUOT)
                way_out = "; make room, and repeat the command" if is_full else ""
                status, text = "failed", f"{str(err) or type(err).__name__}{way_out}"
            done.append({"location": named(location), "status": status, "text": text})
            if not quiet:
                line = f"{named(location)}: {' '.join(text.split())}"
                print_text(Text.assemble((status.ljust(9), _STYLES[status]), line), hang=" " * 13)
    finally:  # also if the user interrupts it
        try:
            if report is not None:
                report.end()
        except OSError as err:  # a full disk
            problems.append(err)
    counts = {name: sum(each["status"] == name for each in done) for name in _STYLES}
    said = {"problems": "with problems", "part": "in part"}
    summary = [f"{count} {said.get(name, name)}" for name, count in counts.items() if count]
    return Result(
        value={"locations": done, **counts},
        text=[f"{counted(len(done), 'location')}: {', '.join(summary)}"],
        problems=problems,
        status=int(counts["ok"] + counts["part"] < len(done)),
    )


def outputs_of(sources: Sequence[str], into: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Name the destination of each source: its own name, with the suffix of the new format.

    Raises
    ------
    N5UnrepresentableError
        Two sources have one name, or one has none (``kind="option"``).
    """
    suffix = ".n5" if given.get("to") == "n5" else ".zarr"
    found: dict[str, str] = {}
    for source in sources:
        name = next(filter(None, reversed(place_of(source).names)), "")
        while format_of_name(name) is not None:
            name = name.rpartition(".")[0]
        output = f"{into.rstrip('/')}/{name}{suffix}"
        require(
            output not in found.values() and name.strip(".*?"),
            f"--into: expected sources with names of their own, got two that become {named(output)}"
            f", or one without a name: {named(source)}; convert it alone",
        )
        found[source] = output
    return found
