// The GPUs of a process and their symmetric heap: memory at the same offset on every rank, reached from all of them.

#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pkc {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void check(CUresult status, const char *call) {
    if (status == CUDA_SUCCESS) return;
    const char *text = nullptr;
    cuGetErrorString(status, &text);
    throw Error(std::string(call) + " fails: " + (text ? text : std::to_string(status)));
}

#define PKC_CALL(call, ...) ::pkc::check(call(__VA_ARGS__), #call)

// A context that is current for a while.
class Current {
public:
    explicit Current(CUcontext context) { PKC_CALL(cuCtxPushCurrent, context); }
    ~Current() {
        CUcontext popped;
        cuCtxPopCurrent(&popped);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
};

struct Rank {
    int rank;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUevent event;
    int sms;
};

// A segment for each rank, `stride` bytes apart, so that the rank is one more dimension of an array in a tensor map.
class Mesh {
public:
    explicit Mesh(const std::vector<int> &devices);
    ~Mesh();
    Mesh(const Mesh &) = delete;
    Mesh &operator=(const Mesh &) = delete;

    uint64_t allocate(uint64_t bytes);
    uint64_t zeroed(uint64_t bytes);
    // At least `bytes` that serve one launch after the other, the same for all that ask for about as many under this
    // number: in powers of two all together take at most four times the largest.
    uint64_t range_of(uint64_t bytes, int number);
    // Gives back all that was allocated since `used` was so much.
    void give_back(uint64_t used) {
        used_ = used;
        std::erase_if(ranges_, [used](const auto &range) { return range.second >= used; });
    }
    uint64_t used() const { return used_; }
    // Whether so many bytes from an offset on are allocated.
    bool has(uint64_t offset, uint64_t bytes) const { return offset <= used_ && bytes <= used_ - offset; }
    uint64_t address(int rank, uint64_t offset) const { return base_ + rank * stride + offset; }
    void synchronize(double seconds);
    int ranks() const { return static_cast<int>(local.size()); }

    std::vector<Rank> local;
    uint64_t stride = 0;

    // What waiting kernels look at, in memory of the host: not 0 if they are to give up, and the milliseconds that a
    // wait may take. The first that has waited too long raises it; nothing on this mesh is right after that.
    volatile uint32_t *alarm = nullptr;
    CUdeviceptr alarm_address = 0;
    void check_alarm() const {
        if (alarm[0]) throw Error("a kernel has given up waiting for another rank: make another mesh");
    }

private:
    void add(int device);
    void release();
    void grow(uint64_t bytes);
    void unmap_behind(size_t count);

    CUdeviceptr base_ = 0;
    uint64_t unit_ = 1, used_ = 0, size_ = 0;
    std::vector<std::pair<CUdeviceptr, size_t>> mapped_;
    std::map<std::pair<uint64_t, int>, uint64_t> ranges_;
};

}  // namespace pkc
