"""Tests on GPUs: each in a separate process, as a kernel that traps or hangs takes its process with it.

`@pytest.mark.gpu(limit=300)` sets the seconds after which a test fails if it is not done.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

LIMIT = 120
_CHILD = "PKC_GPU_TEST"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is marked `gpu` in a separate process."""
    mark = pyfuncitem.get_closest_marker("gpu")
    if mark is None or _CHILD in os.environ:
        return None
    limit = mark.kwargs.get("limit", LIMIT)
    root = str(pyfuncitem.config.rootpath)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", pyfuncitem.nodeid]
    process = subprocess.Popen(
        command,
        cwd=root,
        env=os.environ | {_CHILD: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # A process that is stuck in the driver may outlive even this.
        with contextlib.suppress(subprocess.TimeoutExpired):
            output, _ = process.communicate(timeout=10)
            sys.stdout.write(output)
        pytest.fail(f"not done after {limit} s", pytrace=False)
    if process.returncode:
        sys.stdout.write(output)
        pytest.fail(f"exit status {process.returncode}", pytrace=False)
    return True
