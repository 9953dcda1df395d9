"""Build and test the conda package of `recipe/recipe.yaml`: ``bash .ci/recipe``.

conda-forge's packages are replaced by stand-ins in a local channel: this Python, linked; this
machine's compiler; and PyPI's wheels, under conda-forge's names. So the recipe is solved, built,
installed and tested as there, without conda-forge. Linux on x86-64; takes a minute.
"""

from __future__ import annotations

import asyncio
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.sdist import ROOT

# names of PyPI that conda-forge spells otherwise
CONDA_NAMES = {"isal": "python-isal", "xxhash": "python-xxhash", "backports-zstd": "backports.zstd"}
COMPILERS = {"gcc_linux-64": "14.1", "sysroot_linux-64": "2.17"}  # empty: this machine's is used
VARIANT = {"c_compiler": "gcc", "c_compiler_version": "14", "c_stdlib": "sysroot"}
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/python{MINOR}/site-packages"


def key(name: str) -> str:
    """Normalize a name, as PyPI does."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]).lower()


def conda_name(name: str) -> str:
    return CONDA_NAMES.get(name, name)


def pack(channel: Path, name: str, version: str, files: Path, depends: Iterable[str] = ()) -> None:
    from rattler_build import assemble_package  # noqa: PLC0415 - is installed by this command

    folder = channel / "linux-64"
    assemble_package(
        name, version, "linux-64", "0", folder, files_dir=files, depends=[*depends],
        compression_level=1,
    )  # fmt: skip


def pack_python(channel: Path, folder: Path) -> None:
    """Add this Python, as a virtual environment links it, and empty compilers."""
    python = Path(sys.base_prefix) / "bin" / f"python{MINOR}"
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "python3", f"python{MINOR}"):
        (folder / "bin" / name).symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (folder / SITE).mkdir(parents=True)
    (folder / SITE / "README.txt").touch()
    pack(channel, "python", platform.python_version(), folder)
    for name, version in COMPILERS.items():
        (folder / name / "share").mkdir(parents=True)
        (folder / name / "share" / name).touch()
        pack(channel, name, version, folder / name)


def pack_wheel(channel: Path, name: str, all_of: Mapping[str, Distribution], folder: Path) -> None:
    """Add a package of PyPI that is installed, with its requirements."""
    distribution = all_of[name]
    for file in distribution.files or []:
        source = Path(str(distribution.locate_file(file)))
        if source.is_file() and ".." not in file.parts and file.parts[0] != "bin":
            (folder / SITE / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / SITE / file)
    required = {key(each) for each in distribution.requires or [] if "extra ==" not in each}
    depends = ["python", *(conda_name(each) for each in sorted(required & set(all_of)))]
    pack(channel, conda_name(name), distribution.version, folder, depends)


def make_channel(channel: Path, work: Path) -> None:
    """Write a channel with all that the recipe and its tests ask for."""
    from rattler.index import index_fs  # noqa: PLC0415

    pack_python(channel, work / "python")
    file = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, built_by = file["project"], file["build-system"]["requires"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["lz4"], *built_by, "pip"]
    install = ["uv", "pip", "install", "-q", "--python", sys.executable, "--target"]
    subprocess.run([*install, str(work / "site"), *wanted], check=True)
    found = {key(each.name): each for each in distributions(path=[str(work / "site")])}
    for name in found:
        pack_wheel(channel, name, found, work / "wheels" / name)
    (channel / "noarch").mkdir(exist_ok=True)
    asyncio.run(index_fs(channel))


def build(channel: str, out: Path) -> Path:
    from rattler_build import Stage0Recipe, VariantConfig  # noqa: PLC0415

    values = {"python": f"{MINOR}.*", "c_stdlib_version": COMPILERS["sysroot_linux-64"], **VARIANT}
    config = VariantConfig({name: [value] for name, value in values.items()})
    (variant,) = Stage0Recipe.from_file(ROOT / "recipe/recipe.yaml").render(config)
    variant.run_build(channels=[channel], output_dir=out)
    (package,) = out.glob("*/n5zarr-*.conda")
    return package


def failures(package: Path, channel: str) -> list[str]:
    """Run the tests of the recipe with the package; return what those that fail print."""
    from rattler_build import Package  # noqa: PLC0415

    opened: Any = Package.from_file(package)
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text("utf-8"))
    assert len(opened.tests) == len(recipe["tests"])
    results = [opened.run_test(index, channel=[channel]) for index in range(len(opened.tests))]
    return ["\n".join(each.output) for each in results if not each.success]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recipe") as name:
        work = Path(name)
        channel = work / "channel"
        make_channel(channel, work)
        package = build(channel.as_uri(), work / "built")
        failed = failures(package, channel.as_uri())
        print(f"{package.name}: {package.stat().st_size} bytes: {failed or 'its tests pass'}")  # noqa: T201
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
