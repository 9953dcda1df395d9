"""Print the statistics of ``info --stats``: lines, and the histogram as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.tools.statistics import BlockStatistics

__all__ = ["histogram_lines", "statistics_rows"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ROWS = 16  # of a histogram, at most
_SHARE = 11  # columns beside the bars


def statistics_rows(found: BlockStatistics) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line."""
    how = "a sample of" if found.is_sample else "all"
    yield "statistics of", f"{how} {found.n_read} of {found.n_stored} stored blocks"
    if found.minimum is not None and found.maximum is not None:
        number = "d" if found.has_integers else ".10g"
        yield "range", f"{found.minimum:{number}} to {found.maximum:{number}}"
        yield "mean", f"{found.mean:.6g}"
    if found.n_nan or found.n_infinite:
        yield "not finite", f"{found.n_nan} NaN, {found.n_infinite} infinite"
    n_missing = found.n_blocks - found.n_stored
    of_sample = " in the sample" if found.is_sample else ""
    zero = f"{found.n_zero} of {found.n_read}{of_sample} hold only 0"
    share = "" if found.empty_share is None else f"{found.empty_share:.1%}: "
    yield "empty blocks", f"{share}{n_missing} of {found.n_blocks} are missing, {zero}"
    if found.compression_ratio is not None:
        stored = f"{bytes_text(found.n_bytes)} in {bytes_text(found.n_bytes_stored)}"
        yield "compression ratio", f"{found.compression_ratio:.2f} ({stored})"


def histogram_lines(found: BlockStatistics, width: int, *, ascii_only: bool) -> Iterator[str]:
    """Draw a histogram as horizontal bars.

    Parameters
    ----------
    found : BlockStatistics
        With the histogram.
    width : int
        Columns of the terminal.
    ascii_only : bool
        Whether to draw with ``#``.

    Yields
    ------
    str
        The values of a bar, the last one included if they are integers, the bar, and its share.
    """
    edges, counts = found.bin_edges, found.histogram
    size = max(1, -(-len(counts) // _ROWS))
    starts = range(0, len(counts), size)
    sums = [sum(counts[i : i + size]) for i in starts]
    names = [
        _values(edges[i], edges[min(i + size, len(counts))], are_integers=found.has_integers)
        for i in starts
    ]
    label = max(map(len, names), default=0)
    room = max(8, width - label - _SHARE)
    for name, n in zip(names, sums, strict=True):
        bar = _bar(n / max(sums) * room, ascii_only=ascii_only).ljust(room)
        yield f"{name.rjust(label)}  {bar} {n / sum(sums):8.2%}"


def _values(low: float, high: float, *, are_integers: bool) -> str:
    """Name the values of a bar, from ``low`` to below ``high``.

    Examples
    --------
    >>> _values(4.0, 8.0, are_integers=True), _values(4.0, 5.0, are_integers=True)
    ('4 to 7', '4')
    >>> _values(0.25, 0.5, are_integers=False)
    '0.25 to 0.5'
    """
    if are_integers:
        first, last = int(low), int(high) - 1
        return f"{first}" if first >= last else f"{first} to {last}"
    return f"{low:.6g} to {high:.6g}"


def _bar(length: float, *, ascii_only: bool) -> str:
    """Draw a bar of some columns; anything is visible."""
    if ascii_only:
        return "#" * (round(length) or int(length > 0))
    eighths = round(8 * length) or int(length > 0)
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
