"""The command ``thumbnail``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from n5zarr.cli.common import Debug, Library, Location, console, errors_in_one_line, storage_options
from n5zarr.errors import N5UnrepresentableError
from n5zarr.images.find import find_images
from n5zarr.storage.writing import FileWriter
from n5zarr.viewing.thumbnail import SIZES, draw_images

__all__ = ["thumbnail"]

_Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Picture to write, such as em.png.")
]
_Size = Annotated[
    int,
    typer.Option(min=SIZES[0], max=SIZES[1], metavar="PIXELS", help="Largest width and height."),
]
_Level = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Level of the pyramid. Default: fits the size."),
]
_Position = Annotated[
    str | None,
    typer.Option(
        metavar="Z,Y,X",
        help="Position of the slices as a full-resolution voxel, or by names, such as "
        "z=20,t=3. Default: the middle.",
    ),
]
_Channel = Annotated[
    list[str] | None,
    typer.Option(metavar="CHANNEL", help="Number or name of a channel. May be repeated."),
]
_Labels = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Paths of images that are labels. May be repeated."),
]
_All = Annotated[bool, typer.Option("--all", help="Draw all images, with their names.")]
_Options = Annotated[  # as of other commands, but -o is the file here
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="For a URL: an option of its library, such as anon=true. May be repeated.",
    ),
]


def thumbnail(
    location: Location,
    output: _Output,
    size: _Size = 512,
    level: _Level = None,
    position: _Position = None,
    channel: _Channel = None,
    labels: _Labels = None,
    all_images: _All = False,
    option: _Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Draw an image: slices through its middle, with a scale bar.

    Draw the first image at PATH: xy, zy beside it, and xz below it, in physical proportions.
    """
    with errors_in_one_line(debug=debug):
        at = _position(position)
        if not output.parent.is_dir():
            message = f"output: {output}: expected a folder that exists, got {output.parent}"
            raise N5UnrepresentableError(message, kind="option")
        options = storage_options(option)
        images = find_images(
            location, labels=labels or (), storage_options=options, backend=backend
        )
        picture = draw_images(
            images if all_images else images[0],
            size=size,
            level=level,
            position=at,
            channel=channel or None,
        )
        encoded = io.BytesIO()  # a file that is there stays if this fails
        encoded.name = output.name  # tells the format
        try:
            picture.save(encoded)
        except (ValueError, OSError) as err:  # an extension that is unknown, or cannot be written
            message = f"output: {output}: expected a name such as em.png: {err}"
            raise N5UnrepresentableError(message, kind="option") from err
        _write(output, encoded.getvalue())
    lines = [f"Wrote {output}: {picture.width} x {picture.height} pixels."]
    if len(images) > 1 and not all_images:
        name = images[0].path or images[0].name
        lines.append(f"Drew {name}, the first of {len(images)} images; --all draws all.")
    for line in lines:
        console().print(escape(line), soft_wrap=True)


def _position(text: str | None) -> list[int] | dict[str, int] | None:
    """Parse ``20,48,64`` or ``z=20,t=3``."""
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    names = [name.strip() for name, equals, _ in parts if equals]
    if len(names) != len(set(names)):
        message = f"expected each axis once, got {text!r}"
        raise typer.BadParameter(message, param_hint="--position")
    try:
        if len(names) == len(parts):
            return {name: int(at) for name, (_, _, at) in zip(names, parts, strict=True)}
        return [int(part) for part in text.split(",")]
    except ValueError:
        message = f"expected voxels such as 20,48,64 or z=20,t=3, got {text!r}"
        raise typer.BadParameter(message, param_hint="--position") from None


def _write(output: Path, data: bytes) -> None:
    """Write a picture; one that is there stays until the new one is written."""
    if output.exists() and not output.is_file():  # a pipe
        output.write_bytes(data)
        return
    with FileWriter("atomic", lambda message: None) as writer:
        writer.write(str(output.absolute()), data)
