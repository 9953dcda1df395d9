"""Count the cores that this process may use, which are often fewer than the machine has."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import zarr
from zarr.errors import ZarrUserWarning

_CGROUPS, _OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def max_workers() -> int:
    """Return how many chunks are decoded or encoded at once, as zarr's pipelines do."""
    given = zarr.config.get("codec_pipeline.max_workers", None)
    with suppress(TypeError, ValueError):
        return max(1, int(given))
    n_workers = usable_cores()
    if given is not None:
        message = f"codec_pipeline.max_workers: expected a number, got {given!r}; uses {n_workers}"
        warnings.warn(message, ZarrUserWarning, stacklevel=2)
    return n_workers


def usable_cores() -> int:
    """Return how many cores this process may use, as its affinity, SLURM and its cgroups say."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    here = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return min(here, _granted() or here)


@cache
def _granted() -> int | None:
    """Return the cores of SLURM's task, or what the time of cgroups is worth; None if not told."""
    with suppress(KeyError, ValueError):
        return int(os.environ["SLURM_CPUS_PER_TASK"])
    granted = []
    with suppress(OSError):  # not Linux
        for line in _OWN_CGROUPS.read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                top = _CGROUPS / "cpu" if controllers else _CGROUPS  # version 1, or 2
                here = top / own.strip("/")
                granted += [_worth(each) for each in (here, *here.parents)]
    return min(filter(None, granted), default=None)


def _worth(cgroup: Path) -> int | None:
    """Return how many cores the time of a cgroup is worth, at least 1; None without a limit."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):  # version 2, or 1
        with suppress(OSError, ValueError):
            texts = [(cgroup / name).read_text() for name in names]
            quota, period = map(int, " ".join(texts).split())
            return max(1, round(quota / period)) if quota > 0 else None
    return None
