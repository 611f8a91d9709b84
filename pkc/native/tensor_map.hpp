// Tensor maps: how TMA finds the boxes of an array. `pkc.codegen.artifact.TensorMaps` says what the two of a field are.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mesh.hpp"

namespace pkc {

constexpr size_t kMapBytes = sizeof(CUtensorMap);

// An array in memory, outermost dimension first; strides in bytes. In the symmetric heap the ranks' copies or shards are
// `heap_stride` apart, and `address` is that of rank 0.
struct Tiled {
    std::string name, dtype;
    uint64_t address;
    std::vector<int64_t> extents, strides;
    int ranks;
    bool sharded;
    std::optional<uint64_t> heap_stride;
};

uint64_t element_bytes(const std::string &dtype);

// Strides in bytes of memory of this shape.
std::vector<int64_t> row_major(const std::vector<int64_t> &shape, uint64_t element);

// Writes two maps to host memory at a multiple of 128 bytes; `box` is innermost first.
void encode(const Tiled &array, const std::vector<uint32_t> &box, int swizzle, std::optional<int> split, char *at);

}  // namespace pkc
