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
// a / b, 2 ulp
static __device__ __forceinline__ float divide(float a, float b) {
    float r; asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r;
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
// until the counter at a is at least b, modulo 2^32
static __device__ __forceinline__ void spin(unsigned long long a, int b) {
    unsigned v; do { asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); } while ((int)(v - (unsigned)b) < 0);
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
static __device__ __forceinline__ void raise_release_gpu(unsigned long long a, int b) {
    asm volatile("red.release.gpu.global.max.u32 [%0], %1;" :  : "l"(a), "r"(b) : "memory");
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
        mbarrier_init((shared_ + 229416), 8);
        const int v3 = shared_ + 229424;
        mbarrier_init(v3, 1);
        const int v4 = shared_ + 229440;
        mbarrier_init(v4, 8);
        mbarrier_init((v3 + 8), 1);
        mbarrier_init((v4 + 8), 8);
        mbarrier_init((shared_ + 229456), 1);
        mbarrier_init((shared_ + 229464), 8);
        mbarrier_init((shared_ + 229472), 256);
        mbarrier_init((shared_ + 229480), 1);
        mbarrier_init_fence();
    }
    sync_threads();
    if (v2) {
        store_u32(v0, epoch);
    }
    const bool v5 = warp < 8;
    if (v5) {
        setmaxnreg_inc_224();
        // consumer: 8 warps from 0
#line 6 "examples/ring_attention.pk"
        if (v5) {
            int q_phase[1];
            q_phase[0] = 0;
            int k_phase[1];
            k_phase[0] = 0;
            int k_stage[1];
            k_stage[0] = 0;
            int v_phase[1];
            v_phase[0] = 0;
            int cast_phase[1];
            cast_phase[0] = 0;
#line 5 "examples/ring_attention.pk"
            float k[1];
            #pragma unroll
            for (int v6 = 0; v6 < 1; ++v6) {
                const float v7 = max_nan(args.scale_value, 1.0000000031710769e-30f);
                k[v6] = v7;
            }
#line 6 "examples/ring_attention.pk"
            const int v8 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v9 = (args.B * args.H) * ((max(min(args.S - (args.rank * v8), v8), 0) + 127) / 128);
            #pragma unroll 1
            for (int task = cta; task < v9; task += computing) {
#line 10 "examples/ring_attention.pk"
                const int v10 = q_phase[0];
                mbarrier_wait((shared_ + 229408), v10);
                const int v11 = shared_ + 65536;
#line 8 "examples/ring_attention.pk"
                float total[2];
                #pragma unroll
                for (int v12 = 0; v12 < 2; ++v12) {
                    total[v12] = 0.0f;
                }
                float o[64];
                #pragma unroll
                for (int v13 = 0; v13 < 64; ++v13) {
                    o[v13] = 0.0f;
                }
                float top[2];
                #pragma unroll
                for (int v14 = 0; v14 < 2; ++v14) {
                    top[v14] = __int_as_float(0xff800000);
                }
                #pragma unroll 1
                for (int v15 = 0; v15 < args.ranks; ++v15) {
#line 9 "examples/ring_attention.pk"
                    const int v16 = max(min(args.S - (((args.rank + v15) % args.ranks) * v8), v8), 0);
                    const int v17 = (v16 + 127) / 128;
                    #pragma unroll 1
                    for (int v18 = 0; v18 < v17; ++v18) {
#line 10 "examples/ring_attention.pk"
                        const int v19 = k_stage[0];
                        const int v20 = k_phase[0];
                        mbarrier_wait(((shared_ + 229424) + (v19 * 8)), v20);
                        float s[64];
                        const unsigned long long v21 = (unsigned long long)((((shared_ + 98304) + (v19 * 32768)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_fence();
                        const unsigned long long v22 = (unsigned long long)(((v11 + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_n128_bf16_ss_kk(s, v22, v21, 0);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 2ull), (v21 + 2ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 4ull), (v21 + 4ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 6ull), (v21 + 6ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 1024ull), (v21 + 1024ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 1026ull), (v21 + 1026ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 1028ull), (v21 + 1028ull), 1);
                        wgmma_n128_bf16_ss_kk(s, (v22 + 1030ull), (v21 + 1030ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v23 = k_stage[0];
                        const int v24 = (shared_ + 229440) + (v23 * 8);
                        const bool v25 = lane == 0;
                        if (v25) {
                            mbarrier_arrive(v24);
                        }
                        const int v26 = k_phase[0];
                        const int v27 = k_stage[0];
                        const int v28 = v27 + 1;
                        const bool v29 = v28 == 2;
                        k_phase[0] = (v29 ? (v26 ^ 1) : v26);
                        k_stage[0] = (v29 ? 0 : v28);
#line 13 "examples/ring_attention.pk"
                        const int v30 = v16 - (v18 * 128);
                        if ((v30 >= 128) ^ true) {
                            #pragma unroll
                            for (int v31 = 0; v31 < 64; ++v31) {
                                const float v32 = s[v31];
                                const float v33 = ((((((v31 % 64) >> 2) * 8) + ((lane & 3) * 2)) + (v31 & 1)) < v30) ? v32 : __int_as_float(0xff800000);
                                s[v31] = v33;
                            }
                        }
                        float v34[2];
                        const float v35 = s[0];
                        v34[0] = v35;
                        const float v36 = v34[0];
                        const float v37 = s[1];
                        const float v38 = max_nan(v36, v37);
                        v34[0] = v38;
                        #pragma unroll
                        for (int v39 = 1; v39 < 16; ++v39) {
                            const int v40 = v39 * 4;
                            const float v41 = s[v40];
                            const float v42 = s[(v40 + 1)];
                            const float v43 = max_nan(v41, v42);
                            const float v44 = v34[0];
                            const float v45 = max_nan(v44, v43);
                            v34[0] = v45;
                        }
                        const float v46 = v34[0];
                        const float v47 = shuffle_xor(v46, 1);
                        const float v48 = max_nan(v46, v47);
                        v34[0] = v48;
                        const float v49 = v34[0];
                        const float v50 = shuffle_xor(v49, 2);
                        const float v51 = max_nan(v49, v50);
                        v34[0] = v51;
                        const float v52 = s[2];
                        v34[1] = v52;
                        const float v53 = v34[1];
                        const float v54 = s[3];
                        const float v55 = max_nan(v53, v54);
                        v34[1] = v55;
                        #pragma unroll
                        for (int v56 = 1; v56 < 16; ++v56) {
                            const int v57 = (v56 * 4) + 2;
                            const float v58 = s[v57];
                            const float v59 = s[(v57 + 1)];
                            const float v60 = max_nan(v58, v59);
                            const float v61 = v34[1];
                            const float v62 = max_nan(v61, v60);
                            v34[1] = v62;
                        }
                        const float v63 = v34[1];
                        const float v64 = shuffle_xor(v63, 1);
                        const float v65 = max_nan(v63, v64);
                        v34[1] = v65;
                        const float v66 = v34[1];
                        const float v67 = shuffle_xor(v66, 2);
                        const float v68 = max_nan(v66, v67);
                        v34[1] = v68;
                        float v69[2];
                        #pragma unroll
                        for (int v70 = 0; v70 < 2; ++v70) {
                            const float v71 = v34[v70];
                            const float v72 = k[0];
                            v69[v70] = (v71 * v72);
                        }
                        float t[2];
                        #pragma unroll
                        for (int v73 = 0; v73 < 2; ++v73) {
                            const float v74 = top[v73];
                            const float v75 = v69[v73];
                            const float v76 = max_nan(v74, v75);
                            t[v73] = v76;
                        }
                        float v77[64];
                        #pragma unroll
                        for (int v78 = 0; v78 < 64; ++v78) {
                            const float v79 = s[v78];
                            const float v80 = k[0];
                            v77[v78] = (v79 * v80);
                        }
                        float v81[64];
                        #pragma unroll
                        for (int v82 = 0; v82 < 64; ++v82) {
                            const float v83 = v77[v82];
                            const float v84 = t[(((v82 / 64) * 2) + ((v82 >> 1) & 1))];
                            v81[v82] = (v83 - v84);
                        }
                        float p[64];
                        #pragma unroll
                        for (int v85 = 0; v85 < 64; ++v85) {
                            const float v86 = v81[v85];
                            const float v87 = exp2_f32(v86);
                            p[v85] = v87;
                        }
                        float v88[2];
                        #pragma unroll
                        for (int v89 = 0; v89 < 2; ++v89) {
                            const float v90 = top[v89];
                            const float v91 = t[v89];
                            v88[v89] = (v90 - v91);
                        }
                        float c[2];
                        #pragma unroll
                        for (int v92 = 0; v92 < 2; ++v92) {
                            const float v93 = v88[v92];
                            const float v94 = exp2_f32(v93);
                            c[v92] = v94;
                        }
#line 14 "examples/ring_attention.pk"
                        float v95[2];
                        #pragma unroll
                        for (int v96 = 0; v96 < 2; ++v96) {
                            const float v97 = total[v96];
                            const float v98 = c[v96];
                            v95[v96] = (v97 * v98);
                        }
                        float v99[2];
                        const float v100 = p[0];
                        v99[0] = v100;
                        const float v101 = v99[0];
                        const float v102 = p[1];
                        v99[0] = (v101 + v102);
                        #pragma unroll
                        for (int v103 = 1; v103 < 16; ++v103) {
                            const int v104 = v103 * 4;
                            const float v105 = p[v104];
                            const float v106 = p[(v104 + 1)];
                            const float v107 = v99[0];
                            v99[0] = (v107 + (v105 + v106));
                        }
                        const float v108 = v99[0];
                        const float v109 = shuffle_xor(v108, 1);
                        v99[0] = (v108 + v109);
                        const float v110 = v99[0];
                        const float v111 = shuffle_xor(v110, 2);
                        v99[0] = (v110 + v111);
                        const float v112 = p[2];
                        v99[1] = v112;
                        const float v113 = v99[1];
                        const float v114 = p[3];
                        v99[1] = (v113 + v114);
                        #pragma unroll
                        for (int v115 = 1; v115 < 16; ++v115) {
                            const int v116 = (v115 * 4) + 2;
                            const float v117 = p[v116];
                            const float v118 = p[(v116 + 1)];
                            const float v119 = v99[1];
                            v99[1] = (v119 + (v117 + v118));
                        }
                        const float v120 = v99[1];
                        const float v121 = shuffle_xor(v120, 1);
                        v99[1] = (v120 + v121);
                        const float v122 = v99[1];
                        const float v123 = shuffle_xor(v122, 2);
                        v99[1] = (v122 + v123);
                        float total1[2];
                        #pragma unroll
                        for (int v124 = 0; v124 < 2; ++v124) {
                            const float v125 = v95[v124];
                            const float v126 = v99[v124];
                            total1[v124] = (v125 + v126);
                        }
#line 15 "examples/ring_attention.pk"
                        float v127[64];
                        #pragma unroll
                        for (int v128 = 0; v128 < 64; ++v128) {
                            const float v129 = o[v128];
                            const float v130 = c[(((v128 / 64) * 2) + ((v128 >> 1) & 1))];
                            v127[v128] = (v129 * v130);
                        }
                        unsigned v131[32];
                        #pragma unroll
                        for (int v132 = 0; v132 < 32; ++v132) {
                            const int v133 = v132 * 2;
                            const float v134 = p[v133];
                            const float v135 = p[(v133 + 1)];
                            const unsigned v136 = pack_bf16(v134, v135);
                            v131[v132] = v136;
                        }
                        const int v137 = v_phase[0];
                        mbarrier_wait((shared_ + 229456), v137);
                        const unsigned long long v138 = (unsigned long long)(((shared_ + 163840) & 262143) >> 4) + 4611686293372403712ull;
                        wgmma_fence();
                        const unsigned v139 = v131[0];
                        const unsigned v140 = v131[1];
                        const unsigned v141 = v131[2];
                        const unsigned v142 = v131[3];
                        wgmma_n128_bf16_rs_kn(v127, v139, v140, v141, v142, v138, 1);
                        const unsigned v143 = v131[4];
                        const unsigned v144 = v131[5];
                        const unsigned v145 = v131[6];
                        const unsigned v146 = v131[7];
                        wgmma_n128_bf16_rs_kn(v127, v143, v144, v145, v146, (v138 + 128ull), 1);
                        const unsigned v147 = v131[8];
                        const unsigned v148 = v131[9];
                        const unsigned v149 = v131[10];
                        const unsigned v150 = v131[11];
                        wgmma_n128_bf16_rs_kn(v127, v147, v148, v149, v150, (v138 + 256ull), 1);
                        const unsigned v151 = v131[12];
                        const unsigned v152 = v131[13];
                        const unsigned v153 = v131[14];
                        const unsigned v154 = v131[15];
                        wgmma_n128_bf16_rs_kn(v127, v151, v152, v153, v154, (v138 + 384ull), 1);
                        const unsigned v155 = v131[16];
                        const unsigned v156 = v131[17];
                        const unsigned v157 = v131[18];
                        const unsigned v158 = v131[19];
                        wgmma_n128_bf16_rs_kn(v127, v155, v156, v157, v158, (v138 + 512ull), 1);
                        const unsigned v159 = v131[20];
                        const unsigned v160 = v131[21];
                        const unsigned v161 = v131[22];
                        const unsigned v162 = v131[23];
                        wgmma_n128_bf16_rs_kn(v127, v159, v160, v161, v162, (v138 + 640ull), 1);
                        const unsigned v163 = v131[24];
                        const unsigned v164 = v131[25];
                        const unsigned v165 = v131[26];
                        const unsigned v166 = v131[27];
                        wgmma_n128_bf16_rs_kn(v127, v163, v164, v165, v166, (v138 + 768ull), 1);
                        const unsigned v167 = v131[28];
                        const unsigned v168 = v131[29];
                        const unsigned v169 = v131[30];
                        const unsigned v170 = v131[31];
                        wgmma_n128_bf16_rs_kn(v127, v167, v168, v169, v170, (v138 + 896ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v171 = shared_ + 229464;
                        if (v25) {
                            mbarrier_arrive(v171);
                        }
                        const int v172 = v_phase[0];
                        v_phase[0] = (v172 ^ 1);
#line 9 "examples/ring_attention.pk"
                        #pragma unroll
                        for (int v173 = 0; v173 < 2; ++v173) {
                            const float v174 = total1[v173];
                            total[v173] = v174;
                        }
                        #pragma unroll
                        for (int v175 = 0; v175 < 64; ++v175) {
                            const float v176 = v127[v175];
                            o[v175] = v176;
                        }
                        #pragma unroll
                        for (int v177 = 0; v177 < 2; ++v177) {
                            const float v178 = t[v177];
                            top[v177] = v178;
                        }
                    }
                }
#line 8 "examples/ring_attention.pk"
                const int v179 = shared_ + 229416;
                if (lane == 0) {
                    mbarrier_arrive(v179);
                }
                const int v180 = q_phase[0];
                q_phase[0] = (v180 ^ 1);
#line 17 "examples/ring_attention.pk"
                float v181[64];
                #pragma unroll
                for (int v182 = 0; v182 < 64; ++v182) {
                    const float v183 = o[v182];
                    const float v184 = total[(((v182 / 64) * 2) + ((v182 >> 1) & 1))];
                    const float v185 = divide(v183, v184);
                    v181[v182] = v185;
                }
                const int v186 = cast_phase[0];
                mbarrier_wait((shared_ + 229480), (v186 ^ 1));
                unsigned v187[32];
                #pragma unroll
                for (int v188 = 0; v188 < 32; ++v188) {
                    const int v189 = v188 * 2;
                    const float v190 = v181[v189];
                    const float v191 = v181[(v189 + 1)];
                    const unsigned v192 = pack_bf16(v190, v191);
                    v187[v188] = v192;
                }
                const int v193 = lane & 7;
                const int v194 = (shared_ + 196608) + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v195 = 0; v195 < 8; ++v195) {
                    const int v196 = v195 * 2;
                    const int v197 = v195 * 4;
                    const unsigned v198 = v187[v197];
                    const unsigned v199 = v187[(v197 + 1)];
                    const unsigned v200 = v187[(v197 + 2)];
                    const unsigned v201 = v187[(v197 + 3)];
                    stmatrix_x4((v194 + (((v196 / 8) * 16384) + ((((v196 % 8) + (lane >> 4)) ^ v193) << 4))), v198, v199, v200, v201);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 229472));
                const int v202 = cast_phase[0];
                cast_phase[0] = (v202 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_56();
        // communicator: warp from 8
#line 10 "examples/ring_attention.pk"
        const bool v203 = lane == 0;
        if ((warp == 8) & v203) {
            int k_phase1[1];
            k_phase1[0] = 0;
            int v_phase1[1];
            v_phase1[0] = 0;
            const bool v204 = thread == 256;
            if (v204) {
                fence_release_sys();
                #pragma unroll 1
                for (int v205 = 0; v205 < args.ranks; ++v205) {
                    signal_relaxed_sys(((args.entered_base + ((unsigned long long)v205 * args.heap_stride)) + (0ull * 4ull)), 1);
                }
            }
            const int v206 = (computing * args.ranks) * epoch;
            const unsigned long long v207 = (unsigned long long)args.rank * args.heap_stride;
            const unsigned long long v208 = 0ull * 4ull;
            spin(((args.entered_base + v207) + v208), v206);
            fence_acquire_sys();
            fence_async_global();
#line 9 "examples/ring_attention.pk"
            const int v209 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v210 = args.S / v209;
            const int v211 = (v209 + 127) / 128;
            const int v212 = (v210 * v211) + (((args.S - (v210 * v209)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v213 = args.rank * ((max(min(args.S - (0 * v209), v209), 0) + 127) / 128);
            const int v214 = (args.B * args.H) * v212;
            #pragma unroll 1
            for (int task1 = cta; task1 < v214; task1 += computing) {
                const int v215 = task1 / v212;
                const int v216 = v215 % args.H;
                const int v217 = v215 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v218 = ((task1 % v212) + v213) % max(v212, 1);
                const int v219 = (v218 % v211) * 128;
                const int v220 = v218 / v211;
#line 10 "examples/ring_attention.pk"
                if (v220 != args.rank) {
                    const int v221 = k_phase1[0];
                    mbarrier_wait((shared_ + 229384), (v221 ^ 1));
                    const int v222 = shared_ + 229376;
                    mbarrier_expect(v222, 32768);
                    const int v223 = (v220 >= v210) ? 1 : 0;
                    const int v224 = (v223 == 1) ? 0 : v220;
                    tma_load_5d(shared_, args.K_map0[v223], v222, 0, v219, v216, v217, v224);
                    tma_load_5d((shared_ + 16384), args.K_map0[v223], v222, 64, v219, v216, v217, v224);
                    const int v225 = k_phase1[0];
                    k_phase1[0] = (v225 ^ 1);
#line 15 "examples/ring_attention.pk"
                    const int v226 = v_phase1[0];
                    mbarrier_wait((shared_ + 229400), (v226 ^ 1));
                    const int v227 = shared_ + 229392;
                    mbarrier_expect(v227, 32768);
                    const int v228 = shared_ + 32768;
                    tma_load_5d(v228, args.V_map1[v223], v227, 0, v219, v216, v217, v224);
                    tma_load_5d((v228 + 16384), args.V_map1[v223], v227, 64, v219, v216, v217, v224);
                    const int v229 = v_phase1[0];
                    v_phase1[0] = (v229 ^ 1);
                }
            }
#line 10 "examples/ring_attention.pk"
            const int v230 = k_phase1[0];
            const bool v231 = 0 >= 1;
            const int v232 = (v231 ? -1 : 0) * 8;
            mbarrier_wait(((shared_ + 229384) + v232), ((v231 ? (v230 ^ 1) : v230) ^ 1));
            const int v233 = v_phase1[0];
            mbarrier_wait(((shared_ + 229400) + v232), ((v231 ? (v233 ^ 1) : v233) ^ 1));
            if (v204) {
                fence_release_sys();
                #pragma unroll 1
                for (int v234 = 0; v234 < args.ranks; ++v234) {
                    signal_relaxed_sys(((args.left_base + ((unsigned long long)v234 * args.heap_stride)) + v208), 1);
                }
            }
            spin(((args.left_base + v207) + v208), v206);
            fence_acquire_sys();
        }
        // communicator: warp from 9
        if ((warp == 9) & v203) {
            int k_phase2[1];
            k_phase2[0] = 0;
            int v_phase2[1];
            v_phase2[0] = 0;
#line 9 "examples/ring_attention.pk"
            const int v235 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v236 = args.S / v235;
            const int v237 = (v235 + 127) / 128;
            const int v238 = (v236 * v237) + (((args.S - (v236 * v235)) + 127) / 128);
#line 6 "examples/ring_attention.pk"
            const int v239 = args.rank * ((max(min(args.S - (0 * v235), v235), 0) + 127) / 128);
            const int v240 = (args.B * args.H) * v238;
            #pragma unroll 1
            for (int task2 = cta; task2 < v240; task2 += computing) {
                const int v241 = task2 / v238;
                const int v242 = v241 % args.H;
                const int v243 = v241 / args.H;
#line 9 "examples/ring_attention.pk"
                const int v244 = ((task2 % v238) + v239) % max(v238, 1);
                const int v245 = (v244 % v237) * 128;
                const int v246 = v244 / v237;
#line 10 "examples/ring_attention.pk"
                if (v246 != args.rank) {
                    const int v247 = k_phase2[0];
                    mbarrier_wait((shared_ + 229376), v247);
                    const int v248 = (v246 >= v236) ? 1 : 0;
                    const int v249 = (v248 == 1) ? 0 : v246;
                    tma_store_5d(shared_, args.K_fetched_map2[v248], 0, v245, v242, v243, v249);
                    tma_store_5d((shared_ + 16384), args.K_fetched_map2[v248], 64, v245, v242, v243, v249);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229384));
                    const int v250 = k_phase2[0];
                    k_phase2[0] = (v250 ^ 1);
#line 15 "examples/ring_attention.pk"
                    const int v251 = v_phase2[0];
                    mbarrier_wait((shared_ + 229392), v251);
                    const int v252 = shared_ + 32768;
#line 10 "examples/ring_attention.pk"
                    tma_store_5d(v252, args.V_fetched_map3[v248], 0, v245, v242, v243, v249);
                    tma_store_5d((v252 + 16384), args.V_fetched_map3[v248], 64, v245, v242, v243, v249);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229400));
                    const int v253 = v_phase2[0];
                    v_phase2[0] = (v253 ^ 1);
                    const int v254 = 1 * epoch;
                    bulk_wait_full();
                    const int v255 = (((((0 * args.B) + v243) * args.H) + v242) * (((args.S + 127) / 128) + args.ranks)) + ((((v246 * v235) + v245) / 128) + v246);
                    const unsigned long long v256 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v255 * 4ull);
                    if (thread == 288) {
                        raise_release_gpu(v256, v254);
                    }
                }
            }
        }
        // loader: warp from 10
#line 6 "examples/ring_attention.pk"
        if ((warp == 10) & v203) {
            int q_phase1[1];
            q_phase1[0] = 0;
            int k_phase3[1];
            k_phase3[0] = 0;
            int k_stage1[1];
            k_stage1[0] = 0;
            int v_phase3[1];
            v_phase3[0] = 0;
            const int v257 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v258 = (max(min(args.S - (args.rank * v257), v257), 0) + 127) / 128;
            const int v259 = (args.B * args.H) * v258;
            #pragma unroll 1
            for (int task3 = cta; task3 < v259; task3 += computing) {
                const int v260 = task3 / v258;
                const int v261 = v260 % args.H;
                const int v262 = v260 / args.H;
                const int v263 = (task3 % v258) * 128;
#line 10 "examples/ring_attention.pk"
                const int v264 = q_phase1[0];
                mbarrier_wait((shared_ + 229416), (v264 ^ 1));
                const int v265 = shared_ + 229408;
                mbarrier_expect(v265, 32768);
                const int v266 = shared_ + 65536;
                const int v267 = args.S / v257;
                const int v268 = (args.rank >= v267) ? 1 : 0;
                const int v269 = (v268 == 1) ? 0 : args.rank;
                tma_load_5d(v266, args.Q_map4[v268], v265, 0, v263, v261, v262, v269);
                tma_load_5d((v266 + 16384), args.Q_map4[v268], v265, 64, v263, v261, v262, v269);
                const int v270 = q_phase1[0];
                q_phase1[0] = (v270 ^ 1);
#line 8 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v271 = 0; v271 < args.ranks; ++v271) {
                    const int v272 = (args.rank + v271) % args.ranks;
#line 9 "examples/ring_attention.pk"
                    const int v273 = v272 * v257;
                    const int v274 = (max(min(args.S - v273, v257), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v275 = 0; v275 < v274; ++v275) {
                        const int v276 = v275 * 128;
#line 10 "examples/ring_attention.pk"
                        const bool v277 = v272 == args.rank;
                        const int v278 = (((((0 * args.B) + v262) * args.H) + v261) * (((args.S + 127) / 128) + args.ranks)) + (((v273 + v276) / 128) + v272);
                        const unsigned long long v279 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v278 * 4ull);
                        spin(v279, ((v277 ? 0 : 1) * epoch));
                        fence_acquire_gpu();
                        fence_async_global();
                        const int v280 = k_stage1[0];
                        const int v281 = k_phase3[0];
                        const int v282 = v280 * 8;
                        mbarrier_wait(((shared_ + 229440) + v282), (v281 ^ 1));
                        const int v283 = shared_ + 229424;
                        mbarrier_expect((v283 + v282), 32768);
                        const int v284 = k_stage1[0];
                        const int v285 = (shared_ + 98304) + (v284 * 32768);
                        const int v286 = v283 + (v284 * 8);
                        const int v287 = (v272 >= v267) ? 1 : 0;
                        const int v288 = (v287 == 1) ? 0 : v272;
                        tma_load_5d(v285, (v277 ? args.K_map0[v287] : args.K_fetched_map2[v287]), v286, 0, v276, v261, v262, v288);
                        tma_load_5d((v285 + 16384), (v277 ? args.K_map0[v287] : args.K_fetched_map2[v287]), v286, 64, v276, v261, v262, v288);
                        const int v289 = k_phase3[0];
                        const int v290 = k_stage1[0];
                        const int v291 = v290 + 1;
                        const bool v292 = v291 == 2;
                        k_phase3[0] = (v292 ? (v289 ^ 1) : v289);
                        k_stage1[0] = (v292 ? 0 : v291);
#line 15 "examples/ring_attention.pk"
                        const int v293 = v_phase3[0];
                        mbarrier_wait((shared_ + 229464), (v293 ^ 1));
                        const int v294 = shared_ + 229456;
                        mbarrier_expect(v294, 32768);
                        const int v295 = shared_ + 163840;
                        tma_load_5d(v295, (v277 ? args.V_map1[v287] : args.V_fetched_map3[v287]), v294, 0, v276, v261, v262, v288);
                        tma_load_5d((v295 + 16384), (v277 ? args.V_map1[v287] : args.V_fetched_map3[v287]), v294, 64, v276, v261, v262, v288);
                        const int v296 = v_phase3[0];
                        v_phase3[0] = (v296 ^ 1);
                    }
                }
            }
        }
        // storer: warp from 11
#line 6 "examples/ring_attention.pk"
        if ((warp == 11) & v203) {
            int cast_phase1[1];
            cast_phase1[0] = 0;
            const int v297 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v298 = (max(min(args.S - (args.rank * v297), v297), 0) + 127) / 128;
            const int v299 = (args.B * args.H) * v298;
            #pragma unroll 1
            for (int task4 = cta; task4 < v299; task4 += computing) {
                const int v300 = task4 / v298;
                const int v301 = v300 % args.H;
                const int v302 = v300 / args.H;
                const int v303 = (task4 % v298) * 128;
#line 17 "examples/ring_attention.pk"
                const int v304 = cast_phase1[0];
                mbarrier_wait((shared_ + 229472), v304);
                const int v305 = shared_ + 196608;
                const int v306 = (args.rank >= (args.S / v297)) ? 1 : 0;
                const int v307 = (v306 == 1) ? 0 : args.rank;
                tma_store_5d(v305, args.O_map5[v306], 0, v303, v301, v302, v307);
                tma_store_5d((v305 + 16384), args.O_map5[v306], 64, v303, v301, v302, v307);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 229480));
                const int v308 = cast_phase1[0];
                cast_phase1[0] = (v308 ^ 1);
            }
#line 6 "examples/ring_attention.pk"
            bulk_wait_full();
        }
    }
}
