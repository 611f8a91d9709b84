#include "tensor_map.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace pkc {

namespace {

struct Element {
    uint64_t bytes;
    CUtensorMapDataType type;
};

const Element &element(const std::string &dtype) {
    static const std::map<std::string, Element> known = {
        {"bf16", {2, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16}}, {"f16", {2, CU_TENSOR_MAP_DATA_TYPE_FLOAT16}},
        {"f32", {4, CU_TENSOR_MAP_DATA_TYPE_FLOAT32}},   {"i32", {4, CU_TENSOR_MAP_DATA_TYPE_INT32}},
        {"i8", {1, CU_TENSOR_MAP_DATA_TYPE_UINT8}},      {"e4m3", {1, CU_TENSOR_MAP_DATA_TYPE_UINT8}},
        {"e5m2", {1, CU_TENSOR_MAP_DATA_TYPE_UINT8}},
    };
    const auto found = known.find(dtype);
    if (found == known.end()) throw Error("there are no elements of type " + dtype);
    return found->second;
}

CUtensorMapSwizzle swizzle_of(int bytes) {
    switch (bytes) {
        case 32: return CU_TENSOR_MAP_SWIZZLE_32B;
        case 64: return CU_TENSOR_MAP_SWIZZLE_64B;
        case 128: return CU_TENSOR_MAP_SWIZZLE_128B;
        default: return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

struct Outer {
    int64_t extent, stride;
};

// A map whose dimensions are those of the array, innermost first, and then `outer`.
void encode_one(const Tiled &array, const std::vector<int64_t> &extents, uint64_t address, const std::vector<Outer> &outer,
                const std::vector<uint32_t> &box, int swizzle, char *at) {
    std::vector<uint64_t> sizes(extents.rbegin(), extents.rend());
    std::vector<uint64_t> strides(array.strides.rbegin() + 1, array.strides.rend());
    for (const Outer &dimension : outer) {
        sizes.push_back(dimension.extent);
        strides.push_back(dimension.stride);
    }
    if (box.size() == sizes.size() + 1) {  // parts of rows
        strides.push_back(box[0] * element(array.dtype).bytes);
        sizes.push_back(sizes[0] / box[0]);
        sizes[0] = box[0];
    }
    const std::vector<uint32_t> steps(sizes.size(), 1);
    if (box.size() != sizes.size()) throw Error(array.name + ": a box has as many dimensions as its array");
    const CUresult status = cuTensorMapEncodeTiled(
        reinterpret_cast<CUtensorMap *>(at), element(array.dtype).type, sizes.size(), reinterpret_cast<void *>(address),
        sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(swizzle),
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS)
        throw Error("TMA cannot move " + array.name + ": its rows and its address must be multiples of 16 bytes");
}

}  // namespace

uint64_t element_bytes(const std::string &dtype) { return element(dtype).bytes; }

std::vector<int64_t> row_major(const std::vector<int64_t> &shape, uint64_t element) {
    std::vector<int64_t> strides(shape.size(), element);
    for (size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
}

void encode(const Tiled &array, const std::vector<uint32_t> &box, int swizzle, std::optional<int> split, char *at) {
    std::vector<Outer> ranks;
    if (array.heap_stride && !array.sharded) ranks.push_back({array.ranks, static_cast<int64_t>(*array.heap_stride)});
    if (!split) {
        encode_one(array, array.extents, array.address, ranks, box, swizzle, at);
        std::memcpy(at + kMapBytes, at, kMapBytes);
        return;
    }
    const int64_t extent = array.extents[*split], length = (extent + array.ranks - 1) / array.ranks;
    const int64_t whole = extent / length, rest = extent - whole * length;
    const int64_t step =
        array.heap_stride && array.sharded ? static_cast<int64_t>(*array.heap_stride) : length * array.strides[*split];
    const auto shards = [&](int64_t count, int64_t each, uint64_t address, char *to) {
        std::vector<int64_t> extents = array.extents;
        extents[*split] = each;
        std::vector<Outer> outer = {{count, step}};
        outer.insert(outer.end(), ranks.begin(), ranks.end());
        encode_one(array, extents, address, outer, box, swizzle, to);
    };
    shards(whole, length, array.address, at);
    if (rest)
        shards(1, rest, array.address + whole * step, at + kMapBytes);
    else
        std::memcpy(at + kMapBytes, at, kMapBytes);
}

}  // namespace pkc
