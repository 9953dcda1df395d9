"""Make the source distribution, with the address of the repository where it is known.

``python -m tests.packaging.sdist --url https://host/owner/n5zarr --ref v0.1.0 --out dist``: links
of README.md, which lead to files of the repository, get that address, and ``[project.urls]`` is
written. Wheels that are built of it have both. The repository itself does not say where it is.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"""(?P<before>\]\(|\b(?:src|srcset|href)=")(?!\w+:|#|//)(?P<target>[^)\s"]+)""")
PICTURES = {".png", ".svg", ".gif", ".jpg"}
EXTRAS = "[project.optional-dependencies]\n"


def with_addresses(text: str, url: str, ref: str) -> str:
    """Replace links to files of the repository by addresses; pictures by those of their bytes."""

    def absolute(match: re.Match[str]) -> str:
        target = match["target"].removeprefix("./")
        kind = "raw" if Path(target).suffix in PICTURES else "blob"
        return f"{match['before']}{url}/{kind}/{ref}/{target}"

    return LINK.sub(absolute, text)


def with_urls(project: str, url: str, ref: str) -> str:
    """Write the addresses into the text of a pyproject.toml."""
    lines = [
        "[project.urls]",
        f'Source = "{url}"',
        f'Documentation = "{url}/tree/{ref}/docs"',
        f'Changelog = "{url}/blob/{ref}/CHANGELOG.md"',
        f'Issues = "{url}/issues"',
    ]
    head, mark, rest = project.partition(EXTRAS)
    return "\n".join([head + lines[0], *lines[1:], "", mark + rest])


def tracked(root: Path) -> list[str]:
    """List the files of a checkout; of an unpacked distribution, all."""
    if not (root / ".git").exists():
        return [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def build(out: Path, url: str, ref: str) -> None:
    with tempfile.TemporaryDirectory(prefix="sdist") as folder:
        for name in tracked(ROOT):
            if (ROOT / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, Path(folder) / name)
        if url:
            for name, change in (("README.md", with_addresses), ("pyproject.toml", with_urls)):
                file = Path(folder) / name
                file.write_text(change(file.read_text("utf-8"), url, ref), "utf-8")
        command = ["uv", "build", "--quiet", "--sdist", "--out-dir", str(out.resolve()), folder]
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="of the repository, such as GitHub's")
    parser.add_argument("--ref", default="main", help="tag or branch that the links lead to")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    options = parser.parse_args()
    build(options.out, options.url.rstrip("/"), options.ref)


if __name__ == "__main__":
    main()
