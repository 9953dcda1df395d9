"""Let a higher layer define how notebooks display arrays and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from zarr import Group
    from zarr.types import AnyArray

    type MakeHtml = Callable[[AnyArray | Group], str | None]

_makers: list[MakeHtml] = []


def set_html(make: MakeHtml) -> None:
    """Set the function that makes HTML of an array or group; None leaves it as text."""
    _makers[:] = [make]


def html_of(node: AnyArray | Group) -> str:
    """Return an array or group as HTML; its text if no function is set or the function fails."""
    text = None
    try:
        for make in _makers:
            text = make(node)
    except Exception:  # noqa: S110 - a picture must not keep anybody from the array
        pass
    import html  # noqa: PLC0415 - with its table of entities, as slow as four modules of n5zarr

    return text or f"<pre>{html.escape(repr(node))}</pre>"
