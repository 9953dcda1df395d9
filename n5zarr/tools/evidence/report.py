"""Write a report of one or more runs: what was done, with what, when, and what came of it.

Arrays are described by their stored blocks and bytes, and by the hash of their values.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import platform
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import box_shape, boxes
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import each_key
from n5zarr.container.options import require
from n5zarr.errors import N5Error, N5Warning, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import strict
from n5zarr.images.source import ArraySource
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.secrets import is_secret, secrets_in, shown, without_secrets
from n5zarr.storage.url import is_url, local_path
from n5zarr.storage.writing import FileWriter
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import ShownStore
from n5zarr.tools.jobs.incomplete import left_beside, remove_left
from n5zarr.tools.jobs.nodes import count_blocks, name_of_type
from n5zarr.tools.jobs.run import MAX_MEMORY, RunOptions

_MARK = "n5zarr_report"
_VERSION = 2  # of the structure, which docs/reports.md lists; 1 has whole paths
_PACKAGES = "n5zarr", "zarr", "numcodecs", "numpy"
_WORST_FIRST = "failed", "running", "problems", "part", "ok"
_ANY_LENGTH = "OT"  # kinds of numpy's data types
_NO_ARRAY = "elements of any length are no plain array"
_LABELS = "the most frequent label of each voxel is hashed"
_LOCAL = re.compile(r"\A(?:file|zip)://")  # as zarr calls its stores
_BLOCK = re.compile(r"c|(?:c[/.])?[0-9]+(?:[/.][0-9]+)*")  # its key below an array


class Report:
    """A report of runs: a file that is written again after each.

    The runs of an existing report stay, but those that are repeated: the same command at the same
    locations.

    Parameters
    ----------
    path : path
        The file ``*.json``, in a folder that exists.
    is_shared : bool, optional
        Whether several runs are recorded; :meth:`end` ends it.

    Raises
    ------
    N5UnrepresentableError
        The name has another suffix, there is no such folder, or the file is no report
        (``kind="option"``).
    """

    def __init__(self, path: str | os.PathLike[str], *, is_shared: bool = False) -> None:
        self.path = Path(path).absolute()
        require(
            self.path.suffix == ".json" and self.path.parent.is_dir(),
            f"report (--report): expected a file *.json in a folder that exists, got {self.path}",
        )
        self._is_shared = is_shared
        old = self.path.read_bytes() if self.path.is_file() else None
        runs = self._runs_in(old)
        before = json.loads(old) if old else {}
        self._before = {"status": "", "started": "", **before, "runs": runs}
        self._runs: list[dict[str, Any]] = []
        self._secrets = frozenset[str]()
        self._began, self._started = time.monotonic(), _now()
        folder = LocalFiles(self.path.parent)
        left = left_beside(folder, {self.path.name})
        self._write("running")  # before hours of work, and to tell of a killed run
        remove_left(folder, left)

    def end(self) -> None:
        """Write the file with the worst status of all runs."""
        self._write()

    def _write(self, status: str = "") -> None:
        """Write the file; runs that others have added meanwhile stay."""
        programs = {name: version(name) for name in _PACKAGES}
        machine = {"python": platform.python_version(), "platform": platform.platform()}

        def written(old: bytes | None) -> bytes:
            repeated = [self._plain(_key(run)) for run in self._runs]
            others = [run for run in self._runs_in(old) if _key(run) not in repeated]
            runs = [*self._runs, *others]
            states = {"ok", *(run["status"] for run in runs if not _is_finished(run, runs))}
            whole = status or next(status for status in _WORST_FIRST if status in states)
            document = {
                _MARK: _VERSION,
                "status": whole,
                "started": self._started,
                "ended": None if whole == "running" else _now(),
                "seconds": round(time.monotonic() - self._began, 3),
                "program": {**programs, **machine},
                "runs": runs,
            }
            text = json.dumps(self._plain(strict(document)), indent=2, ensure_ascii=False)
            return f"{text}\n".encode(errors="backslashreplace")

        with FileWriter("atomic", lambda message: None) as writer:
            writer.update(str(self.path), written)

    def keep(self, places: Sequence[object], *, ended: bool, **options: object) -> bool:
        """Keep what the earlier report says of a run; see ``tools.jobs.reports``."""
        before, located = self._before, [*map(self._located, places)]
        is_killed, began = before["status"] == "running", before["started"]
        for run in before["runs"]:
            is_same = [*run["locations"].values()] == located and run["status"] == "ok"
            counts = ended or (is_killed and run["started"] >= began)
            if (
                is_same
                and counts
                and not run["options"].get("dry_run")
                and options.items() <= run["options"].items()
            ):
                self._runs.append(run)
                return True
        return False

    @contextmanager
    def run(
        self, command: str, places: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Iterator[RunReport]:
        """Record a run, also one that fails; its warnings follow at its end."""
        self._secrets |= secrets_in(*places.values(), *options.values())
        entry: dict[str, Any] = {
            "command": command,
            "status": "running",
            "locations": {name: self._located(place) for name, place in places.items()},
            "options": {name: _hidden(v) for name, v in options.items() if v is not None},
            **dict.fromkeys(("started", "ended", "seconds", "error")),
            **{name: [] for name in ("datasets", "skipped", "warnings")},
        }
        self._runs.append(entry)
        caught: list[warnings.WarningMessage] = []
        entry["started"], began = _now(), time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", N5Warning)
                yield RunReport(entry, self._relative)
            entry["status"] = entry["status"].replace("running", "ok")
        except BaseException as err:  # interrupted by the user, too
            notes, kind = getattr(err, "__notes__", ()), getattr(err, "kind", None)
            told = {"type": type(err).__name__, "kind": kind, "message": str(err), "notes": notes}
            entry |= {"status": "failed", "error": told}
            raise
        finally:
            entry["ended"], entry["seconds"] = _now(), round(time.monotonic() - began, 3)
            entry["warnings"] = [str(each.message) for each in caught]
            # a full disk: the error of the run says more, and other runs go on
            with suppress(OSError) if entry["error"] or self._is_shared else nullcontext():
                self._write("running") if self._is_shared else self.end()
            for each in caught:  # as the user's filters say
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

    def _runs_in(self, data: bytes | None) -> list[dict[str, Any]]:
        """Return the runs of a report; none of a missing one.

        Raises
        ------
        N5UnrepresentableError
            It is no report of a known version (``kind="option"``).
        """
        if data is None:
            return []
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found = json.loads(data)
            if found[_MARK] in range(1, _VERSION + 1):
                runs: list[dict[str, Any]] = found["runs"]
                for run in runs:
                    places = run["locations"].items()
                    run["locations"] = {name: self._relative(place) for name, place in places}
                    _key(run), run["status"], run["started"]
                return runs
        message = f"expected a report of version 1 or 2, or no file, got {self.path}; move it"
        raise option_error(f"report (--report): {message}")

    def _located(self, location: object) -> str:
        """Name a location: the path of a local one from the folder of the report."""
        if isinstance(location, os.PathLike) or (
            isinstance(location, str) and not is_url(location)
        ):
            return self._relative(str(Path(local_path(os.fspath(location))).resolve()))
        return shown(location).strip("'")

    def _relative(self, path: str) -> str:
        """Return a path from the folder of the report; that of another drive as it is."""
        with suppress(ValueError):
            if Path(path).is_absolute():
                return Path(os.path.relpath(path, self.path.parent.resolve())).as_posix()
        return path

    def _plain(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return a value as JSON, without secrets."""
        if isinstance(value, dict):
            return {str(name): self._plain(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value]
        is_number = isinstance(value, int | float)
        return value if value is None or is_number else without_secrets(str(value), self._secrets)


def _key(run: Mapping[str, Any]) -> list[object]:
    """Return what a repeated run has in common with the first."""
    options = run["options"]
    return [run["command"], run["locations"], bool(options.get("dry_run")), options.get("part")]


def _hidden(option: Any) -> Any:  # noqa: ANN401 - of any type
    """Return an option without the values that its names call secrets, also short ones."""
    if not isinstance(option, dict):
        return option
    return {name: "***" if is_secret(str(name)) else value for name, value in option.items()}


def _is_finished(run: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run has written a part of a copy that another run has finished."""
    return run["status"] == "part" and any(
        each["options"].get("finish") and each["status"] == "ok"
        for each in runs
        if each["locations"] == run["locations"]
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------------- arrays


@dataclass
class RunReport:
    """What a report says of one run; see the protocol in ``tools.jobs.reports``."""

    entry: dict[str, Any]
    relative: Callable[[str], str]

    def add_arrays(
        self,
        arrays: Mapping[str, Mapping[str, ArraySource]],
        options: RunOptions,
        *,
        hashed: Sequence[str] = (),
        max_memory: int = MAX_MEMORY,
        keeps_going: bool = False,
    ) -> None:
        """Describe arrays, and hash the values of some sides."""
        datasets, tasks = self.entry["datasets"], {}
        datasets.clear()
        n_at_once = 2 * max(1, min(options.n_at_once, len(arrays) * len(hashed)))
        memory, disk = max_memory // n_at_once, shutil.disk_usage(gettempdir()).free // n_at_once
        for path, sides in arrays.items():
            described = {name: self._described(array) for name, array in sides.items()}
            shape = next(iter(sides.values())).shape
            datasets.append({"path": path, "shape": shape, "dimensions": shape[::-1], **described})
            for name in hashed:
                tasks[_Hash(sides[name], memory, disk, keeps_going)] = described[name]
        total = sum(task.n_bytes for task in tasks)
        for task, found in options.each(_Hash.run, tasks, "hash", total):
            tasks[task].update(found)

    def _described(self, array: ArraySource) -> dict[str, JSON]:
        n_blocks, n_stored = count_blocks(array)
        n_bytes = n_blocks and array.stored and sum(map(_n_bytes, array.stored))
        return {
            "name": self.relative(_LOCAL.sub("", array.name)) or None,
            "data_type": name_of_type(array.native_dtype),
            "chunks": array.chunks,
            "blocks": n_blocks,
            "blocks_stored": n_stored,
            "bytes_stored": n_bytes or (0 if n_stored == 0 else None),
            "sha256": None,
        }


def _n_bytes(stored: Any) -> int:  # noqa: ANN401 - an array of Zarr, or the blocks of N5
    """Count the bytes of the stored blocks, chunks or shards."""
    store = stored.store.storage.store if isinstance(stored.store, N5Store) else stored.store
    if isinstance(store, ShownStore):  # of another format, whose files have other sizes
        size = sync(store.getsize_prefix(stored.path))
        return size - sync(store.getsize(join(stored.path, ATTRIBUTES_JSON)))

    async def of_some(keys: Sequence[str]) -> int:
        return sum(await asyncio.gather(*(store.getsize(join(stored.path, k)) for k in keys)))

    keys = each_key(store, stored.path)
    return sum(sync(of_some([k for k in some if _BLOCK.fullmatch(k)])) for some in keys)


@dataclass(frozen=True, eq=False)
class _Hash:
    """Hash the values of an array; it can be pickled for other processes."""

    array: ArraySource
    max_bytes: int
    max_on_disk: int
    keeps_going: bool

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.array.shape) * self.array.item_size

    def run(self) -> dict[str, JSON]:
        """Return the hash, or why there is none."""
        if self.array.native_dtype.kind in _ANY_LENGTH:
            return {"note": _NO_ARRAY}
        digest = hashlib.sha256()
        try:
            for part in self._in_order():
                digest.update(part.reshape(-1).view(np.uint8))
        except N5Error as err:
            if not self.keeps_going:
                raise
            return {"note": str(err)}
        note = _LABELS if self.array.holds_multisets else None
        return {"sha256": digest.hexdigest(), "note": note}

    def _in_order(self) -> Iterator[np.ndarray]:
        """Yield all values in C order, little-endian.

        Blocks are decoded once: layers of them that memory does not hold are put together in a
        temporary file. If that has no room, either, blocks are decoded for each part of a layer.
        """
        shape, size = self.array.shape, self.array.item_size
        room, dtype = max(1, self.max_bytes // size), self.array.native_dtype.newbyteorder("<")
        units = [max(1, min(n, own)) for n, own in zip(shape, self.array.chunks, strict=True)]
        step = box_shape(shape, units, shape, room)
        first = next((axis for axis, n in enumerate(step) if n > 1), 0)
        layer = (*step[: first + 1], *shape[first + 1 :])
        if math.prod(step) > room or math.prod(layer) * size > self.max_on_disk:
            layer = step = box_shape(shape, [1] * len(shape), shape, room)
        for slab in boxes(shape, layer) if 0 not in shape else ():
            if layer == step:
                yield np.ascontiguousarray(read_on_host(self.array.values, slab), dtype)
                continue
            with TemporaryFile() as file:  # stays until its memory is free
                extent = tuple(part.stop - part.start for part in slab)
                whole = np.memmap(file, dtype, "w+", shape=extent)
            for box in boxes(extent, step):
                each = zip(slab, box, strict=True)
                place = tuple(slice(s.start + p.start, s.start + p.stop) for s, p in each)
                whole[box] = read_on_host(self.array.values, place)
            yield whole
