"""Record the progress of a check in a file, so that an interrupted check can continue."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.container.options import require
from n5zarr.tools.validate.parts import PartReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["State", "open_state"]


class State(NamedTuple):
    """The parts that an interrupted check has completed, and a file that records others.

    Parameters
    ----------
    done : mapping
        Reports of the completed parts, by key.
    note : callable
        Records one more report.
    """

    done: Mapping[str, PartReport]
    note: Callable[[PartReport], None]


@contextmanager
def open_state(file: str | os.PathLike[str] | None, job: Mapping[str, JSON]) -> Iterator[State]:
    """Read the state of an interrupted check, and go on with it; remove the file at the end.

    Parameters
    ----------
    file : path or None
        A local file, which need not exist; None to remember nothing.
    job : mapping
        The container, the path and the options of the check.

    Raises
    ------
    N5UnrepresentableError
        The file is not of this check (``kind="option"``); it stays as it is.
    """
    if file is None:
        yield State({}, lambda _: None)
        return
    path = Path(file)
    done = _read(path, job) if path.exists() else {}
    with path.open("a", encoding="utf-8") as lines:
        # the line before may have been cut
        lines.write(f"\n{json.dumps(job)}\n")

        def note(part: PartReport) -> None:
            lines.write(json.dumps(part.to_json()) + "\n")
            lines.flush()

        yield State(done, note)
    try:
        path.unlink(missing_ok=True)  # another run of the same check may be done first
    except PermissionError:
        if os.name != "nt":  # Windows keeps it while another run has it open, which removes it
            raise


def _read(path: Path, job: Mapping[str, JSON]) -> dict[str, PartReport]:
    """Read the reports of an interrupted check, by key."""
    lines = []
    # any file may be given by mistake
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError):  # empty, or cut, as the check was killed
            lines.append(json.loads(line))
    require(
        lines[:1] == [job] or not path.stat().st_size,
        f"state: {path}: expected the state of this check, {job}, got another file; remove it, or "
        "give another name",
    )
    reports = (PartReport.from_json(line) for line in lines if line != job)
    return {report.key: report for report in reports}
