"""hdmf-zarr's own tests pass on N5 instead of Zarr; all of them with N5ZARR_STRESS=1."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

DATA = Path(__file__).parents[1] / "data" / "hdmf_zarr"
NEED_NETWORK = ("test_fsspec_streaming.py", "test_zindi_interop.py")  # or a package from git


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    with tarfile.open(DATA / "tests-0.14.0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    for file in DATA.glob("*.py"):
        shutil.copy(file, folder)
    return folder


def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, set[str]]:
    """Run tests in a process of their own, and return how many passed and which did not."""
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "HDMF_STORE_FACTORY": "factories:n5",
            "NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE": "1",  # for files of Zarr v2
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - our own
    found = [(case.attrib["name"], {child.tag for child in case}) for case in cases]
    wrong = {name for name, tags in found if tags & {"failure", "error"}}
    skipped = sum("skipped" in tags for _, tags in found)
    return len(cases) - len(wrong) - skipped, wrong


@pytest.mark.long
def test_stores_as_objects(suite: Path) -> None:
    """Tests on store objects pass, except those of links, which hdmf-zarr opens by path."""
    passed, wrong = run(suite, "test_store_object.py")
    links = {"test_append_external_link_data", "test_external_link_dataset"}
    assert wrong == links | {"test_external_link_group"}
    assert passed == 92


@pytest.mark.long
def test_our_own_class(suite: Path) -> None:
    passed, wrong = run(suite, "test_store_object.py", HDMF_STORE_IO="n5zarr.hdmf:N5IO")
    assert (passed, wrong) == (95, set())


@pytest.mark.long
def test_paths_that_lead_to_n5(suite: Path) -> None:
    """Tests with paths pass that convert to and from HDF5, and read and write NWB."""
    routed = ("-p", "hdmf_store_plugin")
    if os.environ.get("N5ZARR_STRESS"):
        ignored = [f"--ignore=tests/unit/{name}" for name in NEED_NETWORK]
        passed, wrong = run(suite, *routed, "tests", *ignored, HDMF_STORE_SPAWN="1")
        assert (passed, wrong) == (615, set())
    else:
        files = [f"tests/unit/{name}" for name in ("test_io_convert.py", "test_nwbzarrio.py")]
        passed, wrong = run(suite, *routed, *files, HDMF_STORE_SPAWN="1")
        assert (passed, wrong) == (33, set())
