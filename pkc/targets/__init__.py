"""What pkc compiles for: one object for each target."""
