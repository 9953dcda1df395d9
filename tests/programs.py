"""Run programs in processes of their own, forked from one that has imported all they need.

Such a process differs from a new one in nothing but that the imports are done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

__all__ = ["Programs"]

_SERVER = """
import json, os, signal, sys
exec(sys.argv[1])
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate((os.devnull, *job["outputs"])):
            opened = os.open(name, os.O_WRONLY if number else os.O_RDONLY)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(job["folder"])
        signal.alarm(120)
        os.environ.clear()
        os.environ.update(job["environment"])
        sys.argv = ["-c", *job["arguments"]]
        exec(compile(job["code"], "<string>", "exec"))
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Programs:
    """A server that runs programs as ``python -c`` does, after the same first lines.

    Where processes cannot fork, each is a new one.

    Parameters
    ----------
    first : str
        The first lines of all programs; they may import, and start no threads.
    *options : str
        For the interpreter.
    """

    def __init__(self, first: str, *options: str) -> None:
        self._first = first
        self._command = [sys.executable, *options, "-c"]
        self._server: subprocess.Popen[str] | None = None
        if hasattr(os, "fork"):
            pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._server = subprocess.Popen([*self._command, _SERVER, first], text=True, **pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.__exit__(None, None, None)  # closes its input, with which it ends

    def run(
        self, code: str, *arguments: str, folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a program for at most two minutes; return its exit status and its output.

        Parameters
        ----------
        code : str
            What comes after the first lines.
        *arguments : str
            Its ``sys.argv[1:]``.
        folder : path, optional
            Its working directory.
        environment : dict of str to str, optional
            Its environment variables; the first lines have seen those of this process.
        """
        folder = folder or Path.cwd()
        environment = {**os.environ} if environment is None else environment
        if self._server is None:
            command = [*self._command, f"{self._first}\n{code}", *arguments]
            return subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
            job = {
                "code": code, "arguments": arguments, "folder": str(folder),
                "environment": environment, "outputs": [output.name, errors.name],
            }  # fmt: skip
            print(json.dumps(job), file=self._server.stdin, flush=True)
            status = self._server.stdout.readline()
            assert status, "the server of programs has ended"
            printed, said = output.read(), errors.read()
        return subprocess.CompletedProcess(code, int(status), printed, said)
