/* Kernels that `pkc compile --emit artifact` wrote, launched without Python.

   One process drives all GPUs of a mesh: rank i is the i-th of them. Functions that return an int return 0, or 1 and
   leave a message in `pkc_error`, as they do for pointers that are NULL, where neither that is allowed nor the count
   beside them is 0. A mesh and its kernels belong to one thread at a time. */

#ifndef PKC_H
#define PKC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pkc_mesh pkc_mesh;
typedef struct pkc_kernel pkc_kernel;

/* An argument that is an array, by the parameter's name. `shape` is that of the whole array, outermost first. An array
   that ranks reach from each other lies at `offset` of the symmetric heap. A private one has an address on each rank, a
   multiple of 16 bytes, in `addresses`; for others that is NULL. Rows follow each other without gaps. */
typedef struct {
    const char *name;
    const int64_t *shape;
    int dims;
    uint64_t offset;
    const uint64_t *addresses;
} pkc_array;

/* A scalar parameter, or a dimension that no array shows. */
typedef struct {
    const char *name;
    double value;
} pkc_number;

/* What the last call of this thread that failed says. */
const char *pkc_error(void);

int pkc_mesh_open(const int *devices, int ranks, pkc_mesh **mesh);
void pkc_mesh_close(pkc_mesh *mesh);

/* `bytes` of memory at the same offset of the symmetric heap on every rank, a multiple of 1024; content undefined. It is
   freed when the mesh is closed. */
int pkc_mesh_allocate(pkc_mesh *mesh, uint64_t bytes, uint64_t *offset);

/* The address of an offset on a rank, valid on all GPUs of the mesh; 0 if there is no such rank. */
uint64_t pkc_mesh_address(const pkc_mesh *mesh, int rank, uint64_t offset);

/* Waits until all that was launched on the mesh's streams has ended; fails after `seconds`. */
int pkc_mesh_synchronize(pkc_mesh *mesh, double seconds);

int pkc_kernel_load(pkc_mesh *mesh, const char *path, pkc_kernel **kernel);
void pkc_kernel_unload(pkc_kernel *kernel);

/* The bytes that each rank needs for a parameter whose whole array has this shape: of a sharded one, the longest shard. */
int pkc_kernel_bytes(const pkc_kernel *kernel, const char *name, const int64_t *shape, int dims, uint64_t *bytes);

/* Launches on all ranks and returns before they end. `streams` has a CUstream for each rank, or is NULL for the mesh's
   own. Launches of a mesh must follow each other: on other streams than before, let these wait. The first launch with
   some dimensions allocates memory and waits for the GPUs, so it cannot be captured. */
int pkc_kernel_launch(pkc_kernel *kernel, const pkc_array *arrays, int array_count, const pkc_number *numbers,
                      int number_count, void *const *streams);

#ifdef __cplusplus
}
#endif

#endif
