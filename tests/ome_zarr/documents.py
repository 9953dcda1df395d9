"""Change the metadata of OME-Zarr 0.4 or 0.5 in its document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zarr

__all__ = ["change", "metadata"]


def change(path: Path, function: Callable[[Any, Any], object]) -> None:
    """Change the metadata of a group: call a function with all of it, and with its first image."""
    file = path / ("zarr.json" if (path / "zarr.json").exists() else ".zattrs")
    document = json.loads(file.read_text())
    holder = document["attributes"]["ome"] if "attributes" in document else document
    function(holder, holder.get("multiscales", [{}])[0])
    file.write_text(json.dumps(document))


def metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a group without versions."""
    found: Any = zarr.open_group(path, mode="r").attrs.asdict()
    found = found.get("ome", found)
    return {
        key: {k: v for k, v in part.items() if k != "version"} if isinstance(part, dict) else part
        for key, part in found.items()
        if key != "version"
    }
