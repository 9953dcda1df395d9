"""The command ``nwb convert``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.markup import escape

from n5zarr.cli.common import Debug, console, errors_in_one_line
from n5zarr.cli.progress import progress_bar

__all__ = ["nwb"]

nwb = typer.Typer(help="Work with NWB files.", no_args_is_help=True)


@nwb.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="NWB file as HDF5, N5 or Zarr.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="*.n5, *.zarr or *.nwb (HDF5).")],
    to: Annotated[
        Literal["hdf5", "n5", "zarr"] | None,
        typer.Option(help="Format of OUT. Default: chosen by its suffix."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare OUT with IN, value by value.")
    ] = True,
    debug: Debug = False,
) -> None:
    """Copy an NWB file to another format.

    OUT appears only when it is complete and verified: every group, dataset, link, attribute, data
    type, value and specification. Targets of links into other files are copied.
    """
    with errors_in_one_line(debug=debug):
        from n5zarr import hdmf  # noqa: PLC0415 - the extra may be missing

        with progress_bar() as show:
            hdmf.convert(source, target, to=to, overwrite=overwrite, verify=verify, progress=show)
        checked = f"equal to {source}" if verify else "not compared"
        console().print(f"{escape(target)}: written, {escape(checked)}", soft_wrap=True)
