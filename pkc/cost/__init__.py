"""How long a kernel takes, estimated from its operations, by which a schedule is chosen."""
