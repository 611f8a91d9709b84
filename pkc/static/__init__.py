"""What can be said of a protocol without simulating it: every signal and wait of every CTA of every rank, no tiles."""
