#include "mesh.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

namespace pkc {

namespace {

constexpr uint64_t kHeapAlignment = 1024;
constexpr uint64_t kLeastGrowth = 64 << 20;
constexpr uint32_t kWaitLimit = 30'000;  // milliseconds that a wait may take

uint64_t rounded(uint64_t count, uint64_t unit) { return (count + unit - 1) / unit * unit; }

CUmemAllocationProp properties(CUdevice device) {
    CUmemAllocationProp found = {};
    found.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    found.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    return found;
}

// Memory of GPUs, for as long as this lives or it is mapped.
struct Handles {
    ~Handles() {
        for (auto handle : made) cuMemRelease(handle);
    }
    void create(uint64_t bytes, CUdevice device) {
        const CUmemAllocationProp wanted = properties(device);
        CUmemGenericAllocationHandle handle = 0;
        PKC_CALL(cuMemCreate, &handle, bytes, &wanted, 0);
        made.push_back(handle);
    }

    std::vector<CUmemGenericAllocationHandle> made;
};

void check_peers(CUdevice first, CUdevice second) {
    int access = 0, atomics = 0;
    PKC_CALL(cuDeviceGetP2PAttribute, &access, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, first, second);
    PKC_CALL(cuDeviceGetP2PAttribute, &atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, first, second);
    if (access && atomics) return;
    throw Error("GPU " + std::to_string(first) + " cannot reach GPU " + std::to_string(second));
}

}  // namespace

Mesh::Mesh(const std::vector<int> &devices) {
    if (devices.empty()) throw Error("a mesh needs a GPU");
    PKC_CALL(cuInit, 0);
    try {
        for (int device : devices) add(device);
        for (const Rank &first : local)
            for (const Rank &second : local)
                if (first.device != second.device) check_peers(first.device, second.device);
        size_t most = 0;
        for (const Rank &rank : local) {
            size_t memory = 0, unit = 0;
            const CUmemAllocationProp wanted = properties(rank.device);
            PKC_CALL(cuDeviceTotalMem, &memory, rank.device);
            PKC_CALL(cuMemGetAllocationGranularity, &unit, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
            most = std::max(most, memory);
            unit_ = std::max<uint64_t>(unit_, unit);
        }
        for (stride = unit_; stride < most;) stride *= 2;
        const Current current(local.front().context);
        void *page = nullptr;
        PKC_CALL(cuMemHostAlloc, &page, 2 * sizeof(uint32_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        alarm = static_cast<volatile uint32_t *>(page);
        alarm[0] = 0;
        alarm[1] = kWaitLimit;
        PKC_CALL(cuMemHostGetDevicePointer, &alarm_address, page, 0);
        PKC_CALL(cuMemAddressReserve, &base_, stride * local.size(), unit_, 0, 0);
    } catch (...) {
        release();
        throw;
    }
}

Mesh::~Mesh() { release(); }

void Mesh::add(int device) {
    Rank rank{ranks(), 0, nullptr, nullptr, nullptr, 0};
    PKC_CALL(cuDeviceGet, &rank.device, device);
    for (const Rank &other : local)
        if (other.device == rank.device) throw Error("GPU " + std::to_string(device) + " is given twice");
    PKC_CALL(cuDevicePrimaryCtxRetain, &rank.context, rank.device);
    local.push_back(rank);
    const Current current(rank.context);
    PKC_CALL(cuStreamCreate, &local.back().stream, CU_STREAM_NON_BLOCKING);
    PKC_CALL(cuEventCreate, &local.back().event, CU_EVENT_DISABLE_TIMING);
    PKC_CALL(cuDeviceGetAttribute, &local.back().sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, rank.device);
}

void Mesh::release() {
    unmap_behind(0);
    if (base_) cuMemAddressFree(base_, stride * local.size());
    if (alarm && cuCtxPushCurrent(local.front().context) == CUDA_SUCCESS) {
        cuMemFreeHost(const_cast<uint32_t *>(alarm));
        CUcontext popped;
        cuCtxPopCurrent(&popped);
    }
    for (const Rank &rank : local) {
        if (cuCtxPushCurrent(rank.context) == CUDA_SUCCESS) {
            if (rank.event) cuEventDestroy(rank.event);
            if (rank.stream) cuStreamDestroy(rank.stream);
            CUcontext popped;
            cuCtxPopCurrent(&popped);
        }
        cuDevicePrimaryCtxRelease(rank.device);
    }
}

uint64_t Mesh::allocate(uint64_t bytes) {
    if (bytes > stride - used_) throw Error("the symmetric heap would be larger than a GPU's memory");
    const uint64_t size = rounded(std::max<uint64_t>(bytes, 1), kHeapAlignment);
    if (used_ + size > size_) grow(rounded(std::max(used_ + size - size_, kLeastGrowth), unit_));
    used_ += size;
    return used_ - size;
}

uint64_t Mesh::range_of(uint64_t bytes, int number) {
    const uint64_t size = std::bit_ceil(std::max<uint64_t>(bytes, 2));
    const auto known = ranges_.find({size, number});
    if (known != ranges_.end()) return known->second;
    return ranges_.emplace(std::pair{size, number}, allocate(size)).first->second;
}

uint64_t Mesh::zeroed(uint64_t bytes) {
    const uint64_t offset = allocate(bytes);
    for (const Rank &rank : local) {
        const Current current(rank.context);
        if (!bytes) continue;
        PKC_CALL(cuMemsetD8Async, address(rank.rank, offset), 0, bytes, rank.stream);
    }
    // Other ranks may signal there as soon as they launch.
    synchronize(60);
    return offset;
}

void Mesh::grow(uint64_t bytes) {
    if (size_ + bytes > stride) throw Error("the symmetric heap would be larger than a GPU's memory");
    std::vector<CUmemAccessDesc> access;
    for (const Rank &rank : local)
        access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, {rank.device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    Handles handles;
    for (const Rank &rank : local) handles.create(bytes, rank.device);
    const size_t before = mapped_.size();
    mapped_.reserve(before + local.size());
    try {
        for (const Rank &rank : local) {
            const CUdeviceptr at = address(rank.rank, size_);
            PKC_CALL(cuMemMap, at, bytes, 0, handles.made[rank.rank], 0);
            mapped_.emplace_back(at, bytes);
            PKC_CALL(cuMemSetAccess, at, bytes, access.data(), access.size());
        }
    } catch (...) {
        unmap_behind(before);  // a later call maps there again
        throw;
    }
    size_ += bytes;
}

void Mesh::unmap_behind(size_t count) {
    for (; mapped_.size() > count; mapped_.pop_back()) cuMemUnmap(mapped_.back().first, mapped_.back().second);
}

void Mesh::synchronize(double seconds) {
    for (const Rank &rank : local) {
        const Current current(rank.context);
        PKC_CALL(cuEventRecord, rank.event, rank.stream);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (const Rank &rank : local) {
        // Never waits inside the driver, which nothing could interrupt.
        for (CUresult status; (status = cuEventQuery(rank.event)) != CUDA_SUCCESS; std::this_thread::yield()) {
            if (status != CUDA_ERROR_NOT_READY) check(status, "cuEventQuery");
            if (std::chrono::steady_clock::now() > end)
                throw Error("rank " + std::to_string(rank.rank) + " has not ended in " + std::to_string(seconds) + " s");
        }
    }
    check_alarm();
}

}  // namespace pkc
