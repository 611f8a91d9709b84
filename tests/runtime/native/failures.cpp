// What the loader refuses, and what it leaves behind where the driver fails.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

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

int misuse(char **given) {
    const std::string call = given[0];
    const int devices[] = {0, 1, 2};
    const int64_t shape[] = {40, 72};
    const pkc_number nameless = {nullptr, 1};
    const pkc_array arrays[] = {
        {nullptr, shape, 2, 0, nullptr},
        {"A", nullptr, 2, 0, nullptr},
        {"A", shape, -1, 0, nullptr},
        {"A", shape, 2, 0, nullptr},
    };
    pkc_mesh *mesh = opened(), *other = nullptr;
    pkc_kernel *kernel = nullptr;
    uint64_t found;
    if (pkc_kernel_load(mesh, given[1], &kernel)) std::fprintf(stderr, "%s\n", pkc_error());
    if (call == "pkc_mesh_open") {
        tell(pkc_mesh_open(devices, 0, &other));
        tell(pkc_mesh_open(nullptr, 0, &other));
        tell(pkc_mesh_open(nullptr, 2, &other));
        tell(pkc_mesh_open(devices, -1, &other));
        tell(pkc_mesh_open(devices, 2, nullptr));
    } else if (call == "pkc_mesh_allocate") {
        tell(pkc_mesh_allocate(nullptr, 1, &found));
        tell(pkc_mesh_allocate(mesh, 1, nullptr));
    } else if (call == "pkc_mesh_address") {
        const uint64_t none = pkc_mesh_address(nullptr, 0, 8);
        for (uint64_t address : {none, pkc_mesh_address(mesh, -1, 8), pkc_mesh_address(mesh, 3, 8)})
            std::printf("%llu\n", static_cast<unsigned long long>(address));
    } else if (call == "pkc_mesh_synchronize") {
        tell(pkc_mesh_synchronize(nullptr, 1));
    } else if (call == "pkc_kernel_load") {
        pkc_kernel *second;
        tell(pkc_kernel_load(nullptr, given[1], &second));
        tell(pkc_kernel_load(mesh, nullptr, &second));
        tell(pkc_kernel_load(mesh, given[1], nullptr));
    } else if (call == "pkc_kernel_bytes") {
        tell(pkc_kernel_bytes(nullptr, "A", shape, 2, &found));
        tell(pkc_kernel_bytes(kernel, nullptr, shape, 2, &found));
        tell(pkc_kernel_bytes(kernel, "A", nullptr, 2, &found));
        tell(pkc_kernel_bytes(kernel, "A", shape, -2, &found));
        tell(pkc_kernel_bytes(kernel, "A", shape, 2, nullptr));
    } else {
        tell(pkc_kernel_launch(nullptr, arrays, 1, nullptr, 0, nullptr));
        tell(pkc_kernel_launch(kernel, nullptr, 1, nullptr, 0, nullptr));
        tell(pkc_kernel_launch(kernel, arrays, -1, nullptr, 0, nullptr));
        tell(pkc_kernel_launch(kernel, nullptr, 0, nullptr, 1, nullptr));
        tell(pkc_kernel_launch(kernel, nullptr, 0, &nameless, 1, nullptr));
        for (const pkc_array &array : arrays) tell(pkc_kernel_launch(kernel, &array, 1, nullptr, 0, nullptr));
    }
    pkc_kernel_unload(kernel);
    pkc_mesh_close(mesh);
    return 0;
}

int out_of_range(char **given) {
    pkc_mesh *mesh = opened();
    pkc_kernel *kernel = nullptr;
    const int64_t a[] = {40, 72}, c[] = {40, 64}, none[] = {0, 72}, long_a[] = {int64_t{1} << 32, 72};
    const uint64_t addresses[] = {1 << 20, 2 << 20, 3 << 20}, most = UINT64_MAX;
    uint64_t bytes = 0, place = 0;
    if (pkc_kernel_load(mesh, given[0], &kernel) || pkc_kernel_bytes(kernel, "C", c, 2, &bytes) ||
        pkc_mesh_allocate(mesh, bytes, &place))
        std::fprintf(stderr, "%s\n", pkc_error());
    const auto launch = [&](const int64_t *shape, uint64_t offset, double extent, double count) {
        const pkc_array arrays[] = {{"A", shape, 2, 0, addresses}, {"C", c, 2, offset, nullptr}};
        const pkc_number numbers[] = {{"scale", 0.5}, {"count", count}, {"N", extent}};
        tell(pkc_kernel_launch(kernel, arrays, 2, numbers, 3, nullptr));
    };
    for (double extent : {0.0, -1.0, 0.5, 3e9, std::nan("")}) launch(a, place, extent, 1);
    for (double count : {0.5, 3e9, -3e9}) launch(a, place, 1, count);
    for (const int64_t *shape : {none, long_a}) launch(shape, place, 1, 1);
    for (uint64_t offset : {place + 1024, most}) launch(a, offset, 1, 1);
    launch(a, place, INT32_MAX, 1);
    uint64_t next = 0;
    tell(pkc_mesh_allocate(mesh, 1, &next));
    std::printf("%d\n", next == place + 4096);  // C has 14 rows of 256 bytes
    tell(pkc_mesh_allocate(mesh, most, &place));
    pkc_kernel_unload(kernel);
    pkc_mesh_close(mesh);
    return 0;
}
