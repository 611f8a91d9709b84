"""How long a kernel takes, estimated from its operations, and the tiles that are chosen by that."""
