// What the loader refuses, and what it leaves behind where the driver fails.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

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
