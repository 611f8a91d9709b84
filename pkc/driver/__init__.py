"""From a file to a kernel that runs: compiler, builder, launcher."""
