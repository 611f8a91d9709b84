"""Two versions side by side, without a GPU."""

from __future__ import annotations

from tools.versions import table


def test_what_takes_longer_by_more_than_two_per_cent_is_slower() -> None:
    lines, fine = table(
        {
            "same": {"before": [1.5, 1.0], "after": [1.02, 1.3]},
            "slower": {"before": [1.0], "after": [1.021]},
            "faster": {"before": [1.0], "after": [0.5]},
        }
    )
    assert not fine
    assert [line.split()[0] for line in lines if line.endswith("SLOWER")] == ["slower"]
    assert lines[1].split() == ["same", "1.0000", "1.0200", "1.020"]
    assert table({"same": {"before": [1.0], "after": [1.02]}})[1]
