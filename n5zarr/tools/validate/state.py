"""Record the progress of a check in a file, so that an interrupted check can continue."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.tools.jobs.parts import WHOLE, Division, Part, check_ended
from n5zarr.tools.validate.batches import BatchReport

_ENDED = '{"ended": true}'  # the last line of a part


class State(NamedTuple):
    """The batches that an interrupted check has completed, and a file that records others.

    Parameters
    ----------
    done : mapping
        Reports of the completed batches, by key.
    note : callable
        Records one more report.
    """

    done: Mapping[str, BatchReport]
    note: Callable[[BatchReport], None]


@contextmanager
def open_state(
    file: str | os.PathLike[str] | None, job: Mapping[str, JSON], division: Division = WHOLE
) -> Iterator[State]:
    """Read the state of an interrupted check, and go on with it; remove the file at the end.

    A part of a check has a file of its own, which stays until the run that ends all parts.

    Parameters
    ----------
    file : path or None
        A local file, which need not exist; None to remember nothing.
    job : mapping
        The container, the path and the options of the check.
    division : Division, optional
        Which part of the check the run does.

    Raises
    ------
    N5UnrepresentableError
        The file is not of this check, or parts have not ended (``kind="option"``); the file stays
        unchanged.
    """
    require(
        division.is_whole or file is not None,
        "part, finish: expected a file that remembers what parts have found, got none: "
        "state=... (--state FILE), the same for all of them",
    )
    if file is None:
        yield State({}, lambda _: None)
        return
    path = Path(file)
    require(path.parent.is_dir(), f"state: {path}: expected a directory that exists")
    of_parts = _files_of_parts(path) if division.ends else []
    done: dict[str, BatchReport] = {}
    for part, each in of_parts:
        done |= _read(each, {**job, "part": str(part)})
    if division.part is not None:
        _check_division(path, division.part)
        path = path.with_name(f"{path.name}.part{division.part.number}of{division.part.of}")
        job = {**job, "part": str(division.part)}
    done |= _read(path, job)
    if division.part is not None and path.exists() and _has_ended(path):
        path.unlink()  # what the part checked may have changed since
        done = {}
    with path.open("a", encoding="utf-8") as lines:
        # the line before may have been cut
        lines.write(f"\n{json.dumps(job)}\n")

        def note(report: BatchReport) -> None:
            lines.write(json.dumps(asdict(report)) + "\n")
            lines.flush()

        yield State(done, note)
        if division.part is not None:
            lines.write(f"{_ENDED}\n")
            return
    for each in (path, *(file for _, file in of_parts)):
        _remove(each)


def _files_of_parts(path: Path) -> list[tuple[Part, Path]]:
    """Return the files of all parts.

    Raises
    ------
    N5UnrepresentableError
        Parts have not ended (``kind="option"``).
    """
    found = _parts_beside(path)
    ended = [part for part, file in found.items() if _has_ended(file)]
    check_ended(f"state: {path}", ended)
    return sorted(found.items())


def _parts_beside(path: Path) -> dict[Part, Path]:
    """Find the files of parts, also of those that have not ended."""
    pattern = re.compile(re.escape(path.name) + r"\.part([0-9]+)of([0-9]+)", re.ASCII)
    each = ((file, pattern.fullmatch(file.name)) for file in path.parent.iterdir())
    return {Part(int(match[1]), int(match[2])): file for file, match in each if match}


def _check_division(path: Path, part: Part) -> None:
    """Raise if others have divided the check into another number of parts."""
    others = {other.of: file for other, file in _parts_beside(path).items() if other.of != part.of}
    for of, file in others.items():
        raise option_error(
            f"state: {path}: expected one of {of} parts, as {file.name} is beside it, got {part}; "
            f"do parts of {of}, or remove the files of the others, or give another name"
        )


def _has_ended(file: Path) -> bool:
    """Whether a file is that of a part that has ended."""
    return _ENDED in file.read_text(encoding="utf-8", errors="replace").split("\n")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)  # another run of the same check may be done first
    except PermissionError:
        if os.name != "nt":  # Windows keeps it while another run has it open, which removes it
            raise


def _read(path: Path, job: Mapping[str, JSON]) -> dict[str, BatchReport]:
    """Read the reports of an interrupted check, by key; none if the file does not exist."""
    if not path.exists():
        return {}
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
    others = (job, json.loads(_ENDED))
    reports = (BatchReport.from_json(line) for line in lines if line not in others)
    return {report.key: report for report in reports}
