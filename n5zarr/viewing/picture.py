"""Draw arrays as pictures: colour numbers and labels, arrange slices, add a scale bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.conventions.units import ratio
from n5zarr.errors import N5MissingDependencyError

if TYPE_CHECKING:
    import numpy.typing as npt
    from PIL.Image import Image as Picture


type Colours = npt.NDArray[np.uint8]  # height, width, 3: red, green, blue

GAP = 4  # pixels between slices
BAR_HEIGHT = 22  # pixels of the strip with the scale bar
_FONT_SIZE = 12
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads consecutive labels
_STEPS = (1, 2, 5)
# "um", since the font of Pillow has no micro sign
_LENGTHS = ((1e-12, "pm"), (1e-9, "nm"), (1e-6, "um"), (1e-3, "mm"), (1.0, "m"), (1e3, "km"))
_WHITE = (255, 255, 255)


def blend(
    channels: Sequence[npt.NDArray[Any]],
    limits: Sequence[tuple[float, float]],
    colors: Sequence[str],
) -> Colours:
    """Draw channels of numbers: each from black to its colour, and add them up.

    Parameters
    ----------
    channels : sequence of numpy.ndarray
        Slices of one shape ``(height, width)``. NaN is black.
    limits : sequence of tuple of float
        For each channel, the values to show darkest and brightest.
    colors : sequence of str
        For each channel, its colour as six hexadecimal digits, red first.

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
    """Draw labels: each label always gets the same bright colour, and 0 is black.

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
    # two more bits vary saturation and brightness, so that labels of similar hue differ
    strength = 0.6 + 0.4 * ((mixed >> np.uint64(39)) & np.uint64(1)).astype(np.float32)
    value = 0.75 + 0.25 * ((mixed >> np.uint64(38)) & np.uint64(1)).astype(np.float32)
    corners = np.array([5, 3, 1], np.float32)
    turned = (corners + hue[..., None]) % 6
    part = np.clip(np.minimum(turned, 4 - turned), 0, 1)
    colours = value[..., None] * (1 - strength[..., None] * part)
    return np.where((number != 0)[..., None], np.rint(colours * 255), 0).astype(np.uint8)


def resize(colours: Colours, height: int, width: int, *, smooth: bool) -> Colours:
    """Resize a drawing.

    With ``smooth``, each pixel of a smaller drawing is the mean of those that it covers; elements
    that become larger than a pixel always stay sharp squares.
    """
    rows, columns = colours.shape[:2]
    if not colours.size:
        return np.zeros((height, width, 3), np.uint8)
    image = _pillow().Image
    drawn = image.fromarray(colours)
    # one axis after the other: elements may be larger than a pixel along one of them only
    for size, less in (((width, rows), width < columns), ((width, height), height < rows)):
        kind = image.Resampling.BOX if smooth and less else image.Resampling.NEAREST
        drawn = drawn.resize(size, kind)
    return np.asarray(drawn)


def arrange(parts: Sequence[Sequence[Colours | None]]) -> Colours:
    """Arrange drawings in rows and columns; gaps, and places without a drawing, are dark grey.

    Parameters
    ----------
    parts : sequence of sequence of numpy.ndarray or None
        The rows; each has a drawing or None for each column. Drawings of one row have the same
        height, and those of one column the same width.
    """
    heights = [max(part.shape[0] for part in row if part is not None) for row in parts]
    columns = list(zip(*parts, strict=True))
    widths = [max(part.shape[1] for part in column if part is not None) for column in columns]
    shape = (sum(heights) + GAP * (len(heights) - 1), sum(widths) + GAP * (len(widths) - 1), 3)
    sheet = np.full(shape, 40, np.uint8)
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
    """Round a length down to 1, 2 or 5 times a power of ten.

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
        Largest length of the bar, in ``unit``.
    unit : str, optional
        Unit of the axes. If it is None or not a unit of length, the text has the same.

    Returns
    -------
    tuple
        The length of the bar in ``unit``, and its text.

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
        The unit. If it is None or not a unit of length, it is also the chosen one.

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
    """Add a strip with a scale bar below a drawing; leave it empty if there is no room.

    Parameters
    ----------
    colours : numpy.ndarray
        uint8 of shape ``(height, width, 3)``.
    length : float
        Length of the bar in pixels.
    text : str
        Text beside the bar.
    most : int
        Largest width of the picture in pixels; a narrow drawing gets a wider strip.

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
    added = max(0, needed - width) if has_room else 0
    drawn = pil.Image.fromarray(np.ascontiguousarray(colours))
    sheet: Picture = pil.ImageOps.expand(drawn, (0, 0, added, BAR_HEIGHT))
    if not has_room:
        return sheet
    draw = pil.ImageDraw.Draw(sheet)
    middle = height + BAR_HEIGHT // 2
    draw.rectangle((2, middle - 1, 1 + bar, middle + 1), fill=_WHITE)
    draw.text((bar + 8, middle), text, fill=_WHITE, font=font, anchor="lm")
    return sheet


def contact_sheet(pictures: Sequence[tuple[str, Picture]]) -> Picture:
    """Arrange pictures below their names, in about as many rows as columns."""
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
    """Cut the start of a name that is wider than some pixels; replace what the font lacks."""
    name = name.encode("ascii", "replace").decode()
    ends = (name, *(f"...{name[i:]}" for i in range(len(name) + 1)))
    return next((end for end in ends if font.getlength(end) <= width), "...")


def _pillow() -> Any:  # noqa: ANN401 - a package that may not be there
    try:
        import PIL.Image  # noqa: PLC0415 - optional
        import PIL.ImageDraw  # noqa: PLC0415 - optional
        import PIL.ImageFont  # noqa: PLC0415 - optional
        import PIL.ImageOps  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("pillow", "a picture", "view") from err
    return PIL
