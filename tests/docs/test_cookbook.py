"""Each recipe of the cookbook does what its title says, by the measure of other programs.

A recipe runs in a folder of its own, beside the files that it names (``tests/docs/kitchen.py``).
Its commands run as in the other pages, those of ``bash`` that serve in a process of their own.
"""

from __future__ import annotations

import os
import re
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.kitchen import prepare
from tests.docs.recipes import CHECKS, MADE, SAID, Done, check
from tests.docs.test_examples import SCRIPT, run_command, run_python
from tests.remote import servers
from tests.remote.conftest import KEYS, client, upload

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs/cookbook.md"
TEXT = PAGE.read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+)\n([\s\S]*?)(?=^##|\Z)", TEXT, re.MULTILINE))
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
LONG = {  # start processes
    "A colleague with only a browser",
    "A job array of SLURM without dask",
    "Predict with many workers, and go on after a kill",
    "The image is black or too dark in a viewer",
    "Write from many processes at once",
    "dask on a cluster",
}
SERVICE, SCHEDULER = "https://s3.lab.org", "tcp://host:8786"  # of the reader's


@pytest.fixture(scope="session")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the buckets of the recipes, and return the address."""
    folder = tmp_path_factory.mktemp("buckets")
    with servers.s3() as url:
        with chdir(folder):  # and not in tests that follow
            prepare("sample.n5")
            Path("sample.n5").rename("data.n5")
            upload(url, "lab", Path("data.n5"))
            Path("hela/jrc_hela-2").mkdir(parents=True)
            Path("data.n5").rename("hela/jrc_hela-2/jrc_hela-2.n5")
            Path("hela/jrc_hela-2/jrc_hela-2.n5/em").rename("em")
            Path("hela/jrc_hela-2/jrc_hela-2.n5/em").mkdir()
            Path("em").rename("hela/jrc_hela-2/jrc_hela-2.n5/em/fibsem-uint16")
            upload(url, "janelia-cosem-datasets", Path("hela/jrc_hela-2"))
        publish(url, "janelia-cosem-datasets")
        yield url


def publish(url: str, bucket: str) -> None:
    """Let everyone list and read a bucket."""
    s3 = client(url)
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")
    for each in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        s3.put_object_acl(Bucket=bucket, Key=each["Key"], ACL="public-read")


@pytest.fixture
def in_the_cloud(buckets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the address of S3 be that of this machine, as the environment may say."""
    keys = {name: KEYS[name] for name in ("aws_access_key_id", "aws_secret_access_key")}
    config = tmp_path / "config"
    config.write_text("[profile lab]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items()))
    for name, value in {
        "AWS_CONFIG_FILE": str(config),
        "AWS_ENDPOINT_URL": buckets,
        "AWS_ALLOW_HTTP": "true",
        "AWS_DEFAULT_REGION": "us-east-1",
        **{name.upper(): value for name, value in keys.items()},
    }.items():
        monkeypatch.setenv(name, value)
    return buckets


@pytest.fixture
def cluster() -> Iterator[str]:
    """Start a scheduler of dask with a worker, and return the address."""
    from distributed import LocalCluster  # noqa: PLC0415 - takes a second

    how: Any = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(host="127.0.0.1", **how) as started:  # type: ignore[no-untyped-call]
        yield started.scheduler_address


@pytest.mark.parametrize(
    "title", [pytest.param(t, marks=pytest.mark.long if t in LONG else ()) for t in RECIPES]
)
def test_a_recipe_makes_what_its_title_says(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    recipe = RECIPES[title]
    for address, fixture in {"s3://": "in_the_cloud", SCHEDULER: "cluster"}.items():
        if address in recipe:
            recipe = recipe.replace(SERVICE, found := request.getfixturevalue(fixture))
            recipe = recipe.replace(SCHEDULER, found)
    monkeypatch.chdir(tmp_path)
    prepare(recipe)
    # parts begin with 1, our own boxes with 0
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1" if "--part" in recipe else "0")
    printed, names = "", dict[str, Any]()
    for kind, block, _, said in BLOCK.findall(recipe):
        new = run(block, names) if kind == "python" else run_commands(block)
        assert not said or new == said
        printed += new
    check(title, Done(recipe, printed, names))


def run(block: str, names: dict[str, Any]) -> str:
    """Run a block of Python, keep the names that it defines, and return what it prints."""
    if SCRIPT.match(block):
        return run_python(block, PAGE)
    with redirect_stdout(StringIO()) as printed:
        exec(compile(block, PAGE, "exec"), names)  # noqa: S102 - our own page
    return printed.getvalue()


def run_commands(block: str) -> str:
    """Run the commands of a block, with its continued lines, and return their output."""
    lines = block.replace("\\\n", " ").splitlines()
    return "".join(run_command(os.path.expandvars(line)) for line in lines)


def test_each_recipe_has_a_check_and_a_link_in_the_table() -> None:
    assert len(RECIPES) >= 40
    assert {*CHECKS, *MADE, *SAID} == RECIPES.keys()
    linked = re.findall(r"\]\(#([\w-]+)\)", TEXT.partition("\n## ")[0])
    names = [re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-") for title in RECIPES]
    assert sorted(linked) == sorted(names)
