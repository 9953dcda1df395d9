"""Draw arrays: colours of numbers and labels, slices side by side, a scale bar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.conventions.units import ratio
from n5zarr.errors import N5MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from PIL.Image import Image as Picture

    type Colours = npt.NDArray[np.uint8]  # height, width, 3: red, green, blue

__all__ = [
    "arrange",
    "blend",
    "contact_sheet",
    "label_colours",
    "length_unit",
    "resize",
    "round_length",
    "scale_bar_text",
    "with_scale_bar",
]

GAP = 4  # pixels between slices
BAR_HEIGHT = 22  # pixels below them
_FONT_SIZE = 12
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: neighbours get far apart
_STEPS = (1, 2, 5)
# the font that comes with Pillow has no micro sign
_LENGTHS = ((1e-12, "pm"), (1e-9, "nm"), (1e-6, "um"), (1e-3, "mm"), (1.0, "m"), (1e3, "km"))
_WHITE = (255, 255, 255)


def blend(
    channels: Sequence[npt.NDArray[Any]],
    limits: Sequence[tuple[float, float]],
    colors: Sequence[str],
) -> Colours:
    """Draw numbers: each channel from black to its colour, all added up.

    Parameters
    ----------
    channels : sequence of numpy.ndarray
        Slices of one shape ``(height, width)``. NaN is black.
    limits : sequence of tuple of float
        For each channel the values that are shown darkest and brightest.
    colors : sequence of str
        For each channel six hexadecimal digits, red first.

    Returns
    -------
    numpy.ndarray
        uint8 of shape ``(height, width, 3)``.

    Examples
    --------
    >>> import numpy as np
    >>> blend([np.array([[10, 15, 20, 99]])], [(10, 20)], ["FF8000"])[0].tolist()
    [[0, 0, 0], [128, 64, 0], [255, 128, 0], [255, 128, 0]]
    """
    total = np.zeros((*channels[0].shape, 3), np.float32)
    for values, (low, high), color in zip(channels, limits, colors, strict=True):
        # in float64, since the limits of uint64 and int64 may be far from 0
        with np.errstate(invalid="ignore", over="ignore"):
            share = (values.astype(np.float64) - low) / (high - low)
        share = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0).astype(np.float32)
        total += share[..., None] * np.frombuffer(bytes.fromhex(color), np.uint8)
    return np.clip(np.rint(total), 0, 255).astype(np.uint8)


def label_colours(labels: npt.NDArray[Any]) -> Colours:
    """Draw labels: the same label always has the same bright colour, and 0 is black.

    Parameters
    ----------
    labels : numpy.ndarray
        Integers or booleans of shape ``(height, width)``.

    Returns
    -------
    numpy.ndarray
        uint8 of shape ``(height, width, 3)``.
    """
    number = labels.astype(np.int64 if labels.dtype.kind == "i" else np.uint64).astype(np.uint64)
    mixed = number * _GOLDEN
    hue = (mixed >> np.uint64(40)).astype(np.float32) / 2**24 * 6
    # two more bits vary saturation and brightness, so that like hues differ, too
    strength = 0.6 + 0.4 * ((mixed >> np.uint64(39)) & np.uint64(1)).astype(np.float32)
    value = 0.75 + 0.25 * ((mixed >> np.uint64(38)) & np.uint64(1)).astype(np.float32)
    corners = np.array([5, 3, 1], np.float32)
    turned = (corners + hue[..., None]) % 6
    part = np.clip(np.minimum(turned, 4 - turned), 0, 1)
    colours = value[..., None] * (1 - strength[..., None] * part)
    return np.where((number != 0)[..., None], np.rint(colours * 255), 0).astype(np.uint8)


def resize(colours: Colours, height: int, width: int, *, smooth: bool) -> Colours:
    """Give a drawing another number of pixels.

    Where there are fewer, each is the mean of those that it covers, if ``smooth``; elements that
    are larger than pixels stay sharp squares.
    """
    rows, columns = colours.shape[:2]
    if not colours.size:
        return np.zeros((height, width, 3), np.uint8)
    if not smooth:
        return colours[_nearest(rows, height)[:, None], _nearest(columns, width)]
    image = _pillow().Image
    filters = image.Resampling
    drawn = image.fromarray(colours)
    # one axis after the other: anisotropic elements are larger than pixels along one of them only
    for size, less in (((width, rows), width < columns), ((width, height), height < rows)):
        drawn = drawn.resize(size, filters.BOX if less else filters.NEAREST)
    return np.asarray(drawn)


def _nearest(count: int, pixels: int) -> npt.NDArray[np.intp]:
    """Return the number of the element for each pixel."""
    return ((np.arange(pixels) + 0.5) * count / pixels).astype(np.intp)


def arrange(parts: Sequence[Sequence[Colours | None]], background: int = 40) -> Colours:
    """Put drawings into rows and columns, with gaps; those of a row have one height."""
    heights = [max(part.shape[0] for part in row if part is not None) for row in parts]
    columns = list(zip(*parts, strict=True))
    widths = [max(part.shape[1] for part in column if part is not None) for column in columns]
    shape = (sum(heights) + GAP * (len(heights) - 1), sum(widths) + GAP * (len(widths) - 1), 3)
    sheet = np.full(shape, background, np.uint8)
    top = 0
    for row, height in zip(parts, heights, strict=True):
        left = 0
        for part, width in zip(row, widths, strict=True):
            if part is not None:
                sheet[top : top + part.shape[0], left : left + part.shape[1]] = part
            left += width + GAP
        top += height + GAP
    return sheet


def round_length(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a length.

    Examples
    --------
    >>> [round_length(most) for most in (1.0, 4.9, 70, 0.3)]
    [1.0, 2.0, 50.0, 0.2]
    """
    power = math.floor(math.log10(most))
    candidates = [float(f"{step}e{power + more}") for more in (-1, 0, 1) for step in _STEPS]
    return max(length for length in candidates if length <= most * (1 + 1e-9))


def scale_bar_text(most: float, unit: str | None) -> tuple[float, str]:
    """Choose the length of a scale bar, and its text.

    Parameters
    ----------
    most : float
        The length that it may have, in ``unit``.
    unit : str, optional
        Unit of the axes; None or a unit that is no length is kept.

    Returns
    -------
    tuple
        The length in ``unit``, and the text.

    Examples
    --------
    >>> scale_bar_text(2345, "nanometer"), scale_bar_text(70, None)
    ((2000.0, '2 um'), (50.0, '50'))
    """
    in_metres = ratio(unit, "meter") or 1.0
    metres = round_length(most * in_metres)
    factor, name = length_unit(metres / in_metres, unit)
    length = float(f"{metres / in_metres:.12g}")
    return length, f"{length * factor:g} {name}".strip()


def length_unit(length: float, unit: str | None) -> tuple[float, str]:
    """Choose the unit in which a length is a number from 1 to 1000.

    Parameters
    ----------
    length : float
        The length in ``unit``.
    unit : str, optional
        A unit; None or one that is no length is kept.

    Returns
    -------
    tuple
        How many of the chosen unit one ``unit`` is, and its symbol.

    Examples
    --------
    >>> length_unit(2000, "nanometer"), length_unit(3, "degree")
    ((0.001, 'um'), (1.0, 'degree'))
    """
    in_metres = ratio(unit, "meter") if unit else None
    if in_metres is None:
        return 1.0, unit or ""
    fitting = [each for each in _LENGTHS if each[0] <= length * in_metres * 1.001]
    size, name = fitting[-1] if fitting else _LENGTHS[0]
    return float(f"{in_metres / size:.12g}"), name


def with_scale_bar(colours: Colours, length: float, text: str, most: int) -> Picture:
    """Add a strip with a scale bar below a drawing; it is empty if the text has no room.

    Parameters
    ----------
    colours : numpy.ndarray
        uint8 of shape ``(height, width, 3)``.
    length : float
        Length of the bar in pixels.
    text : str
        What it says.
    most : int
        Width in pixels that the picture may have.

    Raises
    ------
    N5MissingDependencyError
        Pillow is not installed.
    """
    pil = _pillow()
    font = pil.ImageFont.load_default(_FONT_SIZE)
    bar = max(1, round(length))
    needed = math.ceil(bar + 10 + font.getlength(text))
    height, width = colours.shape[:2]
    has_room = needed <= max(width, most)
    size = max(width, needed) if has_room else width, height + BAR_HEIGHT
    sheet: Picture = pil.Image.new("RGB", size)
    sheet.paste(pil.Image.fromarray(np.ascontiguousarray(colours)), (0, 0))
    if not has_room:
        return sheet
    draw = pil.ImageDraw.Draw(sheet)
    middle = height + BAR_HEIGHT // 2
    draw.rectangle((2, middle - 1, 1 + bar, middle + 1), fill=_WHITE)
    draw.text((bar + 8, middle), text, fill=_WHITE, font=font, anchor="lm")
    return sheet


def contact_sheet(pictures: Sequence[tuple[str, Picture]]) -> Picture:
    """Put pictures with their names side by side, in about as many rows as columns."""
    pil = _pillow()
    font = pil.ImageFont.load_default(_FONT_SIZE)
    width = max(picture.width for _, picture in pictures) + GAP
    height = max(picture.height for _, picture in pictures) + BAR_HEIGHT + GAP
    n_columns = math.ceil(math.sqrt(len(pictures)))
    n_rows = math.ceil(len(pictures) / n_columns)
    sheet: Picture = pil.Image.new("RGB", (n_columns * width - GAP, n_rows * height - GAP))
    draw = pil.ImageDraw.Draw(sheet)
    for i, (name, picture) in enumerate(pictures):
        left, top = i % n_columns * width, i // n_columns * height
        draw.text(
            (left + 2, top + BAR_HEIGHT // 2),
            _short(name, font, width),
            fill=_WHITE,
            font=font,
            anchor="lm",
        )
        sheet.paste(picture, (left, top + BAR_HEIGHT))
    return sheet


def _short(name: str, font: Any, width: float) -> str:  # noqa: ANN401 - of Pillow
    """Cut a name to a width in pixels and to characters of the font; keep its end."""
    name = name.encode("ascii", "replace").decode()
    if font.getlength(name) <= width:
        return name
    while name and font.getlength(f"...{name}") > width:
        name = name[1:]
    return f"...{name}"


def _pillow() -> Any:  # noqa: ANN401 - a package that may not be there
    try:
        import PIL.Image  # noqa: PLC0415 - optional
        import PIL.ImageDraw  # noqa: PLC0415 - optional
        import PIL.ImageFont  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("pillow", "a picture", "view") from err
    return PIL
