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
// maximum or NaN
static __device__ __forceinline__ float max_nan(float a, float b) {
    float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r;
}
// a of the thread whose number in the warp differs from this one's by the bits b
static __device__ __forceinline__ float shuffle_xor(float a, int b) {
    return __shfl_xor_sync(0xffffffffu, a, b);
}
// 2 to the power a, 2 ulp
static __device__ __forceinline__ float exp2_f32(float a) {
    float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;
}
// two bf16, a in the low half, to nearest even
static __device__ __forceinline__ unsigned pack_bf16(float a, float b) {
    unsigned r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b)); return r;
}
// the low bf16
static __device__ __forceinline__ float low_bf16(unsigned a) {
    return __uint_as_float(a << 16);
}
// the high bf16
static __device__ __forceinline__ float high_bf16(unsigned a) {
    return __uint_as_float(a & 0xffff0000u);
}
// a += A[64, 16] @ B[16, 128] if the last operand is not 0, else a = A @ B; asynchronous
static __device__ __forceinline__ void wgmma_n128_bf16_rs_kn(float (&a)[64], unsigned b, unsigned c, unsigned d, unsigned e, unsigned long long f, int g) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]) : "r"(b), "r"(c), "r"(d), "r"(e), "l"(f), "r"(g));
}
// a / b, to nearest
static __device__ __forceinline__ float divide(float a, float b) {
    float r; asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r;
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
        const int v3 = shared_ + 229408;
        mbarrier_init(v3, 1);
        const int v4 = shared_ + 229424;
        mbarrier_init(v4, 8);
        mbarrier_init((v3 + 8), 1);
        mbarrier_init((v4 + 8), 8);
        mbarrier_init((shared_ + 229440), 1);
        mbarrier_init((shared_ + 229448), 8);
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
#line 4 "examples/ring_attention.pk"
        if (v5) {
            int q_phase[1];
            q_phase[0] = 0;
            int q_stage[1];
            q_stage[0] = 0;
            int k_phase[1];
            k_phase[0] = 0;
            int v_phase[1];
            v_phase[0] = 0;
            int cast_phase[1];
            cast_phase[0] = 0;
            const int v6 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v7 = (args.B * args.H) * ((max(min(args.S - (args.rank * v6), v6), 0) + 127) / 128);
            #pragma unroll 1
            for (int task = cta; task < v7; task += computing) {
#line 6 "examples/ring_attention.pk"
                float total[2];
                #pragma unroll
                for (int v8 = 0; v8 < 2; ++v8) {
                    total[v8] = 0.0f;
                }
                float o[64];
                #pragma unroll
                for (int v9 = 0; v9 < 64; ++v9) {
                    o[v9] = 0.0f;
                }
                float top[2];
                #pragma unroll
                for (int v10 = 0; v10 < 2; ++v10) {
                    top[v10] = __int_as_float(0xff800000);
                }
                #pragma unroll 1
                for (int v11 = 0; v11 < args.ranks; ++v11) {
#line 7 "examples/ring_attention.pk"
                    const int v12 = max(min(args.S - (((args.rank + v11) % args.ranks) * v6), v6), 0);
                    const int v13 = (v12 + 127) / 128;
                    #pragma unroll 1
                    for (int v14 = 0; v14 < v13; ++v14) {
#line 8 "examples/ring_attention.pk"
                        const int v15 = k_phase[0];
                        mbarrier_wait((shared_ + 229440), v15);
                        const int v16 = q_stage[0];
                        const int v17 = q_phase[0];
                        mbarrier_wait(((shared_ + 229408) + (v16 * 8)), v17);
                        float o1[64];
                        #pragma unroll
                        for (int v18 = 0; v18 < 64; ++v18) {
                            o1[v18] = 0.0f;
                        }
                        float v19[64];
                        #pragma unroll
                        for (int v20 = 0; v20 < 64; ++v20) {
                            const float v21 = o1[v20];
                            v19[v20] = v21;
                        }
                        const unsigned long long v22 = (unsigned long long)(((shared_ + 131072) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_fence();
                        const unsigned long long v23 = (unsigned long long)(((((shared_ + 65536) + (v16 * 32768)) + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_n128_bf16_ss_kk(v19, v23, v22, 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 2ull), (v22 + 2ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 4ull), (v22 + 4ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 6ull), (v22 + 6ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 1024ull), (v22 + 1024ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 1026ull), (v22 + 1026ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 1028ull), (v22 + 1028ull), 1);
                        wgmma_n128_bf16_ss_kk(v19, (v23 + 1030ull), (v22 + 1030ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v24 = q_stage[0];
                        const int v25 = (shared_ + 229424) + (v24 * 8);
                        const bool v26 = lane == 0;
                        if (v26) {
                            mbarrier_arrive(v25);
                        }
                        const int v27 = q_phase[0];
                        const int v28 = q_stage[0];
                        const int v29 = v28 + 1;
                        const bool v30 = v29 == 2;
                        q_phase[0] = (v30 ? (v27 ^ 1) : v27);
                        q_stage[0] = (v30 ? 0 : v29);
                        const int v31 = shared_ + 229448;
                        if (v26) {
                            mbarrier_arrive(v31);
                        }
                        const int v32 = k_phase[0];
                        k_phase[0] = (v32 ^ 1);
                        float s[64];
                        #pragma unroll
                        for (int v33 = 0; v33 < 64; ++v33) {
                            const float v34 = v19[v33];
                            s[v33] = (v34 * args.scale_value);
                        }
#line 11 "examples/ring_attention.pk"
                        const int v35 = v12 - (v14 * 128);
                        float v36[2];
                        const int v37 = (lane & 3) * 2;
                        const bool v38 = v37 < v35;
                        const float v39 = s[0];
                        v36[0] = (v38 ? v39 : __int_as_float(0xff800000));
                        const float v40 = v36[0];
                        const bool v41 = (v37 + 1) < v35;
                        const float v42 = s[1];
                        const float v43 = max_nan(v40, (v41 ? v42 : __int_as_float(0xff800000)));
                        v36[0] = v43;
                        #pragma unroll
                        for (int v44 = 1; v44 < 16; ++v44) {
                            const int v45 = v44 * 4;
                            const float v46 = s[v45];
                            const int v47 = v45 + 1;
                            const float v48 = s[v47];
                            const float v49 = max_nan((((((((v45 % 64) >> 2) * 8) + v37) + (v45 & 1)) < v35) ? v46 : __int_as_float(0xff800000)), (((((((v47 % 64) >> 2) * 8) + v37) + (v47 & 1)) < v35) ? v48 : __int_as_float(0xff800000)));
                            const float v50 = v36[0];
                            const float v51 = max_nan(v50, v49);
                            v36[0] = v51;
                        }
                        const float v52 = v36[0];
                        const float v53 = shuffle_xor(v52, 1);
                        const float v54 = max_nan(v52, v53);
                        v36[0] = v54;
                        const float v55 = v36[0];
                        const float v56 = shuffle_xor(v55, 2);
                        const float v57 = max_nan(v55, v56);
                        v36[0] = v57;
                        const float v58 = s[2];
                        v36[1] = (v38 ? v58 : __int_as_float(0xff800000));
                        const float v59 = v36[1];
                        const float v60 = s[3];
                        const float v61 = max_nan(v59, (v41 ? v60 : __int_as_float(0xff800000)));
                        v36[1] = v61;
                        #pragma unroll
                        for (int v62 = 1; v62 < 16; ++v62) {
                            const int v63 = (v62 * 4) + 2;
                            const float v64 = s[v63];
                            const int v65 = v63 + 1;
                            const float v66 = s[v65];
                            const float v67 = max_nan((((((((v63 % 64) >> 2) * 8) + v37) + (v63 & 1)) < v35) ? v64 : __int_as_float(0xff800000)), (((((((v65 % 64) >> 2) * 8) + v37) + (v65 & 1)) < v35) ? v66 : __int_as_float(0xff800000)));
                            const float v68 = v36[1];
                            const float v69 = max_nan(v68, v67);
                            v36[1] = v69;
                        }
                        const float v70 = v36[1];
                        const float v71 = shuffle_xor(v70, 1);
                        const float v72 = max_nan(v70, v71);
                        v36[1] = v72;
                        const float v73 = v36[1];
                        const float v74 = shuffle_xor(v73, 2);
                        const float v75 = max_nan(v73, v74);
                        v36[1] = v75;
                        float t[2];
                        #pragma unroll
                        for (int v76 = 0; v76 < 2; ++v76) {
                            const float v77 = top[v76];
                            const float v78 = v36[v76];
                            const float v79 = max_nan(v77, v78);
                            t[v76] = v79;
                        }
                        float v80[64];
                        #pragma unroll
                        for (int v81 = 0; v81 < 64; ++v81) {
                            const float v82 = s[v81];
                            const float v83 = t[(((v81 / 64) * 2) + ((v81 >> 1) & 1))];
                            v80[v81] = (v82 - v83);
                        }
                        float p[64];
                        #pragma unroll
                        for (int v84 = 0; v84 < 64; ++v84) {
                            const float v85 = v80[v84];
                            const float v86 = exp2_f32(v85);
                            p[v84] = v86;
                        }
                        float v87[2];
                        #pragma unroll
                        for (int v88 = 0; v88 < 2; ++v88) {
                            const float v89 = top[v88];
                            const float v90 = t[v88];
                            v87[v88] = (v89 - v90);
                        }
                        float c[2];
                        #pragma unroll
                        for (int v91 = 0; v91 < 2; ++v91) {
                            const float v92 = v87[v91];
                            const float v93 = exp2_f32(v92);
                            c[v91] = v93;
                        }
#line 12 "examples/ring_attention.pk"
                        float v94[2];
                        #pragma unroll
                        for (int v95 = 0; v95 < 2; ++v95) {
                            const float v96 = total[v95];
                            const float v97 = c[v95];
                            v94[v95] = (v96 * v97);
                        }
                        float v98[2];
                        const float v99 = p[0];
                        v98[0] = (v38 ? v99 : 0.0f);
                        const float v100 = v98[0];
                        const float v101 = p[1];
                        v98[0] = (v100 + (v41 ? v101 : 0.0f));
                        #pragma unroll
                        for (int v102 = 1; v102 < 16; ++v102) {
                            const int v103 = v102 * 4;
                            const float v104 = p[v103];
                            const int v105 = v103 + 1;
                            const float v106 = p[v105];
                            const float v107 = (((((((v103 % 64) >> 2) * 8) + v37) + (v103 & 1)) < v35) ? v104 : 0.0f) + (((((((v105 % 64) >> 2) * 8) + v37) + (v105 & 1)) < v35) ? v106 : 0.0f);
                            const float v108 = v98[0];
                            v98[0] = (v108 + v107);
                        }
                        const float v109 = v98[0];
                        const float v110 = shuffle_xor(v109, 1);
                        v98[0] = (v109 + v110);
                        const float v111 = v98[0];
                        const float v112 = shuffle_xor(v111, 2);
                        v98[0] = (v111 + v112);
                        const float v113 = p[2];
                        v98[1] = (v38 ? v113 : 0.0f);
                        const float v114 = v98[1];
                        const float v115 = p[3];
                        v98[1] = (v114 + (v41 ? v115 : 0.0f));
                        #pragma unroll
                        for (int v116 = 1; v116 < 16; ++v116) {
                            const int v117 = (v116 * 4) + 2;
                            const float v118 = p[v117];
                            const int v119 = v117 + 1;
                            const float v120 = p[v119];
                            const float v121 = (((((((v117 % 64) >> 2) * 8) + v37) + (v117 & 1)) < v35) ? v118 : 0.0f) + (((((((v119 % 64) >> 2) * 8) + v37) + (v119 & 1)) < v35) ? v120 : 0.0f);
                            const float v122 = v98[1];
                            v98[1] = (v122 + v121);
                        }
                        const float v123 = v98[1];
                        const float v124 = shuffle_xor(v123, 1);
                        v98[1] = (v123 + v124);
                        const float v125 = v98[1];
                        const float v126 = shuffle_xor(v125, 2);
                        v98[1] = (v125 + v126);
                        float total1[2];
                        #pragma unroll
                        for (int v127 = 0; v127 < 2; ++v127) {
                            const float v128 = v94[v127];
                            const float v129 = v98[v127];
                            total1[v127] = (v128 + v129);
                        }
#line 13 "examples/ring_attention.pk"
                        float v130[64];
                        #pragma unroll
                        for (int v131 = 0; v131 < 64; ++v131) {
                            const float v132 = o[v131];
                            const float v133 = c[(((v131 / 64) * 2) + ((v131 >> 1) & 1))];
                            v130[v131] = (v132 * v133);
                        }
                        unsigned v134[32];
                        #pragma unroll
                        for (int v135 = 0; v135 < 32; ++v135) {
                            const int v136 = v135 * 2;
                            const float v137 = p[v136];
                            const float v138 = p[(v136 + 1)];
                            const unsigned v139 = pack_bf16(v137, v138);
                            v134[v135] = v139;
                        }
                        const int v140 = v_phase[0];
                        mbarrier_wait((shared_ + 229456), v140);
                        const unsigned long long v141 = (unsigned long long)(((shared_ + 163840) & 262143) >> 4) + 4611686293372403712ull;
                        unsigned v142[32];
                        #pragma unroll
                        for (int v143 = 0; v143 < 32; ++v143) {
                            const int v144 = v143 * 2;
                            const int v145 = v144 & 1;
                            const unsigned v146 = v134[(v144 >> 1)];
                            const float v147 = low_bf16(v146);
                            const float v148 = high_bf16(v146);
                            const int v149 = v144 + 1;
                            const int v150 = v149 & 1;
                            const unsigned v151 = v134[(v149 >> 1)];
                            const float v152 = low_bf16(v151);
                            const float v153 = high_bf16(v151);
                            const unsigned v154 = pack_bf16((((((((v144 % 64) >> 2) * 8) + v37) + v145) < v35) ? ((v145 == 0) ? v147 : v148) : 0.0f), (((((((v149 % 64) >> 2) * 8) + v37) + v150) < v35) ? ((v150 == 0) ? v152 : v153) : 0.0f));
                            v142[v143] = v154;
                        }
                        wgmma_fence();
                        const unsigned v155 = v142[0];
                        const unsigned v156 = v142[1];
                        const unsigned v157 = v142[2];
                        const unsigned v158 = v142[3];
                        wgmma_n128_bf16_rs_kn(v130, v155, v156, v157, v158, v141, 1);
                        const unsigned v159 = v142[4];
                        const unsigned v160 = v142[5];
                        const unsigned v161 = v142[6];
                        const unsigned v162 = v142[7];
                        wgmma_n128_bf16_rs_kn(v130, v159, v160, v161, v162, (v141 + 128ull), 1);
                        const unsigned v163 = v142[8];
                        const unsigned v164 = v142[9];
                        const unsigned v165 = v142[10];
                        const unsigned v166 = v142[11];
                        wgmma_n128_bf16_rs_kn(v130, v163, v164, v165, v166, (v141 + 256ull), 1);
                        const unsigned v167 = v142[12];
                        const unsigned v168 = v142[13];
                        const unsigned v169 = v142[14];
                        const unsigned v170 = v142[15];
                        wgmma_n128_bf16_rs_kn(v130, v167, v168, v169, v170, (v141 + 384ull), 1);
                        const unsigned v171 = v142[16];
                        const unsigned v172 = v142[17];
                        const unsigned v173 = v142[18];
                        const unsigned v174 = v142[19];
                        wgmma_n128_bf16_rs_kn(v130, v171, v172, v173, v174, (v141 + 512ull), 1);
                        const unsigned v175 = v142[20];
                        const unsigned v176 = v142[21];
                        const unsigned v177 = v142[22];
                        const unsigned v178 = v142[23];
                        wgmma_n128_bf16_rs_kn(v130, v175, v176, v177, v178, (v141 + 640ull), 1);
                        const unsigned v179 = v142[24];
                        const unsigned v180 = v142[25];
                        const unsigned v181 = v142[26];
                        const unsigned v182 = v142[27];
                        wgmma_n128_bf16_rs_kn(v130, v179, v180, v181, v182, (v141 + 768ull), 1);
                        const unsigned v183 = v142[28];
                        const unsigned v184 = v142[29];
                        const unsigned v185 = v142[30];
                        const unsigned v186 = v142[31];
                        wgmma_n128_bf16_rs_kn(v130, v183, v184, v185, v186, (v141 + 896ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v187 = shared_ + 229464;
                        if (v26) {
                            mbarrier_arrive(v187);
                        }
                        const int v188 = v_phase[0];
                        v_phase[0] = (v188 ^ 1);
#line 7 "examples/ring_attention.pk"
                        #pragma unroll
                        for (int v189 = 0; v189 < 2; ++v189) {
                            const float v190 = total1[v189];
                            total[v189] = v190;
                        }
                        #pragma unroll
                        for (int v191 = 0; v191 < 64; ++v191) {
                            const float v192 = v130[v191];
                            o[v191] = v192;
                        }
                        #pragma unroll
                        for (int v193 = 0; v193 < 2; ++v193) {
                            const float v194 = t[v193];
                            top[v193] = v194;
                        }
                    }
                }
#line 15 "examples/ring_attention.pk"
                float v195[64];
                #pragma unroll
                for (int v196 = 0; v196 < 64; ++v196) {
                    const float v197 = o[v196];
                    const float v198 = total[(((v196 / 64) * 2) + ((v196 >> 1) & 1))];
                    const float v199 = divide(v197, v198);
                    v195[v196] = v199;
                }
                const int v200 = cast_phase[0];
                mbarrier_wait((shared_ + 229480), (v200 ^ 1));
                unsigned v201[32];
                #pragma unroll
                for (int v202 = 0; v202 < 32; ++v202) {
                    const int v203 = v202 * 2;
                    const float v204 = v195[v203];
                    const float v205 = v195[(v203 + 1)];
                    const unsigned v206 = pack_bf16(v204, v205);
                    v201[v202] = v206;
                }
                const int v207 = lane & 7;
                const int v208 = (shared_ + 196608) + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v209 = 0; v209 < 8; ++v209) {
                    const int v210 = v209 * 2;
                    const int v211 = v209 * 4;
                    const unsigned v212 = v201[v211];
                    const unsigned v213 = v201[(v211 + 1)];
                    const unsigned v214 = v201[(v211 + 2)];
                    const unsigned v215 = v201[(v211 + 3)];
                    stmatrix_x4((v208 + (((v210 / 8) * 16384) + ((((v210 % 8) + (lane >> 4)) ^ v207) << 4))), v212, v213, v214, v215);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 229472));
                const int v216 = cast_phase[0];
                cast_phase[0] = (v216 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_56();
        // communicator: warp from 8
#line 8 "examples/ring_attention.pk"
        const bool v217 = lane == 0;
        if ((warp == 8) & v217) {
            int k_phase1[1];
            k_phase1[0] = 0;
            int v_phase1[1];
            v_phase1[0] = 0;
            const bool v218 = thread == 256;
            if (v218) {
                fence_release_sys();
                #pragma unroll 1
                for (int v219 = 0; v219 < args.ranks; ++v219) {
                    signal_relaxed_sys(((args.entered_base + ((unsigned long long)v219 * args.heap_stride)) + (0ull * 4ull)), 1);
                }
            }
            const int v220 = (computing * args.ranks) * epoch;
            const unsigned long long v221 = (unsigned long long)args.rank * args.heap_stride;
            const unsigned long long v222 = 0ull * 4ull;
            spin(((args.entered_base + v221) + v222), v220);
            fence_acquire_sys();
            fence_async_global();
#line 7 "examples/ring_attention.pk"
            const int v223 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v224 = args.S / v223;
            const int v225 = (v223 + 127) / 128;
            const int v226 = (v224 * v225) + (((args.S - (v224 * v223)) + 127) / 128);
#line 4 "examples/ring_attention.pk"
            const int v227 = args.rank * ((max(min(args.S - (0 * v223), v223), 0) + 127) / 128);
            const int v228 = (args.B * args.H) * v226;
            #pragma unroll 1
            for (int task1 = cta; task1 < v228; task1 += computing) {
                const int v229 = task1 / v226;
                const int v230 = v229 % args.H;
                const int v231 = v229 / args.H;
#line 7 "examples/ring_attention.pk"
                const int v232 = ((task1 % v226) + v227) % max(v226, 1);
                const int v233 = (v232 % v225) * 128;
                const int v234 = v232 / v225;
#line 8 "examples/ring_attention.pk"
                if (v234 != args.rank) {
                    const int v235 = k_phase1[0];
                    mbarrier_wait((shared_ + 229384), (v235 ^ 1));
                    const int v236 = shared_ + 229376;
                    mbarrier_expect(v236, 32768);
                    const int v237 = (v234 >= v224) ? 1 : 0;
                    const int v238 = (v237 == 1) ? 0 : v234;
                    tma_load_5d(shared_, args.K_map0[v237], v236, 0, v233, v230, v231, v238);
                    tma_load_5d((shared_ + 16384), args.K_map0[v237], v236, 64, v233, v230, v231, v238);
                    const int v239 = k_phase1[0];
                    k_phase1[0] = (v239 ^ 1);
#line 13 "examples/ring_attention.pk"
                    const int v240 = v_phase1[0];
                    mbarrier_wait((shared_ + 229400), (v240 ^ 1));
                    const int v241 = shared_ + 229392;
                    mbarrier_expect(v241, 32768);
                    const int v242 = shared_ + 32768;
                    tma_load_5d(v242, args.V_map1[v237], v241, 0, v233, v230, v231, v238);
                    tma_load_5d((v242 + 16384), args.V_map1[v237], v241, 64, v233, v230, v231, v238);
                    const int v243 = v_phase1[0];
                    v_phase1[0] = (v243 ^ 1);
                }
            }
#line 8 "examples/ring_attention.pk"
            const int v244 = k_phase1[0];
            const bool v245 = 0 >= 1;
            const int v246 = (v245 ? -1 : 0) * 8;
            mbarrier_wait(((shared_ + 229384) + v246), ((v245 ? (v244 ^ 1) : v244) ^ 1));
            const int v247 = v_phase1[0];
            mbarrier_wait(((shared_ + 229400) + v246), ((v245 ? (v247 ^ 1) : v247) ^ 1));
            if (v218) {
                fence_release_sys();
                #pragma unroll 1
                for (int v248 = 0; v248 < args.ranks; ++v248) {
                    signal_relaxed_sys(((args.left_base + ((unsigned long long)v248 * args.heap_stride)) + v222), 1);
                }
            }
            spin(((args.left_base + v221) + v222), v220);
            fence_acquire_sys();
        }
        // communicator: warp from 9
        if ((warp == 9) & v217) {
            int k_phase2[1];
            k_phase2[0] = 0;
            int v_phase2[1];
            v_phase2[0] = 0;
#line 7 "examples/ring_attention.pk"
            const int v249 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v250 = args.S / v249;
            const int v251 = (v249 + 127) / 128;
            const int v252 = (v250 * v251) + (((args.S - (v250 * v249)) + 127) / 128);
#line 4 "examples/ring_attention.pk"
            const int v253 = args.rank * ((max(min(args.S - (0 * v249), v249), 0) + 127) / 128);
            const int v254 = (args.B * args.H) * v252;
            #pragma unroll 1
            for (int task2 = cta; task2 < v254; task2 += computing) {
                const int v255 = task2 / v252;
                const int v256 = v255 % args.H;
                const int v257 = v255 / args.H;
#line 7 "examples/ring_attention.pk"
                const int v258 = ((task2 % v252) + v253) % max(v252, 1);
                const int v259 = (v258 % v251) * 128;
                const int v260 = v258 / v251;
#line 8 "examples/ring_attention.pk"
                if (v260 != args.rank) {
                    const int v261 = k_phase2[0];
                    mbarrier_wait((shared_ + 229376), v261);
                    const int v262 = (v260 >= v250) ? 1 : 0;
                    const int v263 = (v262 == 1) ? 0 : v260;
                    tma_store_5d(shared_, args.K_fetched_map2[v262], 0, v259, v256, v257, v263);
                    tma_store_5d((shared_ + 16384), args.K_fetched_map2[v262], 64, v259, v256, v257, v263);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229384));
                    const int v264 = k_phase2[0];
                    k_phase2[0] = (v264 ^ 1);
#line 13 "examples/ring_attention.pk"
                    const int v265 = v_phase2[0];
                    mbarrier_wait((shared_ + 229392), v265);
                    const int v266 = shared_ + 32768;
#line 8 "examples/ring_attention.pk"
                    tma_store_5d(v266, args.V_fetched_map3[v262], 0, v259, v256, v257, v263);
                    tma_store_5d((v266 + 16384), args.V_fetched_map3[v262], 64, v259, v256, v257, v263);
                    bulk_commit();
                    bulk_wait_read();
                    mbarrier_arrive((shared_ + 229400));
                    const int v267 = v_phase2[0];
                    v_phase2[0] = (v267 ^ 1);
                    const int v268 = 1 * epoch;
                    bulk_wait_full();
                    const int v269 = (((((0 * args.B) + v257) * args.H) + v256) * (((args.S + 127) / 128) + args.ranks)) + ((((v260 * v249) + v259) / 128) + v260);
                    const unsigned long long v270 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v269 * 4ull);
                    if (thread == 288) {
                        raise_release_gpu(v270, v268);
                    }
                }
            }
        }
        // loader: warp from 10
#line 4 "examples/ring_attention.pk"
        if ((warp == 10) & v217) {
            int q_phase1[1];
            q_phase1[0] = 0;
            int q_stage1[1];
            q_stage1[0] = 0;
            int k_phase3[1];
            k_phase3[0] = 0;
            int v_phase3[1];
            v_phase3[0] = 0;
            const int v271 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v272 = (max(min(args.S - (args.rank * v271), v271), 0) + 127) / 128;
            const int v273 = (args.B * args.H) * v272;
            #pragma unroll 1
            for (int task3 = cta; task3 < v273; task3 += computing) {
                const int v274 = task3 / v272;
                const int v275 = v274 % args.H;
                const int v276 = v274 / args.H;
                const int v277 = (task3 % v272) * 128;
#line 6 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v278 = 0; v278 < args.ranks; ++v278) {
                    const int v279 = (args.rank + v278) % args.ranks;
#line 7 "examples/ring_attention.pk"
                    const int v280 = v279 * v271;
                    const int v281 = (max(min(args.S - v280, v271), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v282 = 0; v282 < v281; ++v282) {
                        const int v283 = v282 * 128;
#line 8 "examples/ring_attention.pk"
                        const int v284 = q_stage1[0];
                        const int v285 = q_phase1[0];
                        const int v286 = v284 * 8;
                        mbarrier_wait(((shared_ + 229424) + v286), (v285 ^ 1));
                        const int v287 = shared_ + 229408;
                        mbarrier_expect((v287 + v286), 32768);
                        const int v288 = q_stage1[0];
                        const int v289 = (shared_ + 65536) + (v288 * 32768);
                        const int v290 = v287 + (v288 * 8);
                        const int v291 = args.S / v271;
                        const int v292 = (args.rank >= v291) ? 1 : 0;
                        const int v293 = (v292 == 1) ? 0 : args.rank;
                        tma_load_5d(v289, args.Q_map4[v292], v290, 0, v277, v275, v276, v293);
                        tma_load_5d((v289 + 16384), args.Q_map4[v292], v290, 64, v277, v275, v276, v293);
                        const int v294 = q_phase1[0];
                        const int v295 = q_stage1[0];
                        const int v296 = v295 + 1;
                        const bool v297 = v296 == 2;
                        q_phase1[0] = (v297 ? (v294 ^ 1) : v294);
                        q_stage1[0] = (v297 ? 0 : v296);
                        const bool v298 = v279 == args.rank;
                        const int v299 = (((((0 * args.B) + v276) * args.H) + v275) * (((args.S + 127) / 128) + args.ranks)) + (((v280 + v283) / 128) + v279);
                        const unsigned long long v300 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v299 * 4ull);
                        spin(v300, ((v298 ? 0 : 1) * epoch));
                        fence_acquire_gpu();
                        fence_async_global();
                        const int v301 = k_phase3[0];
                        mbarrier_wait((shared_ + 229448), (v301 ^ 1));
                        const int v302 = shared_ + 229440;
                        mbarrier_expect(v302, 32768);
                        const int v303 = shared_ + 131072;
                        const int v304 = (v279 >= v291) ? 1 : 0;
                        const int v305 = (v304 == 1) ? 0 : v279;
                        tma_load_5d(v303, (v298 ? args.K_map0[v304] : args.K_fetched_map2[v304]), v302, 0, v283, v275, v276, v305);
                        tma_load_5d((v303 + 16384), (v298 ? args.K_map0[v304] : args.K_fetched_map2[v304]), v302, 64, v283, v275, v276, v305);
                        const int v306 = k_phase3[0];
                        k_phase3[0] = (v306 ^ 1);
#line 13 "examples/ring_attention.pk"
                        const int v307 = v_phase3[0];
                        mbarrier_wait((shared_ + 229464), (v307 ^ 1));
                        const int v308 = shared_ + 229456;
                        mbarrier_expect(v308, 32768);
                        const int v309 = shared_ + 163840;
                        tma_load_5d(v309, (v298 ? args.V_map1[v304] : args.V_fetched_map3[v304]), v308, 0, v283, v275, v276, v305);
                        tma_load_5d((v309 + 16384), (v298 ? args.V_map1[v304] : args.V_fetched_map3[v304]), v308, 64, v283, v275, v276, v305);
                        const int v310 = v_phase3[0];
                        v_phase3[0] = (v310 ^ 1);
                    }
                }
            }
        }
        // storer: warp from 11
#line 4 "examples/ring_attention.pk"
        if ((warp == 11) & v217) {
            int cast_phase1[1];
            cast_phase1[0] = 0;
            const int v311 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v312 = (max(min(args.S - (args.rank * v311), v311), 0) + 127) / 128;
            const int v313 = (args.B * args.H) * v312;
            #pragma unroll 1
            for (int task4 = cta; task4 < v313; task4 += computing) {
                const int v314 = task4 / v312;
                const int v315 = v314 % args.H;
                const int v316 = v314 / args.H;
                const int v317 = (task4 % v312) * 128;
#line 15 "examples/ring_attention.pk"
                const int v318 = cast_phase1[0];
                mbarrier_wait((shared_ + 229472), v318);
                const int v319 = shared_ + 196608;
                const int v320 = (args.rank >= (args.S / v311)) ? 1 : 0;
                const int v321 = (v320 == 1) ? 0 : args.rank;
                tma_store_5d(v319, args.O_map5[v320], 0, v317, v315, v316, v321);
                tma_store_5d((v319 + 16384), args.O_map5[v320], 64, v317, v315, v316, v321);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 229480));
                const int v322 = cast_phase1[0];
                cast_phase1[0] = (v322 ^ 1);
            }
#line 4 "examples/ring_attention.pk"
            bulk_wait_full();
        }
    }
}
