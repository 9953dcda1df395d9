"""Importing n5zarr makes its pipeline zarr's default, and leaves other stores alone."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import get_all_start_methods
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from tests.programs import Programs

OURS = "n5zarr.arrays.pipeline.N5CodecPipeline"
ZARRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"
FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"

SHOW = """
import json
import zarr
def configured():
    return zarr.config.get("codec_pipeline.path")
def name_of(array):
    pipeline = type(array.async_array.codec_pipeline)
    return f"{pipeline.__module__}.{pipeline.__qualname__}"
def show(*found):
    print(json.dumps(found))
"""
THIRD = """
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline
class Third(BatchedCodecPipeline):
    pass
register_pipeline(Third)
third = f"{Third.__module__}.{Third.__qualname__}"
"""


def environment(**given: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ZARR_", "N5ZARR_"))}
    return {**kept, **given}


class Run:
    """Run a program in a process that has imported zarr; return its output."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def __call__(self, code: str, *arguments: str, **variables: str) -> Any:
        done = self._programs.run(dedent(code), *arguments, environment=environment(**variables))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with pytest.MonkeyPatch.context() as patch:  # zarr reads its variables as it is imported
        for name in os.environ:
            if name.startswith("ZARR_"):
                patch.delenv(name)
        with Programs(SHOW, "-W", "error") as programs:
            yield Run(programs)


def run_new(code: str, *arguments: str, first: str = "", **variables: str) -> Any:
    """Run a program in a new process, where zarr reads variables too."""
    program = f"{first}\n{SHOW}{dedent(code)}"
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("default") / "c.n5"
    values = np.arange(35, dtype="u2").reshape(5, 7)
    n5zarr.create_array(root, path="a", data=values, chunks=(3, 4))
    return str(root)


# ---------------------------------------------------------------------- who chooses


OPENED = 'array = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")'
PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "imported": (
        f"""
        import sys
        before = configured()
        import n5zarr
        {OPENED}
        show(before, configured(), name_of(array), int(array[...].sum()))
        """,
        [ZARRS, OURS, OURS, 595],
    ),
    "while another is chosen": (
        f"""
        import sys
        with zarr.config.set({{"codec_pipeline.path": {FUSED!r}}}):
            import n5zarr
            inside = configured()
        outside = configured()
        store = n5zarr.N5Store(sys.argv[1])
        n5zarr.fast.default.make_default()
        with zarr.config.set({{"codec_pipeline.path": {FUSED!r}}}):
            one = name_of(zarr.open_array(store, path="a", mode="r"))
        two = name_of(zarr.open_array(store, path="a", mode="r"))
        show(inside, outside, one, two)
        """,
        [FUSED, ZARRS, FUSED, OURS],
    ),
    "while something else is set": (
        """
        with zarr.config.set({"array.order": "F"}):
            import n5zarr
            inside = configured()
        show(inside, configured(), zarr.config.get("array.order"))
        """,
        [OURS, OURS, "C"],
    ),
    "by threads at once": (
        f"""
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        barrier = Barrier(8)
        def work(k):
            barrier.wait()
            import n5zarr
            {OPENED}
            return name_of(array), int(array[...].sum())
        with ThreadPoolExecutor(8) as threads:
            found = set(threads.map(work, range(8)))
        show(configured(), sorted(found))
        """,
        [OURS, [[OURS, 595]]],
    ),
    "a subclass of the store": (
        """
        import sys, n5zarr
        class Own(n5zarr.N5Store):
            pass
        array = zarr.open_array(Own(sys.argv[1]), path="a", mode="r")
        show(name_of(array), int(array[...].sum()))
        """,
        [OURS, 595],
    ),
    **{
        f"zarr's, by {how} of its configuration": (
            f"""
            import sys, n5zarr
            {OPENED}
            zarr.config.{how}()
            again = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
            is_same = bool((array[...] == again[...]).all())
            show(configured(), name_of(array), name_of(again), is_same)
            """,
            [ZARRS, OURS, ZARRS, True],
        )
        for how in ("reset", "refresh")
    },
}


@pytest.mark.parametrize(("code", "expected"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_pipeline_is(run: Run, container: str, code: str, expected: list[Any]) -> None:
    assert run(code, container) == expected


ORDERS = {  # beside zarr first, as in the first program
    "n5zarr first": """
import n5zarr
assert not {"zarr", "numpy"} & {*sys.modules}
import zarr
""",
    "looked for, and failed": """
import n5zarr
from importlib.util import find_spec
assert find_spec("zarr").name == "zarr"
sys.modules["donfig"] = None
try:
    import zarr.storage
except ImportError:
    del sys.modules["donfig"]
import zarr.storage
assert find_spec("zarr").loader is zarr.__loader__
""",
    "two threads": """
from threading import Thread
import n5zarr
lines = "import zarr", "import n5zarr.fast.kernel"
threads = [Thread(target=exec, args=(line,)) for line in lines]
for each in threads:
    each.start()
for each in threads:
    each.join()
import zarr
""",
    "by the pipeline itself": "import n5zarr.fast.pipeline",
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_it_is_the_default_in_any_order(container: str, order: str) -> None:
    code = f"""
        before = configured()
        plain = name_of(zarr.zeros((3,)))
        store = n5zarr.N5Store(sys.argv[1])
        array = zarr.open_array(store, path="a", mode="r")
        zarr.config.set({{"codec_pipeline.path": {ZARRS!r}}})
        other = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
        show(before, plain, name_of(array), int(array[...].sum()), name_of(other))
    """
    found = run_new(dedent(code), container, first=f"import sys\n{order}")
    assert found == [OURS, ZARRS, OURS, 595, ZARRS]


@pytest.mark.parametrize(("named", "of_others"), [(FUSED, FUSED), (OURS, ZARRS)])
def test_a_variable_names_one(container: str, named: str, of_others: str) -> None:
    names = "configured(), name_of(array), name_of(zarr.zeros(3))"
    code = f"import sys, n5zarr; {OPENED}; show({names})"
    found = run_new(code, container, ZARR_CODEC_PIPELINE__PATH=named)
    assert found == [named, named, of_others]


@pytest.mark.each_of(3)
@pytest.mark.parametrize("chosen", ["FUSED", "third"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_chooses_another(run: Run, container: str, chosen: str, when: str) -> None:
    choose = f'zarr.config.set({{"codec_pipeline.path": {chosen}}})'
    first, then = (choose, "pass") if when == "before" else ("pass", choose)
    code = f"""
        import sys
        FUSED = {FUSED!r}
        {{third}}
        {first}
        import n5zarr
        {then}
        array = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
        opened = n5zarr.open(sys.argv[1], path="a")
        show(configured(), name_of(array), int(array[...].sum()), int(opened[...].sum()))
    """
    code = dedent(code).replace("{third}", THIRD)
    name = FUSED if chosen == "FUSED" else "__main__.Third"
    assert run(code, container) == [name, name, 595, 595]


# ---------------------------------------------------------------------- other stores

ARRAYS = """
import sys, tempfile, warnings
from pathlib import Path
from zarr.storage import LocalStore, LoggingStore, MemoryStore, WrapperStore, ZipStore
warnings.filterwarnings("ignore", "Duplicate name")  # of a changed chunk in an archive
folder = Path(tempfile.mkdtemp())
stores = [MemoryStore(), LocalStore(folder / "l"), ZipStore(folder / "z.zip", mode="w")]
stores += [WrapperStore(MemoryStore()), LoggingStore(MemoryStore(), "CRITICAL")]
stores += [None, str(folder / "path")]
arrays = []
for k, store in enumerate(stores):
    for options in [{}, {"shards": (4, 4)}, {"zarr_format": 2}]:
        arrays.append(zarr.create_array(
            store, name=f"a{len(arrays)}", shape=(8, 8), chunks=(2, 2), dtype="u2", **options))
        arrays[-1][...] = 7
        arrays[-1][1:5, 3] = 8
shown = [name_of(array) for array in arrays]
shown += [[type(c).__name__ for c in array.async_array.codec_pipeline] for array in arrays]
sums = [int(array[...].sum()) for array in arrays]
"""


def test_arrays_of_other_stores_have_what_zarr_gives(run: Run, container: str) -> None:
    alone = run(ARRAYS + "show(shown, sums)")
    imported = run("import n5zarr\n" + ARRAYS + "show(shown, sums)")
    assert alone == imported
    assert set(alone[1]) == {64 * 7 + 4}
    wrapped = """
        import sys, n5zarr
        from zarr.storage import WrapperStore
        array = zarr.open_array(WrapperStore(n5zarr.N5Store(sys.argv[1])), path="a", mode="r")
        show(name_of(array), int(array[...].sum()))
    """
    assert run(wrapped, container) == [ZARRS, 595]


# ---------------------------------------------------------------------- other processes


@pytest.fixture
def pickles(container: str, tmp_path: Path) -> str:
    """Pickle an array of a container and one of another store while the pipeline is on."""
    with zarr.config.set({"codec_pipeline.path": OURS}):
        ours = zarr.open_array(N5Store(container), path="a", mode="r")
        other: Any = zarr.create_array(tmp_path / "other.zarr", shape=(3,), dtype="u2")
    other[...] = 7
    (tmp_path / "arrays.pickle").write_bytes(pickle.dumps(ours))
    (tmp_path / "other.pickle").write_bytes(pickle.dumps(other))
    return str(tmp_path)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("switch", ["0", "1"])
def test_pickles_are_loaded_anywhere(run: Run, pickles: str, switch: str) -> None:
    code = """
        import pickle, sys
        from pathlib import Path
        other = pickle.loads((Path(sys.argv[1]) / "other.pickle").read_bytes())
        has_imported = "n5zarr" in sys.modules
        array = pickle.loads((Path(sys.argv[1]) / "arrays.pickle").read_bytes())
        show(has_imported, int(other[...].sum()), int(array[...].sum()), int(array[1:4, 2].sum()),
             configured())
    """
    found = run(code, pickles, N5ZARR_PIPELINE=switch)
    assert found == [False, 21, 595, 9 + 16 + 23, OURS if switch == "1" else ZARRS]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("method", get_all_start_methods())
def test_processes(run: Run, container: str, tmp_path: Path, method: str) -> None:
    (tmp_path / "program.py").write_text(
        dedent("""
        import sys, warnings
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        import zarr, n5zarr
        warnings.simplefilter("ignore")  # Python's, of threads and fork
        def work(array):
            pipeline = type(array.async_array.codec_pipeline).__name__
            path = zarr.config.get("codec_pipeline.path").rpartition(".")[2]
            opened = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
            return pipeline, path, int(array[...].sum()), int(opened[1:].sum())
        if __name__ == "__main__":
            array = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
            array[...]
            with ProcessPoolExecutor(1, mp_context=get_context(sys.argv[2])) as pool:
                print(sorted(set(pool.map(work, [array] * 4))))
        """)
    )
    command = [sys.executable, str(tmp_path / "program.py"), container, method]
    options: Any = {"env": environment(), "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(command, check=False, **options)
    name = OURS.rpartition(".")[2]
    assert done.stdout.strip() == f"[('{name}', '{name}', 595, 574)]", done.stderr
