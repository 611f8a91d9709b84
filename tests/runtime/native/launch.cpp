// Launches the kernel in a file on three GPUs of the fake driver.

#include <cstdio>
#include <cstdlib>

#include "fake_driver.hpp"
#include "pkc.h"
#include "plays.hpp"

int launch(char **given) {
    fake::struct_bytes = std::atoi(given[1]);
    const uint64_t first = std::strtoull(given[2], nullptr, 10), apart = 1 << 20;
    const int devices[] = {0, 1, 2};
    const int64_t a[] = {40, 72}, c[] = {40, 64};
    const uint64_t addresses[] = {first, first + apart, first + 2 * apart};
    pkc_mesh *mesh;
    pkc_kernel *kernel;
    uint64_t bytes, offset;
    if (pkc_mesh_open(devices, 3, &mesh) || pkc_kernel_load(mesh, given[0], &kernel) ||
        pkc_kernel_bytes(kernel, "C", c, 2, &bytes) || pkc_mesh_allocate(mesh, bytes, &offset)) {
        std::fprintf(stderr, "%s\n", pkc_error());
        return 1;
    }
    const pkc_array arrays[] = {{"A", a, 2, 0, addresses}, {"C", c, 2, offset, nullptr}};
    const pkc_number numbers[] = {{"scale", 0.5}, {"count", -3}};
    const int failed = pkc_kernel_launch(kernel, arrays, 2, numbers, 2, nullptr) || pkc_mesh_synchronize(mesh, 1);
    if (failed) std::fprintf(stderr, "%s\n", pkc_error());
    // What does not fit is said.
    const int64_t narrow[] = {40, 32};
    const pkc_array wrong[] = {{"A", a, 2, 0, addresses}, {"C", narrow, 2, offset, nullptr}};
    for (int numbers_given = 0; numbers_given < 2; ++numbers_given)
        if (pkc_kernel_launch(kernel, numbers_given ? wrong : arrays, 2, numbers, numbers_given, nullptr))
            std::printf("\"%s\"\n", pkc_error());
    if (pkc_kernel_launch(kernel, arrays, 1, numbers, 2, nullptr)) std::printf("\"%s\"\n", pkc_error());
    pkc_kernel_unload(kernel);
    pkc_mesh_close(mesh);
    return failed;
}
