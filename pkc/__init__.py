"""pkc: small tile programs to multi-GPU kernels that overlap communication with compute."""

from pkc.api import artifact, compile, load, mesh, reference, simulate
from pkc.diagnostics import PkcError
from pkc.driver import uncaught
from pkc.kernels import Kernel, kernel
from pkc.version import VERSION

uncaught.install()

__version__ = VERSION
__all__ = [
    "Kernel",
    "PkcError",
    "__version__",
    "artifact",
    "compile",
    "kernel",
    "load",
    "mesh",
    "reference",
    "simulate",
]
