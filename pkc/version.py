"""The version of pkc, which the build reads from here."""

VERSION = "0.1.0"
