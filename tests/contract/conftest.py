"""Two ways to read blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["kernel", "python"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the kernel or Python."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr("n5zarr.fast.kernel.can_do", lambda dataset: False)
        yield str(request.param)
