"""Write a report of one or more runs: what was done, with what, when, and what came of it."""

from __future__ import annotations

import json
import math
import os
import platform
import time
import warnings
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from n5zarr.container.options import require
from n5zarr.errors import N5Warning
from n5zarr.storage.secrets import is_secret, secrets_in, shown, without_secrets
from n5zarr.storage.url import is_url
from n5zarr.storage.writing import FileWriter
from n5zarr.tools.evidence.page import page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["Report", "Reported", "recording"]

type Reported = str | os.PathLike[str] | Report | None
"""Where runs are recorded: a file, or a report that several runs share."""

_VERSION = 1  # of the structure, which docs/convert.md lists
_PACKAGES = "n5zarr", "zarr", "numcodecs", "numpy"
_NO_OPTIONS = "progress", "report"
_WORST_FIRST = "failed", "problems", "ok"


class Report:
    """A report of runs: a file that is written again after each.

    Parameters
    ----------
    path : path
        The file, ``.json`` or ``.html``, in a folder that exists.
    resumes : bool, optional
        Whether to know the runs of an earlier report in the same file of JSON; see :meth:`keep`.

    Raises
    ------
    N5UnrepresentableError
        The name has another suffix, or there is no such folder (``kind="option"``).
    """

    def __init__(self, path: str | os.PathLike[str], *, resumes: bool = False) -> None:
        self.path = Path(path).absolute()
        require(
            self.path.suffix in (".json", ".html") and self.path.parent.is_dir(),
            "report (--report): expected a file *.json or *.html in a folder that exists, got "
            f"{self.path}",
        )
        self.runs: list[dict[str, Any]] = []
        self._before = _read(self.path) if resumes else {}
        self._secrets = frozenset[str]()
        self._began, self._started = time.monotonic(), _now()
        self.write()  # before hours of work, and to tell of a killed run

    def write(self, *, ended: bool = False) -> None:
        """Write the file; an existing one stays until the new one is complete."""
        states = {run["status"] for run in self.runs} | {"ok"}
        document = {
            "n5zarr_report": _VERSION,
            "status": next(s for s in _WORST_FIRST if s in states) if ended else "running",
            "started": self._started,
            "ended": _now() if ended else None,
            "seconds": round(time.monotonic() - self._began, 3),
            "program": {
                **{name: version(name) for name in _PACKAGES},
                "python": platform.python_version(),
                "platform": platform.platform(),
            },
            # an interrupted report keeps what is not yet done again
            "runs": [*self.runs, *([] if ended else self._before.get("runs", []))],
        }
        plain = self._plain(document)
        is_json = self.path.suffix == ".json"
        text = json.dumps(plain, indent=2, ensure_ascii=False) if is_json else page(plain)
        with FileWriter("atomic", lambda message: None) as writer:
            writer.write(str(self.path), f"{text}\n".encode(errors="backslashreplace"))

    def keep(
        self, command: str, places: Collection[object], *, ended: bool, **options: object
    ) -> bool:
        """Take what the earlier report says of a run without problems, if it does.

        Parameters
        ----------
        command, places
            What ran, and its locations.
        ended : bool
            Whether an earlier report that has ended counts, too.
        **options
            The options that must be the same.
        """
        located = [*map(_located, places)]
        for run in (
            self._before.get("runs", []) if ended or self._before.get("status") == "running" else ()
        ):
            is_same = run["command"] == command and [*run["locations"].values()] == located
            if is_same and run["status"] == "ok" and options.items() <= run["options"].items():
                self._before["runs"].remove(run)
                self.runs.append(run)
                return True
        return False

    @contextmanager
    def run(
        self, command: str, given: Mapping[str, Any], places: Collection[str]
    ) -> Iterator[dict[str, Any]]:
        """Record a run; see :func:`recording`."""
        self._secrets |= secrets_in(*given.values())
        entry: dict[str, Any] = {
            "command": command,
            "status": "running",
            "locations": {name: _located(given[name]) for name in places},
            "options": {
                name: _without_secrets(value)
                for name, value in given.items()
                if value is not None and name not in (*places, *_NO_OPTIONS)
            },
            "started": _now(),
            "ended": None,
            "seconds": None,
            "error": None,
            "datasets": [],
            "skipped": [],
            "warnings": [],
        }
        self.runs.append(entry)
        caught: list[warnings.WarningMessage] = []
        began = time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", N5Warning)
                yield entry
            entry["status"] = "ok" if entry["status"] == "running" else entry["status"]
        except BaseException as err:
            entry["status"], entry["error"] = "failed", _described(err)
            raise
        finally:
            entry["ended"], entry["seconds"] = _now(), round(time.monotonic() - began, 3)
            entry["warnings"] = [str(each.message) for each in caught]
            for each in caught:  # as the user's filters say
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

    def _plain(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return a value as JSON, without secrets."""
        if isinstance(value, dict):
            return {str(name): self._plain(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value]
        is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        if value is None or is_number:
            return value
        return without_secrets(str(value), self._secrets)


@contextmanager
def recording(
    report: Reported, command: str, given: Mapping[str, Any], places: Collection[str]
) -> Iterator[dict[str, Any] | None]:
    """Record a run of a function, also one that fails; its warnings follow at the end.

    Parameters
    ----------
    report : path, Report or None
        Where; None to record nothing.
    command : str
        What runs.
    given : mapping
        The parameters of the function.
    places : collection of str
        Those of them that are locations.

    Yields
    ------
    dict or None
        What the report says of the run, for results to be added; None without a report. Its member
        ``status`` becomes ``"ok"`` unless another one is set.
    """
    if report is None:
        yield None
        return
    opened = report if isinstance(report, Report) else Report(report)
    is_own = opened is not report
    try:
        with opened.run(command, given, places) as entry:
            yield entry
    except BaseException:
        with suppress(OSError):  # as of a full disk; the error of the run says more
            opened.write(ended=is_own)
        raise
    with nullcontext() if is_own else suppress(OSError):  # other runs go on
        opened.write(ended=is_own)


def _read(path: Path) -> dict[str, Any]:
    """Read an earlier report; nothing from any other file."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("n5zarr_report") == _VERSION:
            return found
    return {}


def _without_secrets(option: Any) -> Any:  # noqa: ANN401 - of any type
    if not isinstance(option, dict):
        return option
    return {name: "***" if is_secret(str(name)) else value for name, value in option.items()}


def _located(location: object) -> str:
    """Name a location: the whole path of a local one."""
    if isinstance(location, os.PathLike) or (isinstance(location, str) and not is_url(location)):
        return str(Path(location).absolute())
    return shown(location).strip("'")


def _described(err: BaseException) -> dict[str, JSON]:
    return {
        "type": type(err).__name__,
        "kind": getattr(err, "kind", None),
        "message": str(err),
        "notes": list(getattr(err, "__notes__", ())),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
