#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tensor_map.hpp"

namespace pkc {

namespace {

constexpr size_t kAlignment = kMapBytes;
constexpr int64_t kPitch = 32;  // bytes that padded rows begin at multiples of
constexpr size_t kMostPlans = 256;  // sets of arguments whose parameters are kept

int64_t ceiling(int64_t n, int64_t size) { return (n + size - 1) / size; }

// A dimension by name, or a constant.
int64_t value_of(const Json &dim, const Dims &dims) { return dim.is_string() ? dims.at(dim) : dim.get<int64_t>(); }

Shape extents_of(const Parameter &parameter, const Dims &dims) {
    Shape found;
    for (const Json &dim : parameter.dims) found.push_back(value_of(dim, dims));
    return found;
}

// So many elements of `each` bytes.
uint64_t product(const std::string &name, int64_t each, const Shape &extents) {
    for (const int64_t extent : extents)
        if (__builtin_mul_overflow(each, extent, &each)) throw Error(name + " is larger than any memory");
    return each;
}

// The counters that a signal has on each rank; a pair of a dimension and a block size has one for each block.
uint64_t counter_bytes(const Json &signal, const Dims &dims) {
    Shape counts;
    for (const Json &extent : signal.at("dims"))
        counts.push_back(extent.is_array() ? ceiling(value_of(extent[0], dims), extent[1]) + dims.at("ranks")
                                           : value_of(extent, dims));
    return product(signal.at("name"), 4, counts);
}

bool is_whole(double value, int64_t least) { return least <= value && value <= kLongest && value == std::trunc(value); }

std::string shown(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

[[noreturn]] void refuse_extent(const std::string &dim, const std::string &of, const std::string &value) {
    throw Error(dim + " of " + of + " is " + value + "; it must be from 1 to " + std::to_string(kLongest));
}

// Size and alignment of a field of the kernel's parameters in C++.
std::pair<size_t, size_t> size_of(const std::string &kind) {
    if (kind == "TensorMaps") return {2 * kMapBytes, kMapBytes};
    if (kind == "Base" || kind == "HeapStride" || kind == "Epochs" || kind == "Alarm") return {8, 8};
    if (kind == "Dimension" || kind == "RankField" || kind == "Scalar") return {4, 4};
    throw Error("the file is of another version: it has a field of kind " + kind);
}

template <typename T>
void write(char *at, T value) {
    std::memcpy(at, &value, sizeof value);
}

}  // namespace

Parameter::Parameter(const Json &header)
    : name(header.at("name")),
      dtype(header.at("dtype")),
      layout(header.at("layout")),
      dims(header.at("dims").begin(), header.at("dims").end()),
      scratch(header.at("scratch")),
      packets(header.at("packets")),
      kept(header.at("kept")),
      padded(header.at("padded")) {
    if (!header.at("shard").is_null()) shard = header.at("shard").get<int>();
}

Shape Parameter::in_memory(Shape extents, int ranks) const {
    if (shard) extents[*shard] = ceiling(extents[*shard], ranks);
    if (!padded) return extents;
    const int64_t each = kPitch / element_bytes(dtype);
    extents.back() = ceiling(extents.back(), each) * each;
    return extents;
}

uint64_t Parameter::bytes(const Shape &extents, int ranks) const {
    return product(name, element_bytes(dtype) * (packets ? 2 : 1), in_memory(extents, ranks));
}

Kernel::Kernel(Mesh &on, const std::string &path) : mesh(on) {
    const File file = read_file(path);
    header_ = file.header;
    name_ = header_.at("name");
    if (!header_.at("engines").get<std::string>().empty()) throw Error(name_ + " uses copy engines: launch it from Python");
    if (!header_.at("trace").is_null()) throw Error(name_ + " is traced: launch it from Python");
    for (const Json &array : header_.at("arrays")) parameters_.emplace_back(array);
    for (const Json &field : header_.at("fields")) {
        const auto [bytes, alignment] = size_of(field.at("kind"));
        places_.push_back(ceiling(size_, alignment) * alignment);
        size_ = places_.back() + bytes;
    }
    size_ = ceiling(size_, kAlignment) * kAlignment;
    const int cluster = header_.at("cluster"), shared = header_.at("shared_bytes");
    grid_ = mesh.local.front().sms;
    for (const Rank &rank : mesh.local) grid_ = std::min(grid_, rank.sms);
    grid_ = grid_ / cluster * cluster;
    CUlibrary library;
    PKC_CALL(cuLibraryLoadData, &library, file.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    library_.reset(library);
    CUkernel kernel;
    PKC_CALL(cuLibraryGetKernel, &kernel, library, name_.c_str());
    for (const Rank &rank : mesh.local) {
        const Current current(rank.context);
        functions_.emplace_back();
        PKC_CALL(cuKernelGetFunction, &functions_.back(), kernel);
        // Loading at the first launch could wait for a kernel that runs.
        PKC_CALL(cuFuncLoad, functions_.back());
        PKC_CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared, kernel, rank.device);
        if (cluster == 1) continue;
        // The SMs of a GPC are no multiple of a cluster everywhere.
        CUlaunchAttribute attribute;
        const CUlaunchConfig config = configured(attribute);
        int active;
        PKC_CALL(cuOccupancyMaxActiveClusters, &active, functions_.back(), &config);
        grid_ = std::min(grid_, active * cluster);
    }
}

CUlaunchConfig Kernel::configured(CUlaunchAttribute &cluster) const {
    cluster = {};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {header_.at("cluster").get<unsigned>(), 1, 1};
    CUlaunchConfig config = {};
    config.gridDimX = grid_;
    config.blockDimX = header_.at("threads");
    config.sharedMemBytes = header_.at("shared_bytes");
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &cluster;
    config.numAttrs = cluster.value.clusterDim.x > 1;
    return config;
}

const Parameter &Kernel::parameter(const std::string &name) const {
    for (const Parameter &parameter : parameters_)
        if (parameter.name == name && !parameter.scratch) return parameter;
    throw Error(name_ + " has no array " + name);
}

void Kernel::bind(const Parameter &parameter, const Shape &shape, Dims &dims) const {
    if (shape.size() != parameter.dims.size())
        throw Error(parameter.name + " has " + std::to_string(parameter.dims.size()) + " dimensions");
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        const Json &dim = parameter.dims[axis];
        const std::string name = dim.is_string() ? dim.get<std::string>() : "dimension " + std::to_string(axis);
        if (shape[axis] < 1 || shape[axis] > kLongest) refuse_extent(name, parameter.name, std::to_string(shape[axis]));
        const int64_t known = !dim.is_string() ? dim.get<int64_t>() : dims.emplace(dim, shape[axis]).first->second;
        if (known == shape[axis]) continue;
        throw Error(name + " of " + parameter.name + " is " + std::to_string(shape[axis]) + ", not " +
                    std::to_string(known));
    }
}

void Kernel::complete(Arguments &arguments) const {
    if (!header_.at("waits").is_null()) arguments.dims[header_.at("waits").at("ctas")] = grid_;
    const auto need = [&](const Json &dim) {
        if (!dim.is_string() || arguments.dims.contains(dim)) return;
        const auto given = arguments.numbers.find(dim);
        if (given == arguments.numbers.end()) throw Error(name_ + " needs the dimension " + dim.get<std::string>());
        const double value = given->second.value;
        if (!is_whole(value, 1)) refuse_extent(dim, name_, shown(value));
        arguments.dims[dim] = value;
    };
    for (const Parameter &parameter : parameters_) {
        if (!parameter.scratch && !arguments.addresses.contains(parameter.name))
            throw Error(name_ + " needs the array " + parameter.name);
        for (const Json &dim : parameter.dims) need(dim);
    }
    for (const Json &signal : header_.at("signals"))
        for (const Json &extent : signal.at("dims")) need(extent.is_array() ? extent[0] : extent);
    for (const Json &field : header_.at("fields")) {
        if (field.at("kind") == "Dimension") need(field.at("dim"));
        if (field.at("kind") != "Scalar") continue;
        const std::string name = field.at("name");
        const auto given = arguments.numbers.find(name);
        if (given == arguments.numbers.end()) throw Error(name_ + " needs the number " + name);
        if (field.at("dtype") == "i32" && !is_whole(given->second.value, -kLongest - 1))
            throw Error(name + " of " + name_ + " is " + shown(given->second.value) + ", which is not of type i32");
    }
}

const std::vector<Block> &Kernel::plan(const Arguments &given, const std::vector<CUstream> &streams) {
    const auto known = plans_.find(given);
    if (known != plans_.end()) return known->second;
    Arguments arguments = given;
    complete(arguments);
    const Memory &own = memory(arguments.dims, streams);
    for (const auto &[name, offset] : own.offsets) {
        std::vector<uint64_t> &found = arguments.addresses[name];
        for (const Rank &rank : mesh.local) found.push_back(mesh.address(rank.rank, offset));
    }
    std::vector<Block> blocks;
    for (const Rank &rank : mesh.local) {
        const Current current(rank.context);  // the driver encodes tensor maps only within a context
        blocks.emplace_back(static_cast<char *>(std::aligned_alloc(kAlignment, size_)));
        fill(blocks.back().get(), rank.rank, arguments, mesh.address(rank.rank, own.epochs));
    }
    if (plans_.size() >= kMostPlans) plans_.clear();
    return plans_.emplace(given, std::move(blocks)).first->second;
}

void Kernel::launch(const Arguments &arguments, const std::vector<CUstream> &streams) {
    mesh.check_alarm();
    const std::vector<Block> &blocks = plan(arguments, streams);
    // Nothing is allocated or waited for below: a kernel that runs may wait for one that is not started yet.
    CUlaunchAttribute cluster;
    CUlaunchConfig config = configured(cluster);
    for (const Rank &rank : mesh.local) {
        const Current current(rank.context);
        void *block = blocks[rank.rank].get();
        config.hStream = streams[rank.rank];
        PKC_CALL(cuLaunchKernelEx, &config, functions_[rank.rank], &block, nullptr);
    }
}

const Kernel::Memory &Kernel::memory(const Dims &dims, const std::vector<CUstream> &streams) {
    const auto known = memory_.find(dims);
    if (known != memory_.end()) return known->second;
    CUstreamCaptureStatus state;
    PKC_CALL(cuStreamIsCapturing, streams.front(), &state);
    if (state != CU_STREAM_CAPTURE_STATUS_NONE)
        throw Error("the first launch of " + name_ + " with these dimensions allocates memory: it cannot be captured");
    const uint64_t before = mesh.used();
    try {
        return memory_.emplace(dims, allocated(dims)).first->second;
    } catch (...) {
        mesh.give_back(before);  // for a launch with smaller dimensions
        throw;
    }
}

Kernel::Memory Kernel::allocated(const Dims &dims) const {
    Memory made;
    const std::string reports = header_.at("waits").is_null() ? "" : header_.at("waits").at("reports");
    int number = 0;
    for (const Parameter &parameter : parameters_) {
        if (!parameter.scratch) continue;
        const uint64_t bytes = scratch_bytes(parameter, dims);
        uint64_t &offset = made.offsets[parameter.name];
        if (parameter.name == reports || parameter.packets)
            offset = mesh.zeroed(bytes);
        else  // what is kept other ranks may write before this one has begun
            offset = parameter.kept ? mesh.allocate(bytes) : mesh.range_of(bytes, number++);
    }
    for (const Json &signal : header_.at("signals"))
        made.offsets[signal.at("name")] = mesh.zeroed(counter_bytes(signal, dims));
    made.epochs = mesh.zeroed(4 * (static_cast<uint64_t>(grid_) + 1));  // and what CTAs have taken from a queue
    return made;
}

// The bytes on each rank; a dimension whose blocks follow shards has room for all shards at full length.
uint64_t Kernel::scratch_bytes(const Parameter &parameter, const Dims &dims) const {
    Shape extents = extents_of(parameter, dims);
    const int64_t ranks = mesh.ranks();
    for (const Json &field : header_.at("fields")) {
        if (field.at("kind") != "TensorMaps" || field.at("array") != parameter.name || field.at("split").is_null()) continue;
        const int split = field.at("split");
        if (parameter.shard != split) extents[split] = ranks * ceiling(value_of(parameter.dims[split], dims), ranks);
    }
    return parameter.bytes(extents, mesh.ranks());
}

// Of an array or signal in the heap that on rank 0.
uint64_t Kernel::address_of(const std::string &name, int rank, const Arguments &arguments) const {
    for (const Parameter &parameter : parameters_)
        if (parameter.name == name && !parameter.in_heap()) return arguments.addresses.at(name)[rank];
    return arguments.addresses.at(name).front();
}

void Kernel::fill(char *block, int rank, const Arguments &arguments, uint64_t epochs) const {
    std::memset(block, 0, size_);
    size_t number = 0;
    for (const Json &field : header_.at("fields")) {
        char *at = block + places_[number++];
        const std::string kind = field.at("kind");
        if (kind == "TensorMaps")
            fill_maps(at, field, rank, arguments);
        else if (kind == "Base")
            write<uint64_t>(at, address_of(field.at("array"), rank, arguments));
        else if (kind == "HeapStride")
            write<uint64_t>(at, mesh.stride);
        else if (kind == "Epochs")
            write<uint64_t>(at, epochs);
        else if (kind == "Alarm")
            write<uint64_t>(at, mesh.alarm_address);
        else if (kind == "Dimension")
            write<int32_t>(at, arguments.dims.at(field.at("dim")));
        else if (kind == "RankField")
            write<int32_t>(at, field.at("what") == "rank" ? rank : mesh.ranks());
        else if (field.at("dtype") == "f32")
            write<float>(at, arguments.numbers.at(field.at("name")).value);
        else
            write<int32_t>(at, arguments.numbers.at(field.at("name")).value);
    }
}

void Kernel::fill_maps(char *at, const Json &field, int rank, const Arguments &arguments) const {
    const std::string name = field.at("array");
    const auto parameter = std::find_if(parameters_.begin(), parameters_.end(),
                                        [&](const Parameter &each) { return each.name == name; });
    Shape extents = extents_of(*parameter, arguments.dims), shape = parameter->in_memory(extents, mesh.ranks());
    if (field.at("joined").get<bool>())  // the last two dimensions are one of the map
        for (Shape *each : {&extents, &shape}) {
            const int64_t last = each->back();
            each->pop_back();
            each->back() *= last;
        }
    const Tiled tiled{
        .name = name,
        .dtype = parameter->dtype,
        .address = address_of(name, rank, arguments),
        .extents = extents,
        .strides = row_major(shape, element_bytes(parameter->dtype)),
        .ranks = mesh.ranks(),
        .sharded = parameter->shard.has_value(),
        .heap_stride = parameter->in_heap() ? std::optional(mesh.stride) : std::nullopt,
    };
    std::optional<int> split;
    if (!field.at("split").is_null()) split = field.at("split").get<int>();
    encode(tiled, field.at("box"), field.at("swizzle"), split, at);
}

}  // namespace pkc
