"""Print the contents of BigDataViewer's XML for ``tree`` and ``info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from n5zarr.store.bdv_views import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["project_rows", "setup_names"]


def setup_names(node: dict[str, Any]) -> str:
    """Return the names of a setup, to follow the name of its group; empty for other groups."""
    setup = node.get("setup")
    return f"  {_names(setup)}" if setup else ""


def project_rows(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of ``info``; none without XML."""
    project = node.get("project")
    if project is None:
        return
    yield "XML", project["xml"]
    timepoints = project["timepoints"]
    yield "time points", "not understood" if timepoints is None else ranges(timepoints)
    missing = [f"setup {v['setup']} at {v['timepoint']}" for v in project["missing_views"]]
    yield "missing views", ", ".join(missing) or "none"
    lists = [f"{label} ({n} lists)" for label, n in project["interest_points"].items()]
    yield "interest points", ", ".join(lists) or "none"
    for setup in project["setups"]:
        sizes = " x ".join(map(str, setup["size_n5"]))
        voxel = " x ".join(f"{size:g}" for size in setup["voxel_size_n5"])
        parts = [_names(setup), f"{sizes} voxels" if sizes else ""]
        parts.append(f"of {voxel} {setup['unit']}" if voxel else "")
        yield f"setup {setup['setup']}", "  ".join(filter(None, parts))


def _names(setup: dict[str, Any]) -> str:
    names = [f"{key} {name}" for key, name in setup["names"].items()]
    return ", ".join([setup["name"], *names] if setup["name"] else names)
