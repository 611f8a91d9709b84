// A kernel from a file of `pkc compile --emit artifact`: its machine code, and what a launch fills in.

#pragma once

#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "file.hpp"
#include "mesh.hpp"

namespace pkc {

using Shape = std::vector<int64_t>;
using Dims = std::map<std::string, int64_t>;

// An array parameter, as `pkc.codegen.artifact.ArrayParameter` describes it.
struct Parameter {
    explicit Parameter(const Json &header);

    // The shape of the memory that each rank has.
    Shape in_memory(Shape extents, int ranks) const;
    uint64_t bytes(const Shape &extents, int ranks) const;
    bool in_heap() const { return layout != "private"; }

    std::string name, dtype, layout;
    std::vector<Json> dims;
    std::optional<int> shard;
    bool scratch, packets, kept, padded;
};

// Ordered by its bits, so that NaN and both zeros have a place.
struct Number {
    double value;

    bool operator<(const Number &other) const {
        return std::bit_cast<uint64_t>(value) < std::bit_cast<uint64_t>(other.value);
    }
};

// Arguments of a launch: addresses of arrays by rank, numbers by name.
struct Arguments {
    Dims dims;
    std::map<std::string, Number> numbers;
    std::map<std::string, std::vector<uint64_t>> addresses;

    bool operator<(const Arguments &other) const {
        return std::tie(dims, numbers, addresses) < std::tie(other.dims, other.numbers, other.addresses);
    }
};

struct Free {
    void operator()(char *block) const { std::free(block); }
};

// The kernel's parameters on a rank, at an address that suits tensor maps.
using Block = std::unique_ptr<char, Free>;

struct Unload {
    void operator()(CUlibrary library) const { cuLibraryUnload(library); }
};

// Machine code on the GPUs, also of a kernel whose constructor fails.
using Library = std::unique_ptr<std::remove_pointer_t<CUlibrary>, Unload>;

class Kernel {
public:
    Kernel(Mesh &mesh, const std::string &path);
    Kernel(const Kernel &) = delete;
    Kernel &operator=(const Kernel &) = delete;

    const Parameter &parameter(const std::string &name) const;
    void bind(const Parameter &parameter, const Shape &shape, Dims &dims) const;
    void launch(const Arguments &arguments, const std::vector<CUstream> &streams);

    Mesh &mesh;

private:
    struct Memory {
        std::map<std::string, uint64_t> offsets;
        uint64_t epochs;
    };

    const std::vector<Block> &plan(const Arguments &given, const std::vector<CUstream> &streams);
    const Memory &memory(const Dims &dims, const std::vector<CUstream> &streams);
    Memory allocated(const Dims &dims) const;
    uint64_t scratch_bytes(const Parameter &parameter, const Dims &dims) const;
    void complete(Arguments &arguments) const;
    CUlaunchConfig configured(CUlaunchAttribute &cluster) const;
    uint64_t address_of(const std::string &name, int rank, const Arguments &arguments) const;
    void fill(char *block, int rank, const Arguments &arguments, uint64_t epochs) const;
    void fill_maps(char *at, const Json &field, int rank, const Arguments &arguments) const;

    Json header_;
    std::string name_;
    std::vector<Parameter> parameters_;
    std::vector<size_t> places_;
    size_t size_ = 0;
    int grid_ = 0;
    Library library_;
    std::vector<CUfunction> functions_;
    std::map<Dims, Memory> memory_;
    std::map<Arguments, std::vector<Block>> plans_;
};

}  // namespace pkc
