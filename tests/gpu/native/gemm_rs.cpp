// Runs gemm_rs from a file on two GPUs: FILE. Launches several times in a row, each into other memory, and compares every
// element with integers; prints what a launch costs on the host.

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "pkc.h"

namespace {

constexpr int kRanks = 2, kLaunches = 5, kTimed = 200;
constexpr int64_t kM = 1000, kN = 512, kK = 192;

int a_at(int rank, int64_t m, int64_t k) { return static_cast<int>((m * 7 + k * 3 + rank) % 3) - 1; }
int b_at(int rank, int64_t k, int64_t n) { return static_cast<int>((k * 5 + n * 2 + rank) % 3) - 1; }

// The upper half of an f32; exact for small integers.
uint16_t bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >> 16;
}

float from_bf16(uint16_t value) {
    const uint32_t bits = static_cast<uint32_t>(value) << 16;
    float found;
    std::memcpy(&found, &bits, sizeof found);
    return found;
}

int fail(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    return 1;
}

}  // namespace

int main(int, char **given) {
    const int devices[] = {0, 1};
    const int64_t a_shape[] = {kM, kK}, b_shape[] = {kK, kN}, c_shape[] = {kM, kN};
    pkc_mesh *mesh;
    pkc_kernel *kernel;
    uint64_t a, b, c_bytes, c[kLaunches], a_all[kRanks], b_all[kRanks];
    if (pkc_mesh_open(devices, kRanks, &mesh) || pkc_kernel_load(mesh, given[1], &kernel) ||
        pkc_mesh_allocate(mesh, 2 * kM * kK, &a) || pkc_mesh_allocate(mesh, 2 * kK * kN, &b) ||
        pkc_kernel_bytes(kernel, "C", c_shape, 2, &c_bytes))
        return fail(pkc_error());
    CUcontext context;
    if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return fail("no context");
    for (int rank = 0; rank < kRanks; ++rank) {
        std::vector<uint16_t> one, two;
        for (int64_t m = 0; m < kM; ++m)
            for (int64_t k = 0; k < kK; ++k) one.push_back(bf16(a_at(rank, m, k)));
        for (int64_t k = 0; k < kK; ++k)
            for (int64_t n = 0; n < kN; ++n) two.push_back(bf16(b_at(rank, k, n)));
        a_all[rank] = pkc_mesh_address(mesh, rank, a);
        b_all[rank] = pkc_mesh_address(mesh, rank, b);
        if (cuMemcpyHtoD(a_all[rank], one.data(), 2 * one.size())) return fail("A is not copied");
        if (cuMemcpyHtoD(b_all[rank], two.data(), 2 * two.size())) return fail("B is not copied");
    }
    for (uint64_t &offset : c) {
        if (pkc_mesh_allocate(mesh, c_bytes, &offset)) return fail(pkc_error());
        for (int rank = 0; rank < kRanks; ++rank)
            if (cuMemsetD8(pkc_mesh_address(mesh, rank, offset), 0xff, c_bytes)) return fail("C is not poisoned");
    }
    if (cuCtxSynchronize()) return fail("C is not poisoned");
    const auto launch = [&](int at) {
        const pkc_array arrays[] = {{"A", a_shape, 2, 0, a_all}, {"B", b_shape, 2, 0, b_all}, {"C", c_shape, 2, c[at], nullptr}};
        return pkc_kernel_launch(kernel, arrays, 3, nullptr, 0, nullptr);
    };
    for (int at = 0; at < kLaunches; ++at)
        if (launch(at)) return fail(pkc_error());
    if (pkc_mesh_synchronize(mesh, 30)) return fail(pkc_error());
    std::vector<int> expected(kM * kN, 0);
    for (int rank = 0; rank < kRanks; ++rank)
        for (int64_t m = 0; m < kM; ++m)
            for (int64_t k = 0; k < kK; ++k)
                for (int64_t n = 0; n < kN; ++n) expected[m * kN + n] += a_at(rank, m, k) * b_at(rank, k, n);
    const int64_t each = (kM + kRanks - 1) / kRanks;
    for (int at = 0; at < kLaunches; ++at)
        for (int rank = 0; rank < kRanks; ++rank) {
            std::vector<uint16_t> found(c_bytes / 2);
            if (cuMemcpyDtoH(found.data(), pkc_mesh_address(mesh, rank, c[at]), c_bytes)) return fail("C is not copied");
            for (int64_t m = rank * each; m < kM && m < (rank + 1) * each; ++m)
                for (int64_t n = 0; n < kN; ++n)
                    if (from_bf16(found[(m - rank * each) * kN + n]) != expected[m * kN + n]) {
                        std::fprintf(stderr, "launch %d, rank %d, C[%ld, %ld] is wrong\n", at, rank, long(m), long(n));
                        return 1;
                    }
        }
    const auto begin = std::chrono::steady_clock::now();
    for (int at = 0; at < kTimed; ++at)
        if (launch(at % kLaunches)) return fail(pkc_error());
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
    if (pkc_mesh_synchronize(mesh, 30)) return fail(pkc_error());
    std::printf("gemm_rs from C++ is right; a launch on %d GPUs takes %.1f us of the host\n", kRanks, passed.count() / kTimed);
    pkc_kernel_unload(kernel);
    pkc_mesh_close(mesh);
    return 0;
}
