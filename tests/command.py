"""Run the command line in this process, with its commands built only once."""

from __future__ import annotations

from functools import cache
from typing import Any

from typer import testing
from typer.testing import CliRunner

__all__ = ["CliRunner", "printed"]

_TESTING: Any = testing
_TESTING._get_command = cache(_TESTING._get_command)  # a third of the time of a small command


def printed(*arguments: object, status: int = 0) -> str:
    """Run a command, check its exit status, and return what it prints."""
    from n5zarr.cli.app import app  # noqa: PLC0415 - takes a second

    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output
