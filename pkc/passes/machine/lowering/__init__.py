"""What `pk-lower-tiles` is made of: one file for each kind of roles-level value or operation."""
