"""Tables from files, and the README that they are put into."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pkc.bench import plot, report
from pkc.bench.plot import shares
from pkc.bench.tables import LEGEND, legend, table
from pkc.diagnostics import PkcError

ROOT = Path(__file__).parents[2]
FIXTURE = Path(__file__).parent / "results.json"
ATTENTION = Path(__file__).parent / "attention.json"

EXPECTED = """\
**GEMM + reduce-scatter** (8 x NVIDIA H200, driver 580.1, torch 2.11.0, NCCL 2.28.9, commit 0123456789ab, 2026-01-02†)

|        M x N x K |        pkc | TFLOP/s | limit (share) | cuBLAS + NCCL (x) | torch fused (x) | \
ParallelKittens (x) | GEMM alone: cuBLAS |   pkc |
|-----------------:|-----------:|--------:|--------------:|------------------:|----------------:|\
--------------------:|-------------------:|------:|
| 16 x 8192 x 8192 | failed [2] |       - |         0.010 |             0.050 |      failed [1] | \
                  - |              0.010 |     - |
|             8192 |      0.400 |     344 |  0.380 (0.95) |      0.600 (1.50) |     1.20 (3.00) | \
       0.500 (1.25) |              0.200 | 0.210 |

|        M x N x K |        pkc | overlap=none |
|-----------------:|-----------:|-------------:|
| 16 x 8192 x 8192 | failed [2] |        0.040 |
|             8192 |      0.400 |        0.620 |

[1] torch splits rows evenly\\
[2] the result is wrong: 3 times the error bound"""


@pytest.fixture
def record() -> dict[str, Any]:
    return json.loads(FIXTURE.read_text(encoding="utf-8"))


def test_table(record: dict[str, Any]) -> None:
    assert table([record]) == EXPECTED


def test_columns_that_newer_files_have(record: dict[str, Any]) -> None:
    """Operands that are written too, what is refused, and times that include some of the host."""
    record["method"]["hold"] = "verified"
    times = record["results"][0]["contestants"]
    times["pkc_written"] = {"median_ms": 0.45}
    times["torch_fused"]["unheld"] = 2
    times["torch_native"] = {"error": "no kernel", "refused": True}
    record["results"][0] |= {"kernel": "gemm_rs", "ranks": 4, "published_ms": None}
    del record["results"][1]
    *_, header, _, row = table([record]).split("\n\n")[1].splitlines()
    assert [cell.strip() for cell in header.split("|")[1:]][:4] == [
        "M x N x K",
        "pkc",
        "operands written too",
        "TFLOP/s",
    ]
    assert "8192 * | 0.400 |                0.450 |     344 |" in row
    assert "1.20 (3.00)~ |" in row and "refused [1] |" in row
    told = legend([record])
    assert told.startswith(LEGEND)
    assert [line[0] for line in told.removeprefix(LEGEND).split("\n\n") if line] == ["*", "~"]


def test_older_files_say_what_they_lack(record: dict[str, Any]) -> None:
    assert "no column for pkc with the time to write operands" in legend([record])
    assert "2026-01-02†)" in table([record])


EXPECTED_OF_ATTENTION = """\
**ring attention** (4 x NVIDIA H200, driver 580.1, torch 2.11.0, NCCL 2.28.9, commit 0123456789ab, 2026-01-02†)

|               B x H x S x D |        pkc | TFLOP/s | limit (share) | all-gather + cuDNN (x) | \
all-to-all + cuDNN (x) | all-gather + flash (x) | attention alone: cuDNN | flash |  pkc |
|----------------------------:|-----------:|--------:|--------------:|-----------------------:|\
-----------------------:|-----------------------:|-----------------------:|------:|-----:|
|            1 x 4 x 512 x 64 | failed [2] |       - |         0.020 |                  0.040 | \
            failed [1] |                      - |                  0.010 | 0.020 |    - |
|        4 x 16 x 24576 x 128 |       5.00 |     990 |   4.50 (0.90) |            6.00 (1.20) | \
           5.50 (1.10) |                      - |                   4.50 |  6.00 | 4.60 |
| 4 x 16 x 24576 x 128 causal |       3.00 |     825 |   2.40 (0.80) |                      - | \
           3.60 (1.20) |            9.00 (3.00) |                   2.40 |  4.00 | 2.50 |

[1] no\\
[2] the result is wrong: 3 times the error bound"""


def of_attention() -> dict[str, Any]:
    return json.loads(ATTENTION.read_text(encoding="utf-8"))


def test_table_of_attention() -> None:
    assert table([of_attention()]) == EXPECTED_OF_ATTENTION


def test_what_was_not_measured_has_no_column_and_no_row(record: dict[str, Any]) -> None:
    for result in record["results"]:
        result["limit_ms"] = result["published_ms"] = None
    del record["results"][0]["contestants"]["pkc overlap=none"]
    found = table([record])
    assert "limit" not in found and "ParallelKittens" not in found
    _, _, of_schedules, _ = found.split("\n\n")
    assert "overlap=none" in of_schedules and len(of_schedules.splitlines()) == 3


def test_families_have_tables_of_their_own(record: dict[str, Any]) -> None:
    found = table([record, of_attention()])
    assert EXPECTED in found and EXPECTED_OF_ATTENTION in found


def test_shares_of_the_limit_of_attention() -> None:
    results = of_attention()["results"]
    assert shares(results, "pkc") == [pytest.approx(0.9), pytest.approx(0.8), 0.0]
    assert shares(results, "all_to_all_cudnn") == [pytest.approx(4.5 / 5.5), pytest.approx(2.4 / 3.6), 0.0]


def test_every_name_has_a_colour() -> None:
    assert set(plot.LOOKS) == set(plot.NAMES)


def test_the_newer_of_two_results_counts(record: dict[str, Any]) -> None:
    newer = copy.deepcopy(record)
    newer["time"], newer["commit"] = "2026-01-03T00:00:00Z", "f" * 40
    del newer["results"][1]
    newer["results"][0]["contestants"]["pkc"]["median_ms"] = 0.39
    found = table([newer, record])
    assert found.count("\n| 16 x") == 2
    assert "0.390" in found and "0.400" not in found
    assert "commit ffffffffffff, 2026-01-03" in found


def test_other_numbers_of_gpus_have_tables_of_their_own(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["results"] = other["results"][:1]
    other["results"][0]["ranks"] = 4
    assert table([record, other]).count("**GEMM + reduce-scatter**") == 2


def test_shares_of_the_limit(record: dict[str, Any]) -> None:
    assert shares(record["results"], "pkc") == [pytest.approx(0.95), 0.0]
    assert shares(record["results"], "published") == [pytest.approx(0.76), 0.0]
    assert shares(record["results"], "cublas_nccl") == [pytest.approx(0.38 / 0.6), pytest.approx(0.2)]


def test_a_page_between_its_marks() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    changed = report.insert(page, "new")
    assert changed == f"before\n{report.BEGIN}\n\nnew\n\n{report.END}\nafter\n"
    assert report.insert(changed, "new") == changed
    with pytest.raises(ValueError, match="there is no"):
        report.insert("no marks", "new")


def test_the_readme_is_what_the_results_say() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    records = report.read(sorted((ROOT / "bench" / "results").glob("*.json")))
    assert report.insert(page, report.section(records)) == page, "run `make bench-report`"


def test_the_picture_is_of_the_results() -> None:
    records = report.read(sorted((ROOT / "bench" / "results").glob("*.json")))
    picture = (ROOT / "bench" / "results.png").read_bytes()
    assert plot.mark(records).encode() in picture, "run `make bench-report`"
    assert plot.mark(records[1:]) != plot.mark(records)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    result = CliRunner().invoke(report.main, [str(FIXTURE), "--readme", str(page)])
    assert (result.exit_code, result.output) == (0, "")
    assert EXPECTED in page.read_text(encoding="utf-8")
    assert EXPECTED in CliRunner().invoke(report.main, [str(FIXTURE)]).output


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 0}'])
def test_a_file_without_results(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PkcError, match="PK946"):
        report.read([path])
    assert CliRunner().invoke(report.main, [str(path)]).exit_code == 1
