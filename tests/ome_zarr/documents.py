"""Change the metadata of OME-Zarr 0.4 or 0.5 in its document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["change"]


def change(path: Path, function: Callable[[Any, Any], object]) -> None:
    """Change the metadata of a group: call a function with all of it, and with its first image."""
    file = path / ("zarr.json" if (path / "zarr.json").exists() else ".zattrs")
    document = json.loads(file.read_text())
    holder = document["attributes"]["ome"] if "attributes" in document else document
    function(holder, holder.get("multiscales", [{}])[0])
    file.write_text(json.dumps(document))
