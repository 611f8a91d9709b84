"""What one would run instead of pkc, and how times are taken.

A repetition of a contestant is: block the stream until the host has enqueued everything, overwrite the L2 cache, let
the ranks meet in an all-reduce of one number, then the measured calls between two CUDA events. Contestants run
round-robin within a repetition, so that all see the same clocks. The time of a repetition is that of its slowest rank.
"""
