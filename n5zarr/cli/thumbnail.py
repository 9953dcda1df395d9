"""The command ``thumbnail``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from n5zarr.cli.command import Result
from n5zarr.cli.options import ACCESS, Location, options_of
from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.images.find import find_images
from n5zarr.storage.writing import FileWriter
from n5zarr.viewing.thumbnail import SIZES, draw_images

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


def _position(text: str) -> list[int] | dict[str, int]:
    """Parse ``20,48,64`` or ``z=20,t=3``."""
    parts = [part.partition("=") for part in text.split(",")]
    names = [name.strip() for name, equals, _ in parts if equals]
    if len(names) != len(set(names)):
        raise typer.BadParameter(f"expected each axis once, got {text!r}")
    try:
        if len(names) == len(parts):
            return {name: int(at) for name, (_, _, at) in zip(names, parts, strict=True)}
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"expected voxels such as 20,48,64 or z=20,t=3, got {text!r}"
        ) from None


_Position = Annotated[
    Any,
    typer.Option(
        parser=_position,
        metavar="Z,Y,X",
        help="Position of the slices as a full-resolution voxel, or by names, such as z=20,t=3. "
        "Default: the middle.",
    ),
]


@options_of(find_images, only=ACCESS, storage_options={"names": ["--storage-option"]})
def thumbnail(
    location: Location,
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Picture to write, such as em.png."),
    ],
    size: Annotated[
        int,
        typer.Option(
            min=SIZES[0], max=SIZES[1], metavar="PIXELS", help="Largest width and height."
        ),
    ] = 512,
    level: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Level of the pyramid. Default: fits the size."),
    ] = None,
    position: _Position = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(metavar="CHANNEL", help="Number or name of a channel. May be repeated."),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Paths of images that are labels. May be repeated."),
    ] = None,
    all_images: Annotated[
        bool, typer.Option("--all", help="Draw all images, with their names.")
    ] = False,
    **access: Any,
) -> Result:
    """Draw an image: slices through its middle, with a scale bar.

    Draw the first image at LOCATION: xy, zy beside it, and xz below it, in physical proportions.
    """
    require(
        output.parent.is_dir(),
        f"output: {output}: expected a folder that exists, got {output.parent}",
    )
    images = find_images(location, labels=labels or (), **access)
    picture = draw_images(
        images if all_images else images[0],
        size=size,
        level=level,
        position=position,
        channel=channel or None,
    )
    _write(picture, output)
    drawn = [image.path or image.name for image in (images if all_images else images[:1])]
    value = {
        "output": str(output),
        "width": picture.width,
        "height": picture.height,
        "images": drawn,
        "n_images": len(images),
    }
    return Result(value=value, text=_text(value))


def _text(done: dict[str, Any]) -> Iterator[str]:
    yield f"Wrote {done['output']}: {done['width']} x {done['height']} pixels."
    if done["n_images"] > len(done["images"]):
        first, *_ = done["images"]
        yield f"Drew {first}, the first of {done['n_images']} images; --all draws all."


def _write(picture: Picture, output: Path) -> None:
    """Write a picture; one that exists stays until the new one is complete."""
    encoded = io.BytesIO()
    encoded.name = output.name  # tells the format
    try:
        picture.save(encoded)
    except (ValueError, OSError) as err:  # an extension that is unknown, or cannot be written
        raise option_error(f"output: {output}: expected a name such as em.png: {err}") from err
    if output.exists() and not output.is_file():  # a pipe
        output.write_bytes(encoded.getvalue())
    else:
        with FileWriter("atomic", lambda message: None) as writer:
            writer.write(str(output.absolute()), encoded.getvalue())
