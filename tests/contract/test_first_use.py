"""What reads blocks is imported with the first array of an N5Store, wherever that is opened."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

import n5zarr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.programs import Programs

    type Run = Callable[..., str]

SUM = 595  # of range(35)
READ = "print(zarr.open_array(n5zarr.N5Store(sys.argv[1]), path='a', mode='r')[...].sum())"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold the same array as N5 and as Zarr."""
    folder = tmp_path_factory.mktemp("first")
    values = np.arange(35, dtype="u2").reshape(5, 7)
    n5zarr.create_array(folder / "n5zarr.n5", path="a", data=values, chunks=(3, 4))
    zarr.create_array(folder / "zarr.n5", name="a", data=values, chunks=(3, 4))
    return folder


@pytest.fixture
def run(folder: Path, programs: Programs) -> Run:
    """Run a program in a new process; it has the container, and the same as Zarr."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ZARR_", "N5ZARR_"))}

    def run(code: str, there: Path = folder) -> str:
        places = str(there / "n5zarr.n5"), str(there / "zarr.n5")
        done = programs.run(dedent(code), *places, environment=environment)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return done.stdout

    return run


def test_an_array_of_zarr_needs_no_store_of_n5zarr(run: Run) -> None:
    code = """
        array = zarr.open_array(sys.argv[2], path="a", mode="r")
        total = int(array[...].sum())
        own = sorted(name for name in sys.modules if name.startswith("n5zarr."))
        print(total, *own)
    """
    modules = ["errors", "rooms", "fast", "fast.default"]
    total, *own = run(code).split()
    assert total == str(SUM)
    assert set(own) == {f"n5zarr.{name}" for name in modules}


def test_the_store_alone_reads_no_blocks(run: Run) -> None:
    """The module that reads blocks is imported as an array is opened, not as it is read."""
    code = """
        store = n5zarr.N5Store(sys.argv[1])
        zarr.open_array(sys.argv[2], path="a", mode="r")[...]
        print("n5zarr.fast.batches" in sys.modules)
        array = zarr.open_array(store, path="a", mode="r")
        known = {*sys.modules}
        print("n5zarr.fast.batches" in known, array[...].sum())
        ours = ("n5zarr.arrays", "n5zarr.fast")
        print(*(name for name in {*sys.modules} - known if name.startswith(ours)))
    """
    before, read, added = run(code).splitlines()
    assert (before, read) == ("False", f"True {SUM}")
    assert {*added.split()} <= {"n5zarr.fast._kernel"}  # is loaded with the first block


FAST = "print(n5zarr.open(sys.argv[1], path='a')[...].sum())"  # without threads, as at the end
PLACES = {
    "a forked process": """
        import os
        if os.fork() == 0:
            {read}
        else:
            os.wait()
    """,
    "a finalizer": """
        class Held:
            def __del__(self):
                {read}
        held = Held()
        held.itself = held
        del held
        gc.collect()
    """,
    "the end of the program": """
        import atexit
        @atexit.register
        def last():
            {fast}
    """,
    "the end of an object at the end of the program": """
        import weakref
        class Held:
            pass
        held = Held()
        def last():
            {fast}
        weakref.finalize(held, last)
    """,
    "a signal handler": """
        import signal
        def handle(*_):
            {read}
        signal.signal(signal.SIGUSR1, handle)
        signal.raise_signal(signal.SIGUSR1)
    """,
    "another thread": """
        from threading import Thread
        def work():
            {read}
        thread = Thread(target=work)
        thread.start()
        thread.join()
    """,
    "an import": """
        import types
        from importlib import abc, machinery, import_module
        class Loader(abc.Loader):
            def exec_module(self, module):
                {read}
        class Finder(abc.MetaPathFinder):
            def find_spec(self, name, *_):
                return machinery.ModuleSpec(name, Loader()) if name == "program" else None
        sys.meta_path.insert(0, Finder())
        import_module("program")
    """,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("place", PLACES)
def test_the_first_array_is_opened_in(run: Run, place: str) -> None:
    assert run(PLACES[place].replace("{read}", READ).replace("{fast}", FAST)) == f"{SUM}\n"


# A handler of a signal that arrives when a module has been imported to its first line.
INTERRUPTED = """
    import signal
    store = n5zarr.N5Store(sys.argv[1])
    def handle(*_):
        {read}
    signal.signal(signal.SIGUSR1, handle)
    def interrupt(frame, event, _):
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"] == {module!r}:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGUSR1)
    sys.setprofile(interrupt)
    n5zarr.open
    import {module}
    print(n5zarr.open(sys.argv[1], path="a")[...].sum())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no such signal")
@pytest.mark.parametrize("module", ["fast.kernel", "arrays.box", "fast.batches"])
def test_a_signal_handler_that_interrupts_the_import_reads(run: Run, module: str) -> None:
    """The handler waits for zarr's event loop, which must not wait for the import."""
    read = READ.replace("n5zarr.N5Store(sys.argv[1])", "store")
    code = INTERRUPTED.format(read=read, module=f"n5zarr.{module}")
    assert run(code) == f"{SUM}\n{SUM}\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no such signal")
@pytest.mark.parametrize("module", ["fast.kernel", "arrays.box", "fast.batches"])
def test_a_signal_handler_that_interrupts_the_import_writes(
    run: Run, tmp_path: Path, module: str
) -> None:
    """Whole chunks and parts, which keep the other elements of their chunks."""
    expected = np.arange(35, dtype="u2").reshape(5, 7)
    place = tmp_path / "n5zarr.n5"
    array: Any = n5zarr.create_array(place, path="a", data=expected, chunks=(3, 4))
    expected[:3, 4:], expected[2:, 1] = 1000, 7
    write = """
        array = zarr.open_array(store, path="a", mode="r+")
        array[:3, 4:], array[2:, 1] = 1000, 7
        try:
            zarr.open_array(n5zarr.N5Store(sys.argv[1], read_only=True), path="a", mode="r")[0] = 3
        except ValueError:
            print("refused")
    """
    write = indent(dedent(write), " " * 8).strip()
    code = INTERRUPTED.format(read=write, module=f"n5zarr.{module}")
    assert run(code, tmp_path) == f"refused\n{expected.sum()}\n"
    np.testing.assert_array_equal(array[...], expected)


def test_threads_that_open_in_both_ways_at_once(run: Run) -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        barrier = Barrier(8)
        def work(k):
            barrier.wait()
            if k % 2:
                return int(n5zarr.open(sys.argv[1], path="a")[...].sum()), "N5CodecPipeline"
            array = zarr.open_array(n5zarr.N5Store(sys.argv[1]), path="a", mode="r")
            return int(array[...].sum()), type(array.async_array.codec_pipeline).__name__
        with ThreadPoolExecutor(8) as threads:
            print({*threads.map(work, range(8))})
    """
    assert run(code) == f"{{({SUM}, 'N5CodecPipeline')}}\n"


def test_one_thread_at_a_time_imports_what_a_name_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else Python gives a module that is not yet complete to one of them."""
    names, at_once, begun = ["open", "N5Store", "convert", "validate"], list[int](), list[str]()
    whole = vars(n5zarr)["import_module"]

    def slow(module: str) -> Any:
        begun.append(module)
        time.sleep(0.02)
        at_once.append(len(begun))
        begun.remove(module)
        return whole(module)

    for name in names:
        monkeypatch.delitem(vars(n5zarr), name, raising=False)
    monkeypatch.setattr(n5zarr, "import_module", slow)
    with ThreadPoolExecutor(len(names)) as threads:
        assert all(map(callable, threads.map(lambda name: getattr(n5zarr, name), names)))
    assert at_once == [1] * len(names)
