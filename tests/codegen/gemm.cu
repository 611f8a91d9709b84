// gemm
struct alignas(128) TensorMap { char bytes[128]; };
struct alignas(128) Args {
    TensorMap A_map0[2];
    TensorMap B_map1[2];
    TensorMap C_map2[2];
    unsigned long long epochs;
    int M;
    int N;
    int K;
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
static __device__ __forceinline__ void setmaxnreg_inc_232() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" :  :  : "memory");
}
// until the phase of parity b is complete at a (acquire, CTA)
static __device__ __forceinline__ void mbarrier_wait(int a, int b) {
    asm volatile("{\n.reg .pred p;\nagain%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done%=;\nbra again%=;\ndone%=:\n}" :  : "r"(a), "r"(b) : "memory");
}
// registers before wgmma
static __device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" :  :  : "memory");
}
// a += A[64, 16] @ B[16, 256] if the last operand is not 0, else a = A @ B; asynchronous
static __device__ __forceinline__ void wgmma_n256_bf16_ss_kn(float (&a)[128], unsigned long long b, unsigned long long c, int d) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]), "+f"(a[64]), "+f"(a[65]), "+f"(a[66]), "+f"(a[67]), "+f"(a[68]), "+f"(a[69]), "+f"(a[70]), "+f"(a[71]), "+f"(a[72]), "+f"(a[73]), "+f"(a[74]), "+f"(a[75]), "+f"(a[76]), "+f"(a[77]), "+f"(a[78]), "+f"(a[79]), "+f"(a[80]), "+f"(a[81]), "+f"(a[82]), "+f"(a[83]), "+f"(a[84]), "+f"(a[85]), "+f"(a[86]), "+f"(a[87]), "+f"(a[88]), "+f"(a[89]), "+f"(a[90]), "+f"(a[91]), "+f"(a[92]), "+f"(a[93]), "+f"(a[94]), "+f"(a[95]), "+f"(a[96]), "+f"(a[97]), "+f"(a[98]), "+f"(a[99]), "+f"(a[100]), "+f"(a[101]), "+f"(a[102]), "+f"(a[103]), "+f"(a[104]), "+f"(a[105]), "+f"(a[106]), "+f"(a[107]), "+f"(a[108]), "+f"(a[109]), "+f"(a[110]), "+f"(a[111]), "+f"(a[112]), "+f"(a[113]), "+f"(a[114]), "+f"(a[115]), "+f"(a[116]), "+f"(a[117]), "+f"(a[118]), "+f"(a[119]), "+f"(a[120]), "+f"(a[121]), "+f"(a[122]), "+f"(a[123]), "+f"(a[124]), "+f"(a[125]), "+f"(a[126]), "+f"(a[127]) : "l"(b), "l"(c), "r"(d));
}
// ends a group of wgmma
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}
// at most that many groups are in flight
static __device__ __forceinline__ void wgmma_wait_1() {
    asm volatile("wgmma.wait_group.sync.aligned 1;" :  :  : "memory");
}
// arrives at a (release, CTA)
static __device__ __forceinline__ void mbarrier_arrive(int a) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :  : "r"(a) : "memory");
}
// at most that many groups are in flight
static __device__ __forceinline__ void wgmma_wait_0() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" :  :  : "memory");
}
// MMAs are complete: a may be read
static __device__ __forceinline__ void wgmma_done_128(float (&a)[128]) {
    asm volatile("" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]), "+f"(a[4]), "+f"(a[5]), "+f"(a[6]), "+f"(a[7]), "+f"(a[8]), "+f"(a[9]), "+f"(a[10]), "+f"(a[11]), "+f"(a[12]), "+f"(a[13]), "+f"(a[14]), "+f"(a[15]), "+f"(a[16]), "+f"(a[17]), "+f"(a[18]), "+f"(a[19]), "+f"(a[20]), "+f"(a[21]), "+f"(a[22]), "+f"(a[23]), "+f"(a[24]), "+f"(a[25]), "+f"(a[26]), "+f"(a[27]), "+f"(a[28]), "+f"(a[29]), "+f"(a[30]), "+f"(a[31]), "+f"(a[32]), "+f"(a[33]), "+f"(a[34]), "+f"(a[35]), "+f"(a[36]), "+f"(a[37]), "+f"(a[38]), "+f"(a[39]), "+f"(a[40]), "+f"(a[41]), "+f"(a[42]), "+f"(a[43]), "+f"(a[44]), "+f"(a[45]), "+f"(a[46]), "+f"(a[47]), "+f"(a[48]), "+f"(a[49]), "+f"(a[50]), "+f"(a[51]), "+f"(a[52]), "+f"(a[53]), "+f"(a[54]), "+f"(a[55]), "+f"(a[56]), "+f"(a[57]), "+f"(a[58]), "+f"(a[59]), "+f"(a[60]), "+f"(a[61]), "+f"(a[62]), "+f"(a[63]), "+f"(a[64]), "+f"(a[65]), "+f"(a[66]), "+f"(a[67]), "+f"(a[68]), "+f"(a[69]), "+f"(a[70]), "+f"(a[71]), "+f"(a[72]), "+f"(a[73]), "+f"(a[74]), "+f"(a[75]), "+f"(a[76]), "+f"(a[77]), "+f"(a[78]), "+f"(a[79]), "+f"(a[80]), "+f"(a[81]), "+f"(a[82]), "+f"(a[83]), "+f"(a[84]), "+f"(a[85]), "+f"(a[86]), "+f"(a[87]), "+f"(a[88]), "+f"(a[89]), "+f"(a[90]), "+f"(a[91]), "+f"(a[92]), "+f"(a[93]), "+f"(a[94]), "+f"(a[95]), "+f"(a[96]), "+f"(a[97]), "+f"(a[98]), "+f"(a[99]), "+f"(a[100]), "+f"(a[101]), "+f"(a[102]), "+f"(a[103]), "+f"(a[104]), "+f"(a[105]), "+f"(a[106]), "+f"(a[107]), "+f"(a[108]), "+f"(a[109]), "+f"(a[110]), "+f"(a[111]), "+f"(a[112]), "+f"(a[113]), "+f"(a[114]), "+f"(a[115]), "+f"(a[116]), "+f"(a[117]), "+f"(a[118]), "+f"(a[119]), "+f"(a[120]), "+f"(a[121]), "+f"(a[122]), "+f"(a[123]), "+f"(a[124]), "+f"(a[125]), "+f"(a[126]), "+f"(a[127]) : );
}
// two bf16, a in the low half, to nearest even
static __device__ __forceinline__ unsigned pack_bf16(float a, float b) {
    unsigned r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(a), "f"(b)); return r;
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
static __device__ __forceinline__ void setmaxnreg_dec_40() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" :  :  : "memory");
}
// arrives at a; the phase also waits for b bytes
static __device__ __forceinline__ void mbarrier_expect(int a, int b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :  : "r"(a), "r"(b) : "memory");
}
// a box of the tensor of map b to shared memory at a; its bytes arrive at the barrier c
static __device__ __forceinline__ void tma_load_2d(int a, const TensorMap& b, int c, int d, int e) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :  : "r"(a), "l"(&b), "r"(c), "r"(d), "r"(e) : "memory");
}
// shared memory at a to a box of the tensor of map b
static __device__ __forceinline__ void tma_store_2d(int a, const TensorMap& b, int c, int d) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];" :  : "r"(a), "l"(&b), "r"(c), "r"(d) : "memory");
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

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ Args args) {
#line 2 "examples/gemm.pk"
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
        prefetch_map(args.A_map0[0]);
        prefetch_map(args.B_map1[0]);
        prefetch_map(args.C_map2[0]);
        const int v3 = shared_ + 212992;
        mbarrier_init(v3, 1);
        const int v4 = shared_ + 213016;
        mbarrier_init(v4, 8);
        mbarrier_init((v3 + 8), 1);
        mbarrier_init((v4 + 8), 8);
        mbarrier_init((v3 + 16), 1);
        mbarrier_init((v4 + 16), 8);
        mbarrier_init((shared_ + 213040), 256);
        mbarrier_init((shared_ + 213048), 1);
        mbarrier_init_fence();
    }
    sync_threads();
    if (v2) {
        store_u32(v0, epoch);
    }
    const bool v5 = warp < 8;
    if (v5) {
        setmaxnreg_inc_232();
        // consumer: 8 warps from 0
#line 3 "examples/gemm.pk"
        if (v5) {
            int a_phase[1];
            a_phase[0] = 0;
            int a_stage[1];
            a_stage[0] = 0;
            int cast_phase[1];
            cast_phase[0] = 0;
            const int v6 = ((max(args.M, 0) + 127) / 128) * ((max(args.N, 0) + 255) / 256);
            #pragma unroll 1
            for (int task = cta; task < v6; task += computing) {
#line 5 "examples/gemm.pk"
                const int v7 = (max(args.K, 0) + 63) / 64;
                float acc[128];
                #pragma unroll
                for (int v8 = 0; v8 < 128; ++v8) {
                    acc[v8] = 0.0f;
                }
                #pragma unroll 1
                for (int v9 = 0; v9 < v7; ++v9) {
#line 6 "examples/gemm.pk"
                    const int v10 = a_stage[0];
                    const int v11 = a_phase[0];
                    mbarrier_wait(((shared_ + 212992) + (v10 * 8)), v11);
                    const int v12 = shared_ + (v10 * 49152);
                    const unsigned long long v13 = (unsigned long long)(((v12 + 16384) & 262143) >> 4) + 4611686293338849280ull;
                    wgmma_fence();
                    const unsigned long long v14 = (unsigned long long)(((v12 + ((warp / 4) * 8192)) & 262143) >> 4) + 4611686293305360384ull;
                    wgmma_n256_bf16_ss_kn(acc, v14, v13, 1);
                    wgmma_n256_bf16_ss_kn(acc, (v14 + 2ull), (v13 + 128ull), 1);
                    wgmma_n256_bf16_ss_kn(acc, (v14 + 4ull), (v13 + 256ull), 1);
                    wgmma_n256_bf16_ss_kn(acc, (v14 + 6ull), (v13 + 384ull), 1);
                    wgmma_commit();
                    wgmma_wait_1();
                    if (v9 != 0) {
                        const int v15 = a_stage[0];
                        const int v16 = (shared_ + 213016) + (((v15 == 0) ? 2 : (v15 - 1)) * 8);
                        if (lane == 0) {
                            mbarrier_arrive(v16);
                        }
                    }
                    const int v17 = a_phase[0];
                    const int v18 = a_stage[0];
                    const int v19 = v18 + 1;
                    const bool v20 = v19 == 3;
                    a_phase[0] = (v20 ? (v17 ^ 1) : v17);
                    a_stage[0] = (v20 ? 0 : v19);
                }
#line 5 "examples/gemm.pk"
                wgmma_wait_0();
                wgmma_done_128(acc);
                if (0 < v7) {
                    const int v21 = a_stage[0];
                    const int v22 = (shared_ + 213016) + (((v21 == 0) ? 2 : (v21 - 1)) * 8);
                    if (lane == 0) {
                        mbarrier_arrive(v22);
                    }
                }
#line 7 "examples/gemm.pk"
                const int v23 = cast_phase[0];
                mbarrier_wait((shared_ + 213048), (v23 ^ 1));
                unsigned v24[64];
                #pragma unroll
                for (int v25 = 0; v25 < 64; ++v25) {
                    const int v26 = v25 * 2;
                    const float v27 = acc[v26];
                    const float v28 = acc[(v26 + 1)];
                    const unsigned v29 = pack_bf16(v27, v28);
                    v24[v25] = v29;
                }
                const int v30 = lane & 7;
                const int v31 = (shared_ + 147456) + ((((warp / 4) * 64) + (((warp & 3) * 16) + (lane & 15))) * 128);
                #pragma unroll
                for (int v32 = 0; v32 < 16; ++v32) {
                    const int v33 = v32 * 2;
                    const int v34 = v32 * 4;
                    const unsigned v35 = v24[v34];
                    const unsigned v36 = v24[(v34 + 1)];
                    const unsigned v37 = v24[(v34 + 2)];
                    const unsigned v38 = v24[(v34 + 3)];
                    stmatrix_x4((v31 + (((v33 >> 3) * 16384) + ((((v33 & 7) + (lane >> 4)) ^ v30) << 4))), v35, v36, v37, v38);
                }
                fence_async_shared();
                mbarrier_arrive((shared_ + 213040));
                const int v39 = cast_phase[0];
                cast_phase[0] = (v39 ^ 1);
            }
        }
    }
    if ((warp >= 8) & (warp < 12)) {
        setmaxnreg_dec_40();
        // loader: warp from 8
#line 3 "examples/gemm.pk"
        const bool v40 = lane == 0;
        if ((warp == 8) & v40) {
            int a_phase1[1];
            a_phase1[0] = 0;
            int a_stage1[1];
            a_stage1[0] = 0;
            const int v41 = (max(args.M, 0) + 127) / 128;
            const int v42 = (max(args.N, 0) + 255) / 256;
            const int v43 = v41 * v42;
            #pragma unroll 1
            for (int task1 = cta; task1 < v43; task1 += computing) {
                const int v44 = v42 * 8;
                const int v45 = task1 % v44;
                const int v46 = (task1 / v44) * 8;
                const int v47 = min(v41 - v46, 8);
                const int v48 = (v46 + (v45 % v47)) * 128;
                const int v49 = (v45 / v47) * 256;
#line 5 "examples/gemm.pk"
                const int v50 = (max(args.K, 0) + 63) / 64;
                #pragma unroll 1
                for (int v51 = 0; v51 < v50; ++v51) {
                    const int v52 = v51 * 64;
#line 6 "examples/gemm.pk"
                    const int v53 = a_stage1[0];
                    const int v54 = a_phase1[0];
                    const int v55 = v53 * 8;
                    mbarrier_wait(((shared_ + 213016) + v55), (v54 ^ 1));
                    const int v56 = shared_ + 212992;
                    mbarrier_expect((v56 + v55), 49152);
                    const int v57 = a_stage1[0];
                    tma_load_2d((shared_ + (v57 * 49152)), args.A_map0[0], (v56 + (v57 * 8)), v52, v48);
                    const int v58 = a_stage1[0];
                    const int v59 = (shared_ + (v58 * 49152)) + 16384;
                    const int v60 = v56 + (v58 * 8);
                    tma_load_2d(v59, args.B_map1[0], v60, v49, v52);
                    tma_load_2d((v59 + 8192), args.B_map1[0], v60, (v49 + 64), v52);
                    tma_load_2d((v59 + 16384), args.B_map1[0], v60, (v49 + 128), v52);
                    tma_load_2d((v59 + 24576), args.B_map1[0], v60, (v49 + 192), v52);
                    const int v61 = a_phase1[0];
                    const int v62 = a_stage1[0];
                    const int v63 = v62 + 1;
                    const bool v64 = v63 == 3;
                    a_phase1[0] = (v64 ? (v61 ^ 1) : v61);
                    a_stage1[0] = (v64 ? 0 : v63);
                }
            }
        }
        // storer: warp from 9
#line 3 "examples/gemm.pk"
        if ((warp == 9) & v40) {
            int cast_phase1[1];
            cast_phase1[0] = 0;
            const int v65 = (max(args.M, 0) + 127) / 128;
            const int v66 = (max(args.N, 0) + 255) / 256;
            const int v67 = v65 * v66;
            #pragma unroll 1
            for (int task2 = cta; task2 < v67; task2 += computing) {
                const int v68 = v66 * 8;
                const int v69 = task2 % v68;
                const int v70 = (task2 / v68) * 8;
                const int v71 = min(v65 - v70, 8);
                const int v72 = (v70 + (v69 % v71)) * 128;
                const int v73 = (v69 / v71) * 256;
#line 7 "examples/gemm.pk"
                const int v74 = cast_phase1[0];
                mbarrier_wait((shared_ + 213040), v74);
                const int v75 = shared_ + 147456;
                tma_store_2d(v75, args.C_map2[0], v73, v72);
                tma_store_2d((v75 + 16384), args.C_map2[0], (v73 + 64), v72);
                tma_store_2d((v75 + 32768), args.C_map2[0], (v73 + 128), v72);
                tma_store_2d((v75 + 49152), args.C_map2[0], (v73 + 192), v72);
                bulk_commit();
                bulk_wait_read();
                mbarrier_arrive((shared_ + 213048));
                const int v76 = cast_phase1[0];
                cast_phase1[0] = (v76 ^ 1);
            }
#line 3 "examples/gemm.pk"
            bulk_wait_full();
        }
    }
}
