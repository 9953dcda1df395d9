"""Define the options and arguments that several commands share: types, help and values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

__all__ = [
    "MIB",
    "Access",
    "AsJson",
    "Compression",
    "Debug",
    "DryRun",
    "Host",
    "Jobs",
    "Location",
    "MaxMemory",
    "Node",
    "Overwrite",
    "Parts",
    "Port",
    "Progress",
    "Resume",
    "json_or_text",
    "name_and_value",
    "whole_numbers",
]


MIB = 2**20


def json_or_text(text: str) -> Any:
    """Parse JSON; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def name_and_value(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}")
    return name, json_or_text(value.lower() if value in ("True", "False") else value)


def whole_numbers(text: str) -> list[int]:
    """Parse whole numbers with commas between them."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"expected whole numbers such as 2,2,2, got {text!r}") from None


Location = Annotated[
    str,
    typer.Argument(metavar="LOCATION", help="Container, node in one, or BigDataViewer's XML."),
]
Node = Annotated[str, typer.Argument(metavar="LOCATION", help="Container, group or dataset.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Compression = Annotated[
    Any,
    typer.Option(
        parser=json_or_text,
        metavar="NAME",
        help="raw, gzip, zstd, blosc, ..., or JSON. Default: as it is.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing result.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
]
MaxMemory = Annotated[
    int, typer.Option(metavar="MIB", min=1, help="Memory of all workers together, in MiB.")
]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines read.")]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free port.")]


Progress = Callable[[str, int, int], None]
"""Shows the progress of a command; no option."""


@dataclass(frozen=True)
class Access:
    """Options of the commands that read or write containers at URLs."""

    storage_option: Annotated[
        list[Any] | None,
        typer.Option(
            "--storage-option",
            "-o",
            parser=name_and_value,
            metavar="NAME=VALUE",
            help="For a URL: an option of its library, such as anon=true. May be repeated.",
        ),
    ] = None
    backend: Annotated[
        Literal["fsspec", "obstore"] | None,
        typer.Option(
            metavar="NAME",
            help="Library that reads and writes a URL: fsspec or obstore. "
            "Default: obstore if it understands all options.",
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of the library's functions."""
        return {"storage_options": dict(self.storage_option or ()) or None, "backend": self.backend}


@dataclass(frozen=True)
class Jobs:
    """Options of the commands that work on many blocks."""

    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run on threads, processes, or a dask scheduler such as tcp://host:8786. "
            "Default: threads.",
        ),
    ] = None
    n_workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of threads or processes. Default: one for each core."
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of the library's functions."""
        return vars(self)


@dataclass(frozen=True)
class Parts:
    """Options of the commands whose work several jobs can share."""

    part: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Do only one of several parts, such as 3/100: a job of a cluster for each; "
            "--finish follows.",
        ),
    ] = None
    finish: Annotated[
        bool, typer.Option("--finish", help="End the work of all parts: one job, after all others.")
    ] = False

    @property
    def next_step(self) -> str:
        """What to do after a part."""
        return f"part {self.part} has ended; when all have, the same command with --finish"

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of the library's functions."""
        return vars(self)
