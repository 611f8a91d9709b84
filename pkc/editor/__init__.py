"""What editors ask of `.pk` files: how they are spelled, what is wrong, what a name is, what may follow."""
