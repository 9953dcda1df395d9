"""The commands that change a container in place: ``attrs`` and ``rm-empty``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import complain, print_json
from n5zarr.cli.options import ACCESS, AsJson, Node, json_or_text, options_of
from n5zarr.storage.secrets import named
from n5zarr.store.info import bytes_text


@options_of(n5zarr.get_attribute, only=ACCESS)
def attrs(
    location: Node,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="An attribute, such as a/b or a/b[2].")
    ] = "",
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="JSON; anything else is text.")
    ] = None,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the attribute KEY.")] = False,
    as_json: AsJson,
    **options: Any,
) -> None:
    """Print, set or remove attributes of a group or dataset.

    Without KEY, print all attributes; with KEY, print this attribute, or end with status 1 if it
    is missing; with VALUE, set it. All other attributes keep their order and spelling.

    Attributes are printed as JSON; --json also prints what is set or removed.

    Keys are Java's attribute paths: a/b is the member b of a, a/b[2] the third item of a list; a
    backslash before / or [ makes it part of the name. Put -- before a VALUE with a minus:
    n5zarr attrs LOCATION offset -- -5.
    """
    if remove and (value is not None or not key):
        raise typer.BadParameter("expected --remove with a KEY and without a VALUE")
    is_there = True
    changed: dict[str, Any] = {"location": location, "key": key}
    if remove:
        is_there = n5zarr.remove_attribute(location, "", key, **options)
        changed["removed"] = True
    elif value is not None:
        changed["value"] = json_or_text(value)
        n5zarr.set_attribute(location, "", key, changed["value"], **options)
    else:
        missing = object()
        found = n5zarr.get_attribute(location, "", key, default=missing, **options)  # type: ignore[arg-type]
        is_there = found is not missing
        if is_there:
            print_json(found)
    if as_json and is_there and (remove or value is not None):
        print_json(changed)
    if not is_there:
        complain("error", f"{named(str(location))}: there is no attribute {key!r}")
        raise typer.Exit(1)


@options_of(n5zarr.remove_empty_blocks)
def rm_empty(**given: Any) -> Result:
    """Remove stored blocks that hold only the fill value.

    Datasets read as before, because missing blocks read as the fill value. For a group, check all
    datasets below it. Other programs may write local blocks at the same time. If blocks are
    damaged, they stay, and the exit status is 2.
    """
    done = n5zarr.remove_empty_blocks(**given)
    would = "would be removed" if given["dry_run"] else "removed"
    pruned = f", and {done.n_directories} empty directories" if done.n_directories else ""
    text = (
        f"{done.n_removed} of {done.n_blocks} blocks {would}, {bytes_text(done.n_bytes)}, "
        f"of {done.n_datasets} datasets{pruned}"
    )
    return Result(value=done, text=[text], problems=done.problems)
