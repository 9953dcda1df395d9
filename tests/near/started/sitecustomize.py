"""Record what the processes run that tests start; see :mod:`tests.near.recording`."""

import os
import sys
from pathlib import Path

if "PYTEST_CURRENT_TEST" in os.environ and "N5ZARR_RECORDED" in os.environ:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.near.recording import begin_in_process

    begin_in_process()
    sys.path.pop()
