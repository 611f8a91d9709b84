#include "pkc.h"

#include <string>

#include "kernel.hpp"

struct pkc_mesh : pkc::Mesh {
    using pkc::Mesh::Mesh;
};

struct pkc_kernel : pkc::Kernel {
    using pkc::Kernel::Kernel;
};

namespace {

thread_local std::string message;

// No exception leaves a function of C.
template <typename Body>
int guarded(const Body &body) {
    try {
        body();
        return 0;
    } catch (const std::exception &error) {
        message = error.what();
        return 1;
    }
}

}  // namespace

const char *pkc_error(void) { return message.c_str(); }

int pkc_mesh_open(const int *devices, int ranks, pkc_mesh **mesh) {
    return guarded([&] { *mesh = new pkc_mesh(std::vector<int>(devices, devices + ranks)); });
}

void pkc_mesh_close(pkc_mesh *mesh) { delete mesh; }

int pkc_mesh_allocate(pkc_mesh *mesh, uint64_t bytes, uint64_t *offset) {
    return guarded([&] { *offset = mesh->allocate(bytes); });
}

uint64_t pkc_mesh_address(const pkc_mesh *mesh, int rank, uint64_t offset) { return mesh->address(rank, offset); }

int pkc_mesh_synchronize(pkc_mesh *mesh, double seconds) {
    return guarded([&] { mesh->synchronize(seconds); });
}

int pkc_kernel_load(pkc_mesh *mesh, const char *path, pkc_kernel **kernel) {
    return guarded([&] { *kernel = new pkc_kernel(*mesh, path); });
}

void pkc_kernel_unload(pkc_kernel *kernel) { delete kernel; }

int pkc_kernel_bytes(const pkc_kernel *kernel, const char *name, const int64_t *shape, int dims, uint64_t *bytes) {
    return guarded([&] {
        const pkc::Parameter &parameter = kernel->parameter(name);
        pkc::Dims found{{"ranks", kernel->mesh.ranks()}};
        const pkc::Shape extents(shape, shape + dims);
        kernel->bind(parameter, extents, found);
        *bytes = parameter.bytes(extents, kernel->mesh.ranks());
    });
}

int pkc_kernel_launch(pkc_kernel *kernel, const pkc_array *arrays, int array_count, const pkc_number *numbers,
                      int number_count, void *const *streams) {
    return guarded([&] {
        pkc::Arguments arguments;
        const pkc::Mesh &mesh = kernel->mesh;
        for (const pkc_number *number = numbers; number < numbers + number_count; ++number)
            arguments.numbers[number->name] = {number->value};
        for (const pkc_array *array = arrays; array < arrays + array_count; ++array) {
            const pkc::Parameter &parameter = kernel->parameter(array->name);
            kernel->bind(parameter, pkc::Shape(array->shape, array->shape + array->dims), arguments.dims);
            if (!parameter.in_heap() && !array->addresses) throw pkc::Error(parameter.name + " has no addresses");
            std::vector<uint64_t> &found = arguments.addresses[parameter.name];
            for (const pkc::Rank &rank : mesh.local)
                found.push_back(parameter.in_heap() ? mesh.address(rank.rank, array->offset) : array->addresses[rank.rank]);
        }
        std::vector<CUstream> chosen;
        for (const pkc::Rank &rank : mesh.local)
            chosen.push_back(streams ? static_cast<CUstream>(streams[rank.rank]) : rank.stream);
        kernel->launch(arguments, chosen);
    });
}
