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
#line 8 "examples/ring_attention.pk"
                float total[2];
                #pragma unroll
                for (int v14 = 0; v14 < 2; ++v14) {
                    total[v14] = 0.0f;
                }
                float o[64];
                #pragma unroll
                for (int v15 = 0; v15 < 64; ++v15) {
                    o[v15] = 0.0f;
                }
                float top[2];
                #pragma unroll
                for (int v16 = 0; v16 < 2; ++v16) {
                    top[v16] = __int_as_float(0xff800000);
                }
                #pragma unroll 1
                for (int v17 = 0; v17 < args.ranks; ++v17) {
#line 9 "examples/ring_attention.pk"
                    const int v18 = max(min(args.S - (((args.rank + v17) % args.ranks) * v10), v10), 0);
                    const int v19 = (v18 + 127) / 128;
                    if (0 < v19) {
#line 10 "examples/ring_attention.pk"
                        const int v20 = k_stage[0];
                        const int v21 = shared_ + 229440;
                        const int v22 = k_phase[0];
                        mbarrier_wait((v21 + (v20 * 8)), v22);
                        const int v23 = shared_ + 98304;
                        float v24[64];
                        const unsigned long long v25 = (unsigned long long)(((v23 + (v20 * 32768)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_fence();
                        const unsigned long long v26 = (unsigned long long)(((v13 + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_n128_bf16_ss_kk(v24, v26, v25, 0);
                        const unsigned long long v27 = v26 + 2ull;
                        wgmma_n128_bf16_ss_kk(v24, v27, (v25 + 2ull), 1);
                        const unsigned long long v28 = v26 + 4ull;
                        wgmma_n128_bf16_ss_kk(v24, v28, (v25 + 4ull), 1);
                        const unsigned long long v29 = v26 + 6ull;
                        wgmma_n128_bf16_ss_kk(v24, v29, (v25 + 6ull), 1);
                        const unsigned long long v30 = v26 + 1024ull;
                        wgmma_n128_bf16_ss_kk(v24, v30, (v25 + 1024ull), 1);
                        const unsigned long long v31 = v26 + 1026ull;
                        wgmma_n128_bf16_ss_kk(v24, v31, (v25 + 1026ull), 1);
                        const unsigned long long v32 = v26 + 1028ull;
                        wgmma_n128_bf16_ss_kk(v24, v32, (v25 + 1028ull), 1);
                        const unsigned long long v33 = v26 + 1030ull;
                        wgmma_n128_bf16_ss_kk(v24, v33, (v25 + 1030ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        wgmma_done_64(v24);
                        const int v34 = k_stage[0];
                        const int v35 = shared_ + 229456;
                        const int v36 = v35 + (v34 * 8);
                        const bool v37 = lane == 0;
                        if (v37) {
                            mbarrier_arrive(v36);
                        }
                        const int v38 = k_phase[0];
                        const int v39 = k_stage[0];
                        const int v40 = v39 + 1;
                        const bool v41 = v40 == 2;
                        k_phase[0] = (v41 ? (v38 ^ 1) : v38);
                        k_stage[0] = (v41 ? 0 : v40);
#line 13 "examples/ring_attention.pk"
                        if ((v18 >= 128) ^ true) {
                            #pragma unroll
                            for (int v42 = 0; v42 < 64; ++v42) {
                                const float v43 = v24[v42];
                                const float v44 = ((((((v42 & 63) >> 2) * 8) + ((lane & 3) * 2)) + (v42 & 1)) < v18) ? v43 : __int_as_float(0xff800000);
                                v24[v42] = v44;
                            }
                        }
                        float v45[2];
                        const float v46 = v24[0];
                        v45[0] = v46;
                        const float v47 = v45[0];
                        const float v48 = v24[1];
                        const float v49 = max_nan(v47, v48);
                        v45[0] = v49;
                        #pragma unroll
                        for (int v50 = 1; v50 < 16; ++v50) {
                            const int v51 = v50 * 4;
                            const float v52 = v24[v51];
                            const float v53 = v24[(v51 + 1)];
                            const float v54 = max_nan(v52, v53);
                            const float v55 = v45[0];
                            const float v56 = max_nan(v55, v54);
                            v45[0] = v56;
                        }
                        const float v57 = v45[0];
                        const float v58 = shuffle_xor(v57, 1);
                        const float v59 = max_nan(v57, v58);
                        v45[0] = v59;
                        const float v60 = v45[0];
                        const float v61 = shuffle_xor(v60, 2);
                        const float v62 = max_nan(v60, v61);
                        v45[0] = v62;
                        const float v63 = v24[2];
                        v45[1] = v63;
                        const float v64 = v45[1];
                        const float v65 = v24[3];
                        const float v66 = max_nan(v64, v65);
                        v45[1] = v66;
                        #pragma unroll
                        for (int v67 = 1; v67 < 16; ++v67) {
                            const int v68 = (v67 * 4) + 2;
                            const float v69 = v24[v68];
                            const float v70 = v24[(v68 + 1)];
                            const float v71 = max_nan(v69, v70);
                            const float v72 = v45[1];
                            const float v73 = max_nan(v72, v71);
                            v45[1] = v73;
                        }
                        const float v74 = v45[1];
                        const float v75 = shuffle_xor(v74, 1);
                        const float v76 = max_nan(v74, v75);
                        v45[1] = v76;
                        const float v77 = v45[1];
                        const float v78 = shuffle_xor(v77, 2);
                        const float v79 = max_nan(v77, v78);
                        v45[1] = v79;
                        float v80[2];
                        #pragma unroll
                        for (int v81 = 0; v81 < 2; ++v81) {
                            const float v82 = v45[v81];
                            const float v83 = k[0];
                            v80[v81] = (v82 * v83);
                        }
                        float t[2];
                        #pragma unroll
                        for (int v84 = 0; v84 < 2; ++v84) {
                            const float v85 = top[v84];
                            const float v86 = v80[v84];
                            const float v87 = max_nan(v85, v86);
                            t[v84] = v87;
                        }
                        float v88[64];
                        #pragma unroll
                        for (int v89 = 0; v89 < 64; ++v89) {
                            const float v90 = v24[v89];
                            const float v91 = k[0];
                            v88[v89] = (v90 * v91);
                        }
                        float v92[64];
                        #pragma unroll
                        for (int v93 = 0; v93 < 64; ++v93) {
                            const float v94 = v88[v93];
                            const float v95 = t[(((v93 >> 6) * 2) + ((v93 >> 1) & 1))];
                            v92[v93] = (v94 - v95);
                        }
                        float p[64];
                        #pragma unroll
                        for (int v96 = 0; v96 < 64; ++v96) {
                            const float v97 = v92[v96];
                            const float v98 = exp2_f32(v97);
                            p[v96] = v98;
                        }
                        float v99[2];
                        #pragma unroll
                        for (int v100 = 0; v100 < 2; ++v100) {
                            const float v101 = top[v100];
                            const float v102 = t[v100];
                            v99[v100] = (v101 - v102);
                        }
                        float c[2];
                        #pragma unroll
                        for (int v103 = 0; v103 < 2; ++v103) {
                            const float v104 = v99[v103];
                            const float v105 = exp2_f32(v104);
                            c[v103] = v105;
                        }
#line 14 "examples/ring_attention.pk"
                        float v106[2];
                        #pragma unroll
                        for (int v107 = 0; v107 < 2; ++v107) {
                            const float v108 = total[v107];
                            const float v109 = c[v107];
                            v106[v107] = (v108 * v109);
                        }
                        float v110[2];
                        const float v111 = p[0];
                        v110[0] = v111;
                        const float v112 = v110[0];
                        const float v113 = p[1];
                        v110[0] = (v112 + v113);
                        #pragma unroll
                        for (int v114 = 1; v114 < 16; ++v114) {
                            const int v115 = v114 * 4;
                            const float v116 = p[v115];
                            const float v117 = p[(v115 + 1)];
                            const float v118 = v110[0];
                            v110[0] = (v118 + (v116 + v117));
                        }
                        const float v119 = v110[0];
                        const float v120 = shuffle_xor(v119, 1);
                        v110[0] = (v119 + v120);
                        const float v121 = v110[0];
                        const float v122 = shuffle_xor(v121, 2);
                        v110[0] = (v121 + v122);
                        const float v123 = p[2];
                        v110[1] = v123;
                        const float v124 = v110[1];
                        const float v125 = p[3];
                        v110[1] = (v124 + v125);
                        #pragma unroll
                        for (int v126 = 1; v126 < 16; ++v126) {
                            const int v127 = (v126 * 4) + 2;
                            const float v128 = p[v127];
                            const float v129 = p[(v127 + 1)];
                            const float v130 = v110[1];
                            v110[1] = (v130 + (v128 + v129));
                        }
                        const float v131 = v110[1];
                        const float v132 = shuffle_xor(v131, 1);
                        v110[1] = (v131 + v132);
                        const float v133 = v110[1];
                        const float v134 = shuffle_xor(v133, 2);
                        v110[1] = (v133 + v134);
                        float total1[2];
                        #pragma unroll
                        for (int v135 = 0; v135 < 2; ++v135) {
                            const float v136 = v106[v135];
                            const float v137 = v110[v135];
                            total1[v135] = (v136 + v137);
                        }
#line 15 "examples/ring_attention.pk"
                        unsigned v138[32];
                        #pragma unroll
                        for (int v139 = 0; v139 < 32; ++v139) {
                            const int v140 = v139 * 2;
                            const float v141 = p[v140];
                            const float v142 = p[(v140 + 1)];
                            const unsigned v143 = pack_bf16(v141, v142);
                            v138[v139] = v143;
                        }
#line 9 "examples/ring_attention.pk"
                        const int v144 = 0 + 1;
                        float o1[64];
                        #pragma unroll
                        for (int v145 = 0; v145 < 64; ++v145) {
                            const float v146 = o[v145];
                            o1[v145] = v146;
                        }
                        float t1[2];
                        #pragma unroll
                        for (int v147 = 0; v147 < 2; ++v147) {
                            const float v148 = t[v147];
                            t1[v147] = v148;
                        }
                        float c1[2];
                        #pragma unroll
                        for (int v149 = 0; v149 < 2; ++v149) {
                            const float v150 = c[v149];
                            c1[v149] = v150;
                        }
                        #pragma unroll 1
                        for (int v151 = v144; v151 < v19; ++v151) {
#line 10 "examples/ring_attention.pk"
                            const int v152 = k_stage[0];
                            const int v153 = k_phase[0];
                            mbarrier_wait((v21 + (v152 * 8)), v153);
                            float v154[64];
                            const unsigned long long v155 = (unsigned long long)(((v23 + (v152 * 32768)) & 262143) >> 4) + 4611686293305360384ull;
                            wgmma_fence();
                            wgmma_n128_bf16_ss_kk(v154, v26, v155, 0);
                            wgmma_n128_bf16_ss_kk(v154, v27, (v155 + 2ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v28, (v155 + 4ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v29, (v155 + 6ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v30, (v155 + 1024ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v31, (v155 + 1026ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v32, (v155 + 1028ull), 1);
                            wgmma_n128_bf16_ss_kk(v154, v33, (v155 + 1030ull), 1);
                            wgmma_commit();
#line 15 "examples/ring_attention.pk"
                            float v156[64];
                            #pragma unroll
                            for (int v157 = 0; v157 < 64; ++v157) {
                                const float v158 = o1[v157];
                                const float v159 = c1[(((v157 >> 6) * 2) + ((v157 >> 1) & 1))];
                                v156[v157] = (v158 * v159);
                            }
                            const int v160 = v_stage[0];
                            const int v161 = v_phase[0];
                            mbarrier_wait(((shared_ + 229472) + (v160 * 8)), v161);
                            const unsigned long long v162 = (unsigned long long)((((shared_ + 163840) + (v160 * 32768)) & 262143) >> 4) + 4611686293372403712ull;
                            wgmma_fence();
                            const unsigned v163 = v138[0];
                            const unsigned v164 = v138[1];
                            const unsigned v165 = v138[2];
                            const unsigned v166 = v138[3];
                            wgmma_n128_bf16_rs_kn(v156, v163, v164, v165, v166, v162, 1);
                            const unsigned v167 = v138[4];
                            const unsigned v168 = v138[5];
                            const unsigned v169 = v138[6];
                            const unsigned v170 = v138[7];
                            wgmma_n128_bf16_rs_kn(v156, v167, v168, v169, v170, (v162 + 128ull), 1);
                            const unsigned v171 = v138[8];
                            const unsigned v172 = v138[9];
                            const unsigned v173 = v138[10];
                            const unsigned v174 = v138[11];
                            wgmma_n128_bf16_rs_kn(v156, v171, v172, v173, v174, (v162 + 256ull), 1);
                            const unsigned v175 = v138[12];
                            const unsigned v176 = v138[13];
                            const unsigned v177 = v138[14];
                            const unsigned v178 = v138[15];
                            wgmma_n128_bf16_rs_kn(v156, v175, v176, v177, v178, (v162 + 384ull), 1);
                            const unsigned v179 = v138[16];
                            const unsigned v180 = v138[17];
                            const unsigned v181 = v138[18];
                            const unsigned v182 = v138[19];
                            wgmma_n128_bf16_rs_kn(v156, v179, v180, v181, v182, (v162 + 512ull), 1);
                            const unsigned v183 = v138[20];
                            const unsigned v184 = v138[21];
                            const unsigned v185 = v138[22];
                            const unsigned v186 = v138[23];
                            wgmma_n128_bf16_rs_kn(v156, v183, v184, v185, v186, (v162 + 640ull), 1);
                            const unsigned v187 = v138[24];
                            const unsigned v188 = v138[25];
                            const unsigned v189 = v138[26];
                            const unsigned v190 = v138[27];
                            wgmma_n128_bf16_rs_kn(v156, v187, v188, v189, v190, (v162 + 768ull), 1);
                            const unsigned v191 = v138[28];
                            const unsigned v192 = v138[29];
                            const unsigned v193 = v138[30];
                            const unsigned v194 = v138[31];
                            wgmma_n128_bf16_rs_kn(v156, v191, v192, v193, v194, (v162 + 896ull), 1);
                            wgmma_commit();
#line 10 "examples/ring_attention.pk"
                            wgmma_wait_1();
                            wgmma_done_64(v154);
                            const int v195 = k_stage[0];
                            const int v196 = v35 + (v195 * 8);
                            if (v37) {
                                mbarrier_arrive(v196);
                            }
                            const int v197 = k_phase[0];
                            const int v198 = k_stage[0];
                            const int v199 = v198 + 1;
                            const bool v200 = v199 == 2;
                            k_phase[0] = (v200 ? (v197 ^ 1) : v197);
                            k_stage[0] = (v200 ? 0 : v199);
#line 13 "examples/ring_attention.pk"
                            const int v201 = v18 - (v151 * 128);
                            if ((v201 >= 128) ^ true) {
                                #pragma unroll
                                for (int v202 = 0; v202 < 64; ++v202) {
                                    const float v203 = v154[v202];
                                    const float v204 = ((((((v202 & 63) >> 2) * 8) + ((lane & 3) * 2)) + (v202 & 1)) < v201) ? v203 : __int_as_float(0xff800000);
                                    v154[v202] = v204;
                                }
                            }
                            float v205[2];
                            const float v206 = v154[0];
                            v205[0] = v206;
                            const float v207 = v205[0];
                            const float v208 = v154[1];
                            const float v209 = max_nan(v207, v208);
                            v205[0] = v209;
                            #pragma unroll
                            for (int v210 = 1; v210 < 16; ++v210) {
                                const int v211 = v210 * 4;
                                const float v212 = v154[v211];
                                const float v213 = v154[(v211 + 1)];
                                const float v214 = max_nan(v212, v213);
                                const float v215 = v205[0];
                                const float v216 = max_nan(v215, v214);
                                v205[0] = v216;
                            }
                            const float v217 = v205[0];
                            const float v218 = shuffle_xor(v217, 1);
                            const float v219 = max_nan(v217, v218);
                            v205[0] = v219;
                            const float v220 = v205[0];
                            const float v221 = shuffle_xor(v220, 2);
                            const float v222 = max_nan(v220, v221);
                            v205[0] = v222;
                            const float v223 = v154[2];
                            v205[1] = v223;
                            const float v224 = v205[1];
                            const float v225 = v154[3];
                            const float v226 = max_nan(v224, v225);
                            v205[1] = v226;
                            #pragma unroll
                            for (int v227 = 1; v227 < 16; ++v227) {
                                const int v228 = (v227 * 4) + 2;
                                const float v229 = v154[v228];
                                const float v230 = v154[(v228 + 1)];
                                const float v231 = max_nan(v229, v230);
                                const float v232 = v205[1];
                                const float v233 = max_nan(v232, v231);
                                v205[1] = v233;
                            }
                            const float v234 = v205[1];
                            const float v235 = shuffle_xor(v234, 1);
                            const float v236 = max_nan(v234, v235);
                            v205[1] = v236;
                            const float v237 = v205[1];
                            const float v238 = shuffle_xor(v237, 2);
                            const float v239 = max_nan(v237, v238);
                            v205[1] = v239;
                            float v240[2];
                            #pragma unroll
                            for (int v241 = 0; v241 < 2; ++v241) {
                                const float v242 = v205[v241];
                                const float v243 = k[0];
                                v240[v241] = (v242 * v243);
                            }
                            float t2[2];
                            #pragma unroll
                            for (int v244 = 0; v244 < 2; ++v244) {
                                const float v245 = t1[v244];
                                const float v246 = v240[v244];
                                const float v247 = max_nan(v245, v246);
                                t2[v244] = v247;
                            }
                            float v248[64];
                            #pragma unroll
                            for (int v249 = 0; v249 < 64; ++v249) {
                                const float v250 = v154[v249];
                                const float v251 = k[0];
                                v248[v249] = (v250 * v251);
                            }
                            float v252[64];
                            #pragma unroll
                            for (int v253 = 0; v253 < 64; ++v253) {
                                const float v254 = v248[v253];
                                const float v255 = t2[(((v253 >> 6) * 2) + ((v253 >> 1) & 1))];
                                v252[v253] = (v254 - v255);
                            }
                            float p1[64];
                            #pragma unroll
                            for (int v256 = 0; v256 < 64; ++v256) {
                                const float v257 = v252[v256];
                                const float v258 = exp2_f32(v257);
                                p1[v256] = v258;
                            }
                            float v259[2];
                            #pragma unroll
                            for (int v260 = 0; v260 < 2; ++v260) {
                                const float v261 = t1[v260];
                                const float v262 = t2[v260];
                                v259[v260] = (v261 - v262);
                            }
                            float c2[2];
                            #pragma unroll
                            for (int v263 = 0; v263 < 2; ++v263) {
                                const float v264 = v259[v263];
                                const float v265 = exp2_f32(v264);
                                c2[v263] = v265;
                            }
#line 14 "examples/ring_attention.pk"
                            float v266[2];
                            #pragma unroll
                            for (int v267 = 0; v267 < 2; ++v267) {
                                const float v268 = total1[v267];
                                const float v269 = c2[v267];
                                v266[v267] = (v268 * v269);
                            }
                            float v270[2];
                            const float v271 = p1[0];
                            v270[0] = v271;
                            const float v272 = v270[0];
                            const float v273 = p1[1];
                            v270[0] = (v272 + v273);
                            #pragma unroll
                            for (int v274 = 1; v274 < 16; ++v274) {
                                const int v275 = v274 * 4;
                                const float v276 = p1[v275];
                                const float v277 = p1[(v275 + 1)];
                                const float v278 = v270[0];
                                v270[0] = (v278 + (v276 + v277));
                            }
                            const float v279 = v270[0];
                            const float v280 = shuffle_xor(v279, 1);
                            v270[0] = (v279 + v280);
                            const float v281 = v270[0];
                            const float v282 = shuffle_xor(v281, 2);
                            v270[0] = (v281 + v282);
                            const float v283 = p1[2];
                            v270[1] = v283;
                            const float v284 = v270[1];
                            const float v285 = p1[3];
                            v270[1] = (v284 + v285);
                            #pragma unroll
                            for (int v286 = 1; v286 < 16; ++v286) {
                                const int v287 = (v286 * 4) + 2;
                                const float v288 = p1[v287];
                                const float v289 = p1[(v287 + 1)];
                                const float v290 = v270[1];
                                v270[1] = (v290 + (v288 + v289));
                            }
                            const float v291 = v270[1];
                            const float v292 = shuffle_xor(v291, 1);
                            v270[1] = (v291 + v292);
                            const float v293 = v270[1];
                            const float v294 = shuffle_xor(v293, 2);
                            v270[1] = (v293 + v294);
                            float total2[2];
                            #pragma unroll
                            for (int v295 = 0; v295 < 2; ++v295) {
                                const float v296 = v266[v295];
                                const float v297 = v270[v295];
                                total2[v295] = (v296 + v297);
                            }
#line 15 "examples/ring_attention.pk"
                            settle_2(total2);
                            wgmma_wait_0();
                            wgmma_done_64(v156);
                            const int v298 = v_stage[0];
                            const int v299 = (shared_ + 229488) + (v298 * 8);
                            if (v37) {
                                mbarrier_arrive(v299);
                            }
                            const int v300 = v_phase[0];
                            const int v301 = v_stage[0];
                            const int v302 = v301 + 1;
                            const bool v303 = v302 == 2;
                            v_phase[0] = (v303 ? (v300 ^ 1) : v300);
                            v_stage[0] = (v303 ? 0 : v302);
                            unsigned v304[32];
                            #pragma unroll
                            for (int v305 = 0; v305 < 32; ++v305) {
                                const int v306 = v305 * 2;
                                const float v307 = p1[v306];
                                const float v308 = p1[(v306 + 1)];
                                const unsigned v309 = pack_bf16(v307, v308);
                                v304[v305] = v309;
                            }
#line 9 "examples/ring_attention.pk"
                            #pragma unroll
                            for (int v310 = 0; v310 < 2; ++v310) {
                                const float v311 = total2[v310];
                                total1[v310] = v311;
                            }
                            #pragma unroll
                            for (int v312 = 0; v312 < 64; ++v312) {
                                const float v313 = v156[v312];
                                o1[v312] = v313;
                            }
                            #pragma unroll
                            for (int v314 = 0; v314 < 2; ++v314) {
                                const float v315 = t2[v314];
                                t1[v314] = v315;
                            }
                            #pragma unroll
                            for (int v316 = 0; v316 < 2; ++v316) {
                                const float v317 = c2[v316];
                                c1[v316] = v317;
                            }
                            #pragma unroll
                            for (int v318 = 0; v318 < 32; ++v318) {
                                const unsigned v319 = v304[v318];
                                v138[v318] = v319;
                            }
                        }
#line 15 "examples/ring_attention.pk"
                        float v320[64];
                        #pragma unroll
                        for (int v321 = 0; v321 < 64; ++v321) {
                            const float v322 = o1[v321];
                            const float v323 = c1[(((v321 >> 6) * 2) + ((v321 >> 1) & 1))];
                            v320[v321] = (v322 * v323);
                        }
                        const int v324 = v_stage[0];
                        const int v325 = v_phase[0];
                        mbarrier_wait(((shared_ + 229472) + (v324 * 8)), v325);
                        const unsigned long long v326 = (unsigned long long)((((shared_ + 163840) + (v324 * 32768)) & 262143) >> 4) + 4611686293372403712ull;
                        wgmma_fence();
                        const unsigned v327 = v138[0];
                        const unsigned v328 = v138[1];
                        const unsigned v329 = v138[2];
                        const unsigned v330 = v138[3];
                        wgmma_n128_bf16_rs_kn(v320, v327, v328, v329, v330, v326, 1);
                        const unsigned v331 = v138[4];
                        const unsigned v332 = v138[5];
                        const unsigned v333 = v138[6];
                        const unsigned v334 = v138[7];
                        wgmma_n128_bf16_rs_kn(v320, v331, v332, v333, v334, (v326 + 128ull), 1);
                        const unsigned v335 = v138[8];
                        const unsigned v336 = v138[9];
                        const unsigned v337 = v138[10];
                        const unsigned v338 = v138[11];
                        wgmma_n128_bf16_rs_kn(v320, v335, v336, v337, v338, (v326 + 256ull), 1);
                        const unsigned v339 = v138[12];
                        const unsigned v340 = v138[13];
                        const unsigned v341 = v138[14];
                        const unsigned v342 = v138[15];
                        wgmma_n128_bf16_rs_kn(v320, v339, v340, v341, v342, (v326 + 384ull), 1);
                        const unsigned v343 = v138[16];
                        const unsigned v344 = v138[17];
                        const unsigned v345 = v138[18];
                        const unsigned v346 = v138[19];
                        wgmma_n128_bf16_rs_kn(v320, v343, v344, v345, v346, (v326 + 512ull), 1);
                        const unsigned v347 = v138[20];
                        const unsigned v348 = v138[21];
                        const unsigned v349 = v138[22];
                        const unsigned v350 = v138[23];
                        wgmma_n128_bf16_rs_kn(v320, v347, v348, v349, v350, (v326 + 640ull), 1);
                        const unsigned v351 = v138[24];
                        const unsigned v352 = v138[25];
                        const unsigned v353 = v138[26];
                        const unsigned v354 = v138[27];
                        wgmma_n128_bf16_rs_kn(v320, v351, v352, v353, v354, (v326 + 768ull), 1);
                        const unsigned v355 = v138[28];
                        const unsigned v356 = v138[29];
                        const unsigned v357 = v138[30];
                        const unsigned v358 = v138[31];
                        wgmma_n128_bf16_rs_kn(v320, v355, v356, v357, v358, (v326 + 896ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        wgmma_done_64(v320);
                        const int v359 = v_stage[0];
                        const int v360 = (shared_ + 229488) + (v359 * 8);
                        if (v37) {
                            mbarrier_arrive(v360);
                        }
                        const int v361 = v_phase[0];
                        const int v362 = v_stage[0];
                        const int v363 = v362 + 1;
                        const bool v364 = v363 == 2;
                        v_phase[0] = (v364 ? (v361 ^ 1) : v361);
                        v_stage[0] = (v364 ? 0 : v363);
#line 9 "examples/ring_attention.pk"
                        #pragma unroll
                        for (int v365 = 0; v365 < 2; ++v365) {
                            const float v366 = total1[v365];
                            total[v365] = v366;
                        }
                        #pragma unroll
                        for (int v367 = 0; v367 < 64; ++v367) {
                            const float v368 = v320[v367];
                            o[v367] = v368;
                        }
                        #pragma unroll
                        for (int v369 = 0; v369 < 2; ++v369) {
                            const float v370 = t1[v369];
                            top[v369] = v370;
                        }
                    }
                }
#line 17 "examples/ring_attention.pk"
                float v371[2];
                float v372[2];
                #pragma unroll
                for (int v373 = 0; v373 < 2; ++v373) {
                    const float v374 = total[v373];
                    const float v375 = divisor_scale(v374);
                    v372[v373] = v375;
                    const float v376 = reciprocal((v374 * v375));
                    v371[v373] = v376;
                }
                float v377[64];
                #pragma unroll
                for (int v378 = 0; v378 < 64; ++v378) {
                    const float v379 = o[v378];
                    const int v380 = ((v378 >> 6) * 2) + ((v378 >> 1) & 1);
                    const float v381 = v371[v380];
                    const float v382 = v372[v380];
                    v377[v378] = ((v379 * v381) * v382);
                }
                if (warp < 4) {
                    sync_2_of_128();
                }
                if ((warp >= 4) & v7) {
                    sync_3_of_128();
                }
                unsigned v383[32];
                #pragma unroll
                for (int v384 = 0; v384 < 32; ++v384) {
                    const int v385 = v384 * 2;
                    const float v386 = v377[v385];
                    const float v387 = v377[(v385 + 1)];
                    const unsigned v388 = pack_bf16(v386, v387);
                    v383[v384] = v388;
                }
                const int v389 = lane & 7;
                const int v390 = v13 + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v391 = 0; v391 < 8; ++v391) {
                    const int v392 = v391 * 2;
                    const int v393 = v391 * 4;
                    const unsigned v394 = v383[v393];
                    const unsigned v395 = v383[(v393 + 1)];
                    const unsigned v396 = v383[(v393 + 2)];
                    const unsigned v397 = v383[(v393 + 3)];
                    stmatrix_x4((v390 + (((v392 >> 3) * 16384) + ((((v392 & 7) + (lane >> 4)) ^ v389) << 4))), v394, v395, v396, v397);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 229424));
                const int v398 = q_phase[0];
                q_phase[0] = (v398 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_56();
        // communicator: warp from 8
#line 10 "examples/ring_attention.pk"
        const bool v399 = lane == 0;
        if ((warp == 8) & v399) {
            int k_phase1[1];
            k_phase1[0] = 0;
            fence_release_sys();
            #pragma unroll 1
            for (int v400 = 0; v400 < args.ranks; ++v400) {
                signal_relaxed_sys(((args.entered_base + ((unsigned long long)v400 * args.heap_stride)) + (0ull * 4ull)), 1);
            }
            const int v401 = (computing * args.ranks) * epoch;
            const unsigned long long v402 = (unsigned long long)args.rank * args.heap_stride;
            const unsigned long long v403 = 0ull * 4ull;
            spin_guarded(((args.entered_base + v402) + v403), v401, args.alarm, args.reports_base, 24, 0, -1);
            fence_acquire_sys();
            fence_async_global();
#line 9 "examples/ring_attention.pk"
            const int v404 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v405 = args.S / v404;
            const int v406 = (v404 + 127) / 128;
            const int v407 = (v405 * v406) + (((args.S - (v405 * v404)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v408 = args.rank * ((max(min(args.S - (0 * v404), v404), 0) + 127) / 128);
            const int v409 = (args.B * args.H) * v407;
            #pragma unroll 1
            for (int task1 = cta; task1 < v409; task1 += computing) {
                const int v410 = task1 / v407;
                const int v411 = v410 % args.H;
                const int v412 = v410 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v413 = ((task1 % v407) + v408) % max(v407, 1);
                const int v414 = (v413 % v406) * 128;
                const int v415 = v413 / v406;
#line 10 "examples/ring_attention.pk"
                if (v415 != args.rank) {
                    const int v416 = k_phase1[0];
                    mbarrier_wait((shared_ + 229384), (v416 ^ 1));
                    const int v417 = shared_ + 229376;
                    mbarrier_expect(v417, 32768);
                    const int v418 = (v415 >= v405) ? 1 : 0;
                    const int v419 = (v418 == 1) ? 0 : v415;
                    tma_load_5d(shared_, args.K_map0[v418], v417, 0, v414, v411, v412, v419);
                    tma_load_5d((shared_ + 16384), args.K_map0[v418], v417, 64, v414, v411, v412, v419);
#line 15 "examples/ring_attention.pk"
                    const int v420 = k_phase1[0];
                    mbarrier_wait((shared_ + 229400), (v420 ^ 1));
                    const int v421 = shared_ + 229392;
                    mbarrier_expect(v421, 32768);
                    const int v422 = shared_ + 32768;
                    tma_load_5d(v422, args.V_map1[v418], v421, 0, v414, v411, v412, v419);
                    tma_load_5d((v422 + 16384), args.V_map1[v418], v421, 64, v414, v411, v412, v419);
                    const int v423 = k_phase1[0];
                    k_phase1[0] = (v423 ^ 1);
                }
            }
#line 10 "examples/ring_attention.pk"
            const int v424 = k_phase1[0];
            const bool v425 = 0 >= 1;
            const int v426 = (v425 ? -1 : 0) * 8;
            mbarrier_wait(((shared_ + 229384) + v426), ((v425 ? (v424 ^ 1) : v424) ^ 1));
            const int v427 = k_phase1[0];
            mbarrier_wait(((shared_ + 229400) + v426), ((v425 ? (v427 ^ 1) : v427) ^ 1));
            fence_release_sys();
            #pragma unroll 1
            for (int v428 = 0; v428 < args.ranks; ++v428) {
                signal_relaxed_sys(((args.left_base + ((unsigned long long)v428 * args.heap_stride)) + v403), 1);
            }
            spin_guarded(((args.left_base + v402) + v403), v401, args.alarm, args.reports_base, 24, 1, -1);
            fence_acquire_sys();
        }
        // communicator: warp from 9
        if ((warp == 9) & v399) {
            int k_phase2[1];
            k_phase2[0] = 0;
#line 9 "examples/ring_attention.pk"
            const int v429 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v430 = args.S / v429;
            const int v431 = (v429 + 127) / 128;
            const int v432 = (v430 * v431) + (((args.S - (v430 * v429)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v433 = args.rank * ((max(min(args.S - (0 * v429), v429), 0) + 127) / 128);
            const int v434 = (args.B * args.H) * v432;
            #pragma unroll 1
            for (int task2 = cta; task2 < v434; task2 += computing) {
                const int v435 = task2 / v432;
                const int v436 = v435 % args.H;
                const int v437 = v435 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v438 = ((task2 % v432) + v433) % max(v432, 1);
                const int v439 = (v438 % v431) * 128;
                const int v440 = v438 / v431;
#line 10 "examples/ring_attention.pk"
                if (v440 != args.rank) {
                    const int v441 = k_phase2[0];
                    mbarrier_wait((shared_ + 229376), v441);
                    const int v442 = (v440 >= v430) ? 1 : 0;
                    const int v443 = (v442 == 1) ? 0 : v440;
                    tma_store_5d(shared_, args.K_fetched_map2[v442], 0, v439, v436, v437, v443);
                    tma_store_5d((shared_ + 16384), args.K_fetched_map2[v442], 64, v439, v436, v437, v443);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229384));
#line 15 "examples/ring_attention.pk"
                    const int v444 = k_phase2[0];
                    mbarrier_wait((shared_ + 229392), v444);
                    const int v445 = shared_ + 32768;
#line 10 "examples/ring_attention.pk"
                    tma_store_5d(v445, args.V_fetched_map3[v442], 0, v439, v436, v437, v443);
                    tma_store_5d((v445 + 16384), args.V_fetched_map3[v442], 64, v439, v436, v437, v443);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229400));
                    const int v446 = k_phase2[0];
                    k_phase2[0] = (v446 ^ 1);
                    bulk_wait_full();
                    const int v447 = (((((0 * args.B) + v437) * args.H) + v436) * (((args.S + 1023) / 1024) + args.ranks)) + ((v440 * ((v429 + 1023) / 1024)) + (v439 / 1024));
                    const unsigned long long v448 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v447 * 4ull);
                    signal_release_gpu(v448, 1);
                }
            }
        }
        // loader: warp from 10
#line 6 "examples/ring_attention.pk"
        if ((warp == 10) & v399) {
            int q_phase1[1];
            q_phase1[0] = 0;
            int k_phase3[1];
            k_phase3[0] = 0;
            int k_stage1[1];
            k_stage1[0] = 0;
            const int v449 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v450 = (max(min(args.S - (args.rank * v449), v449), 0) + 127) / 128;
            const int v451 = (args.B * args.H) * v450;
            #pragma unroll 1
            for (int task3 = cta; task3 < v451; task3 += computing) {
                const int v452 = task3 / v450;
                const int v453 = v452 % args.H;
                const int v454 = v452 / args.H;
                const int v455 = (task3 % v450) * 128;
#line 10 "examples/ring_attention.pk"
                const int v456 = q_phase1[0];
                mbarrier_wait((shared_ + 229416), (v456 ^ 1));
                const int v457 = shared_ + 229408;
                mbarrier_expect(v457, 32768);
                const int v458 = shared_ + 65536;
                const int v459 = args.S / v449;
                const int v460 = (args.rank >= v459) ? 1 : 0;
                const int v461 = (v460 == 1) ? 0 : args.rank;
                tma_load_5d(v458, args.Q_map4[v460], v457, 0, v455, v453, v454, v461);
                tma_load_5d((v458 + 16384), args.Q_map4[v460], v457, 64, v455, v453, v454, v461);
                const int v462 = q_phase1[0];
                q_phase1[0] = (v462 ^ 1);
#line 8 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v463 = 0; v463 < args.ranks; ++v463) {
                    const int v464 = (args.rank + v463) % args.ranks;
#line 9 "examples/ring_attention.pk"
                    const int v465 = (max(min(args.S - (v464 * v449), v449), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v466 = 0; v466 < v465; ++v466) {
                        const int v467 = v466 * 128;
#line 10 "examples/ring_attention.pk"
                        const bool v468 = v464 == args.rank;
                        if (((v466 % 8) == 0) & (v468 ^ true)) {
#line 9 "examples/ring_attention.pk"
                            const int v469 = (((((0 * args.B) + v454) * args.H) + v453) * (((args.S + 1023) / 1024) + args.ranks)) + ((v464 * ((v449 + 1023) / 1024)) + (v467 / 1024));
                            const unsigned long long v470 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v469 * 4ull);
                            spin_guarded_in_task(v470, (min(v465 - v466, 8) * epoch), args.alarm, args.reports_base, 24, 2, task3);
                            fence_acquire_gpu();
                            fence_async_global();
                        }
#line 10 "examples/ring_attention.pk"
                        const int v471 = k_stage1[0];
                        const int v472 = k_phase3[0];
                        const int v473 = v471 * 8;
                        mbarrier_wait(((shared_ + 229456) + v473), (v472 ^ 1));
                        const int v474 = shared_ + 229440;
                        mbarrier_expect((v474 + v473), 32768);
                        const int v475 = k_stage1[0];
                        const int v476 = (shared_ + 98304) + (v475 * 32768);
                        const int v477 = v474 + (v475 * 8);
                        const int v478 = (v464 >= v459) ? 1 : 0;
                        const int v479 = (v478 == 1) ? 0 : v464;
                        tma_load_5d(v476, (v468 ? args.K_map0[v478] : args.K_fetched_map2[v478]), v477, 0, v467, v453, v454, v479);
                        tma_load_5d((v476 + 16384), (v468 ? args.K_map0[v478] : args.K_fetched_map2[v478]), v477, 64, v467, v453, v454, v479);
#line 15 "examples/ring_attention.pk"
                        const int v480 = k_stage1[0];
                        const int v481 = k_phase3[0];
                        const int v482 = v480 * 8;
                        mbarrier_wait(((shared_ + 229488) + v482), (v481 ^ 1));
                        const int v483 = shared_ + 229472;
                        mbarrier_expect((v483 + v482), 32768);
                        const int v484 = k_stage1[0];
                        const int v485 = (shared_ + 163840) + (v484 * 32768);
                        const int v486 = v483 + (v484 * 8);
                        tma_load_5d(v485, (v468 ? args.V_map1[v478] : args.V_fetched_map3[v478]), v486, 0, v467, v453, v454, v479);
                        tma_load_5d((v485 + 16384), (v468 ? args.V_map1[v478] : args.V_fetched_map3[v478]), v486, 64, v467, v453, v454, v479);
                        const int v487 = k_phase3[0];
                        const int v488 = k_stage1[0];
                        const int v489 = v488 + 1;
                        const bool v490 = v489 == 2;
                        k_phase3[0] = (v490 ? (v487 ^ 1) : v487);
                        k_stage1[0] = (v490 ? 0 : v489);
                    }
                }
            }
        }
        // storer: warp from 11
#line 6 "examples/ring_attention.pk"
        if ((warp == 11) & v399) {
            int q_phase2[1];
            q_phase2[0] = 0;
            const int v491 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v492 = (max(min(args.S - (args.rank * v491), v491), 0) + 127) / 128;
            const int v493 = (args.B * args.H) * v492;
            #pragma unroll 1
            for (int task4 = cta; task4 < v493; task4 += computing) {
                const int v494 = task4 / v492;
                const int v495 = v494 % args.H;
                const int v496 = v494 / args.H;
                const int v497 = (task4 % v492) * 128;
#line 17 "examples/ring_attention.pk"
                const int v498 = q_phase2[0];
                mbarrier_wait((shared_ + 229424), v498);
                const int v499 = shared_ + 65536;
                const int v500 = (args.rank >= (args.S / v491)) ? 1 : 0;
                const int v501 = (v500 == 1) ? 0 : args.rank;
                tma_store_5d(v499, args.O_map5[v500], 0, v497, v495, v496, v501);
                tma_store_5d((v499 + 16384), args.O_map5[v500], 64, v497, v495, v496, v501);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 229432));
                mbarrier_arrive((shared_ + 229416));
                const int v502 = q_phase2[0];
                q_phase2[0] = (v502 ^ 1);
            }
#line 6 "examples/ring_attention.pk"
            bulk_wait_full();
        }
    }
}
