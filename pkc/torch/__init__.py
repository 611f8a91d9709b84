"""pkc in PyTorch: operators of `torch.ops.pkc`, and the meshes of process groups. Importing this imports torch."""

from pkc.runtime.torch import require

require("pkc.torch")

from pkc.torch.fixed import fixed_order  # noqa: E402
from pkc.torch.fusion import Left, fuse, fuse_in_compile  # noqa: E402
from pkc.torch.groups import close, mesh_of, name_of  # noqa: E402
from pkc.torch.register import OPERATORS  # noqa: E402

__all__ = ["OPERATORS", "Left", "close", "fixed_order", "fuse", "fuse_in_compile", "mesh_of", "name_of"]
