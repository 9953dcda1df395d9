"""The command ``attrs``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import n5zarr
from n5zarr.cli.common import (
    Debug,
    Library,
    Node,
    Options,
    complain,
    errors_in_one_line,
    print_json,
    storage_options,
)

__all__ = ["attrs"]


def attrs(
    location: Node,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="An attribute, such as a/b or a/b[2].")
    ] = "",
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="JSON; anything else is text.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the attribute KEY.")] = False,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Print, set or remove attributes of a group or dataset.

    Without KEY, print all attributes; with KEY, print this attribute, or end with status 1 if it
    is missing; with VALUE, set it. All other attributes keep their order and spelling.

    Keys are Java's attribute paths: a/b is the member b of a, a/b[2] the third item of a list; a
    backslash before / or [ makes it part of the name. Put -- before a VALUE with a minus:
    n5zarr attrs PATH offset -- -5.
    """
    if remove and (value is not None or not key):
        message = "expected --remove with a KEY and without a VALUE"
        raise typer.BadParameter(message)
    with errors_in_one_line(debug=debug):
        options = storage_options(option)
        if remove:
            is_there = n5zarr.remove_attribute(
                location, "", key, storage_options=options, backend=backend
            )
        elif value is not None:
            n5zarr.set_attribute(
                location, "", key, _parsed(value), storage_options=options, backend=backend
            )
            is_there = True
        else:
            missing: Any = object()
            found = n5zarr.get_attribute(
                location, "", key, default=missing, storage_options=options, backend=backend
            )
            is_there = found is not missing
            if is_there:
                print_json(found)
    if not is_there:
        complain("error", f"{location}: there is no attribute {key!r}")
        raise typer.Exit(1)


def _parsed(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
