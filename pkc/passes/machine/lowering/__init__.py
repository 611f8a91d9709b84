"""The modules of `pk-lower-tiles`: one for each kind of value or operation of the roles level."""
