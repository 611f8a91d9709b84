"""CUDA C++ to machine code, as NVRTC does it on a machine without GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc import cache
from pkc.codegen import nvrtc
from pkc.codegen.cubin import kernel_facts
from pkc.codegen.nvrtc import Finding, compile_cuda
from pkc.diagnostics import PkcError
from tests.clock import within

COPY = """\
struct Args { const float* from; float* to; };
extern "C" __global__ void __launch_bounds__(128, 1) copy(const __grid_constant__ Args args) {
    __shared__ float tile[128];
    tile[threadIdx.x] = args.from[threadIdx.x];
    __syncthreads();
    args.to[threadIdx.x] = tile[127 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))


def kernel(body: str, bounds: str = "__launch_bounds__(128, 1)") -> str:
    return f'extern "C" __global__ void {bounds} k(float* p, int n) {{ {body} }}'


def findings(body: str, bounds: str = "__launch_bounds__(128, 1)") -> tuple[Finding, ...]:
    return compile_cuda(kernel(body, bounds), "sm_90a", "k").findings


def test_machine_code_and_ptx() -> None:
    compiled = compile_cuda(COPY, "sm_90a", "copy")
    assert compiled.cubin.startswith(b"\x7fELF")
    assert ".target sm_90a" in compiled.ptx
    assert ".entry copy(" in compiled.ptx
    assert compiled.findings == ()
    facts = kernel_facts(compiled.cubin)["copy"]
    assert (facts.shared, facts.frame) == (512, 0)
    assert 0 < facts.registers <= 40
    assert facts.code % 128 == 0


def test_facts_agree_with_the_log() -> None:
    source = kernel("float a[64]; for (int i = 0; i < 64; ++i) a[i * n % 64] = p[i]; p[0] = a[n];")
    compiled = compile_cuda(source, "sm_90a", "k")
    facts = kernel_facts(compiled.cubin)["k"]
    assert f"Used {facts.registers} registers" in compiled.log
    assert facts.frame == 256
    assert "256 bytes stack frame" in compiled.log


def test_two_kernels_in_one_file() -> None:
    facts = kernel_facts(compile_cuda(COPY + kernel("p[n] = 0;"), "sm_90a", "both").cubin)
    assert set(facts) == {"copy", "k"}
    assert (facts["copy"].shared, facts["k"].shared) == (512, 0)


def test_ignored_setmaxnreg() -> None:
    found = findings('asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); p[n] = 0;', bounds="")
    assert [finding.kind for finding in found] == ["setmaxnreg"]
    assert "'setmaxnreg' ignored" in found[0].text


def test_a_barrier_named_by_a_register() -> None:
    found = findings('asm volatile("bar.sync %0;" :: "r"(n)); p[n] = 0;')
    assert found == (Finding("barriers", "k", "used 16 barriers"),)
    assert findings('asm volatile("bar.sync 3;"); p[n] = 0;') == ()


def test_spills() -> None:
    body = """
        float a[64];
        #pragma unroll
        for (int i = 0; i < 64; ++i) a[i] = p[i * n];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 64; ++i) p[i * n + 1] = a[i] * a[63 - i];
    """
    found = findings(body, "__launch_bounds__(1024, 2)")
    assert [(finding.kind, finding.kernel) for finding in found] == [("spills", "k")]
    assert findings(body) == ()


def mma_body(width: int, between: str = "", results: int = 1) -> str:
    """A kernel's body: wgmma to `results` results of `width` / 2 registers each; `between` comes before the wait."""
    count = width // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    instruction = f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.bf16.bf16"
    steps = "".join(
        f"""asm volatile("{instruction} {{{registers}}}, %{count}, %{count + 1}, 1, 1, 1, 0, 0;"
            : {", ".join(f'"+f"(d[{result}][{i}])' for i in range(count))} : "l"(a), "l"(b));"""
        for result in range(results)
    )
    return f"""
        float d[{results}][{count}] = {{}}; unsigned long long a = n, b = n + 1;
        asm volatile("wgmma.fence.sync.aligned;");
        {steps}
        asm volatile("wgmma.commit_group.sync.aligned;");
        {between}
        asm volatile("wgmma.wait_group.sync.aligned 0;");
        for (int j = 0; j < {results}; ++j) for (int i = 0; i < {count}; ++i) p[i + j] = d[j][i];
    """


def test_wgmma_whose_result_is_touched_too_early() -> None:
    (found,) = findings(mma_body(16, "d[0][0] += 1;"))
    assert (found.kind, found.kernel) == ("serialized", "k")
    assert "warpgroup.wait is injected" in found.text
    assert findings(mma_body(16)) == ()


def test_wgmma_without_enough_registers() -> None:
    found = findings(mma_body(256, results=2), "__launch_bounds__(384, 1)")
    told = [finding for finding in found if "insufficient register resources" in finding.text]
    assert {(finding.kind, finding.kernel) for finding in told} == {("serialized", "k")}


def test_other_warnings() -> None:
    (found,) = findings("int unused = 0; unused == n; p[n] = 0;")
    assert found == Finding("other", "", "expression has no effect")


def test_rejected_code_names_the_users_line() -> None:
    with pytest.raises(PkcError) as raised:
        compile_cuda('#line 7 "gemm.pk"\n__device__ void f() { g(); }\n', "sm_90a", "gemm")
    expected = """\
error[PK801]: the code generated for `gemm` does not compile for sm_90a
  = note: gemm.pk(7): error: identifier "g" is undefined
  __device__ void f() { g(); }
                        ^

1 error detected in the compilation of "gemm.cu".
  = help: this is a mistake in pkc, not in your program; please report it with the output of `--emit cuda`"""
    assert str(raised.value) == expected


def test_code_that_only_the_assembler_rejects() -> None:
    with pytest.raises(PkcError, match="PK801") as raised:
        compile_cuda(kernel('asm volatile("nonsense.b32 %0;" :: "r"(n));'), "sm_90a", "k")
    assert "nonsense" in str(raised.value)


def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bindings:
        def nvrtcVersion(self) -> None:
            raise RuntimeError('Failure finding "libnvrtc.so"\nand where it was looked for')

    monkeypatch.setattr(nvrtc.importlib, "import_module", lambda name: Bindings())
    with pytest.raises(PkcError) as raised:
        nvrtc._nvrtc.__wrapped__()
    expected = """\
error[PK802]: NVRTC, which compiles CUDA C++, cannot be loaded
  = note: Failure finding "libnvrtc.so"
  = help: `pip install 'pkc[gpu]'` installs it; no GPU or driver is needed"""
    assert str(raised.value) == expected


def test_a_second_compilation_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_cuda(COPY, "sm_90a", "copy")
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("compiled again"))
    rounds = 20
    found = within(rounds * 1e-3, lambda: [compile_cuda(COPY, "sm_90a", "copy") for _ in range(rounds)])
    assert found == [first] * rounds


@pytest.mark.parametrize("change", ["source", "target", "name"])
def test_what_the_cache_tells_apart(change: str) -> None:
    given = {"source": COPY, "target": "sm_90a", "name": "copy"}
    compile_cuda(**given)
    other = {"source": COPY + "\n", "target": "sm_90", "name": "other"}
    compile_cuda(**given | {change: other[change]})
    assert len(list(cache.folder().iterdir())) == 2


def test_a_rejected_program_is_not_kept() -> None:
    with pytest.raises(PkcError):
        compile_cuda("nonsense", "sm_90a", "k")
    assert not cache.folder().exists()
