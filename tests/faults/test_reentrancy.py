"""What runs in between on the same thread, a signal handler or a finalizer, changes no numbers."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import kernel
from tests.contract.test_kernel import COMPRESSIONS, name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

BLOCKS = ("n5zarr.codecs", "n5zarr.kernel", "n5zarr.local_io", "n5zarr.pipeline")
SHAPE, CHUNKS = (5, 7, 11), (3, 5, 7)


def values(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 60_000, shape, "u2")


@contextmanager
def interrupted(handler: Callable[[], None]) -> Iterator[list[str]]:
    """Run a handler where one can run while n5zarr does: at calls and returns, some of each."""
    at: list[str] = []
    is_handled = threading.local()

    def event(frame: FrameType, kind: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        where = f"{kind} {getattr(argument, '__name__', '')} in {frame.f_code.co_qualname}"
        if not module.startswith(BLOCKS) or hasattr(is_handled, "now") or at.count(where) > 1:
            return
        is_handled.now = True
        at.append(where)
        handler()
        del is_handled.now

    threading.setprofile_all_threads(event)
    try:
        yield at
    finally:
        threading.setprofile_all_threads(None)


@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
def test_a_handler_at_every_moment(
    tmp_path: Path, compression: dict[str, Any], *, fast: bool
) -> None:
    if not kernel.is_compiled():
        pytest.skip("no compiled kernel, so that a handler cannot read on zarr's own thread")

    def create(path: str, shape: tuple[int, ...] = SHAPE) -> Any:
        return n5zarr.create_array(
            tmp_path / "c.n5", path=path, shape=shape, chunks=CHUNKS, dtype="u2",
            compression=compression,
        )  # fmt: skip

    mine, read, written = create("mine"), create("read", (7, 5, 3)), create("written")
    expected, others = values(1), values(2, read.shape)
    mine[:] = expected
    read[:] = others
    n_read = 0

    def handler() -> None:
        nonlocal n_read
        n_read += 1
        written[:] = values(n_read)
        assert np.array_equal(read[:], others)

    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(kernel, "can_do", lambda d: not d.directory.endswith("mine/"))
        with interrupted(handler) as at:
            found = mine[1:, 1:, 2:]
        assert np.array_equal(found, expected[1:, 1:, 2:])
        assert len(at) > 10
        with interrupted(handler):
            mine[:] = values(3)
        with interrupted(handler):
            mine[1:4, 2:, 3:] = values(4)[1:4, 2:, 3:]  # blocks of which a part stays
    expected = values(3)
    expected[1:4, 2:, 3:] = values(4)[1:4, 2:, 3:]
    for opened in (zarr.open_array(n5zarr.N5Store(tmp_path / "c.n5"), path="mine", mode="r"), mine):
        assert np.array_equal(opened[:], expected)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_timer_that_writes_while_gzip_is_written(tmp_path: Path) -> None:
    arrays = [
        n5zarr.create_array(
            tmp_path / "c.n5", path=path, shape=(67, 61, 59), chunks=(31, 29, 37), dtype="u2"
        )
        for path in ("a", "b")
    ]
    contents = [values(seed, (67, 61, 59)) for seed in (5, 6)]
    n_handled = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal n_handled
        n_handled += 1
        arrays[1][:] = contents[1]

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(40):
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            arrays[0][:] = contents[0]
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            assert np.array_equal(arrays[0][:], contents[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_handled > 20
    assert np.array_equal(arrays[0][:], contents[0])
    assert np.array_equal(arrays[1][:], contents[1])
