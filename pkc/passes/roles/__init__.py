"""Passes that derive who does what, and when: from tile IR to the roles level."""
