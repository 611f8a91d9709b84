// What the loader refuses, and what it leaves behind where the driver fails.

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fake_driver.hpp"
#include "pkc.h"
#include "plays.hpp"

namespace {

// What a call says, whose status is given.
void tell(int failed) { std::printf("%s\n", nlohmann::json(failed ? pkc_error() : "done").dump().c_str()); }

pkc_mesh *opened() {
    const int devices[] = {0, 1, 2};
    pkc_mesh *mesh = nullptr;
    if (pkc_mesh_open(devices, 3, &mesh)) std::fprintf(stderr, "%s\n", pkc_error());
    return mesh;
}

void let_fail(char **given) {
    fake::failing = given[0];
    fake::successes = std::atoi(given[1]);
}

}  // namespace

int load(char **given) {
    pkc_mesh *mesh = opened();
    for (; *given; ++given) {
        pkc_kernel *kernel = nullptr;
        tell(pkc_kernel_load(mesh, *given, &kernel));
        pkc_kernel_unload(kernel);
    }
    pkc_mesh_close(mesh);
    return 0;
}

int load_failing(char **given) {
    pkc_mesh *mesh = opened();
    pkc_kernel *kernel = nullptr;
    let_fail(given);
    tell(pkc_kernel_load(mesh, given[2], &kernel));
    std::printf("%d\n", fake::libraries);
    pkc_mesh_close(mesh);
    return 0;
}

int grow_failing(char **given) {
    pkc_mesh *mesh = opened();
    let_fail(given);
    for (int time = 0; time < 3; ++time) {
        uint64_t offset;
        tell(pkc_mesh_allocate(mesh, 48 << 20, &offset));
        std::printf("[%d, %zu]\n", fake::handles, fake::mapped.size());
    }
    pkc_mesh_close(mesh);
    std::printf("%zu\n", fake::mapped.size());
    return 0;
}
