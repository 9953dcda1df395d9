"""Keep a file of HDF5 open between reads, as opening it costs as much as reading a small block."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, ref

from n5zarr.errors import import_optional

_IDLE = 0.25  # seconds after which a file is closed: until then nobody can open it to write
_FILES: WeakValueDictionary[str, Hdf5File] = WeakValueDictionary()
_OF_PARENT: list[Any] = []  # closing them would unlock the files of the parent process


def import_h5py() -> Any:  # noqa: ANN401 - h5py has no types
    """Import h5py.

    Raises
    ------
    N5MissingDependencyError
        The package is not installed.
    """
    return import_optional("h5py", "reading HDF5", "hdf5")


def hdf5_file(path: str) -> Hdf5File:
    """Return the file at an absolute path; the same object as long as anybody uses it."""
    return _FILES.setdefault(path, Hdf5File(path))


class Hdf5File:
    """A file of HDF5, which is opened when it is read, and closed when it is idle.

    Threads read one after the other, as h5py does. A process that was forked opens it anew, and so
    does a reader after another program has changed or replaced the file.

    Parameters
    ----------
    path : str
        The local file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: Any = None
        self._state: tuple[int, ...] = ()
        self._used = 0.0

    def __str__(self) -> str:
        return self.path

    def __reduce__(self) -> tuple[Any, ...]:
        return hdf5_file, (self.path,)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file to read it; give nothing of it to others.

        Raises
        ------
        OSError
            The file is missing or is not HDF5.
        N5MissingDependencyError
            h5py is not installed.
        """
        h5py = import_h5py()
        with self._lock:
            found = Path(self.path).stat()
            state = found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
            if state != self._state:
                self._close()
            if self._file is None:
                try:
                    self._file = h5py.File(self.path, "r")
                except OSError as err:  # which does not name the file
                    raise OSError(f"{self.path}: expected a file of HDF5, got {err}") from err
                self._state = state
                self._close_later()
            try:
                yield self._file
            except BaseException:
                self._close()
                raise
            self._used = time.monotonic()

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        with self._lock:
            self._close()

    def close_if_idle(self) -> None:
        """Close the file if nobody has read it for a while; else look again later."""
        with self._lock:
            if time.monotonic() - self._used >= _IDLE:
                self._close()
            elif self._file is not None:
                self._close_later()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _close_later(self) -> None:
        """Close the file when it is idle; if nobody has this object any more, h5py closes it."""
        timer = threading.Timer(_IDLE, _close_if_idle, [ref(self)])
        timer.daemon = True
        timer.start()

    def _forget(self) -> None:
        """Begin anew in a forked process, which has no timer and may have a locked lock."""
        _OF_PARENT.append(self._file)
        self._file = None
        self._lock = threading.Lock()


def _close_if_idle(reference: ref[Hdf5File]) -> None:
    file = reference()
    if file is not None:
        file.close_if_idle()


def _forget_all() -> None:
    for file in list(_FILES.values()):
        file._forget()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
