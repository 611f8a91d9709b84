#include "pkc.h"

#include <span>
#include <string>
#include <vector>

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

void check_given(const void *pointer, const std::string &name) {
    if (!pointer) throw pkc::Error(name + " is NULL");
}

// What a pointer and a count say; where there are none, the pointer may be NULL.
template <typename T>
std::span<const T> listed(const T *first, int count, const std::string &name) {
    if (count < 0) throw pkc::Error(name + " has " + std::to_string(count) + " elements");
    if (count) check_given(first, name);
    return {first, static_cast<size_t>(count)};
}

pkc::Shape shape_of(const int64_t *shape, int dims, const std::string &name) {
    const std::span<const int64_t> extents = listed(shape, dims, "the shape of " + name);
    return {extents.begin(), extents.end()};
}

}  // namespace

const char *pkc_error(void) { return message.c_str(); }

int pkc_mesh_open(const int *devices, int ranks, pkc_mesh **mesh) {
    return guarded([&] {
        check_given(mesh, "mesh");
        const std::span<const int> each = listed(devices, ranks, "devices");
        *mesh = new pkc_mesh(std::vector<int>(each.begin(), each.end()));
    });
}

void pkc_mesh_close(pkc_mesh *mesh) { delete mesh; }

int pkc_mesh_allocate(pkc_mesh *mesh, uint64_t bytes, uint64_t *offset) {
    return guarded([&] {
        check_given(mesh, "mesh");
        check_given(offset, "offset");
        *offset = mesh->allocate(bytes);
    });
}

uint64_t pkc_mesh_address(const pkc_mesh *mesh, int rank, uint64_t offset) {
    return mesh && 0 <= rank && rank < mesh->ranks() ? mesh->address(rank, offset) : 0;
}

int pkc_mesh_synchronize(pkc_mesh *mesh, double seconds) {
    return guarded([&] {
        check_given(mesh, "mesh");
        mesh->synchronize(seconds);
    });
}

int pkc_kernel_load(pkc_mesh *mesh, const char *path, pkc_kernel **kernel) {
    return guarded([&] {
        check_given(mesh, "mesh");
        check_given(path, "path");
        check_given(kernel, "kernel");
        *kernel = new pkc_kernel(*mesh, path);
    });
}

void pkc_kernel_unload(pkc_kernel *kernel) { delete kernel; }

int pkc_kernel_bytes(const pkc_kernel *kernel, const char *name, const int64_t *shape, int dims, uint64_t *bytes) {
    return guarded([&] {
        check_given(kernel, "kernel");
        check_given(name, "name");
        check_given(bytes, "bytes");
        const pkc::Parameter &parameter = kernel->parameter(name);
        pkc::Dims found{{"ranks", kernel->mesh.ranks()}};
        const pkc::Shape extents = shape_of(shape, dims, parameter.name);
        kernel->bind(parameter, extents, found);
        *bytes = parameter.bytes(extents, kernel->mesh.ranks());
    });
}

int pkc_kernel_launch(pkc_kernel *kernel, const pkc_array *arrays, int array_count, const pkc_number *numbers,
                      int number_count, void *const *streams) {
    return guarded([&] {
        check_given(kernel, "kernel");
        const pkc::Mesh &mesh = kernel->mesh;
        pkc::Arguments arguments;
        arguments.dims["ranks"] = mesh.ranks();
        const std::span<const pkc_number> said = listed(numbers, number_count, "numbers");
        for (const pkc_number &number : said) {
            check_given(number.name, "the name of a number");
            arguments.numbers[number.name] = {number.value};
        }
        const std::span<const pkc_array> given = listed(arrays, array_count, "arrays");
        for (const pkc_array &array : given) {
            check_given(array.name, "the name of an array");
            const pkc::Parameter &parameter = kernel->parameter(array.name);
            const pkc::Shape extents = shape_of(array.shape, array.dims, parameter.name);
            kernel->bind(parameter, extents, arguments.dims);
            if (!parameter.in_heap() && !array.addresses) throw pkc::Error(parameter.name + " has no addresses");
            const uint64_t bytes = parameter.bytes(extents, mesh.ranks());
            if (parameter.in_heap() && !mesh.has(array.offset, bytes))
                throw pkc::Error(parameter.name + " ends behind what the symmetric heap has allocated");
            std::vector<uint64_t> &found = arguments.addresses[parameter.name];
            for (const pkc::Rank &rank : mesh.local)
                found.push_back(parameter.in_heap() ? mesh.address(rank.rank, array.offset) : array.addresses[rank.rank]);
        }
        std::vector<CUstream> chosen;
        for (const pkc::Rank &rank : mesh.local)
            chosen.push_back(streams ? static_cast<CUstream>(streams[rank.rank]) : rank.stream);
        kernel->launch(arguments, chosen);
    });
}
