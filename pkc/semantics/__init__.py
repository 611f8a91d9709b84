"""What each operation means: values, ranges, error bounds."""
