"""Time lines of kernels that ran on GPUs: their records decoded, as a table and as a file for viewers of traces."""
