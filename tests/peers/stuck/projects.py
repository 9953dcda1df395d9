"""Projects that need zarr-python 2, or left N5 with it: what is installed, and which program runs.

``programs/run_NAME.py`` makes the calls of the project's users. It runs with the project as it is
released and zarr-python 2, and with n5zarr after ``patches/NAME.patch``. Packages that pin others
are installed alone, beside those that the program needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.outputs import output
from tests.peers.environments import environment, install_alone

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
OLD_ZARR = ("zarr==2.18.7", "numcodecs<0.16")


@dataclass(frozen=True)
class Project:
    """A project: its release before and after, what both need, and which zarr the first has."""

    name: str
    before: str
    needs: tuple[str, ...]
    zarr: tuple[str, ...] = OLD_ZARR
    after: str = ""  # another release
    new: tuple[str, ...] = ()  # beside n5zarr

    def python_before(self, folder: Path) -> str:
        python = environment(folder, *self.zarr, *self.needs)
        install_alone(python, self.before)
        return python

    def python_after(self, folder: Path) -> str:
        python = environment(folder, str(REPOSITORY), *self.new, *self.needs)
        install_alone(python, self.after or self.before)
        apply_patch(HERE / f"patches/{self.name}.patch", site_packages(python))
        return python

    @property
    def program(self) -> str:
        return str(HERE / f"programs/run_{self.name.replace('-', '_')}.py")


def site_packages(python: str) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(output(python, "-c", code).strip())


def apply_patch(patch: Path, folder: Path) -> None:
    """Apply a patch without context; whitespace is ignored, as navigate's lines end in CRLF."""
    options = ("--unidiff-zero", "--ignore-whitespace", "--whitespace=nowarn")
    output("git", "apply", *options, patch, cwd=folder)


PROJECTS = (
    Project(
        "navigate", "navigate-micro==0.0.13",
        (
            "h5py", "tifffile", "pyyaml", "scipy", "pandas", "psutil", "requests", "scikit-image",
            "fsspec", "pyserial", "opencv-python-headless",
        ),
    ),
    Project(
        "cellmap-flow", "cellmap-flow==0.2.3",
        (
            "h5py", "tensorstore", "funlib.geometry", "scikit-image", "s3fs", "pyyaml",
            "universal-pathlib", "edt", "fastremap", "neuroglancer", "pymorton", "mwatershed",
            "fastmorph", "marshmallow", "funlib.math",
        ),
        ("zarr==2.18.4", "numcodecs==0.15.0"),
    ),
    Project(
        "gunpowder", "gunpowder==1.4.4",
        (
            "h5py", "scipy", "scikit-image", "requests", "augment-nd", "tqdm", "funlib.geometry",
            "networkx",
        ),
        (*OLD_ZARR, "funlib.persistence<0.7"), "gunpowder==1.5.0", ("funlib.persistence>=0.7",),
    ),
    Project(
        "rhapso", "Rhapso==0.3.2", ("s3fs", "boto3", "numpy"), ("zarr==2.18.3", "numcodecs<0.16"),
    ),
    Project(
        "cellmap-data", "cellmap-data==2026.3.20.1935",
        (
            "torch", "torchvision", "matplotlib", "universal-pathlib", "fsspec", "ipython", "scipy",
            "tqdm",
        ),
    ),
)  # fmt: skip
