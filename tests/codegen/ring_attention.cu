// ring_attention
struct alignas(128) TensorMap { char bytes[128]; };
struct alignas(128) Args {
    TensorMap K_map0[2];
    TensorMap V_map1[2];
    TensorMap K_landing_map2[2];
    TensorMap V_landing_map3[2];
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
// the tensor map a, on its way into the cache
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
// adds b to the counter at a, in no order
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
        prefetch_map(args.K_landing_map2[0]);
        prefetch_map(args.V_landing_map3[0]);
        prefetch_map(args.Q_map4[0]);
        prefetch_map(args.O_map5[0]);
        mbarrier_init((shared_ + 196608), 1);
        mbarrier_init((shared_ + 196616), 1);
        mbarrier_init((shared_ + 196624), 1);
        mbarrier_init((shared_ + 196632), 1);
        mbarrier_init((shared_ + 196640), 1);
        mbarrier_init((shared_ + 196648), 8);
        mbarrier_init((shared_ + 196656), 1);
        mbarrier_init((shared_ + 196664), 8);
        mbarrier_init((shared_ + 196672), 1);
        mbarrier_init((shared_ + 196680), 8);
        mbarrier_init((shared_ + 196688), 256);
        mbarrier_init((shared_ + 196696), 1);
        mbarrier_init_fence();
    }
    sync_threads();
    if (v2) {
        store_u32(v0, epoch);
    }
    const bool v3 = warp < 8;
    if (v3) {
        setmaxnreg_inc_224();
        // consumer: 8 warps from 0
#line 4 "examples/ring_attention.pk"
        if (v3) {
            int q_phase[1];
            q_phase[0] = 0;
            int k_phase[1];
            k_phase[0] = 0;
            int v_phase[1];
            v_phase[0] = 0;
            int cast_phase[1];
            cast_phase[0] = 0;
            const int v4 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v5 = (args.B * args.H) * ((max(min(args.S - (args.rank * v4), v4), 0) + 127) / 128);
            #pragma unroll 1
            for (int task = cta; task < v5; task += computing) {
#line 6 "examples/ring_attention.pk"
                float total[2];
                #pragma unroll
                for (int v6 = 0; v6 < 2; ++v6) {
                    total[v6] = 0.0f;
                }
                float o[64];
                #pragma unroll
                for (int v7 = 0; v7 < 64; ++v7) {
                    o[v7] = 0.0f;
                }
                float top[2];
                #pragma unroll
                for (int v8 = 0; v8 < 2; ++v8) {
                    top[v8] = __int_as_float(0xff800000);
                }
                #pragma unroll 1
                for (int v9 = 0; v9 < args.ranks; ++v9) {
#line 7 "examples/ring_attention.pk"
                    const int v10 = max(min(args.S - (((args.rank + v9) % args.ranks) * v4), v4), 0);
                    const int v11 = (v10 + 127) / 128;
                    #pragma unroll 1
                    for (int v12 = 0; v12 < v11; ++v12) {
#line 8 "examples/ring_attention.pk"
                        const int v13 = k_phase[0];
                        mbarrier_wait((shared_ + 196656), v13);
                        const int v14 = q_phase[0];
                        mbarrier_wait((shared_ + 196640), v14);
                        float o1[64];
                        #pragma unroll
                        for (int v15 = 0; v15 < 64; ++v15) {
                            o1[v15] = 0.0f;
                        }
                        float v16[64];
                        #pragma unroll
                        for (int v17 = 0; v17 < 64; ++v17) {
                            const float v18 = o1[v17];
                            v16[v17] = v18;
                        }
                        const unsigned long long v19 = (unsigned long long)(((shared_ + 98304) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_fence();
                        const unsigned long long v20 = (unsigned long long)((((shared_ + 65536) + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                        wgmma_n128_bf16_ss_kk(v16, v20, v19, 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 2ull), (v19 + 2ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 4ull), (v19 + 4ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 6ull), (v19 + 6ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 1024ull), (v19 + 1024ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 1026ull), (v19 + 1026ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 1028ull), (v19 + 1028ull), 1);
                        wgmma_n128_bf16_ss_kk(v16, (v20 + 1030ull), (v19 + 1030ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v21 = shared_ + 196648;
                        const bool v22 = lane == 0;
                        if (v22) {
                            mbarrier_arrive(v21);
                        }
                        const int v23 = q_phase[0];
                        q_phase[0] = (v23 ^ 1);
                        const int v24 = shared_ + 196664;
                        if (v22) {
                            mbarrier_arrive(v24);
                        }
                        const int v25 = k_phase[0];
                        k_phase[0] = (v25 ^ 1);
                        float s[64];
                        #pragma unroll
                        for (int v26 = 0; v26 < 64; ++v26) {
                            const float v27 = v16[v26];
                            s[v26] = (v27 * args.scale_value);
                        }
#line 11 "examples/ring_attention.pk"
                        const int v28 = v10 - (v12 * 128);
                        float v29[2];
                        const int v30 = (lane & 3) * 2;
                        const bool v31 = v30 < v28;
                        const float v32 = s[0];
                        v29[0] = (v31 ? v32 : __int_as_float(0xff800000));
                        const float v33 = v29[0];
                        const bool v34 = (v30 + 1) < v28;
                        const float v35 = s[1];
                        const float v36 = max_nan(v33, (v34 ? v35 : __int_as_float(0xff800000)));
                        v29[0] = v36;
                        #pragma unroll
                        for (int v37 = 1; v37 < 16; ++v37) {
                            const int v38 = v37 * 4;
                            const float v39 = s[v38];
                            const int v40 = v38 + 1;
                            const float v41 = s[v40];
                            const float v42 = max_nan((((((((v38 % 64) >> 2) * 8) + v30) + (v38 & 1)) < v28) ? v39 : __int_as_float(0xff800000)), (((((((v40 % 64) >> 2) * 8) + v30) + (v40 & 1)) < v28) ? v41 : __int_as_float(0xff800000)));
                            const float v43 = v29[0];
                            const float v44 = max_nan(v43, v42);
                            v29[0] = v44;
                        }
                        const float v45 = v29[0];
                        const float v46 = shuffle_xor(v45, 1);
                        const float v47 = max_nan(v45, v46);
                        v29[0] = v47;
                        const float v48 = v29[0];
                        const float v49 = shuffle_xor(v48, 2);
                        const float v50 = max_nan(v48, v49);
                        v29[0] = v50;
                        const float v51 = s[2];
                        v29[1] = (v31 ? v51 : __int_as_float(0xff800000));
                        const float v52 = v29[1];
                        const float v53 = s[3];
                        const float v54 = max_nan(v52, (v34 ? v53 : __int_as_float(0xff800000)));
                        v29[1] = v54;
                        #pragma unroll
                        for (int v55 = 1; v55 < 16; ++v55) {
                            const int v56 = (v55 * 4) + 2;
                            const float v57 = s[v56];
                            const int v58 = v56 + 1;
                            const float v59 = s[v58];
                            const float v60 = max_nan((((((((v56 % 64) >> 2) * 8) + v30) + (v56 & 1)) < v28) ? v57 : __int_as_float(0xff800000)), (((((((v58 % 64) >> 2) * 8) + v30) + (v58 & 1)) < v28) ? v59 : __int_as_float(0xff800000)));
                            const float v61 = v29[1];
                            const float v62 = max_nan(v61, v60);
                            v29[1] = v62;
                        }
                        const float v63 = v29[1];
                        const float v64 = shuffle_xor(v63, 1);
                        const float v65 = max_nan(v63, v64);
                        v29[1] = v65;
                        const float v66 = v29[1];
                        const float v67 = shuffle_xor(v66, 2);
                        const float v68 = max_nan(v66, v67);
                        v29[1] = v68;
                        float t[2];
                        #pragma unroll
                        for (int v69 = 0; v69 < 2; ++v69) {
                            const float v70 = top[v69];
                            const float v71 = v29[v69];
                            const float v72 = max_nan(v70, v71);
                            t[v69] = v72;
                        }
                        float v73[64];
                        #pragma unroll
                        for (int v74 = 0; v74 < 64; ++v74) {
                            const float v75 = s[v74];
                            const float v76 = t[(((v74 / 64) * 2) + ((v74 >> 1) & 1))];
                            v73[v74] = (v75 - v76);
                        }
                        float p[64];
                        #pragma unroll
                        for (int v77 = 0; v77 < 64; ++v77) {
                            const float v78 = v73[v77];
                            const float v79 = exp2_f32(v78);
                            p[v77] = v79;
                        }
                        float v80[2];
                        #pragma unroll
                        for (int v81 = 0; v81 < 2; ++v81) {
                            const float v82 = top[v81];
                            const float v83 = t[v81];
                            v80[v81] = (v82 - v83);
                        }
                        float c[2];
                        #pragma unroll
                        for (int v84 = 0; v84 < 2; ++v84) {
                            const float v85 = v80[v84];
                            const float v86 = exp2_f32(v85);
                            c[v84] = v86;
                        }
#line 12 "examples/ring_attention.pk"
                        float v87[2];
                        #pragma unroll
                        for (int v88 = 0; v88 < 2; ++v88) {
                            const float v89 = total[v88];
                            const float v90 = c[v88];
                            v87[v88] = (v89 * v90);
                        }
                        float v91[2];
                        const float v92 = p[0];
                        v91[0] = (v31 ? v92 : 0.0f);
                        const float v93 = v91[0];
                        const float v94 = p[1];
                        v91[0] = (v93 + (v34 ? v94 : 0.0f));
                        #pragma unroll
                        for (int v95 = 1; v95 < 16; ++v95) {
                            const int v96 = v95 * 4;
                            const float v97 = p[v96];
                            const int v98 = v96 + 1;
                            const float v99 = p[v98];
                            const float v100 = (((((((v96 % 64) >> 2) * 8) + v30) + (v96 & 1)) < v28) ? v97 : 0.0f) + (((((((v98 % 64) >> 2) * 8) + v30) + (v98 & 1)) < v28) ? v99 : 0.0f);
                            const float v101 = v91[0];
                            v91[0] = (v101 + v100);
                        }
                        const float v102 = v91[0];
                        const float v103 = shuffle_xor(v102, 1);
                        v91[0] = (v102 + v103);
                        const float v104 = v91[0];
                        const float v105 = shuffle_xor(v104, 2);
                        v91[0] = (v104 + v105);
                        const float v106 = p[2];
                        v91[1] = (v31 ? v106 : 0.0f);
                        const float v107 = v91[1];
                        const float v108 = p[3];
                        v91[1] = (v107 + (v34 ? v108 : 0.0f));
                        #pragma unroll
                        for (int v109 = 1; v109 < 16; ++v109) {
                            const int v110 = (v109 * 4) + 2;
                            const float v111 = p[v110];
                            const int v112 = v110 + 1;
                            const float v113 = p[v112];
                            const float v114 = (((((((v110 % 64) >> 2) * 8) + v30) + (v110 & 1)) < v28) ? v111 : 0.0f) + (((((((v112 % 64) >> 2) * 8) + v30) + (v112 & 1)) < v28) ? v113 : 0.0f);
                            const float v115 = v91[1];
                            v91[1] = (v115 + v114);
                        }
                        const float v116 = v91[1];
                        const float v117 = shuffle_xor(v116, 1);
                        v91[1] = (v116 + v117);
                        const float v118 = v91[1];
                        const float v119 = shuffle_xor(v118, 2);
                        v91[1] = (v118 + v119);
                        float total1[2];
                        #pragma unroll
                        for (int v120 = 0; v120 < 2; ++v120) {
                            const float v121 = v87[v120];
                            const float v122 = v91[v120];
                            total1[v120] = (v121 + v122);
                        }
#line 13 "examples/ring_attention.pk"
                        float v123[64];
                        #pragma unroll
                        for (int v124 = 0; v124 < 64; ++v124) {
                            const float v125 = o[v124];
                            const float v126 = c[(((v124 / 64) * 2) + ((v124 >> 1) & 1))];
                            v123[v124] = (v125 * v126);
                        }
                        unsigned v127[32];
                        #pragma unroll
                        for (int v128 = 0; v128 < 32; ++v128) {
                            const int v129 = v128 * 2;
                            const float v130 = p[v129];
                            const float v131 = p[(v129 + 1)];
                            const unsigned v132 = pack_bf16(v130, v131);
                            v127[v128] = v132;
                        }
                        const int v133 = v_phase[0];
                        mbarrier_wait((shared_ + 196672), v133);
                        const unsigned long long v134 = (unsigned long long)(((shared_ + 131072) & 262143) >> 4) + 4611686293372403712ull;
                        unsigned v135[32];
                        #pragma unroll
                        for (int v136 = 0; v136 < 32; ++v136) {
                            const int v137 = v136 * 2;
                            const int v138 = v137 & 1;
                            const unsigned v139 = v127[(v137 >> 1)];
                            const float v140 = low_bf16(v139);
                            const float v141 = high_bf16(v139);
                            const int v142 = v137 + 1;
                            const int v143 = v142 & 1;
                            const unsigned v144 = v127[(v142 >> 1)];
                            const float v145 = low_bf16(v144);
                            const float v146 = high_bf16(v144);
                            const unsigned v147 = pack_bf16((((((((v137 % 64) >> 2) * 8) + v30) + v138) < v28) ? ((v138 == 0) ? v140 : v141) : 0.0f), (((((((v142 % 64) >> 2) * 8) + v30) + v143) < v28) ? ((v143 == 0) ? v145 : v146) : 0.0f));
                            v135[v136] = v147;
                        }
                        wgmma_fence();
                        const unsigned v148 = v135[0];
                        const unsigned v149 = v135[1];
                        const unsigned v150 = v135[2];
                        const unsigned v151 = v135[3];
                        wgmma_n128_bf16_rs_kn(v123, v148, v149, v150, v151, v134, 1);
                        const unsigned v152 = v135[4];
                        const unsigned v153 = v135[5];
                        const unsigned v154 = v135[6];
                        const unsigned v155 = v135[7];
                        wgmma_n128_bf16_rs_kn(v123, v152, v153, v154, v155, (v134 + 128ull), 1);
                        const unsigned v156 = v135[8];
                        const unsigned v157 = v135[9];
                        const unsigned v158 = v135[10];
                        const unsigned v159 = v135[11];
                        wgmma_n128_bf16_rs_kn(v123, v156, v157, v158, v159, (v134 + 256ull), 1);
                        const unsigned v160 = v135[12];
                        const unsigned v161 = v135[13];
                        const unsigned v162 = v135[14];
                        const unsigned v163 = v135[15];
                        wgmma_n128_bf16_rs_kn(v123, v160, v161, v162, v163, (v134 + 384ull), 1);
                        const unsigned v164 = v135[16];
                        const unsigned v165 = v135[17];
                        const unsigned v166 = v135[18];
                        const unsigned v167 = v135[19];
                        wgmma_n128_bf16_rs_kn(v123, v164, v165, v166, v167, (v134 + 512ull), 1);
                        const unsigned v168 = v135[20];
                        const unsigned v169 = v135[21];
                        const unsigned v170 = v135[22];
                        const unsigned v171 = v135[23];
                        wgmma_n128_bf16_rs_kn(v123, v168, v169, v170, v171, (v134 + 640ull), 1);
                        const unsigned v172 = v135[24];
                        const unsigned v173 = v135[25];
                        const unsigned v174 = v135[26];
                        const unsigned v175 = v135[27];
                        wgmma_n128_bf16_rs_kn(v123, v172, v173, v174, v175, (v134 + 768ull), 1);
                        const unsigned v176 = v135[28];
                        const unsigned v177 = v135[29];
                        const unsigned v178 = v135[30];
                        const unsigned v179 = v135[31];
                        wgmma_n128_bf16_rs_kn(v123, v176, v177, v178, v179, (v134 + 896ull), 1);
                        wgmma_commit();
                        wgmma_wait_0();
                        const int v180 = shared_ + 196680;
                        if (v22) {
                            mbarrier_arrive(v180);
                        }
                        const int v181 = v_phase[0];
                        v_phase[0] = (v181 ^ 1);
#line 7 "examples/ring_attention.pk"
                        #pragma unroll
                        for (int v182 = 0; v182 < 2; ++v182) {
                            const float v183 = total1[v182];
                            total[v182] = v183;
                        }
                        #pragma unroll
                        for (int v184 = 0; v184 < 64; ++v184) {
                            const float v185 = v123[v184];
                            o[v184] = v185;
                        }
                        #pragma unroll
                        for (int v186 = 0; v186 < 2; ++v186) {
                            const float v187 = t[v186];
                            top[v186] = v187;
                        }
                    }
                }
#line 15 "examples/ring_attention.pk"
                float v188[64];
                #pragma unroll
                for (int v189 = 0; v189 < 64; ++v189) {
                    const float v190 = o[v189];
                    const float v191 = total[(((v189 / 64) * 2) + ((v189 >> 1) & 1))];
                    const float v192 = divide(v190, v191);
                    v188[v189] = v192;
                }
                const int v193 = cast_phase[0];
                mbarrier_wait((shared_ + 196696), (v193 ^ 1));
                unsigned v194[32];
                #pragma unroll
                for (int v195 = 0; v195 < 32; ++v195) {
                    const int v196 = v195 * 2;
                    const float v197 = v188[v196];
                    const float v198 = v188[(v196 + 1)];
                    const unsigned v199 = pack_bf16(v197, v198);
                    v194[v195] = v199;
                }
                const int v200 = lane & 7;
                const int v201 = (shared_ + 163840) + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v202 = 0; v202 < 8; ++v202) {
                    const int v203 = v202 * 2;
                    const int v204 = v202 * 4;
                    const unsigned v205 = v194[v204];
                    const unsigned v206 = v194[(v204 + 1)];
                    const unsigned v207 = v194[(v204 + 2)];
                    const unsigned v208 = v194[(v204 + 3)];
                    stmatrix_x4((v201 + (((v203 / 8) * 16384) + ((((v203 % 8) + (lane >> 4)) ^ v200) << 4))), v205, v206, v207, v208);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 196688));
                const int v209 = cast_phase[0];
                cast_phase[0] = (v209 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_56();
        // communicator: warp from 8
#line 8 "examples/ring_attention.pk"
        const bool v210 = lane == 0;
        if ((warp == 8) & v210) {
            int k_phase1[1];
            k_phase1[0] = 0;
            int v_phase1[1];
            v_phase1[0] = 0;
            const bool v211 = thread == 256;
            if (v211) {
                fence_release_sys();
                #pragma unroll 1
                for (int v212 = 0; v212 < args.ranks; ++v212) {
                    signal_relaxed_sys(((args.entered_base + ((unsigned long long)v212 * args.heap_stride)) + (0ull * 4ull)), 1);
                }
            }
            const int v213 = (computing * args.ranks) * epoch;
            const unsigned long long v214 = (unsigned long long)args.rank * args.heap_stride;
            const unsigned long long v215 = 0ull * 4ull;
            spin(((args.entered_base + v214) + v215), v213);
            fence_acquire_sys();
            fence_async_global();
#line 4 "examples/ring_attention.pk"
            const int v216 = args.B * args.H;
            #pragma unroll 1
            for (int task1 = cta; task1 < v216; task1 += computing) {
                const int v217 = task1 % args.H;
                const int v218 = task1 / args.H;
#line 6 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v219 = 0; v219 < args.ranks; ++v219) {
                    const int v220 = (args.rank + v219) % args.ranks;
#line 7 "examples/ring_attention.pk"
                    const int v221 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
                    const int v222 = (max(min(args.S - (v220 * v221), v221), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v223 = 0; v223 < v222; ++v223) {
                        const int v224 = v223 * 128;
#line 8 "examples/ring_attention.pk"
                        const int v225 = k_phase1[0];
                        mbarrier_wait((shared_ + 196616), (v225 ^ 1));
                        const int v226 = shared_ + 196608;
                        mbarrier_expect(v226, 32768);
                        const int v227 = (v220 >= (args.S / v221)) ? 1 : 0;
                        const int v228 = (v227 == 1) ? 0 : v220;
                        tma_load_5d(shared_, args.K_map0[v227], v226, 0, v224, v217, v218, v228);
                        tma_load_5d((shared_ + 16384), args.K_map0[v227], v226, 64, v224, v217, v218, v228);
                        const int v229 = k_phase1[0];
                        k_phase1[0] = (v229 ^ 1);
#line 13 "examples/ring_attention.pk"
                        const int v230 = v_phase1[0];
                        mbarrier_wait((shared_ + 196632), (v230 ^ 1));
                        const int v231 = shared_ + 196624;
                        mbarrier_expect(v231, 32768);
                        const int v232 = shared_ + 32768;
                        tma_load_5d(v232, args.V_map1[v227], v231, 0, v224, v217, v218, v228);
                        tma_load_5d((v232 + 16384), args.V_map1[v227], v231, 64, v224, v217, v218, v228);
                        const int v233 = v_phase1[0];
                        v_phase1[0] = (v233 ^ 1);
                    }
                }
            }
#line 8 "examples/ring_attention.pk"
            const int v234 = k_phase1[0];
            const bool v235 = 0 >= 1;
            const int v236 = (v235 ? -1 : 0) * 8;
            mbarrier_wait(((shared_ + 196616) + v236), ((v235 ? (v234 ^ 1) : v234) ^ 1));
            const int v237 = v_phase1[0];
            mbarrier_wait(((shared_ + 196632) + v236), ((v235 ? (v237 ^ 1) : v237) ^ 1));
            if (v211) {
                fence_release_sys();
                #pragma unroll 1
                for (int v238 = 0; v238 < args.ranks; ++v238) {
                    signal_relaxed_sys(((args.left_base + ((unsigned long long)v238 * args.heap_stride)) + v215), 1);
                }
            }
            spin(((args.left_base + v214) + v215), v213);
            fence_acquire_sys();
        }
        // communicator: warp from 9
        if ((warp == 9) & v210) {
            int k_phase2[1];
            k_phase2[0] = 0;
            int v_phase2[1];
            v_phase2[0] = 0;
#line 4 "examples/ring_attention.pk"
            const int v239 = args.B * args.H;
            #pragma unroll 1
            for (int task2 = cta; task2 < v239; task2 += computing) {
                const int v240 = task2 % args.H;
                const int v241 = task2 / args.H;
#line 6 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v242 = 0; v242 < args.ranks; ++v242) {
                    const int v243 = (args.rank + v242) % args.ranks;
#line 7 "examples/ring_attention.pk"
                    const int v244 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
                    const int v245 = v243 * v244;
                    const int v246 = (max(min(args.S - v245, v244), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v247 = 0; v247 < v246; ++v247) {
                        const int v248 = v247 * 128;
#line 8 "examples/ring_attention.pk"
                        const int v249 = k_phase2[0];
                        mbarrier_wait((shared_ + 196608), v249);
                        const int v250 = (v243 >= (args.S / v244)) ? 1 : 0;
                        const int v251 = (v250 == 1) ? 0 : v243;
                        tma_store_5d(shared_, args.K_landing_map2[v250], 0, v248, v240, v241, v251);
                        tma_store_5d((shared_ + 16384), args.K_landing_map2[v250], 64, v248, v240, v241, v251);
                        bulk_commit();
                        bulk_wait_read();
                        mbarrier_arrive((shared_ + 196616));
                        const int v252 = k_phase2[0];
                        k_phase2[0] = (v252 ^ 1);
#line 13 "examples/ring_attention.pk"
                        const int v253 = v_phase2[0];
                        mbarrier_wait((shared_ + 196624), v253);
                        const int v254 = shared_ + 32768;
#line 8 "examples/ring_attention.pk"
                        tma_store_5d(v254, args.V_landing_map3[v250], 0, v248, v240, v241, v251);
                        tma_store_5d((v254 + 16384), args.V_landing_map3[v250], 64, v248, v240, v241, v251);
                        bulk_commit();
                        bulk_wait_read();
                        mbarrier_arrive((shared_ + 196632));
                        const int v255 = v_phase2[0];
                        v_phase2[0] = (v255 ^ 1);
                        const int v256 = 1 * epoch;
                        bulk_wait_full();
                        const int v257 = (((((0 * args.B) + v241) * args.H) + v240) * (((args.S + 127) / 128) + args.ranks)) + (((v245 + v248) / 128) + v243);
                        const unsigned long long v258 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v257 * 4ull);
                        if (thread == 288) {
                            raise_release_gpu(v258, v256);
                        }
                    }
                }
            }
        }
        // loader: warp from 10
#line 4 "examples/ring_attention.pk"
        if ((warp == 10) & v210) {
            int q_phase1[1];
            q_phase1[0] = 0;
            int k_phase3[1];
            k_phase3[0] = 0;
            int v_phase3[1];
            v_phase3[0] = 0;
            const int v259 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v260 = (max(min(args.S - (args.rank * v259), v259), 0) + 127) / 128;
            const int v261 = (args.B * args.H) * v260;
            #pragma unroll 1
            for (int task3 = cta; task3 < v261; task3 += computing) {
                const int v262 = task3 / v260;
                const int v263 = v262 % args.H;
                const int v264 = v262 / args.H;
                const int v265 = (task3 % v260) * 128;
#line 6 "examples/ring_attention.pk"
                #pragma unroll 1
                for (int v266 = 0; v266 < args.ranks; ++v266) {
                    const int v267 = (args.rank + v266) % args.ranks;
#line 7 "examples/ring_attention.pk"
                    const int v268 = v267 * v259;
                    const int v269 = (max(min(args.S - v268, v259), 0) + 127) / 128;
                    #pragma unroll 1
                    for (int v270 = 0; v270 < v269; ++v270) {
                        const int v271 = v270 * 128;
#line 8 "examples/ring_attention.pk"
                        const int v272 = q_phase1[0];
                        mbarrier_wait((shared_ + 196648), (v272 ^ 1));
                        const int v273 = shared_ + 196640;
                        mbarrier_expect(v273, 32768);
                        const int v274 = shared_ + 65536;
                        const int v275 = args.S / v259;
                        const int v276 = (args.rank >= v275) ? 1 : 0;
                        const int v277 = (v276 == 1) ? 0 : args.rank;
                        tma_load_5d(v274, args.Q_map4[v276], v273, 0, v265, v263, v264, v277);
                        tma_load_5d((v274 + 16384), args.Q_map4[v276], v273, 64, v265, v263, v264, v277);
                        const int v278 = q_phase1[0];
                        q_phase1[0] = (v278 ^ 1);
                        const int v279 = (((((0 * args.B) + v264) * args.H) + v263) * (((args.S + 127) / 128) + args.ranks)) + (((v268 + v271) / 128) + v267);
                        const unsigned long long v280 = (args.K_V_ready_base + ((unsigned long long)args.rank * args.heap_stride)) + ((unsigned long long)v279 * 4ull);
                        spin(v280, (1 * epoch));
                        fence_acquire_gpu();
                        fence_async_global();
                        const int v281 = k_phase3[0];
                        mbarrier_wait((shared_ + 196664), (v281 ^ 1));
                        const int v282 = shared_ + 196656;
                        mbarrier_expect(v282, 32768);
                        const int v283 = shared_ + 98304;
                        const int v284 = (v267 >= v275) ? 1 : 0;
                        const int v285 = (v284 == 1) ? 0 : v267;
                        tma_load_5d(v283, args.K_landing_map2[v284], v282, 0, v271, v263, v264, v285);
                        tma_load_5d((v283 + 16384), args.K_landing_map2[v284], v282, 64, v271, v263, v264, v285);
                        const int v286 = k_phase3[0];
                        k_phase3[0] = (v286 ^ 1);
#line 13 "examples/ring_attention.pk"
                        const int v287 = v_phase3[0];
                        mbarrier_wait((shared_ + 196680), (v287 ^ 1));
                        const int v288 = shared_ + 196672;
                        mbarrier_expect(v288, 32768);
                        const int v289 = shared_ + 131072;
                        tma_load_5d(v289, args.V_landing_map3[v284], v288, 0, v271, v263, v264, v285);
                        tma_load_5d((v289 + 16384), args.V_landing_map3[v284], v288, 64, v271, v263, v264, v285);
                        const int v290 = v_phase3[0];
                        v_phase3[0] = (v290 ^ 1);
                    }
                }
            }
        }
        // storer: warp from 11
#line 4 "examples/ring_attention.pk"
        if ((warp == 11) & v210) {
            int cast_phase1[1];
            cast_phase1[0] = 0;
            const int v291 = max((args.S + (args.ranks - 1)) / args.ranks, 1);
            const int v292 = (max(min(args.S - (args.rank * v291), v291), 0) + 127) / 128;
            const int v293 = (args.B * args.H) * v292;
            #pragma unroll 1
            for (int task4 = cta; task4 < v293; task4 += computing) {
                const int v294 = task4 / v292;
                const int v295 = v294 % args.H;
                const int v296 = v294 / args.H;
                const int v297 = (task4 % v292) * 128;
#line 15 "examples/ring_attention.pk"
                const int v298 = cast_phase1[0];
                mbarrier_wait((shared_ + 196688), v298);
                const int v299 = shared_ + 163840;
                const int v300 = (args.rank >= (args.S / v291)) ? 1 : 0;
                const int v301 = (v300 == 1) ? 0 : args.rank;
                tma_store_5d(v299, args.O_map5[v300], 0, v297, v295, v296, v301);
                tma_store_5d((v299 + 16384), args.O_map5[v300], 64, v297, v295, v296, v301);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 196696));
                const int v302 = cast_phase1[0];
                cast_phase1[0] = (v302 ^ 1);
            }
#line 4 "examples/ring_attention.pk"
            bulk_wait_full();
        }
    }
}
