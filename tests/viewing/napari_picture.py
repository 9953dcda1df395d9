"""Make the picture of napari in ``docs/images``, on a screen that nobody sees.

``xvfb-run -a -s "-screen 0 1400x1000x24" uv run --with "napari[pyqt6]" python -m
tests.viewing.napari_picture``
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from PIL import Image

import n5zarr

PICTURE = Path(__file__).parents[2] / "docs/images/napari.png"


def main() -> None:
    """Open the sample as a user does, and take a picture of the window."""
    import napari  # noqa: PLC0415 - the tests look at this module, too

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(n5zarr.sample_path(), sample := Path(folder, "sample.n5"))
        viewer = napari.Viewer(show=False)
        viewer.open(sample, plugin="n5zarr")
        viewer.status = "Ready"
        viewer.window.resize(1100, 720)
        taken = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False))
        taken.convert("RGB").quantize(128).save(PICTURE, optimize=True)
        viewer.close()


if __name__ == "__main__":
    main()
