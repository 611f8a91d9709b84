"""The version of pkc, which the build reads from here; `native/file.cpp` repeats it."""

VERSION = "0.1.0"
