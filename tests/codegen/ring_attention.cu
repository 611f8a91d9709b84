// ring_attention
struct alignas(128) TensorMap { char bytes[128]; };
struct alignas(128) Args {
    TensorMap K_map0[2];
    TensorMap V_map1[2];
    TensorMap K_fetched_map2[2];
    TensorMap V_fetched_map3[2];
    TensorMap Q_map4[2];
    TensorMap O_map5[2];
    unsigned long long epochs;
    unsigned long long entered_base;
    unsigned long long heap_stride;
    unsigned long long reports_base;
    unsigned long long alarm;
    unsigned long long left_base;
    unsigned long long K_V_ready_base;
    int rank;
    int B;
    int H;
    int S;
    int ranks;
    float scale_value;
};

// number of this thread in its CTA
static __device__ __forceinline__ int thread_number() {
    return threadIdx.x;
}
// this warp, in its CTA
static __device__ __forceinline__ int warp_number() {
    return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
}
// address of the dynamic shared memory, at a multiple of 1024
static __device__ __forceinline__ int shared_base() {
    extern __shared__ __align__(1024) unsigned char shared[]; unsigned a; asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(shared)); return (a + 1023) & ~1023;
}
// number of this CTA in the grid
static __device__ __forceinline__ int cta_number() {
    return blockIdx.x;
}
// CTAs of the grid
static __device__ __forceinline__ int cta_count() {
    return gridDim.x;
}
// the counter at a
static __device__ __forceinline__ int load_u32(unsigned long long a) {
    return *(const volatile unsigned*)a;
}
// prefetches the tensor map a into the cache
static __device__ __forceinline__ void prefetch_map(const TensorMap& a) {
    asm volatile("prefetch.tensormap [%0];" :  : "l"(&a) : "memory");
}
// barrier at a: a phase is complete after b arrivals
static __device__ __forceinline__ void mbarrier_init(int a, int b) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :  : "r"(a), "r"(b) : "memory");
}
// initialised barriers are visible to the async proxy
static __device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" :  :  : "memory");
}
// barrier over all threads of the CTA
static __device__ __forceinline__ void sync_threads() {
    __syncthreads();
}
// a counter of this CTA
static __device__ __forceinline__ void store_u32(unsigned long long a, int b) {
    *(volatile unsigned*)a = b;
}
// registers of each thread
static __device__ __forceinline__ void setmaxnreg_inc_224() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;" :  :  : "memory");
}
// maximum or NaN
static __device__ __forceinline__ float max_nan(float a, float b) {
    float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r;
}
// until the phase of parity b is complete at a (acquire, CTA)
static __device__ __forceinline__ void mbarrier_wait(int a, int b) {
    asm volatile("{\n.reg .pred p;\nagain%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done%=;\nbra again%=;\ndone%=:\n}" :  : "r"(a), "r"(b) : "memory");
}
// registers before wgmma
static __device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" :  :  : "memory");
}
// a += A[64, 16] @ B[16, 128] if the last operand is not 0, else a = A @ B; asynchronous
static __device__ __forceinline__ void wgmma_n128_bf16_ss_kk(float (&a)[64], unsigned long long b, unsigned long long c, int d) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]) : "l"(b), "l"(c), "r"(d));
}
// ends a group of wgmma
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}
// at most that many groups are in flight
static __device__ __forceinline__ void wgmma_wait_0() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" :  :  : "memory");
}
// MMAs are complete: a may be read
static __device__ __forceinline__ void wgmma_done_64(float (&a)[64]) {
    asm volatile("" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]) : );
}
// arrives at a (release, CTA)
static __device__ __forceinline__ void mbarrier_arrive(int a) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :  : "r"(a) : "memory");
}
// a of the thread whose number in the warp differs from this one's by the bits b
static __device__ __forceinline__ float shuffle_xor(float a, int b) {
    return __shfl_xor_sync(0xffffffffu, a, b);
}
// 2 to the power a, 2 ulp; 0 below 2^-126
static __device__ __forceinline__ float exp2_f32(float a) {
    float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;
}
// two bf16, a in the low half, to nearest even
static __device__ __forceinline__ unsigned pack_bf16(float a, float b) {
    unsigned r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b)); return r;
}
// a += A[64, 16] @ B[16, 128] if the last operand is not 0, else a = A @ B; asynchronous
static __device__ __forceinline__ void wgmma_n128_bf16_rs_kn(float (&a)[64], unsigned b, unsigned c, unsigned d, unsigned e, unsigned long long f, int g) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]) : "r"(b), "r"(c), "r"(d), "r"(e), "l"(f), "r"(g));
}
// at most that many groups are in flight
static __device__ __forceinline__ void wgmma_wait_1() {
    asm volatile("wgmma.wait_group.sync.aligned 1;" :  :  : "memory");
}
// what makes a comes before what follows
static __device__ __forceinline__ void settle_2(float (&a)[2]) {
    asm volatile("{ .reg .pred q; setp.eq.f32 q, %0, 0fB5A91C3D; setp.eq.or.f32 q, %1, 0fB5A91C3D, q; @q nanosleep.u32 0; }" :  : "f"(a[0]), "f"(a[1]) : "memory");
}
// a power of two, mostly 1; a times it has a reciprocal among the normal numbers
static __device__ __forceinline__ float divisor_scale(float a) {
    const float m = fabsf(a); return m > 0x1p126f ? 0x1p-32f : m < 0x1p-126f ? 0x1p32f : 1.0f;
}
// 1 / a, to nearest
static __device__ __forceinline__ float reciprocal(float a) {
    float r; asm("rcp.rn.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;
}
// barrier over that many threads
static __device__ __forceinline__ void sync_2_of_128() {
    asm volatile("bar.sync 2, 128;" :  :  : "memory");
}
// barrier over that many threads
static __device__ __forceinline__ void sync_3_of_128() {
    asm volatile("bar.sync 3, 128;" :  :  : "memory");
}
// four 8x8 matrices of 16-bit elements; thread 8i + j has the address of row j of matrix i
static __device__ __forceinline__ void stmatrix_x4(int a, unsigned b, unsigned c, unsigned d, unsigned e) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :  : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");
}
// generic before async, shared
static __device__ __forceinline__ void fence_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" :  :  : "memory");
}
// registers of each thread
static __device__ __forceinline__ void setmaxnreg_dec_56() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;" :  :  : "memory");
}
// releases what was written, to all GPUs
static __device__ __forceinline__ void fence_release_sys() {
    asm volatile("fence.release.sys;" :  :  : "memory");
}
// adds b to the counter at a, without memory order
static __device__ __forceinline__ void signal_relaxed_sys(unsigned long long a, int b) {
    asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" :  : "l"(a), "r"(b) : "memory");
}
// until the counter at a is at least b, as long as the alarm at c allows, at which it looks once in 16384 looks; if it gives up, it says so as `report`(d, e, why, f, g, value, b, a) and `raise_alarm`(c)
static __device__ __forceinline__ void spin_guarded(unsigned long long a, int b, unsigned long long c, unsigned long long d, int e, int f, int g) {
    unsigned v; unsigned s, now, limit, first = 0; for (unsigned n = 16384;;) { asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); if ((int)(v - (unsigned)b) >= 0) return; if (--n) continue; n = 16384; asm volatile("{.reg .u64 t; mov.u64 t, %%globaltimer; shr.u64 t, t, 20; cvt.u32.u64 %0, t;}" : "=r"(now) :: "memory"); if (!first) first = now; now -= first; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"(c) : "memory"); if (!s) { asm volatile("ld.relaxed.sys.global.u32 %0, [%1+4];" : "=r"(limit) : "l"(c) : "memory"); if (now <= limit) continue; } asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); if ((int)(v - (unsigned)b) >= 0) return; const unsigned long long to = d + (blockIdx.x * e + threadIdx.x / 32) * 32ull; asm volatile("st.global.b32 [%0+12], %1;" : : "l"(to), "r"(v) : "memory"); asm volatile("st.global.b32 [%0+16], %1;" : : "l"(to), "r"(b) : "memory"); asm volatile("st.global.b32 [%0+20], %1;" : : "l"(to), "r"((int)a) : "memory"); asm volatile("st.global.b32 [%0+24], %1;" : : "l"(to), "r"(0) : "memory"); asm volatile("st.global.b32 [%0+28], %1;" : : "l"(to), "r"(0) : "memory"); asm volatile("st.global.b32 [%0+4], %1;" : : "l"(to), "r"(f) : "memory"); asm volatile("st.global.b32 [%0+8], %1;" : : "l"(to), "r"(g) : "memory"); asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"(c) : "memory"); asm volatile("st.global.b32 [%0+0], %1;" : : "l"(to), "r"(s ? 2 : 1) : "memory"); if (!s) asm volatile("st.release.sys.global.u32 [%0], 1;" :  : "l"(c) : "memory"); break; }
}
// acquires what was released, all GPUs
static __device__ __forceinline__ void fence_acquire_sys() {
    asm volatile("fence.acquire.sys;" :  :  : "memory");
}
// generic before async, global
static __device__ __forceinline__ void fence_async_global() {
    asm volatile("fence.proxy.async.global;" :  :  : "memory");
}
// arrives at a; the phase also waits for b bytes
static __device__ __forceinline__ void mbarrier_expect(int a, int b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :  : "r"(a), "r"(b) : "memory");
}
// a box of the tensor of map b to shared memory at a; its bytes arrive at the barrier c
static __device__ __forceinline__ void tma_load_5d(int a, const TensorMap& b, int c, int d, int e, int f, int g, int h) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" :  : "r"(a), "l"(&b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h) : "memory");
}
// shared memory at a to a box of the tensor of map b
static __device__ __forceinline__ void tma_store_5d(int a, const TensorMap& b, int c, int d, int e, int f, int g) {
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5, %6}], [%0];" :  : "r"(a), "l"(&b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g) : "memory");
}
// ends a group of asynchronous stores
static __device__ __forceinline__ void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" :  :  : "memory");
}
// stores have read their source
static __device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" :  :  : "memory");
}
// stores are complete and visible
static __device__ __forceinline__ void bulk_wait_full() {
    asm volatile("cp.async.bulk.wait_group 0;" :  :  : "memory");
}
// the same on this GPU
static __device__ __forceinline__ void signal_release_gpu(unsigned long long a, int b) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :  : "l"(a), "r"(b) : "memory");
}
// `spin_guarded` in a loop over tasks, which keeps nothing for a report
static __device__ __forceinline__ void spin_guarded_in_task(unsigned long long a, int b, unsigned long long c, unsigned long long d, int e, int f, int g) {
    unsigned v; unsigned s, now, limit, first = 0; for (unsigned n = 16384;;) { asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); if ((int)(v - (unsigned)b) >= 0) return; if (--n) continue; n = 16384; asm volatile("{.reg .u64 t; mov.u64 t, %%globaltimer; shr.u64 t, t, 20; cvt.u32.u64 %0, t;}" : "=r"(now) :: "memory"); if (!first) first = now; now -= first; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"(c) : "memory"); if (!s) { asm volatile("ld.relaxed.sys.global.u32 %0, [%1+4];" : "=r"(limit) : "l"(c) : "memory"); if (now <= limit) continue; } asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); if ((int)(v - (unsigned)b) >= 0) return; unsigned cta, thread; asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(cta) :: "memory"); asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread) :: "memory"); const unsigned long long to = d + (cta * e + thread / 32) * 32ull; asm volatile("st.global.b32 [%0+12], %1;" : : "l"(to), "r"(v) : "memory"); asm volatile("st.global.b32 [%0+16], %1;" : : "l"(to), "r"(b) : "memory"); asm volatile("st.global.b32 [%0+20], %1;" : : "l"(to), "r"((int)a) : "memory"); asm volatile("st.global.b32 [%0+24], %1;" : : "l"(to), "r"(0) : "memory"); asm volatile("st.global.b32 [%0+28], %1;" : : "l"(to), "r"(0) : "memory"); asm volatile("st.global.b32 [%0+4], %1;" : : "l"(to), "r"(f) : "memory"); asm volatile("st.global.b32 [%0+8], %1;" : : "l"(to), "r"(g) : "memory"); asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"(c) : "memory"); asm volatile("st.global.b32 [%0+0], %1;" : : "l"(to), "r"(s ? 2 : 1) : "memory"); if (!s) asm volatile("st.release.sys.global.u32 [%0], 1;" :  : "l"(c) : "memory"); break; }
}
// acquires what was released, this GPU
static __device__ __forceinline__ void fence_acquire_gpu() {
    asm volatile("fence.acquire.gpu;" :  :  : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
ring_attention(const __grid_constant__ Args args) {
#line 2 "examples/ring_attention.pk"
    const int thread = thread_number();
    const int warp = warp_number();
    const int lane = thread & 31;
    const int shared_ = shared_base();
    const int cta = cta_number();
    const int computing = cta_count();
    const unsigned long long v0 = args.epochs + ((unsigned long long)cta * 4ull);
    const int v1 = load_u32(v0);
    const int epoch = v1 + 1;
    const bool v2 = thread == 0;
    if (v2) {
        prefetch_map(args.K_map0[0]);
        prefetch_map(args.V_map1[0]);
        prefetch_map(args.K_fetched_map2[0]);
        prefetch_map(args.V_fetched_map3[0]);
        prefetch_map(args.Q_map4[0]);
        prefetch_map(args.O_map5[0]);
        mbarrier_init((shared_ + 229376), 1);
        mbarrier_init((shared_ + 229384), 1);
        mbarrier_init((shared_ + 229392), 1);
        mbarrier_init((shared_ + 229400), 1);
        mbarrier_init((shared_ + 229408), 1);
        mbarrier_init((shared_ + 229416), 1);
        mbarrier_init((shared_ + 229424), 256);
        mbarrier_init((shared_ + 229432), 1);
        const int v3 = shared_ + 229440;
        mbarrier_init(v3, 1);
        const int v4 = shared_ + 229456;
        mbarrier_init(v4, 8);
        mbarrier_init((v3 + 8), 1);
        mbarrier_init((v4 + 8), 8);
        const int v5 = shared_ + 229472;
        mbarrier_init(v5, 1);
        const int v6 = shared_ + 229488;
        mbarrier_init(v6, 8);
        mbarrier_init((v5 + 8), 1);
        mbarrier_init((v6 + 8), 8);
        mbarrier_init_fence();
    }
    sync_threads();
    if (v2) {
        store_u32(v0, epoch);
    }
    const bool v7 = warp < 8;
    if (v7) {
        setmaxnreg_inc_224();
        // consumer: 8 warps from 0
#line 6 "examples/ring_attention.pk"
        if (v7) {
            int q_phase[1];
            q_phase[0] = 0;
            int cast_phase[1];
            cast_phase[0] = 0;
            int k_phase[1];
            k_phase[0] = 0;
            int k_stage[1];
            k_stage[0] = 0;
            int v_phase[1];
            v_phase[0] = 0;
            int v_stage[1];
            v_stage[0] = 0;
#line 5 "examples/ring_attention.pk"
            float k[1];
            #pragma unroll
            for (int v8 = 0; v8 < 1; ++v8) {
                const float v9 = max_nan(args.scale_value, 1.0000000031710769e-30f);
                k[v8] = v9;
            }
#line 6 "examples/ring_attention.pk"
            const int v10 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v11 = (args.B * args.H) * ((max(min(args.S - (args.rank * v10), v10), 0) + 127) / 128);
            #pragma unroll 1
            for (int task = cta; task < v11; task += computing) {
#line 10 "examples/ring_attention.pk"
                const int v12 = q_phase[0];
                mbarrier_wait((shared_ + 229408), v12);
                const int v13 = shared_ + 65536;
                const int v14 = q_phase[0];
                q_phase[0] = (v14 ^ 1);
#line 8 "examples/ring_attention.pk"
                float total[2];
                #pragma unroll
                for (int v15 = 0; v15 < 2; ++v15) {
                    total[v15] = 0.0f;
                }
                float o[64];
                #pragma unroll
                for (int v16 = 0; v16 < 64; ++v16) {
                    o[v16] = 0.0f;
                }
                float top[2];
                #pragma unroll
                for (int v17 = 0; v17 < 2; ++v17) {
                    top[v17] = __int_as_float(0xff800000);
                }
                #pragma unroll 1
                for (int v18 = 0; v18 < args.ranks; ++v18) {
#line 9 "examples/ring_attention.pk"
                    const int v19 = max(min(args.S - (((args.rank + v18) % args.ranks) * v10), v10), 0);
                    const int v20 = (v19 + 127) / 128;
                    if (0 < v20) {
#line 10 "examples/ring_attention.pk"
                        const int v21 = k_stage[0];
                        const int v22 = shared_ + 229440;
                        const int v23 = k_phase[0];
                        mbarrier_wait((v22 + (v21 * 8)), v23);
                        const int v24 = shared_ + 98304;
                        float v25[64];
                        const unsigned long long v26 = (unsigned long long)(((v24 + (v21 * 32768)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_fence();
                        const unsigned long long v27 = (unsigned long long)(((v13 + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_n128_bf16_ss_kk(v25, v27, v26, 0);
                        const unsigned long long v28 = v27 + 2ull;
                        wgmma_n128_bf16_ss_kk(v25, v28, (v26 + 2ull), 1);
                        const unsigned long long v29 = v27 + 4ull;
                        wgmma_n128_bf16_ss_kk(v25, v29, (v26 + 4ull), 1);
                        const unsigned long long v30 = v27 + 6ull;
                        wgmma_n128_bf16_ss_kk(v25, v30, (v26 + 6ull), 1);
                        const unsigned long long v31 = v27 + 1024ull;
                        wgmma_n128_bf16_ss_kk(v25, v31, (v26 + 1024ull), 1);
                        const unsigned long long v32 = v27 + 1026ull;
                        wgmma_n128_bf16_ss_kk(v25, v32, (v26 + 1026ull), 1);
                        const unsigned long long v33 = v27 + 1028ull;
                        wgmma_n128_bf16_ss_kk(v25, v33, (v26 + 1028ull), 1);
                        const unsigned long long v34 = v27 + 1030ull;
                        wgmma_n128_bf16_ss_kk(v25, v34, (v26 + 1030ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        wgmma_done_64(v25);
                        const int v35 = k_stage[0];
                        const int v36 = shared_ + 229456;
                        const int v37 = v36 + (v35 * 8);
                        const bool v38 = lane == 0;
                        if (v38) {
                            mbarrier_arrive(v37);
                        }
                        const int v39 = k_phase[0];
                        const int v40 = k_stage[0];
                        const int v41 = v40 + 1;
                        const bool v42 = v41 == 2;
                        k_phase[0] = (v42 ? (v39 ^ 1) : v39);
                        k_stage[0] = (v42 ? 0 : v41);
#line 13 "examples/ring_attention.pk"
                        if ((v19 >= 128) ^ true) {
                            #pragma unroll
                            for (int v43 = 0; v43 < 64; ++v43) {
                                const float v44 = v25[v43];
                                const float v45 = ((((((v43 & 63) >> 2) * 8) + ((lane & 3) * 2)) + (v43 & 1)) < v19) ? v44 : __int_as_float(0xff800000);
                                v25[v43] = v45;
                            }
                        }
                        float v46[2];
                        const float v47 = v25[0];
                        v46[0] = v47;
                        const float v48 = v46[0];
                        const float v49 = v25[1];
                        const float v50 = max_nan(v48, v49);
                        v46[0] = v50;
                        #pragma unroll
                        for (int v51 = 1; v51 < 16; ++v51) {
                            const int v52 = v51 * 4;
                            const float v53 = v25[v52];
                            const float v54 = v25[(v52 + 1)];
                            const float v55 = max_nan(v53, v54);
                            const float v56 = v46[0];
                            const float v57 = max_nan(v56, v55);
                            v46[0] = v57;
                        }
                        const float v58 = v46[0];
                        const float v59 = shuffle_xor(v58, 1);
                        const float v60 = max_nan(v58, v59);
                        v46[0] = v60;
                        const float v61 = v46[0];
                        const float v62 = shuffle_xor(v61, 2);
                        const float v63 = max_nan(v61, v62);
                        v46[0] = v63;
                        const float v64 = v25[2];
                        v46[1] = v64;
                        const float v65 = v46[1];
                        const float v66 = v25[3];
                        const float v67 = max_nan(v65, v66);
                        v46[1] = v67;
                        #pragma unroll
                        for (int v68 = 1; v68 < 16; ++v68) {
                            const int v69 = (v68 * 4) + 2;
                            const float v70 = v25[v69];
                            const float v71 = v25[(v69 + 1)];
                            const float v72 = max_nan(v70, v71);
                            const float v73 = v46[1];
                            const float v74 = max_nan(v73, v72);
                            v46[1] = v74;
                        }
                        const float v75 = v46[1];
                        const float v76 = shuffle_xor(v75, 1);
                        const float v77 = max_nan(v75, v76);
                        v46[1] = v77;
                        const float v78 = v46[1];
                        const float v79 = shuffle_xor(v78, 2);
                        const float v80 = max_nan(v78, v79);
                        v46[1] = v80;
                        float v81[2];
                        #pragma unroll
                        for (int v82 = 0; v82 < 2; ++v82) {
                            const float v83 = v46[v82];
                            const float v84 = k[0];
                            v81[v82] = (v83 * v84);
                        }
                        float t[2];
                        #pragma unroll
                        for (int v85 = 0; v85 < 2; ++v85) {
                            const float v86 = top[v85];
                            const float v87 = v81[v85];
                            const float v88 = max_nan(v86, v87);
                            t[v85] = v88;
                        }
                        float v89[64];
                        #pragma unroll
                        for (int v90 = 0; v90 < 64; ++v90) {
                            const float v91 = v25[v90];
                            const float v92 = k[0];
                            v89[v90] = (v91 * v92);
                        }
                        float v93[64];
                        #pragma unroll
                        for (int v94 = 0; v94 < 64; ++v94) {
                            const float v95 = v89[v94];
                            const float v96 = t[(((v94 >> 6) * 2) + ((v94 >> 1) & 1))];
                            v93[v94] = (v95 - v96);
                        }
                        float p[64];
                        #pragma unroll
                        for (int v97 = 0; v97 < 64; ++v97) {
                            const float v98 = v93[v97];
                            const float v99 = exp2_f32(v98);
                            p[v97] = v99;
                        }
                        float v100[2];
                        #pragma unroll
                        for (int v101 = 0; v101 < 2; ++v101) {
                            const float v102 = top[v101];
                            const float v103 = t[v101];
                            v100[v101] = (v102 - v103);
                        }
                        float c[2];
                        #pragma unroll
                        for (int v104 = 0; v104 < 2; ++v104) {
                            const float v105 = v100[v104];
                            const float v106 = exp2_f32(v105);
                            c[v104] = v106;
                        }
#line 14 "examples/ring_attention.pk"
                        float v107[2];
                        #pragma unroll
                        for (int v108 = 0; v108 < 2; ++v108) {
                            const float v109 = total[v108];
                            const float v110 = c[v108];
                            v107[v108] = (v109 * v110);
                        }
                        float v111[2];
                        const float v112 = p[0];
                        v111[0] = v112;
                        const float v113 = v111[0];
                        const float v114 = p[1];
                        v111[0] = (v113 + v114);
                        #pragma unroll
                        for (int v115 = 1; v115 < 16; ++v115) {
                            const int v116 = v115 * 4;
                            const float v117 = p[v116];
                            const float v118 = p[(v116 + 1)];
                            const float v119 = v111[0];
                            v111[0] = (v119 + (v117 + v118));
                        }
                        const float v120 = v111[0];
                        const float v121 = shuffle_xor(v120, 1);
                        v111[0] = (v120 + v121);
                        const float v122 = v111[0];
                        const float v123 = shuffle_xor(v122, 2);
                        v111[0] = (v122 + v123);
                        const float v124 = p[2];
                        v111[1] = v124;
                        const float v125 = v111[1];
                        const float v126 = p[3];
                        v111[1] = (v125 + v126);
                        #pragma unroll
                        for (int v127 = 1; v127 < 16; ++v127) {
                            const int v128 = (v127 * 4) + 2;
                            const float v129 = p[v128];
                            const float v130 = p[(v128 + 1)];
                            const float v131 = v111[1];
                            v111[1] = (v131 + (v129 + v130));
                        }
                        const float v132 = v111[1];
                        const float v133 = shuffle_xor(v132, 1);
                        v111[1] = (v132 + v133);
                        const float v134 = v111[1];
                        const float v135 = shuffle_xor(v134, 2);
                        v111[1] = (v134 + v135);
                        float total1[2];
                        #pragma unroll
                        for (int v136 = 0; v136 < 2; ++v136) {
                            const float v137 = v107[v136];
                            const float v138 = v111[v136];
                            total1[v136] = (v137 + v138);
                        }
#line 15 "examples/ring_attention.pk"
                        unsigned v139[32];
                        #pragma unroll
                        for (int v140 = 0; v140 < 32; ++v140) {
                            const int v141 = v140 * 2;
                            const float v142 = p[v141];
                            const float v143 = p[(v141 + 1)];
                            const unsigned v144 = pack_bf16(v142, v143);
                            v139[v140] = v144;
                        }
#line 9 "examples/ring_attention.pk"
                        const int v145 = 0 + 1;
                        float o1[64];
                        #pragma unroll
                        for (int v146 = 0; v146 < 64; ++v146) {
                            const float v147 = o[v146];
                            o1[v146] = v147;
                        }
                        float t1[2];
                        #pragma unroll
                        for (int v148 = 0; v148 < 2; ++v148) {
                            const float v149 = t[v148];
                            t1[v148] = v149;
                        }
                        float c1[2];
                        #pragma unroll
                        for (int v150 = 0; v150 < 2; ++v150) {
                            const float v151 = c[v150];
                            c1[v150] = v151;
                        }
                        #pragma unroll 1
                        for (int v152 = v145; v152 < v20; ++v152) {
#line 10 "examples/ring_attention.pk"
                            const int v153 = k_stage[0];
                            const int v154 = k_phase[0];
                            mbarrier_wait((v22 + (v153 * 8)), v154);
                            float v155[64];
                            const unsigned long long v156 = (unsigned long long)(((v24 + (v153 * 32768)) & 262143) >> 4) + 4611686293305360384ull;
                            wgmma_fence();
                            wgmma_n128_bf16_ss_kk(v155, v27, v156, 0);
                            wgmma_n128_bf16_ss_kk(v155, v28, (v156 + 2ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v29, (v156 + 4ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v30, (v156 + 6ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v31, (v156 + 1024ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v32, (v156 + 1026ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v33, (v156 + 1028ull), 1);
                            wgmma_n128_bf16_ss_kk(v155, v34, (v156 + 1030ull), 1);
                            wgmma_commit();
#line 15 "examples/ring_attention.pk"
                            float v157[64];
                            #pragma unroll
                            for (int v158 = 0; v158 < 64; ++v158) {
                                const float v159 = o1[v158];
                                const float v160 = c1[(((v158 >> 6) * 2) + ((v158 >> 1) & 1))];
                                v157[v158] = (v159 * v160);
                            }
                            const int v161 = v_stage[0];
                            const int v162 = v_phase[0];
                            mbarrier_wait(((shared_ + 229472) + (v161 * 8)), v162);
                            const unsigned long long v163 = (unsigned long long)((((shared_ + 163840) + (v161 * 32768)) & 262143) >> 4) + 4611686293372403712ull;
                            wgmma_fence();
                            const unsigned v164 = v139[0];
                            const unsigned v165 = v139[1];
                            const unsigned v166 = v139[2];
                            const unsigned v167 = v139[3];
                            wgmma_n128_bf16_rs_kn(v157, v164, v165, v166, v167, v163, 1);
                            const unsigned v168 = v139[4];
                            const unsigned v169 = v139[5];
                            const unsigned v170 = v139[6];
                            const unsigned v171 = v139[7];
                            wgmma_n128_bf16_rs_kn(v157, v168, v169, v170, v171, (v163 + 128ull), 1);
                            const unsigned v172 = v139[8];
                            const unsigned v173 = v139[9];
                            const unsigned v174 = v139[10];
                            const unsigned v175 = v139[11];
                            wgmma_n128_bf16_rs_kn(v157, v172, v173, v174, v175, (v163 + 256ull), 1);
                            const unsigned v176 = v139[12];
                            const unsigned v177 = v139[13];
                            const unsigned v178 = v139[14];
                            const unsigned v179 = v139[15];
                            wgmma_n128_bf16_rs_kn(v157, v176, v177, v178, v179, (v163 + 384ull), 1);
                            const unsigned v180 = v139[16];
                            const unsigned v181 = v139[17];
                            const unsigned v182 = v139[18];
                            const unsigned v183 = v139[19];
                            wgmma_n128_bf16_rs_kn(v157, v180, v181, v182, v183, (v163 + 512ull), 1);
                            const unsigned v184 = v139[20];
                            const unsigned v185 = v139[21];
                            const unsigned v186 = v139[22];
                            const unsigned v187 = v139[23];
                            wgmma_n128_bf16_rs_kn(v157, v184, v185, v186, v187, (v163 + 640ull), 1);
                            const unsigned v188 = v139[24];
                            const unsigned v189 = v139[25];
                            const unsigned v190 = v139[26];
                            const unsigned v191 = v139[27];
                            wgmma_n128_bf16_rs_kn(v157, v188, v189, v190, v191, (v163 + 768ull), 1);
                            const unsigned v192 = v139[28];
                            const unsigned v193 = v139[29];
                            const unsigned v194 = v139[30];
                            const unsigned v195 = v139[31];
                            wgmma_n128_bf16_rs_kn(v157, v192, v193, v194, v195, (v163 + 896ull), 1);
                            wgmma_commit();
#line 10 "examples/ring_attention.pk"
                            wgmma_wait_1();
                            wgmma_done_64(v155);
                            const int v196 = k_stage[0];
                            const int v197 = v36 + (v196 * 8);
                            if (v38) {
                                mbarrier_arrive(v197);
                            }
                            const int v198 = k_phase[0];
                            const int v199 = k_stage[0];
                            const int v200 = v199 + 1;
                            const bool v201 = v200 == 2;
                            k_phase[0] = (v201 ? (v198 ^ 1) : v198);
                            k_stage[0] = (v201 ? 0 : v200);
#line 13 "examples/ring_attention.pk"
                            const int v202 = v19 - (v152 * 128);
                            if ((v202 >= 128) ^ true) {
                                #pragma unroll
                                for (int v203 = 0; v203 < 64; ++v203) {
                                    const float v204 = v155[v203];
                                    const float v205 = ((((((v203 & 63) >> 2) * 8) + ((lane & 3) * 2)) + (v203 & 1)) < v202) ? v204 : __int_as_float(0xff800000);
                                    v155[v203] = v205;
                                }
                            }
                            float v206[2];
                            const float v207 = v155[0];
                            v206[0] = v207;
                            const float v208 = v206[0];
                            const float v209 = v155[1];
                            const float v210 = max_nan(v208, v209);
                            v206[0] = v210;
                            #pragma unroll
                            for (int v211 = 1; v211 < 16; ++v211) {
                                const int v212 = v211 * 4;
                                const float v213 = v155[v212];
                                const float v214 = v155[(v212 + 1)];
                                const float v215 = max_nan(v213, v214);
                                const float v216 = v206[0];
                                const float v217 = max_nan(v216, v215);
                                v206[0] = v217;
                            }
                            const float v218 = v206[0];
                            const float v219 = shuffle_xor(v218, 1);
                            const float v220 = max_nan(v218, v219);
                            v206[0] = v220;
                            const float v221 = v206[0];
                            const float v222 = shuffle_xor(v221, 2);
                            const float v223 = max_nan(v221, v222);
                            v206[0] = v223;
                            const float v224 = v155[2];
                            v206[1] = v224;
                            const float v225 = v206[1];
                            const float v226 = v155[3];
                            const float v227 = max_nan(v225, v226);
                            v206[1] = v227;
                            #pragma unroll
                            for (int v228 = 1; v228 < 16; ++v228) {
                                const int v229 = (v228 * 4) + 2;
                                const float v230 = v155[v229];
                                const float v231 = v155[(v229 + 1)];
                                const float v232 = max_nan(v230, v231);
                                const float v233 = v206[1];
                                const float v234 = max_nan(v233, v232);
                                v206[1] = v234;
                            }
                            const float v235 = v206[1];
                            const float v236 = shuffle_xor(v235, 1);
                            const float v237 = max_nan(v235, v236);
                            v206[1] = v237;
                            const float v238 = v206[1];
                            const float v239 = shuffle_xor(v238, 2);
                            const float v240 = max_nan(v238, v239);
                            v206[1] = v240;
                            float v241[2];
                            #pragma unroll
                            for (int v242 = 0; v242 < 2; ++v242) {
                                const float v243 = v206[v242];
                                const float v244 = k[0];
                                v241[v242] = (v243 * v244);
                            }
                            float t2[2];
                            #pragma unroll
                            for (int v245 = 0; v245 < 2; ++v245) {
                                const float v246 = t1[v245];
                                const float v247 = v241[v245];
                                const float v248 = max_nan(v246, v247);
                                t2[v245] = v248;
                            }
                            float v249[64];
                            #pragma unroll
                            for (int v250 = 0; v250 < 64; ++v250) {
                                const float v251 = v155[v250];
                                const float v252 = k[0];
                                v249[v250] = (v251 * v252);
                            }
                            float v253[64];
                            #pragma unroll
                            for (int v254 = 0; v254 < 64; ++v254) {
                                const float v255 = v249[v254];
                                const float v256 = t2[(((v254 >> 6) * 2) + ((v254 >> 1) & 1))];
                                v253[v254] = (v255 - v256);
                            }
                            float p1[64];
                            #pragma unroll
                            for (int v257 = 0; v257 < 64; ++v257) {
                                const float v258 = v253[v257];
                                const float v259 = exp2_f32(v258);
                                p1[v257] = v259;
                            }
                            float v260[2];
                            #pragma unroll
                            for (int v261 = 0; v261 < 2; ++v261) {
                                const float v262 = t1[v261];
                                const float v263 = t2[v261];
                                v260[v261] = (v262 - v263);
                            }
                            float c2[2];
                            #pragma unroll
                            for (int v264 = 0; v264 < 2; ++v264) {
                                const float v265 = v260[v264];
                                const float v266 = exp2_f32(v265);
                                c2[v264] = v266;
                            }
#line 14 "examples/ring_attention.pk"
                            float v267[2];
                            #pragma unroll
                            for (int v268 = 0; v268 < 2; ++v268) {
                                const float v269 = total1[v268];
                                const float v270 = c2[v268];
                                v267[v268] = (v269 * v270);
                            }
                            float v271[2];
                            const float v272 = p1[0];
                            v271[0] = v272;
                            const float v273 = v271[0];
                            const float v274 = p1[1];
                            v271[0] = (v273 + v274);
                            #pragma unroll
                            for (int v275 = 1; v275 < 16; ++v275) {
                                const int v276 = v275 * 4;
                                const float v277 = p1[v276];
                                const float v278 = p1[(v276 + 1)];
                                const float v279 = v271[0];
                                v271[0] = (v279 + (v277 + v278));
                            }
                            const float v280 = v271[0];
                            const float v281 = shuffle_xor(v280, 1);
                            v271[0] = (v280 + v281);
                            const float v282 = v271[0];
                            const float v283 = shuffle_xor(v282, 2);
                            v271[0] = (v282 + v283);
                            const float v284 = p1[2];
                            v271[1] = v284;
                            const float v285 = v271[1];
                            const float v286 = p1[3];
                            v271[1] = (v285 + v286);
                            #pragma unroll
                            for (int v287 = 1; v287 < 16; ++v287) {
                                const int v288 = (v287 * 4) + 2;
                                const float v289 = p1[v288];
                                const float v290 = p1[(v288 + 1)];
                                const float v291 = v271[1];
                                v271[1] = (v291 + (v289 + v290));
                            }
                            const float v292 = v271[1];
                            const float v293 = shuffle_xor(v292, 1);
                            v271[1] = (v292 + v293);
                            const float v294 = v271[1];
                            const float v295 = shuffle_xor(v294, 2);
                            v271[1] = (v294 + v295);
                            float total2[2];
                            #pragma unroll
                            for (int v296 = 0; v296 < 2; ++v296) {
                                const float v297 = v267[v296];
                                const float v298 = v271[v296];
                                total2[v296] = (v297 + v298);
                            }
#line 15 "examples/ring_attention.pk"
                            settle_2(total2);
                            wgmma_wait_0();
                            wgmma_done_64(v157);
                            const int v299 = v_stage[0];
                            const int v300 = (shared_ + 229488) + (v299 * 8);
                            if (v38) {
                                mbarrier_arrive(v300);
                            }
                            const int v301 = v_phase[0];
                            const int v302 = v_stage[0];
                            const int v303 = v302 + 1;
                            const bool v304 = v303 == 2;
                            v_phase[0] = (v304 ? (v301 ^ 1) : v301);
                            v_stage[0] = (v304 ? 0 : v303);
                            unsigned v305[32];
                            #pragma unroll
                            for (int v306 = 0; v306 < 32; ++v306) {
                                const int v307 = v306 * 2;
                                const float v308 = p1[v307];
                                const float v309 = p1[(v307 + 1)];
                                const unsigned v310 = pack_bf16(v308, v309);
                                v305[v306] = v310;
                            }
#line 9 "examples/ring_attention.pk"
                            #pragma unroll
                            for (int v311 = 0; v311 < 2; ++v311) {
                                const float v312 = total2[v311];
                                total1[v311] = v312;
                            }
                            #pragma unroll
                            for (int v313 = 0; v313 < 64; ++v313) {
                                const float v314 = v157[v313];
                                o1[v313] = v314;
                            }
                            #pragma unroll
                            for (int v315 = 0; v315 < 2; ++v315) {
                                const float v316 = t2[v315];
                                t1[v315] = v316;
                            }
                            #pragma unroll
                            for (int v317 = 0; v317 < 2; ++v317) {
                                const float v318 = c2[v317];
                                c1[v317] = v318;
                            }
                            #pragma unroll
                            for (int v319 = 0; v319 < 32; ++v319) {
                                const unsigned v320 = v305[v319];
                                v139[v319] = v320;
                            }
                        }
#line 15 "examples/ring_attention.pk"
                        float v321[64];
                        #pragma unroll
                        for (int v322 = 0; v322 < 64; ++v322) {
                            const float v323 = o1[v322];
                            const float v324 = c1[(((v322 >> 6) * 2) + ((v322 >> 1) & 1))];
                            v321[v322] = (v323 * v324);
                        }
                        const int v325 = v_stage[0];
                        const int v326 = v_phase[0];
                        mbarrier_wait(((shared_ + 229472) + (v325 * 8)), v326);
                        const unsigned long long v327 = (unsigned long long)((((shared_ + 163840) + (v325 * 32768)) & 262143) >> 4) + 4611686293372403712ull;
                        wgmma_fence();
                        const unsigned v328 = v139[0];
                        const unsigned v329 = v139[1];
                        const unsigned v330 = v139[2];
                        const unsigned v331 = v139[3];
                        wgmma_n128_bf16_rs_kn(v321, v328, v329, v330, v331, v327, 1);
                        const unsigned v332 = v139[4];
                        const unsigned v333 = v139[5];
                        const unsigned v334 = v139[6];
                        const unsigned v335 = v139[7];
                        wgmma_n128_bf16_rs_kn(v321, v332, v333, v334, v335, (v327 + 128ull), 1);
                        const unsigned v336 = v139[8];
                        const unsigned v337 = v139[9];
                        const unsigned v338 = v139[10];
                        const unsigned v339 = v139[11];
                        wgmma_n128_bf16_rs_kn(v321, v336, v337, v338, v339, (v327 + 256ull), 1);
                        const unsigned v340 = v139[12];
                        const unsigned v341 = v139[13];
                        const unsigned v342 = v139[14];
                        const unsigned v343 = v139[15];
                        wgmma_n128_bf16_rs_kn(v321, v340, v341, v342, v343, (v327 + 384ull), 1);
                        const unsigned v344 = v139[16];
                        const unsigned v345 = v139[17];
                        const unsigned v346 = v139[18];
                        const unsigned v347 = v139[19];
                        wgmma_n128_bf16_rs_kn(v321, v344, v345, v346, v347, (v327 + 512ull), 1);
                        const unsigned v348 = v139[20];
                        const unsigned v349 = v139[21];
                        const unsigned v350 = v139[22];
                        const unsigned v351 = v139[23];
                        wgmma_n128_bf16_rs_kn(v321, v348, v349, v350, v351, (v327 + 640ull), 1);
                        const unsigned v352 = v139[24];
                        const unsigned v353 = v139[25];
                        const unsigned v354 = v139[26];
                        const unsigned v355 = v139[27];
                        wgmma_n128_bf16_rs_kn(v321, v352, v353, v354, v355, (v327 + 768ull), 1);
                        const unsigned v356 = v139[28];
                        const unsigned v357 = v139[29];
                        const unsigned v358 = v139[30];
                        const unsigned v359 = v139[31];
                        wgmma_n128_bf16_rs_kn(v321, v356, v357, v358, v359, (v327 + 896ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        wgmma_done_64(v321);
                        const int v360 = v_stage[0];
                        const int v361 = (shared_ + 229488) + (v360 * 8);
                        if (v38) {
                            mbarrier_arrive(v361);
                        }
                        const int v362 = v_phase[0];
                        const int v363 = v_stage[0];
                        const int v364 = v363 + 1;
                        const bool v365 = v364 == 2;
                        v_phase[0] = (v365 ? (v362 ^ 1) : v362);
                        v_stage[0] = (v365 ? 0 : v364);
#line 9 "examples/ring_attention.pk"
                        #pragma unroll
                        for (int v366 = 0; v366 < 2; ++v366) {
                            const float v367 = total1[v366];
                            total[v366] = v367;
                        }
                        #pragma unroll
                        for (int v368 = 0; v368 < 64; ++v368) {
                            const float v369 = v321[v368];
                            o[v368] = v369;
                        }
                        #pragma unroll
                        for (int v370 = 0; v370 < 2; ++v370) {
                            const float v371 = t1[v370];
                            top[v370] = v371;
                        }
                    }
                }
#line 17 "examples/ring_attention.pk"
                float v372[2];
                float v373[2];
                #pragma unroll
                for (int v374 = 0; v374 < 2; ++v374) {
                    const float v375 = total[v374];
                    const float v376 = divisor_scale(v375);
                    v373[v374] = v376;
                    const float v377 = reciprocal((v375 * v376));
                    v372[v374] = v377;
                }
                float v378[64];
                #pragma unroll
                for (int v379 = 0; v379 < 64; ++v379) {
                    const float v380 = o[v379];
                    const int v381 = ((v379 >> 6) * 2) + ((v379 >> 1) & 1);
                    const float v382 = v372[v381];
                    const float v383 = v373[v381];
                    v378[v379] = ((v380 * v382) * v383);
                }
                if (warp < 4) {
                    sync_2_of_128();
                }
                if ((warp >= 4) & v7) {
                    sync_3_of_128();
                }
                unsigned v384[32];
                #pragma unroll
                for (int v385 = 0; v385 < 32; ++v385) {
                    const int v386 = v385 * 2;
                    const float v387 = v378[v386];
                    const float v388 = v378[(v386 + 1)];
                    const unsigned v389 = pack_bf16(v387, v388);
                    v384[v385] = v389;
                }
                const int v390 = lane & 7;
                const int v391 = v13 + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v392 = 0; v392 < 8; ++v392) {
                    const int v393 = v392 * 2;
                    const int v394 = v392 * 4;
                    const unsigned v395 = v384[v394];
                    const unsigned v396 = v384[(v394 + 1)];
                    const unsigned v397 = v384[(v394 + 2)];
                    const unsigned v398 = v384[(v394 + 3)];
                    stmatrix_x4((v391 + (((v393 >> 3) * 16384) + ((((v393 & 7) + (lane >> 4)) ^ v390) << 4))), v395, v396, v397, v398);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 229424));
                const int v399 = cast_phase[0];
                cast_phase[0] = (v399 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_56();
        // communicator: warp from 8
#line 10 "examples/ring_attention.pk"
        const bool v400 = lane == 0;
        if ((warp == 8) & v400) {
            int k_phase1[1];
            k_phase1[0] = 0;
            int v_phase1[1];
            v_phase1[0] = 0;
            fence_release_sys();
            #pragma unroll 1
            for (int v401 = 0; v401 < args.ranks; ++v401) {
                signal_relaxed_sys(((args.entered_base + ((unsigned long long)v401 * args.heap_stride)) + (0ull * 4ull)), 1);
            }
            const int v402 = (computing * args.ranks) * epoch;
            const unsigned long long v403 = (unsigned long long)args.rank * args.heap_stride;
            const unsigned long long v404 = 0ull * 4ull;
            spin_guarded(((args.entered_base + v403) + v404), v402, args.alarm, args.reports_base, 24, 0, -1);
            fence_acquire_sys();
            fence_async_global();
#line 9 "examples/ring_attention.pk"
            const int v405 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v406 = args.S / v405;
            const int v407 = (v405 + 127) / 128;
            const int v408 = (v406 * v407) + (((args.S - (v406 * v405)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v409 = args.rank * ((max(min(args.S - (0 * v405), v405), 0) + 127) / 128);
            const int v410 = (args.B * args.H) * v408;
            #pragma unroll 1
            for (int task1 = cta; task1 < v410; task1 += computing) {
                const int v411 = task1 / v408;
                const int v412 = v411 % args.H;
                const int v413 = v411 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v414 = ((task1 % v408) + v409) % max(v408, 1);
                const int v415 = (v414 % v407) * 128;
                const int v416 = v414 / v407;
#line 10 "examples/ring_attention.pk"
                if (v416 != args.rank) {
                    const int v417 = k_phase1[0];
                    mbarrier_wait((shared_ + 229384), (v417 ^ 1));
                    const int v418 = shared_ + 229376;
                    mbarrier_expect(v418, 32768);
                    const int v419 = (v416 >= v406) ? 1 : 0;
                    const int v420 = (v419 == 1) ? 0 : v416;
                    tma_load_5d(shared_, args.K_map0[v419], v418, 0, v415, v412, v413, v420);
                    tma_load_5d((shared_ + 16384), args.K_map0[v419], v418, 64, v415, v412, v413, v420);
                    const int v421 = k_phase1[0];
                    k_phase1[0] = (v421 ^ 1);
#line 15 "examples/ring_attention.pk"
                    const int v422 = v_phase1[0];
                    mbarrier_wait((shared_ + 229400), (v422 ^ 1));
                    const int v423 = shared_ + 229392;
                    mbarrier_expect(v423, 32768);
                    const int v424 = shared_ + 32768;
                    tma_load_5d(v424, args.V_map1[v419], v423, 0, v415, v412, v413, v420);
                    tma_load_5d((v424 + 16384), args.V_map1[v419], v423, 64, v415, v412, v413, v420);
                    const int v425 = v_phase1[0];
                    v_phase1[0] = (v425 ^ 1);
                }
            }
#line 10 "examples/ring_attention.pk"
            const int v426 = k_phase1[0];
            const bool v427 = 0 >= 1;
            const int v428 = (v427 ? -1 : 0) * 8;
            mbarrier_wait(((shared_ + 229384) + v428), ((v427 ? (v426 ^ 1) : v426) ^ 1));
            const int v429 = v_phase1[0];
            mbarrier_wait(((shared_ + 229400) + v428), ((v427 ? (v429 ^ 1) : v429) ^ 1));
            fence_release_sys();
            #pragma unroll 1
            for (int v430 = 0; v430 < args.ranks; ++v430) {
                signal_relaxed_sys(((args.left_base + ((unsigned long long)v430 * args.heap_stride)) + v404), 1);
            }
            spin_guarded(((args.left_base + v403) + v404), v402, args.alarm, args.reports_base, 24, 1, -1);
            fence_acquire_sys();
        }
        // communicator: warp from 9
        if ((warp == 9) & v400) {
            int k_phase2[1];
            k_phase2[0] = 0;
            int v_phase2[1];
            v_phase2[0] = 0;
#line 9 "examples/ring_attention.pk"
            const int v431 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v432 = args.S / v431;
            const int v433 = (v431 + 127) / 128;
            const int v434 = (v432 * v433) + (((args.S - (v432 * v431)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v435 = args.rank * ((max(min(args.S - (0 * v431), v431), 0) + 127) / 128);
            const int v436 = (args.B * args.H) * v434;
            #pragma unroll 1
            for (int task2 = cta; task2 < v436; task2 += computing) {
                const int v437 = task2 / v434;
                const int v438 = v437 % args.H;
                const int v439 = v437 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v440 = ((task2 % v434) + v435) % max(v434, 1);
                const int v441 = (v440 % v433) * 128;
                const int v442 = v440 / v433;
#line 10 "examples/ring_attention.pk"
                if (v442 != args.rank) {
                    const int v443 = k_phase2[0];
                    mbarrier_wait((shared_ + 229376), v443);
                    const int v444 = (v442 >= v432) ? 1 : 0;
                    const int v445 = (v444 == 1) ? 0 : v442;
                    tma_store_5d(shared_, args.K_fetched_map2[v444], 0, v441, v438, v439, v445);
                    tma_store_5d((shared_ + 16384), args.K_fetched_map2[v444], 64, v441, v438, v439, v445);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229384));
                    const int v446 = k_phase2[0];
                    k_phase2[0] = (v446 ^ 1);
#line 15 "examples/ring_attention.pk"
                    const int v447 = v_phase2[0];
                    mbarrier_wait((shared_ + 229392), v447);
                    const int v448 = shared_ + 32768;
#line 10 "examples/ring_attention.pk"
                    tma_store_5d(v448, args.V_fetched_map3[v444], 0, v441, v438, v439, v445);
                    tma_store_5d((v448 + 16384), args.V_fetched_map3[v444], 64, v441, v438, v439, v445);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229400));
                    const int v449 = v_phase2[0];
                    v_phase2[0] = (v449 ^ 1);
                    const int v450 = (v442 * v431) + v441;
                    bulk_wait_full();
                    const int v451 = (((((0 * args.B) + v439) * args.H) + v438) * (((args.S + 1023) / 1024) + args.ranks)) + (((v450 / v431) * ((v431 + 1023) / 1024)) + ((v450 % v431) / 1024));
                    const unsigned long long v452 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v451 * 4ull);
                    signal_release_gpu(v452, 1);
                }
            }
        }
        // loader: warp from 10
#line 6 "examples/ring_attention.pk"
        if ((warp == 10) & v400) {
            int q_phase1[1];
            q_phase1[0] = 0;
            int k_phase3[1];
            k_phase3[0] = 0;
            int k_stage1[1];
            k_stage1[0] = 0;
            int v_phase3[1];
            v_phase3[0] = 0;
            int v_stage1[1];
            v_stage1[0] = 0;
            const int v453 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v454 = (max(min(args.S - (args.rank * v453), v453), 0) + 127) / 128;
            const int v455 = (args.B * args.H) * v454;
            #pragma unroll 1
            for (int task3 = cta; task3 < v455; task3 += computing) {
                const int v456 = task3 / v454;
                const int v457 = v456 % args.H;
                const int v458 = v456 / args.H;
                const int v459 = (task3 % v454) * 128;
#line 10 "examples/ring_attention.pk"
                const int v460 = q_phase1[0];
                mbarrier_wait((shared_ + 229416), (v460 ^ 1));
                const int v461 = shared_ + 229408;
                mbarrier_expect(v461, 32768);
                const int v462 = shared_ + 65536;
                const int v463 = args.S / v453;
                const int v464 = (args.rank >= v463) ? 1 : 0;
                const int v465 = (v464 == 1) ? 0 : args.rank;
                tma_load_5d(v462, args.Q_map4[v464], v461, 0, v459, v457, v458, v465);
                tma_load_5d((v462 + 16384), args.Q_map4[v464], v461, 64, v459, v457, v458, v465);
                const int v466 = q_phase1[0];
                q_phase1[0] = (v466 ^ 1);
#line 8 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v467 = 0; v467 < args.ranks; ++v467) {
                    const int v468 = (args.rank + v467) % args.ranks;
#line 9 "examples/ring_attention.pk"
                    const int v469 = v468 * v453;
                    const int v470 = (max(min(args.S - v469, v453), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v471 = 0; v471 < v470; ++v471) {
                        const int v472 = v471 * 128;
#line 10 "examples/ring_attention.pk"
                        const int v473 = v469 + v472;
                        const int v474 = ((v473 / v453) * ((v453 + 1023) / 1024)) + ((v473 % v453) / 1024);
                        const bool v475 = v468 == args.rank;
                        if (((v471 % 8) == 0) & (v475 ^ true)) {
#line 9 "examples/ring_attention.pk"
                            const unsigned long long v476 = (unsigned long long)((((((0 * args.B) + v458) * args.H) + v457) * (((args.S + 1023) / 1024) + args.ranks)) + v474);
                            spin_guarded_in_task(((args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + (v476 * 4ull)), (min(v470 - v471, 8) * epoch), args.alarm, args.reports_base, 24, 2, task3);
                            fence_acquire_gpu();
                            fence_async_global();
                        }
#line 10 "examples/ring_attention.pk"
                        const int v477 = k_stage1[0];
                        const int v478 = k_phase3[0];
                        const int v479 = v477 * 8;
                        mbarrier_wait(((shared_ + 229456) + v479), (v478 ^ 1));
                        const int v480 = shared_ + 229440;
                        mbarrier_expect((v480 + v479), 32768);
                        const int v481 = k_stage1[0];
                        const int v482 = (shared_ + 98304) + (v481 * 32768);
                        const int v483 = v480 + (v481 * 8);
                        const int v484 = (v468 >= v463) ? 1 : 0;
                        const int v485 = (v484 == 1) ? 0 : v468;
                        tma_load_5d(v482, (v475 ? args.K_map0[v484] : args.K_fetched_map2[v484]), v483, 0, v472, v457, v458, v485);
                        tma_load_5d((v482 + 16384), (v475 ? args.K_map0[v484] : args.K_fetched_map2[v484]), v483, 64, v472, v457, v458, v485);
                        const int v486 = k_phase3[0];
                        const int v487 = k_stage1[0];
                        const int v488 = v487 + 1;
                        const bool v489 = v488 == 2;
                        k_phase3[0] = (v489 ? (v486 ^ 1) : v486);
                        k_stage1[0] = (v489 ? 0 : v488);
#line 15 "examples/ring_attention.pk"
                        const int v490 = v_stage1[0];
                        const int v491 = v_phase3[0];
                        const int v492 = v490 * 8;
                        mbarrier_wait(((shared_ + 229488) + v492), (v491 ^ 1));
                        const int v493 = shared_ + 229472;
                        mbarrier_expect((v493 + v492), 32768);
                        const int v494 = v_stage1[0];
                        const int v495 = (shared_ + 163840) + (v494 * 32768);
                        const int v496 = v493 + (v494 * 8);
                        tma_load_5d(v495, (v475 ? args.V_map1[v484] : args.V_fetched_map3[v484]), v496, 0, v472, v457, v458, v485);
                        tma_load_5d((v495 + 16384), (v475 ? args.V_map1[v484] : args.V_fetched_map3[v484]), v496, 64, v472, v457, v458, v485);
                        const int v497 = v_phase3[0];
                        const int v498 = v_stage1[0];
                        const int v499 = v498 + 1;
                        const bool v500 = v499 == 2;
                        v_phase3[0] = (v500 ? (v497 ^ 1) : v497);
                        v_stage1[0] = (v500 ? 0 : v499);
                    }
                }
            }
        }
        // storer: warp from 11
#line 6 "examples/ring_attention.pk"
        if ((warp == 11) & v400) {
            int q_phase2[1];
            q_phase2[0] = 0;
            int cast_phase1[1];
            cast_phase1[0] = 0;
            const int v501 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v502 = (max(min(args.S - (args.rank * v501), v501), 0) + 127) / 128;
            const int v503 = (args.B * args.H) * v502;
            #pragma unroll 1
            for (int task4 = cta; task4 < v503; task4 += computing) {
                const int v504 = task4 / v502;
                const int v505 = v504 % args.H;
                const int v506 = v504 / args.H;
                const int v507 = (task4 % v502) * 128;
#line 17 "examples/ring_attention.pk"
                const int v508 = cast_phase1[0];
                mbarrier_wait((shared_ + 229424), v508);
                const int v509 = shared_ + 65536;
                const int v510 = (args.rank >= (args.S / v501)) ? 1 : 0;
                const int v511 = (v510 == 1) ? 0 : args.rank;
                tma_store_5d(v509, args.O_map5[v510], 0, v507, v505, v506, v511);
                tma_store_5d((v509 + 16384), args.O_map5[v510], 64, v507, v505, v506, v511);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 229432));
                const int v512 = cast_phase1[0];
                cast_phase1[0] = (v512 ^ 1);
                mbarrier_arrive((shared_ + 229416));
                const int v513 = q_phase2[0];
                q_phase2[0] = (v513 ^ 1);
            }
#line 6 "examples/ring_attention.pk"
            bulk_wait_full();
        }
    }
}
