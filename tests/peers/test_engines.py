"""The examples of ``docs/engines.md`` give the right result, each in its engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import n5zarr
from tests.contract.stored import by_tensorstore
from tests.docs.test_examples import run_command
from tests.outputs import output
from tests.peers.environments import environment, installs_projects

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs/engines.md").read_text()
SCRIPTS = dict(re.findall(r"(?ms)^```py(?:thon)?\n# (\w+)\.py\n(.*?)^```", TEXT))
SECTIONS = dict(re.findall(r"^## (.+)\n([\s\S]*?)(?=^## |\Z)", TEXT, re.MULTILINE))
MPI = re.findall(r"(?m)^ *(?:from|with) .*MPIPool.*$", SECTIONS["MPI"])  # lines that differ
ENGINES = ("cubed==0.28.0", "ray==2.60.0", "dask-jobqueue==0.9.0", "mpi4py==4.1.2", "mpich==5.0.2")

SCHEDULER = """#!{python}
import os, re, subprocess, sys
name, *options = sys.argv
line = " ".join(options)
lines = re.search(r"(?:--array=|-J \\w+\\[)(\\d+)-(\\d+)", line)
variable = "SLURM_ARRAY_TASK_ID" if name.endswith("sbatch") else "LSB_JOBINDEX"
for n in range(int(lines[1]), int(lines[2]) + 1) if lines else [0]:
    env = {{**os.environ, variable: str(n)}}
    subprocess.run(["sh", "-c", options[-1]], env=env, check=True, stdout=subprocess.DEVNULL)
print(7)
"""  # runs the jobs at once


@pytest.fixture(autouse=True)
def _beside_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
    monkeypatch.chdir(tmp_path)
    # ray would start its workers like the `uv run pytest` above it, in the tests' environment
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("engines") / "env", str(REPOSITORY), *ENGINES)


def run_script(name: str, *command: str) -> str:
    Path(f"{name}.py").write_text(SCRIPTS[name])
    return output(*command, f"{name}.py")


def check_half(container: str) -> None:
    found, whole = map(by_tensorstore, (Path(container, "em/half"), Path("sample.n5/em/s0")))
    np.testing.assert_array_equal(found, whole // 2)


def check_converted(container: str) -> None:
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{container}/em/s0"}}
    found = tensorstore.open(spec).result().read().result()
    np.testing.assert_array_equal(found, by_tensorstore(Path("sample.n5/em/s0")))


@pytest.mark.each_of(2)
def test_processes() -> None:
    run_script("halve", sys.executable)
    check_half("pool.n5")


@pytest.mark.long
@installs_projects
def test_mpi(python: str) -> None:
    imported, pool = MPI
    script = re.sub(r"(?m)^from .* import ProcessPoolExecutor$", imported, SCRIPTS["halve"])
    SCRIPTS["halve_mpi"] = re.sub(r"(?m)^ *with ProcessPoolExecutor.*$", pool, script)
    mpiexec = str(Path(python).parent / "mpiexec")
    run_script("halve_mpi", mpiexec, "-n", "3", python, "-m", "mpi4py.futures")
    check_half("pool.n5")


@pytest.mark.long
@installs_projects
@pytest.mark.parametrize("engine", ["ray", "cubed"])
def test_engine(python: str, engine: str) -> None:
    run_script(f"halve_{engine}", python)
    check_half(f"{engine}.n5")


@pytest.mark.long
@installs_projects
def test_dask_jobqueue(python: str) -> None:
    (shown,) = re.findall(r"(?ms)^```text\n(.*?)^```", SECTIONS["dask-jobqueue"])
    assert run_script("jobs", python).startswith(shown)


@pytest.mark.long
@pytest.mark.each_of(2)
@pytest.mark.skipif(os.name == "nt", reason="the system is Windows: no such schedulers there")
@pytest.mark.parametrize("section", ["SLURM arrays", "LSF arrays"])
def test_arrays(section: str, tmp_path: Path) -> None:
    for name in ("sbatch", "bsub"):
        (tmp_path / name).write_text(SCHEDULER.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    (script,) = re.findall(r"(?ms)^```bash\n(.*?)^```", SECTIONS[section])
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    output("bash", "-ec", script, env={"PATH": path})
    check_converted({"SLURM arrays": "slurm.zarr", "LSF arrays": "lsf.zarr"}[section])


def test_nextflow(tmp_path: Path) -> None:
    part, finish = re.findall(r'script: "(.*)"', SECTIONS["Nextflow"])
    part = part.replace("$launchDir", str(tmp_path)).replace("$params.parts", "4")
    for n in range(1, 5):
        run_command(part.replace("$n", str(n)))
    assert not Path("nextflow.zarr/zarr.json").exists()
    run_command(finish.replace("$launchDir", str(tmp_path)))
    check_converted("nextflow.zarr")
    assert json.loads(Path("nextflow.zarr/zarr.json").read_text())["node_type"] == "group"
