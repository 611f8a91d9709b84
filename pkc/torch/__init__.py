"""pkc in PyTorch: operators of `torch.ops.pkc`, and the meshes of process groups. Importing this imports torch."""

from pkc.torch.groups import close, mesh_of, name_of
from pkc.torch.register import OPERATORS

__all__ = ["OPERATORS", "close", "mesh_of", "name_of"]
