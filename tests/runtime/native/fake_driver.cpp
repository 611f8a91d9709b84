// A fake CUDA driver: it answers as tests/runtime/fake.py does, and prints tensor maps and launches. It fails where a play
// says so, and counts what is not given back.

#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "fake_driver.hpp"

namespace {

std::vector<CUcontext> contexts;
int encoded = 0, made = 100;

template <typename T>
T handle(int number) {
    return reinterpret_cast<T>(static_cast<uintptr_t>(number));
}

// Whether this call of `name` is the one that fails.
bool fails(const char *name) { return fake::failing == name && fake::successes-- == 0; }

template <typename T>
void list(const char *name, const T *values, int count) {
    std::printf(", \"%s\": [", name);
    for (int at = 0; at < count; ++at) std::printf("%s%llu", at ? ", " : "", static_cast<unsigned long long>(values[at]));
    std::printf("]");
}

}  // namespace

namespace fake {

size_t struct_bytes = 0;
std::string failing;
int successes = 0, libraries = 0, handles = 0;
std::set<unsigned long long> mapped;

}  // namespace fake

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char **text) {
    *text = "what the driver says";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int number) {
    *device = number;
    return number < 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute, CUdevice) {
    *value = 132;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute, CUdevice, CUdevice) {
    *value = 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
    *bytes = 140ull << 30;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = handle<CUcontext>(1000 + device);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) {
    contexts.push_back(context);
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context) {
    *context = contexts.back();
    contexts.pop_back();
    return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *stream, unsigned) {
    *stream = handle<CUstream>(++made);
    return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus *state) {
    *state = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
    *event = handle<CUevent>(++made);
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
CUresult cuMemGetAllocationGranularity(size_t *unit, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) {
    *unit = 2 << 20;
    return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t, size_t, CUdeviceptr, unsigned long long) {
    *at = 1ull << 44;
    return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **at, size_t size, unsigned) {
    *at = calloc(1, size);
    return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *at, void *page, unsigned) {
    *at = reinterpret_cast<CUdeviceptr>(page);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *page) {
    free(page);
    return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *made_here, size_t, const CUmemAllocationProp *, unsigned long long) {
    if (fails("cuMemCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
    *made_here = ++made;
    ++fake::handles;
    return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
    return fails("cuMemMap") || !fake::mapped.insert(at).second ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) {
    return fails("cuMemSetAccess") ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) {
    --fake::handles;
    return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t) { return fake::mapped.erase(at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream) { return CUDA_SUCCESS; }
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned, CUlibraryOption *,
                           void **, unsigned) {
    *library = handle<CUlibrary>(++made);
    ++fake::libraries;
    std::printf("{\"code\": \"%s\"}\n", static_cast<const char *>(code));
    return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary) {
    --fake::libraries;
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary, const char *name) {
    if (fails("cuLibraryGetKernel")) return CUDA_ERROR_NOT_FOUND;
    *kernel = handle<CUkernel>(++made);
    std::printf("{\"kernel\": \"%s\"}\n", name);
    return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction *function, CUkernel) {
    *function = reinterpret_cast<CUfunction>(reinterpret_cast<uintptr_t>(contexts.back()) + 5000);
    return CUDA_SUCCESS;
}
CUresult cuFuncLoad(CUfunction) { return fails("cuFuncLoad") ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveClusters(int *active, CUfunction, const CUlaunchConfig *config) {
    *active = 120 / config->attrs[0].value.clusterDim.x;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    std::memset(map, ++encoded, sizeof *map);
    std::printf("{\"dtype\": %d, \"address\": %llu", type, reinterpret_cast<unsigned long long>(address));
    list("extents", extents, rank);
    list("strides", strides, rank - 1);
    list("box", box, rank);
    std::printf(", \"swizzle\": %d}\n", swizzle);
    return reinterpret_cast<uintptr_t>(address) % 16 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **) {
    std::printf("{\"context\": %llu, \"function\": %llu, \"stream\": %llu, \"grid\": %u, \"threads\": %u, \"shared\": %u, ",
                reinterpret_cast<unsigned long long>(contexts.back()), reinterpret_cast<unsigned long long>(function),
                reinterpret_cast<unsigned long long>(config->hStream), config->gridDimX, config->blockDimX,
                config->sharedMemBytes);
    std::printf("\"cluster\": %u, \"struct\": \"", config->numAttrs ? config->attrs[0].value.clusterDim.x : 1);
    for (size_t at = 0; at < fake::struct_bytes; ++at) std::printf("%02x", static_cast<unsigned char *>(parameters[0])[at]);
    std::printf("\"}\n");
    return CUDA_SUCCESS;
}
}
