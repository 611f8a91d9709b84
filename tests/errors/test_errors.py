"""Every diagnostic: a program that provokes it, `PKnnn-slug.pk` (or `.py`, `.mlir`), and its exact text, `.err`.

The command is `pkc compile FILE`, unless the first line says otherwise: `# pkc: run --ranks 2 --set M=5`
(`// pkc: ...` in `.mlir` files); the file's name is appended.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.errors.golden import HERE, check
from tests.errors.test_generated import CASES
from tools import errors_page

PROGRAM = re.compile(r"(PK\d{3})-[a-z0-9-]+\.(pk|py|mlir)")
COMMAND = re.compile(r"(?:#|//) pkc: (.*)")
PROGRAMS = sorted(path for path in HERE.iterdir() if PROGRAM.fullmatch(path.name))

OTHER: dict[str, str] = {
    "PK484": "tests/check/test_findings.py::test_tiles_left_in_a_channel",
    "PK485": "tests/check/test_findings.py::test_tasks_left_out",
    "PK486": "tests/check/test_findings.py::test_roles_with_other_orders",
    "PK517": "tests/targets/test_tiny.py::test_an_instruction_that_the_table_lacks",
    "PK604": "tests/sim/test_errors.py::test_a_dimension_that_is_not_there",
    "PK608": "tests/sim/test_errors.py::test_missing_inputs",
    "PK611": "tests/sim/test_errors.py::test_which_kernel",
    "PK708": "tests/sim/test_errors.py::test_a_tile_on_two_ranks",
    "PK710": "tests/sim/test_errors.py::test_an_operation_without_meaning",
    "PK712": "tests/check/test_checker.py::test_launches_need_roles",
    "PK713": "tests/sim/test_ledger.py::test_another_number_than_is_sent",
    "PK714": "tests/check/test_counterexample.py::test_a_store_over_what_is_not_read",
    "PK716": "tests/sim/test_channels.py::test_memory_of_two_phases",
    "PK720": "tests/check/test_checker.py::test_another_result_is_found",
    "PK731": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK732": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK733": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK734": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK735": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK736": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK737": "tests/sim/test_order.py::test_an_exit_without_waiting",
    "PK738": "tests/sim/test_mma.py::test_a_stage_that_a_product_in_flight_reads",
    "PK739": "tests/sim/test_mma.py::test_an_mma_that_is_not_awaited",
    "PK740": "tests/sim/test_order.py::test_what_is_missing_is_found_in_every_order",
    "PK801": "tests/codegen/test_nvrtc.py::test_rejected_code_names_the_users_line",
    "PK802": "tests/codegen/test_nvrtc.py::test_without_nvrtc",
    "PK803": "tests/codegen/test_build.py::test_spills",
    "PK804": "tests/codegen/test_build.py::test_registers_that_stay_where_they_are",
    "PK805": "tests/codegen/test_build.py::test_one_mma_after_the_other",
    "PK806": "tests/codegen/test_build.py::test_all_barriers",
    "PK807": "tests/codegen/test_build.py::test_any_other_remark",
    "PK916": "tests/test_api.py::test_names_and_options_that_do_not_exist",
    "PK820": "tests/runtime/test_driver.py::test_no_driver",
    "PK821": "tests/runtime/test_driver.py::test_no_gpu",
    "PK822": "tests/runtime/test_driver.py::test_a_call_that_fails",
    "PK823": "tests/runtime/test_mesh.py::test_a_gpu_without_room",
    "PK824": "tests/runtime/test_mesh.py::test_gpus_that_do_not_reach_each_other",
    "PK825": "tests/runtime/test_launch.py::test_machine_code_for_another_gpu",
    "PK826": "tests/runtime/test_mesh.py::test_a_gpu_that_is_not_there",
    "PK827": "tests/runtime/test_mesh.py::test_more_virtual_ranks_than_run_side_by_side",
    "PK828": "tests/runtime/test_mesh.py::test_one_gpu_twice",
    "PK829": "tests/runtime/test_exported.py::test_files_that_are_none",
    "PK830": "tests/runtime/test_group.py::test_without_torchrun",
    "PK831": "tests/runtime/test_group.py::test_several_hosts",
    "PK832": "tests/runtime/test_group.py::test_a_rank_that_does_not_come",
    "PK833": "tests/runtime/test_group.py::test_a_rank_that_ends",
    "PK834": "tests/runtime/test_group.py::test_one_rank_has_no_room",
    "PK835": "tests/runtime/test_group.py::test_ranks_that_differ",
    "PK836": "tests/runtime/test_mesh.py::test_a_hang",
    "PK837": "tests/runtime/test_reports.py::test_who_waits_for_what",
    "PK838": "tests/runtime/test_faults.py::test_every_process_raises_what_each_has_launched",
    "PK839": "tests/runtime/test_faults.py::test_a_launch_that_fails_ends_the_waits_of_others",
    "PK840": "tests/runtime/test_launch.py::test_names",
    "PK841": "tests/runtime/test_launch.py::test_arrays_that_others_do_not_reach",
    "PK842": "tests/runtime/test_launch.py::test_one_array_for_each_rank",
    "PK843": "tests/runtime/test_launch.py::test_tensors",
    "PK844": "tests/runtime/test_launch.py::test_constant_dimensions",
    "PK845": "tests/runtime/test_launch.py::test_tensors",
    "PK846": "tests/runtime/test_launch.py::test_tensors",
    "PK847": "tests/runtime/test_tensor_map.py::test_what_it_cannot",
    "PK848": "tests/runtime/test_launch.py::test_unequal_shapes",
    "PK849": "tests/runtime/test_launch.py::test_scalars",
    "PK850": "tests/runtime/test_launch.py::test_a_first_launch_in_a_capture",
    "PK851": "tests/runtime/test_launch.py::test_streams_that_are_not_one_for_each_rank",
    "PK852": "tests/runtime/test_mesh.py::test_arrays_that_cannot_be",
    "PK853": "tests/runtime/test_launch.py::test_tensors",
    "PK854": "tests/calls/test_refused.py::test_without_torch_there_are_no_tensors",
    "PK855": "tests/calls/test_refused.py::test_a_rank_of_another_process",
    "PK856": "tests/calls/test_streams.py::test_a_capture_takes_all_ranks_with_it",
    "PK857": "tests/calls/test_calls.py::test_the_default_mesh",
    "PK858": "tests/runtime/test_launch.py::test_what_is_no_tensor",
    "PK859": "tests/runtime/test_beside.py::test_virtual_ranks_need_a_queue_for_each_stream",
    "PK860": "tests/calls/test_refused.py::test_too_many_arguments",
    "PK861": "tests/calls/test_refused.py::test_an_unknown_name",
    "PK862": "tests/calls/test_refused.py::test_by_position_and_by_name_at_once",
    "PK863": "tests/calls/test_refused.py::test_missing_arguments",
    "PK864": "tests/calls/test_refused.py::test_a_constant_that_is_no_number",
    "PK865": "tests/calls/test_refused.py::test_arrays_that_no_parameter_is",
    "PK866": "tests/calls/test_refused.py::test_an_array_that_was_freed",
    "PK867": "tests/calls/test_refused.py::test_an_array_that_is_read_and_written_under_two_names",
    "PK868": "tests/runtime/test_mesh.py::test_a_limit_that_is_none",
    "PK869": "tests/torch/test_without_torch.py::test_modules_that_need_it",
    "PK919": "tests/timeline/test_pictures.py::test_without_matplotlib",
    "PK926": "tests/test_arguments.py::test_what_no_argument_can_be",
    "PK927": "tests/test_arguments.py::test_names_that_a_kernel_and_a_call_have",
    "PK930": "tests/cli/test_cli.py::test_too_large_arrays_are_a_diagnostic",
    "PK940": "tests/bench/test_run.py::test_without_torch",
    "PK943": "tests/bench/test_run.py::test_uneven_sizes",
    "PK944": "tests/bench/test_run.py::test_a_gpu_that_hangs_ends_the_process",
    "PK945": "tests/bench/test_run.py::test_a_wrong_result_is_an_error_and_no_number",
    "PK946": "tests/bench/test_report.py::test_a_file_without_results",
    "PK947": "tests/editor/test_analyse.py::test_without_the_extra",
    "PK999": "tests/cli/test_cli.py::test_internal_error_is_a_diagnostic",
}
"""Codes that no file provokes, each with the test that does."""


def command(path: Path) -> list[str]:
    """The command that a program is for."""
    first = path.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    match = COMMAND.fullmatch(first.removeprefix("\ufeff").strip())
    return [*shlex.split(match[1] if match else "compile"), path.name]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_program(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(HERE)
    check(path.name[:5], command(path), path.with_suffix(".err"), capsys, golden)


def test_every_diagnostic_is_provoked() -> None:
    provoked = {path.name[:5] for path in PROGRAMS} | {case.code for case in CASES}
    assert not provoked & set(OTHER), "provoked here, so not to be listed in OTHER"
    missing = {
        code: kind.__name__ for code, kind in errors_page.registry().items() if code not in provoked | set(OTHER)
    }
    assert not missing
    assert set(OTHER) <= set(errors_page.registry())


@pytest.mark.parametrize("test", OTHER.values())
def test_other_tests_exist(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (HERE.parents[1] / file).read_text(encoding="utf-8")


def test_every_expected_text_has_its_program() -> None:
    stems = {path.stem for path in PROGRAMS}
    assert not {path.name for path in HERE.glob("*.err") if path.stem not in stems}
    assert {path.stem for path in (HERE / "generated").iterdir()} == {case.name for case in CASES}


def test_no_program_is_overlooked() -> None:
    known = {*PROGRAMS, *HERE.glob("*.err"), *HERE.glob("*.py")}
    assert not {path for path in HERE.iterdir() if path.is_file() and path not in known}


def test_page_is_current() -> None:
    assert errors_page.PAGE.read_text(encoding="utf-8") == errors_page.page(), "run `make golden`"
