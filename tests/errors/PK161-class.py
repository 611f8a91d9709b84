from pkc.language import *


@kernel
class Copy:
    """Not a function."""
