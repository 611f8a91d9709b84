"""pkc in PyTorch: operators of `torch.ops.pkc`, and the meshes of process groups. Importing this imports torch."""

from pkc.torch.fixed import fixed_order
from pkc.torch.fusion import Left, fuse, fuse_in_compile
from pkc.torch.groups import close, mesh_of, name_of
from pkc.torch.register import OPERATORS

__all__ = ["OPERATORS", "Left", "close", "fixed_order", "fuse", "fuse_in_compile", "mesh_of", "name_of"]
