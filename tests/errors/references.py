"""References that programs of this folder name with `--reference`."""


def twice(X):
    return 2 * X


def scaled(X, factor):
    return factor * X


def row(X):
    rows = [2 * x for x in X]
    return rows[1]
