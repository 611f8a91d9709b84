"""The CUDA driver with checked calls: a failure is a diagnostic that names the call and the reason."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.errors import DriverFailure, NoDriver, NoGpu

OUT_OF_MEMORY = 2
NO_DEVICE = 100
NOT_READY = 600


class DriverError(PkcError):
    """A call has failed; `status` is its CUresult."""

    def __init__(self, diagnostic: DriverFailure, status: int) -> None:
        super().__init__(diagnostic)
        self.status = status


class Driver:
    """`driver.cuX(...)` calls `cuX` and returns its results without the status: none, one, or a tuple.

    `api` is the module `cuda.bindings.driver`, for enumerations, structures and calls whose status is an answer.
    """

    def __init__(self, api: Any) -> None:
        self.api = api

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.api, name)

        def checked(*arguments: Any) -> Any:
            status, *results = call(*arguments)
            if status:
                self.fail(name, status)
            return results[0] if len(results) == 1 else tuple(results) if results else None

        self.__dict__[name] = checked
        return checked

    def fail(self, call: str, status: Any) -> None:
        """Raise the diagnostic of a call that did not return success."""
        texts = (self.api.cuGetErrorName(status), self.api.cuGetErrorString(status))
        name, text = (found.decode() if found else str(status) for _, found in texts)
        raise DriverError(DriverFailure(NOWHERE, call, name, text), int(status))

    def devices(self) -> int:
        """How many GPUs this process sees; at least one."""
        status, count = self.api.cuDeviceGetCount()
        if status and int(status) != NO_DEVICE:
            self.fail("cuDeviceGetCount", status)
        if status or not count:
            raise PkcError(_no_gpu())
        return count

    def attribute(self, name: str, device: int) -> int:
        """An attribute of a GPU, such as `MULTIPROCESSOR_COUNT`."""
        wanted = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self.cuDeviceGetAttribute(wanted, device)


@functools.cache
def load() -> Driver:
    """The driver of this machine. Raises `PkcError` if there is none, or no GPU."""
    api = _bindings()
    try:
        (status,) = api.cuInit(0)
    except RuntimeError as error:
        # The bindings look for the library at the first call.
        raise PkcError(NoDriver(NOWHERE, str(error).splitlines()[0])) from None
    if status and int(status) == NO_DEVICE:
        raise PkcError(_no_gpu())
    driver = Driver(api)
    if status:
        driver.fail("cuInit", status)
    return driver


def _bindings() -> Any:
    """`cuda.bindings.driver`, which is untyped and slow to import."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        reason = f"{error}; `pip install 'pkc[gpu]'` installs the bindings of the driver"
        raise PkcError(NoDriver(NOWHERE, reason)) from None


def _no_gpu() -> NoGpu:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return NoGpu(NOWHERE, "not set" if visible is None else f"`{visible}`")
