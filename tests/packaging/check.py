"""Check wheels and source distributions: ``python -m tests.packaging.check dist/*``.

It needs the standard library only. A wheel holds all of the package but C; a source distribution
holds what is tracked, so that its tests run; neither is larger than the limits here say.
"""

from __future__ import annotations

import configparser
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

from tests.packaging.sdist import ROOT, tracked

LIMITS = {".whl": 2_000_000, ".gz": 8_000_000}  # in bytes
COMPILED = (".so", ".pyd")
SOURCES = (".c", ".h", ".pyx")
BESIDES = (".gitattributes", ".gitignore")


def wheel_problems(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        info = metadata.rpartition("/")[0]
        described = message_from_bytes(archive.read(metadata))
        entries = configparser.ConfigParser(delimiters="=")
        entries.optionxform = str  # type: ignore[assignment,method-assign] # names have capitals
        if f"{info}/entry_points.txt" in names:
            entries.read_string(archive.read(f"{info}/entry_points.txt").decode())
    there = {name for name in names if not name.startswith(f"{info}/")}
    files = {name for name in tracked(ROOT) if name.startswith("n5zarr/")}
    wanted = {name for name in files if not name.endswith((*SOURCES, *COMPILED, ".pyc"))}
    kernels = {name for name in there if name.endswith(COMPILED)}
    n_kernels = 0 if path.name.endswith("-none-any.whl") else 1
    return [
        *(f"lacks {name}" for name in sorted(wanted - there)),
        *(f"should not hold {name}" for name in sorted(there - wanted - kernels)),
        *([f"has {len(kernels)} compiled kernels"] if len(kernels) != n_kernels else []),
        *entry_point_problems(entries),
        *([] if str(described.get_payload()).strip() else ["has no description"]),
    ]


def entry_point_problems(entries: configparser.ConfigParser) -> list[str]:
    """Compare the entry points with those that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {"console_scripts": project["scripts"], **project["entry-points"]}
    there = {name: dict(entries[name]) for name in entries.sections()}
    return [] if there == wanted else [f"has the entry points {there}, not {wanted}"]


def sdist_problems(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for name in tracked(ROOT) if not name.startswith(BESIDES)}
    wanted = {name for name in wanted if (ROOT / name).is_file()}
    compiled = {name for name in names if name.endswith((*COMPILED, ".pyc"))}
    return [
        *(f"lacks {name}" for name in sorted(wanted - names)),
        *(f"should not hold {name}" for name in sorted(compiled)),
    ]


def problems(path: Path) -> list[str]:
    size, limit = path.stat().st_size, LIMITS[path.suffix]
    found = wheel_problems(path) if path.suffix == ".whl" else sdist_problems(path)
    return found + ([f"has {size} bytes, more than {limit}"] if size > limit else [])


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]]
    found = {path.name: problems(path) for path in paths}
    for path in paths:
        print(f"{path.name}: {path.stat().st_size} bytes: {found[path.name] or 'ok'}")  # noqa: T201
    sys.exit(not paths or any(found.values()))


if __name__ == "__main__":
    main()
