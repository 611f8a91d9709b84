"""The pk dialect: `pk.py` has all of it. This file imports nothing, as launches need the names in `words.py` alone."""
