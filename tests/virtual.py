"""Run a process that reads references without n5zarr, see :mod:`tests.virtual_reader`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from n5zarr import Virtualization

type Read = Callable[[list[dict[str, Any]]], Any]


def reference(written: Virtualization, **options: Any) -> dict[str, Any]:
    """Return the location of references for the reader, with options."""
    return {"path": written.path, "prefix": written.prefix, **options}


@contextlib.contextmanager
def reader() -> Iterator[Read]:
    """Start the process; yield a function that makes it read."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("virtual_reader.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    quiet = os.environ | {"ICECHUNK_LOG": "error"}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stderr=errors, env=quiet, **pipes) as process,  # type: ignore[call-overload]
    ):

        def read(references: list[dict[str, Any]]) -> Any:
            print(json.dumps(references), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            if not answer:
                errors.seek(0)
                raise AssertionError(errors.read())
            return json.loads(answer)

        yield read
        process.stdin.close()
