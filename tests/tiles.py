"""Small programs at the tiles that one writes first: matmuls with epilogues, and tiles that meet no MMA."""

from __future__ import annotations

EPILOGUES: dict[str, str] = {
    "gemm_residual": """\
kernel gemm_residual(A: bf16[M, K], B: bf16[K, N], R: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc + R[m, n]
""",
    "gemm_residual_f32": """\
kernel gemm_residual_f32(A: bf16[M, K], B: bf16[K, N], R: f32[M, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc + R[m, n]
""",
    "kept_operand": """\
kernel kept_operand(A: bf16[M, K], B: bf16[K, 64], C: bf16[M, 64], D: bf16[M, K]):
    for m in tasks(blocks(M, 64)):
        acc = zeros(f32, m, 64)
        for k in blocks(K, 64):
            a = A[m, k]
            acc += a @ B[k, :]
            D[m, k] = a
        C[m, :] = acc
""",
    "gradient_of_bias": """\
kernel gradient_of_bias(X: bf16[M, K], dY: bf16[M, N], dW: f32[K, N], db: f32[N]):
    for k, n in tasks(blocks(K, 128), blocks(N, 256)):
        acc = zeros(f32, k, n)
        b = zeros(f32, n)
        for m in blocks(M, 64):
            dy = dY[m, n]
            acc += X[m, k].T @ dy
            b += rowsum(dy.T)
        dW[k, n] = acc
        if start(k) == 0:
            db[n] = b
""",
    "columns_beside": """\
kernel columns_beside(X: bf16[M, K], Y: bf16[M, N], C: f32[K, N], s: bf16[N], q: f32[K], begin: f32[K],
              top: f32[K]):
    for k, n in tasks(blocks(K, 128), blocks(N, 192)):
        acc = zeros(f32, k, n)
        total = zeros(f32, n); squares = begin[k]; most = full(f32, -inf, k)
        for m in blocks(M, 32):
            x = cast(X[m, k], f32).T
            acc += X[m, k].T @ Y[m, n]
            total += rowsum(Y[m, n].T)
            squares += rowsum(x * x)
            most = max(most, rowmax(abs(x)))
        C[k, n] = acc
        if start(k) == 0:
            s[n] = total * 0.5
        if start(n) == 0:
            q[k] = squares; top[k] = most
""",
    "columns_beside_f32": """\
kernel columns_beside_f32(X: f32[M, K], Y: f32[M, N], C: f32[K, N], s: bf16[N], q: f32[K], begin: f32[K],
              top: f32[K]):
    for k, n in tasks(blocks(K, 64), blocks(N, 64)):
        acc = zeros(f32, k, n)
        total = zeros(f32, n); squares = begin[k]; most = full(f32, -inf, k)
        for m in blocks(M, 32):
            x = cast(X[m, k], f32).T
            acc += X[m, k].T @ Y[m, n]
            total += rowsum(Y[m, n].T)
            squares += rowsum(x * x)
            most = max(most, rowmax(abs(x)))
        C[k, n] = acc
        if start(k) == 0:
            s[n] = total * 0.5
        if start(n) == 0:
            q[k] = squares; top[k] = most
""",
    "low_rank": """\
kernel low_rank(X: bf16[M, K], W: bf16[K, N], A: bf16[K, R], B: bf16[R, N], Y: bf16[M, N], R: const = 8):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n); low = zeros(f32, m, R)
        for k in blocks(K, 64):
            acc += X[m, k] @ W[k, n]
            low += X[m, k] @ A[k, :]
        Y[m, n] = acc + cast(low, bf16) @ B[:, n]
""",
    "route_20": """\
kernel route_20(X: bf16[M, K], W: bf16[K, E], b: f32[E], P: f32[M, E], top: f32[M], E: const = 20):
    for m in tasks(blocks(M, 128)):
        acc = zeros(f32, m, E)
        for k in blocks(K, 64):
            acc += X[m, k] @ W[k, :]
        s = acc + b[:]
        t = rowmax(s); p = exp(s - t)
        P[m, :] = p / rowsum(p)
        top[m] = t
""",
    "rows_20": """\
kernel rows_20(X: bf16[R, K], W: bf16[K, N], Y: f32[R, N], R: const = 20):
    for n in tasks(blocks(N, 128)):
        acc = zeros(f32, R, n)
        for k in blocks(K, 64):
            acc += X[:, k] @ W[k, n]
        Y[:, n] = acc
""",
    "attention_40": """\
kernel attention_40(Q: bf16[M, D], K: bf16[N, D], V: bf16[N, D], O: bf16[M, D], D: const = 40):
    for q in tasks(blocks(M, 128)):
        top = full(f32, -inf, q); total = zeros(f32, q); o = zeros(f32, q, D)
        for kv in blocks(N, 128):
            s = Q[q, :] @ K[kv, :].T * 0.15625
            t = max(top, rowmax(s)); p = exp(s - t); c = exp(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[kv, :]
            top = t
        O[q, :] = o / total
""",
    "gemm_bias": """\
kernel gemm_bias(A: bf16[M, K], B: bf16[K, N], b: bf16[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc + b[n]
""",
    "gemm_bias_f32": """\
kernel gemm_bias_f32(A: bf16[M, K], B: bf16[K, N], b: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc + b[n]
""",
    "gemm_gelu": """\
kernel gemm_gelu(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * 0.5 * (1.0 + erf(acc * 0.70710678))
""",
    "gemm_bias_gelu_tanh": """\
kernel gemm_bias_gelu_tanh(A: bf16[M, K], B: bf16[K, N], b: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        x = acc + b[n]
        C[m, n] = 0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * x * x * x)))
""",
    "gemm_silu": """\
kernel gemm_silu(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * sigmoid(acc)
""",
    "gemm_scale_row": """\
kernel gemm_scale_row(A: bf16[M, K], B: bf16[K, N], s: f32[M], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * s[m]
""",
    "gemm_scale_both": """\
kernel gemm_scale_both(A: bf16[M, K], B: bf16[K, N], s: f32[M], t: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * s[m] * t[n]
""",
    "gemm_alpha_beta": """\
kernel gemm_alpha_beta(A: bf16[M, K], B: bf16[K, N], R: bf16[M, N], alpha: f32, beta: f32, C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = alpha * acc + beta * R[m, n]
""",
    "gemm_bias_residual_gelu": """\
kernel gemm_bias_residual_gelu(A: bf16[M, K], B: bf16[K, N], b: bf16[N], R: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        x = acc + b[n]
        C[m, n] = x * sigmoid(1.702 * x) + R[m, n]
""",
    "gemm_gate_mul": """\
kernel gemm_gate_mul(A: bf16[M, K], B: bf16[K, N], G: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * sigmoid(acc) * G[m, n]
""",
    "gemm_two_out": """\
kernel gemm_two_out(A: bf16[M, K], B: bf16[K, N], D: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        D[m, n] = acc
        C[m, n] = acc * sigmoid(acc)
""",
    "gemm_loop_residual": """\
kernel gemm_loop_residual(A: bf16[M, K], B: bf16[K, N], R: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = cast(R[m, n], f32)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
    "gemm_bias_init": """\
kernel gemm_bias_init(A: bf16[M, K], B: bf16[K, N], b: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n) + b[n]
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
    "swiglu": """\
kernel swiglu(A: bf16[M, K], W: bf16[K, N], V: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 64):
            g += A[m, k] @ W[k, n]
            u += A[m, k] @ V[k, n]
        C[m, n] = g * sigmoid(g) * u
""",
    "swiglu_256": """\
kernel swiglu_256(A: bf16[M, K], W: bf16[K, N], V: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 64):
            g += A[m, k] @ W[k, n]
            u += A[m, k] @ V[k, n]
        C[m, n] = g * sigmoid(g) * u
""",
    "right_computed": """\
kernel right_computed(A: bf16[M, K], W: e4m3[K, N], s: f32[N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(cast(W[k, n], f32) * s[n], bf16)
        C[m, n] = acc
""",
    "gemm_cumsum": """\
kernel gemm_cumsum(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = cumsum(acc)
""",
    "right_i8": """\
kernel right_i8(A: bf16[M, K], W: i8[K, N], s: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(W[k, n], bf16)
        C[m, n] = acc * s[n]
""",
    "right_i8_scaled": """\
kernel right_i8_scaled(A: bf16[M, K], W: i8[N, K], s: f32[N], R: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(W[n, k], bf16).T * s[n]
        C[m, n] = max(acc, 0.0) + R[m, n]
""",
    "right_i4": """\
kernel right_i4(A: f16[M, 256], W: i32[32, N], Z: f16[4, N], C: f16[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(256, 64):
            code = (W[k // 8, n] >> (positions(k) % 8 * 4)) & 15
            acc += A[m, k] @ cast(cast(code, f32) - Z[start(k) // 64, n], f16)
        C[m, n] = acc
""",
    "gemm_to_i8": """\
kernel gemm_to_i8(A: i8[M, K], B: bf16[N, K], s: f32[M], C: i8[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += cast(A[m, k], bf16) @ B[n, k].T
        C[m, n] = cast(acc * s[m], i8)
""",
    "both_computed": """\
kernel both_computed(A: f32[M, K], W: f32[N, K], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += cast(A[m, k], bf16) @ cast(W[n, k], bf16).T
        C[m, n] = acc
""",
    "left_computed_t": """\
kernel left_computed_t(A: bf16[K, M], s: f32[M], W: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += cast(A[k, m] * s[m], bf16).T @ W[k, n]
        C[m, n] = acc
""",
    "chained_right": """\
kernel chained_right(X: bf16[128, M], W: bf16[K, 128], V: bf16[N, K], C: f32[N, M]):
    for n, m in tasks(blocks(N, 128), blocks(M, 64)):
        acc = zeros(f32, n, m)
        x = X[:, m]
        for k in blocks(K, 64):
            acc += V[n, k] @ cast(max(W[k, :] @ x, 0.0), bf16)
        C[n, m] = acc
""",
    "fp8_chained": """\
kernel fp8_chained(X: e4m3[M, 128], W: e4m3[N, 128], V: e4m3[128, N], C: f32[M, 128]):
    for m in tasks(blocks(M, 128)):
        acc = zeros(f32, m, 128)
        x = X[m, :]
        for n in blocks(N, 128):
            acc += cast(max(x @ W[n, :].T * 0.1, 0.0), e4m3) @ V[:, n].T
        C[m, :] = acc
""",
    "gemm_to_e4m3": """\
kernel gemm_to_e4m3(A: bf16[M, K], B: bf16[K, N], s: f32[M], C: e4m3[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * s[m]
""",
    "fp8_to_e5m2": """\
kernel fp8_to_e5m2(A: e4m3[M, K], B: e4m3[N, K], scale: f32, C: e5m2[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            acc += A[m, k] @ B[n, k].T
        C[m, n] = cast(acc * scale, e5m2)
""",
    "syrk": """\
kernel syrk(A: bf16[M, K], C: f32[M, M]):
    for m, n in tasks(blocks(M, 128), blocks(M, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ A[n, k].T
        C[m, n] = acc
""",
    "at_a": """\
kernel at_a(A: bf16[K, M], C: f32[M, M]):
    for m, n in tasks(blocks(M, 128), blocks(M, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[k, m].T @ A[k, n]
        C[m, n] = acc
""",
    "gemm_row_softmax": """\
kernel gemm_row_softmax(A: bf16[M, K], B: bf16[K, 128], C: bf16[M, 128]):
    for m in tasks(blocks(M, 128)):
        acc = zeros(f32, m, 128)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, :]
        p = exp(acc - rowmax(acc))
        C[m, :] = p / rowsum(p)
""",
    "gemm_rmsnorm_after": """\
kernel gemm_rmsnorm_after(A: bf16[M, K], B: bf16[K, 256], w: f32[256], C: bf16[M, 256]):
    for m in tasks(blocks(M, 128)):
        acc = zeros(f32, m, 256)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, :]
        C[m, :] = acc * rsqrt(rowsum(acc * acc) / 256.0 + 0.00001) * w[:]
""",
    "mlp_two_gemms": """\
kernel mlp_two_gemms(X: bf16[M, 128], W: bf16[128, H], V: bf16[H, 128], Y: bf16[M, 128]):
    for m in tasks(blocks(M, 128)):
        y = zeros(f32, m, 128)
        x = X[m, :]
        for h in blocks(H, 64):
            a = x @ W[:, h]
            y += cast(max(a, 0.0), bf16) @ V[h, :]
        Y[m, :] = y
""",
}
"""What is computed with the result of an MMA: with tiles, rows and columns that are loaded for that."""

LONG = ("gemm_silu", "gemm_gelu", "gemm_bias_gelu_tanh", "gemm_bias_residual_gelu")
"""Those epilogues of which half is computed beside the next task at tiles of 128 x 256."""

OVER_RANKS: dict[str, str] = {
    "added_heads": """\
kernel added_heads(X: bf16[B, M, 64], Y: bf16[B, M, 64], R: f32[B, M, 64].replicate(), S: f32[B, M, 64].shard(0),
                   Z: bf16[B, M, 64]):
    schedule(deterministic=False)
    for b, m in tasks(B, blocks(M, 64)):
        z = zeros(f32, m, 64)
        for q in blocks(M, 64):
            s = cast(Y[b, m] @ X[b, q].T, bf16)
            z += s @ X[b, q]
            R[b, q] += s.T @ Y[b, m]
            S[b, q] += X[b, q] * 2.0
        Z[b, m] = z
""",
    "rows_of_77": """\
kernel rows_of_77(X: bf16[M, 77], S: f32[M, 77].shard(0), R: f32[M, 77].replicate()):
    for m in tasks(blocks(M, 4)):
        x = cast(X[m, :], f32)
        S[m, :] += x / sqrt(rowsum(x * x) + 1.0)
        R[m, :] += exp(x)
""",
    "rs_bias_before": """\
kernel rs_bias_before(A: bf16[M, K], B: bf16[K, N], b: bf16[N], C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc + b[n]
""",
    "rs_right_i8": """\
kernel rs_right_i8(A: bf16[M, K], W: i8[N, K], s: f32[N], C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(W[n, k], bf16).T
        C[m, n] += acc * s[n]
""",
    "ag_right_i8": """\
kernel ag_right_i8(A: bf16[M, K].shard(0), W: i8[N, K], s: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(W[n, k], bf16).T
        C[m, n] = acc * s[n]
""",
    "rs_bias_after": """\
kernel rs_bias_after(A: bf16[M, K], B: bf16[K, N], b: bf16[N],
                S: bf16[M, N].shard(0).scratch(), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        C[m, n] = S[m, n] + b[n]
""",
    "ar_gradient_of_bias": """\
kernel ar_gradient_of_bias(X: bf16[M, K].shard(0), dY: bf16[M, N].shard(0), dW: f32[K, N].replicate(),
                           db: f32[N].replicate()):
    for k, n in tasks(blocks(K, 128), blocks(N, 128)):
        acc = zeros(f32, k, n)
        b = zeros(f32, n)
        for m in blocks(M, 64, of=rank):
            dy = dY[m, n]
            acc += X[m, k].T @ dy
            b += rowsum(dy.T)
        dW[k, n] += acc
        if start(k) == 0:
            db[n] += b
""",
    "column_sums": """\
kernel column_sums(X: bf16[M, N], Y: bf16[M, N], dw: f32[N].shard(0), db: bf16[N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        dw[n] += rowsum((X[m, n] * Y[m, n]).T)
        db[n] += rowsum(Y[m, n].T)
""",
    "clip_norm": """\
kernel clip_norm(X: f32[M, N], Y: f32[M, N], norm: f32[1].replicate()):
    for m, n in tasks(M, blocks(N, 64)):
        norm[0] += rowsum(X[m, n] * X[m, n])
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] * min(1.0, 3.0 / sqrt(norm[0]))
""",
    "clip_norms": """\
kernel clip_norms(X: bf16[M, N].shard(0), Z: f32[N], Y: f32[M, N].shard(0), S: f32[N], norm: f32[1].replicate()):
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 64)):
        x = cast(X[m, n], f32)
        norm[0] += rowsum(rowsum(x * x))
    for n in tasks(blocks(N, 128)):
        norm[0] += rowsum(Z[n] * Z[n])
    norm[0] += 0.5
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 64)):
        Y[m, n] = X[m, n] * min(1.0, 3.0 / sqrt(norm[0]))
    for n in tasks(blocks(N, 128)):
        S[n] = Z[n] * min(1.0, 3.0 / sqrt(norm[0]))
""",
    "rs_residual_after": """\
kernel rs_residual_after(A: bf16[M, K], B: bf16[K, N], R: bf16[M, N].shard(0),
                S: bf16[M, N].shard(0).scratch(), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        C[m, n] = S[m, n] + R[m, n]
""",
    "rs_gelu_after": """\
kernel rs_gelu_after(A: bf16[M, K], B: bf16[K, N],
                S: bf16[M, N].shard(0).scratch(), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        C[m, n] = S[m, n] * sigmoid(1.702 * S[m, n])
""",
    "rs_scaled_after": """\
kernel rs_scaled_after(A: bf16[M, K], B: bf16[K, N], s: f32,
                S: bf16[M, N].shard(0).scratch(), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        C[m, n] = S[m, n] * s
""",
    "rs_scalars_after": """\
kernel rs_scalars_after(X: f32[M, N], w: f32[8], s: f32, count: i32,
                S: f32[M, N].shard(0).scratch(), Y: f32[M, N].shard(0)):
    mean = s / cast(ranks, f32) + w[7]
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        S[m, n] += X[m, n]
    for m, n in tasks(blocks(M, 64, of=rank), blocks(N, 128)):
        Y[m, n] = where(positions(m) < count, S[m, n] * w[rank] + w[0], S[m, n] * mean)
""",
    "rs_f32_after": """\
kernel rs_f32_after(A: bf16[M, K], B: bf16[K, N], R: f32[M, N].shard(0),
                S: f32[M, N].shard(0).scratch(), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        C[m, n] = S[m, n] + R[m, n]
""",
    "rs_rmsnorm_after": """\
kernel rs_rmsnorm_after(A: bf16[M, K], B: bf16[K, 1024], w: f32[1024],
                S: bf16[M, 1024].shard(0).scratch(), C: bf16[M, 1024].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(1024, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        S[m, n] += acc
    for m in tasks(blocks(M, 16, of=rank)):
        x = S[m, :]
        C[m, :] = x * rsqrt(rowsum(x * x) / 1024.0 + 0.00001) * w[:]
""",
    "ar_gemm_bias_before": """\
kernel ar_gemm_bias_before(A: bf16[M, K], B: bf16[K, N], b: bf16[N], C: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc + b[n]
""",
    "ag_bias_gelu": """\
kernel ag_bias_gelu(A: bf16[M, K].shard(0), B: bf16[K, N], b: f32[N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        x = acc + b[n]
        C[m, n] = x * sigmoid(1.702 * x)
""",
    "ag_residual": """\
kernel ag_residual(A: bf16[M, K].shard(0), B: bf16[K, N], R: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc + R[m, n]
""",
    "ag_scale_row": """\
kernel ag_scale_row(A: bf16[M, K].shard(0), B: bf16[K, N], s: f32[M].shard(0), C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc * s[m]
""",
    "ag_swiglu": """\
kernel ag_swiglu(A: bf16[M, K].shard(0), W: bf16[K, N], V: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 64):
            g += A[m, k] @ W[k, n]
            u += A[m, k] @ V[k, n]
        C[m, n] = g * sigmoid(g) * u
""",
    "rs_n260": """\
kernel rs_n260(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
""",
    "rs_ew": """\
kernel rs_ew(X: bf16[M, N], Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Y[m, n] += X[m, n] * 2.0
""",
    "ag_ew": """\
kernel ag_ew(X: bf16[M, N].shard(0), Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Y[m, n] = X[m, n] * 2.0
""",
    "ar_1d": """\
kernel ar_1d(X: f32[N], Y: f32[N].replicate()):
    for n in tasks(blocks(N, 1024)):
        Y[n] += X[n]
""",
    "ar_rmsnorm": """\
kernel ar_rmsnorm(X: bf16[M, 1024], w: f32[1024],
                S: bf16[M, 1024].replicate().scratch(), Y: bf16[M, 1024]):
    for m, n in tasks(blocks(M, 64), blocks(1024, 128)):
        S[m, n] += X[m, n]
    for m in tasks(blocks(M, 16)):
        x = S[m, :]
        Y[m, :] = x * rsqrt(rowsum(x * x) / 1024.0 + 0.00001) * w[:]
""",
}
"""The same beside a collective, before and behind it, and collectives of tiles that meet no MMA."""

TILES: dict[str, str] = {
    "turned": """\
kernel turned(X: bf16[M, N], c: f32[N], Y: bf16[N, M], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        t = cast(X[m, n], f32) * 0.5 + c[n]
        Z[m, n] = t - 1.0
        Y[n, m] = (cast(X[m, n], f32) * max(cast(X[m, n], f32), 0.25)).T
""",
    "to_e4m3": """\
kernel to_e4m3(X: bf16[M, N], Y: e4m3[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Y[m, n] = X[m, n] * 50.0
""",
    "from_e4m3": """\
kernel from_e4m3(X: e4m3[M, N], Z: e5m2[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Y[m, n] = X[m, n] + Z[m, n]
""",
    "of_i8": """\
kernel of_i8(X: i8[M, N], I: i8[N], Y: i8[M, N], S: i32[M]):
    for m in tasks(blocks(M, 8)):
        s = zeros(i32, m)
        for n in blocks(N, 64):
            y = X[m, n] * 9 - max(I[n], 3)
            Y[m, n] = y
            s += rowsum(y)
        S[m] = s
""",
    "from_i8": """\
kernel from_i8(X: i8[M, N], s: f32[M], Z: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Y[m, n] = cast(X[m, n], f32) * s[m] + Z[m, n]
""",
    "rows_to_i8": """\
kernel rows_to_i8(X: bf16[M, 1024], Y: i8[M, 1024], S: f32[M]):
    for m in tasks(blocks(M, 16)):
        s = max(rowmax(abs(X[m, :])), 0.0001) / 127.0
        S[m] = s
        Y[m, :] = cast(round(X[m, :] / s), i8)
""",
    "quantize_rows": """\
kernel quantize_rows(X: bf16[M, 1024], Y: e4m3[M, 1024], S: f32[M]):
    for m in tasks(blocks(M, 16)):
        s = max(rowmax(abs(X[m, :])), 0.0001) / 448.0
        S[m] = s
        Y[m, :] = X[m, :] / s
""",
    "peeled_pieces": """\
kernel peeled_pieces(X: bf16[M, 1000], Y: f32[M, 1000], V: f32[M, 3]):
    schedule(row=256)
    for m in tasks(M):
        x = cast(X[m, :], f32)
        t = rowmax(x)
        for k in range(3):
            V[m, k] = t
            t = rowmax(where(x < t, x, -inf))
        Y[m, :] = where(x >= t, x, 0.0)
""",
    "cumsum_pieces": """\
kernel cumsum_pieces(X: f32[M, 1000], Y: f32[M, 1000], Z: f32[M]):
    schedule(row=256)
    for m in tasks(blocks(M, 4)):
        c = cumsum(X[m, :] * X[m, :])
        Z[m] = rowsum(c)
        Y[m, :] = c / (rowmax(c) + 1.0)
""",
    "ew_chain": """\
kernel ew_chain(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] * sigmoid(X[m, n])
""",
    "ew_add": """\
kernel ew_add(X: bf16[M, N], Z: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] + Z[m, n]
""",
    "ew_mixed": """\
kernel ew_mixed(X: bf16[M, N], Z: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] + Z[m, n]
""",
    "ew_bias": """\
kernel ew_bias(X: bf16[M, N], b: bf16[N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] + b[n]
""",
    "ew_scale_row": """\
kernel ew_scale_row(X: bf16[M, N], s: f32[M], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] * s[m]
""",
    "ew_odd": """\
kernel ew_odd(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] * 2.0
""",
    "ew_mask": """\
kernel ew_mask(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = where(positions(m) >= positions(n), X[m, n], 0.0)
""",
    "ew_outer": """\
kernel ew_outer(a: f32[M], b: f32[N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = a[m] * b[n]
""",
    "ew_default_tile": """\
kernel ew_default_tile(X: bf16[M, N], Z: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        Y[m, n] = max(X[m, n] + Z[m, n], 0.0)
""",
    "ew_small_tile": """\
kernel ew_small_tile(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 4)):
        Y[m, n] = X[m, n] * 2.0
""",
    "copy_n260": """\
kernel copy_n260(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]
""",
    "kept_and_scaled": """\
kernel kept_and_scaled(X: bf16[M, N], Y: bf16[M, N], Z: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        Y[m, n] = x
        Z[m, n] = x * 2.0
""",
    "kept_rows": """\
kernel kept_rows(X: f32[M, 520], Y: f32[M, 520], Z: f32[M, 520]):
    for m in tasks(M):
        x = X[m, :]
        Y[m, :] = x
        Z[m, :] = x - rowmax(x)
""",
    "copy1d": """\
kernel copy1d(X: f32[N], Y: f32[N]):
    for n in tasks(blocks(N, 1024)):
        Y[n] = X[n]
""",
    "transpose": """\
kernel transpose(X: bf16[N, M], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[n, m].T
""",
    "transpose_f32": """\
kernel transpose_f32(X: f32[N, M], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[n, m].T
""",
    "argmax": """\
kernel argmax(X: f32[M, 100], I: i32[M], Y: f32[M, 100]):
    for m in tasks(blocks(M, 4)):
        x = X[m, :]
        best = rowmin(where(x == rowmax(x), positions(100), 100))
        I[m] = best
        Y[m, :] = where(best > positions(100), x, -1.0)
""",
    "group_norm": """\
kernel group_norm(X: f32[M, 64], Y: f32[M, 64]):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        c = x - rowsum(rowsum(x)) / 1024.0
        Y[m, :] = c * rsqrt(rowsum(rowsum(c * c)) / 1024.0 + 0.001) + rowmin(rowmax(x))
""",
    "sum_of_products": """\
kernel sum_of_products(X: bf16[M, N], W: bf16[N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        s = rowsum(X[m, n] * W[n])
        Y[m, n] = X[m, n] * rowsum(s * s)
""",
    "rope_of_positions": """\
kernel rope(X: bf16[M, B, 2, 64], Y: bf16[M, B, 2, 64]):
    for m, b in tasks(blocks(M, 64), B):
        angle = cast(positions(m), f32) * exp2(cast(positions(64), f32) * -0.2076205)
        c = cos(angle)
        s = sin(angle)
        Y[m, b, 0] = X[m, b, 0] * c - X[m, b, 1] * s
        Y[m, b, 1] = X[m, b, 1] * c + X[m, b, 0] * s
""",
    "sines": """\
kernel sines(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = sin(X[m, n]) + cos(X[m, n] * 3.0)
""",
    "cumsum_loop": """\
kernel cumsum_loop(X: bf16[M, N], Y: f32[M, N]):
    for m in tasks(blocks(M, 8)):
        before = zeros(f32, m)
        for n in blocks(N, 256):
            Y[m, n] = cumsum(X[m, n]) + before
            before = before + rowsum(X[m, n])
""",
    "cumsum_1000_m1": """\
kernel cumsum_1000_m1(X: f32[M, 1000], Y: f32[M, 1000]):
    for m in tasks(M):
        Y[m] = cumsum(X[m])
""",
    "cumsum_4096_m2": """\
kernel cumsum_4096_m2(X: f32[M, 4096], Y: f32[M, 4096]):
    for m in tasks(blocks(M, 2)):
        Y[m, :] = cumsum(X[m, :])
""",
    "cumsum_i32": """\
kernel cumsum_i32(X: i32[N], Y: i32[N]):
    for n in tasks(blocks(N, 128)):
        Y[n] = cumsum(X[n]) - X[n]
""",
    "top_p": """\
kernel top_p(X: f32[M, 1024], Y: f32[M, 1024]):
    for m in tasks(blocks(M, 4)):
        e = exp(X[m, :] - rowmax(X[m, :]))
        x = e / rowsum(e)
        Y[m, :] = where(cumsum(x) - x < 0.9, x, 0.0)
""",
    "bits": """\
kernel bits(X: i32[M, N], I: i32[N], Y: i32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = (X[m, n] & 12 | X[m, n] >> 2) ^ I[n] << 3 + (X[m, n] & 1)
""",
    "permuted": """\
kernel permuted(X: bf16[B, M, 4, 128], Y: bf16[B, 4, 128, M]):
    for b, n, m in tasks(B, 4, blocks(M, 64)):
        Y[b, n, :, m] = X[b, m, n, :].T
""",
    "transposed_f32": """\
kernel transposed_f32(X: f32[M, N], Y: f32[N, M]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[n, m] = X[m, n].T
""",
    "transpose_add": """\
kernel transpose_add(X: bf16[N, M], Z: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[n, m].T + Z[m, n]
""",
    "batched_nested": """\
kernel batched_nested(X: bf16[B, M, N], s: f32[B], Y: bf16[B, M, N]):
    for b in tasks(B):
        for m in tasks(blocks(M, 64)):
            half = s[b] * 0.5
            for n in tasks(blocks(N, 64)):
                Y[b, m, n] = X[b, m, n] * half
""",
    "batched_ew": """\
kernel batched_ew(X: bf16[B, M, N], Y: bf16[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 64), blocks(N, 64)):
        Y[b, m, n] = X[b, m, n] * 2.0
""",
    "batched_3axis": """\
kernel batched_3axis(X: bf16[B, M, N], Y: bf16[B, M, N]):
    for b, m, n in tasks(blocks(B, 4), blocks(M, 16), blocks(N, 64)):
        Y[b, m, n] = X[b, m, n] * 2.0
""",
    "rowwise_block1": """\
kernel rowwise_block1(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 1), blocks(N, 1024)):
        Y[m, n] = exp(X[m, n])
""",
    "softmax_128_m64": """\
kernel softmax_128_m64(X: f32[M, 128], Y: f32[M, 128]):
    for m in tasks(blocks(M, 64)):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_1024_m1": """\
kernel softmax_1024_m1(X: f32[M, 1024], Y: f32[M, 1024]):
    for m in tasks(M):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_1024_m16": """\
kernel softmax_1024_m16(X: f32[M, 1024], Y: f32[M, 1024]):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_1024_m64": """\
kernel softmax_1024_m64(X: f32[M, 1024], Y: f32[M, 1024]):
    for m in tasks(blocks(M, 64)):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_8192_m1": """\
kernel softmax_8192_m1(X: f32[M, 8192], Y: f32[M, 8192]):
    for m in tasks(M):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_8192_m64": """\
kernel softmax_8192_m64(X: f32[M, 8192], Y: f32[M, 8192]):
    for m in tasks(blocks(M, 64)):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_odd_132_m1": """\
kernel softmax_odd_132_m1(X: bf16[M, 132], Y: bf16[M, 132]):
    for m in tasks(M):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "softmax_odd_100_m64": """\
kernel softmax_odd_100_m64(X: f32[M, 100], Y: f32[M, 100]):
    for m in tasks(blocks(M, 64)):
        x = X[m, :]
        p = exp(x - rowmax(x))
        Y[m, :] = p / rowsum(p)
""",
    "layernorm_1024_m16": """\
kernel layernorm_1024_m16(X: bf16[M, 1024], w: f32[1024], b: f32[1024], Y: bf16[M, 1024]):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        mu = rowsum(x) / 1024.0
        d = x - mu
        v = rowsum(d * d) / 1024.0
        Y[m, :] = d * rsqrt(v + 0.00001) * w[:] + b[:]
""",
    "rmsnorm_4096_m4": """\
kernel rmsnorm_4096_m4(X: bf16[M, 4096], w: bf16[4096], Y: bf16[M, 4096]):
    for m in tasks(blocks(M, 4)):
        x = cast(X[m, :], f32)
        Y[m, :] = x * rsqrt(rowsum(x * x) / 4096.0 + 0.00001) * w[:]
""",
    "rowsum_1024_m64": """\
kernel rowsum_1024_m64(X: f32[M, 1024], Y: f32[M]):
    for m in tasks(blocks(M, 64)):
        Y[m] = rowsum(X[m, :])
""",
    "lse_1024_m16": """\
kernel lse_1024_m16(X: f32[M, 1024], Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        c = rowmax(x)
        Y[m] = c + log(rowsum(exp(x - c)))
""",
    "softmax_online": """\
kernel softmax_online(X: f32[M, N], Y: f32[M, N]):
    for m in tasks(blocks(M, 64)):
        c = full(f32, -inf, m)
        s = zeros(f32, m)
        for n in blocks(N, 128):
            new = max(c, rowmax(X[m, n]))
            s = s * exp(c - new) + rowsum(exp(X[m, n] - new))
            c = new
        for n in blocks(N, 128):
            Y[m, n] = exp(X[m, n] - c) / s
""",
    "softmax_online_row": """\
kernel softmax_online_row(X: f32[M, N], Y: f32[M, N]):
    for m in tasks(M):
        c = full(f32, -inf)
        s = zeros(f32)
        for n in blocks(N, 1024):
            new = max(c, rowmax(X[m, n]))
            s = s * exp(c - new) + rowsum(exp(X[m, n] - new))
            c = new
        for n in blocks(N, 1024):
            Y[m, n] = exp(X[m, n] - c) / s
""",
    "rmsnorm_loop": """\
kernel rmsnorm_loop(X: bf16[M, N], w: bf16[N], Y: bf16[M, N]):
    for m in tasks(blocks(M, 16)):
        s = zeros(f32, m)
        for n in blocks(N, 256):
            x = X[m, n]
            s += rowsum(x * x)
        r = rsqrt(s / cast(N, f32) + 0.00001)
        for n in blocks(N, 256):
            Y[m, n] = X[m, n] * r * w[n]
""",
    "row_sums_loop": """\
kernel row_sums_loop(X: bf16[M, N], Y: f32[M]):
    for m in tasks(blocks(M, 64)):
        s = zeros(f32, m)
        for n in blocks(N, 128):
            s += rowsum(cast(X[m, n], f32))
        Y[m] = s
""",
    "col_sums_T": """\
kernel col_sums_T(X: bf16[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 64)):
        s = zeros(f32, n)
        for m in blocks(M, 64):
            s += rowsum(cast(X[m, n].T, f32))
        Y[n] = s
""",
    "col_sums_rows": """\
kernel col_sums_rows(X: f32[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 256)):
        s = zeros(f32, n)
        for m in blocks(M, 1):
            s += X[m, n]
        Y[n] = s
""",
    "loop_acc": """\
kernel loop_acc(X: f32[B, M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        s = zeros(f32, m, n)
        for b in range(B):
            s += X[b, m, n]
        Y[m, n] = s
""",
    "dot1d": """\
kernel dot1d(X: f32[N], Y: f32[N], Z: f32[M]):
    for m in tasks(M):
        s = zeros(f32)
        for n in blocks(N, 1024):
            s += rowsum(X[n] * Y[n])
        Z[m] = s
""",
    "gemv": """\
kernel gemv(A: bf16[M, K], x: bf16[K], y: f32[M]):
    for m in tasks(blocks(M, 64)):
        s = zeros(f32, m)
        for k in blocks(K, 128):
            s += rowsum(A[m, k] * x[k])
        y[m] = s
""",
    "rope": """\
kernel rope(X: bf16[S, 2, 64], c: f32[S, 64], s: f32[S, 64], Y: bf16[S, 2, 64]):
    for t in tasks(blocks(S, 64)):
        a = X[t, 0, :]
        b = X[t, 1, :]
        Y[t, 0, :] = a * c[t, :] - b * s[t, :]
        Y[t, 1, :] = a * s[t, :] + b * c[t, :]
""",
    "rope_halves": """\
kernel rope_halves(X: bf16[S, 128], c: f32[S, 64], s: f32[S, 64], Y: bf16[S, 128]):
    for t in tasks(blocks(S, 64)):
        for d in blocks(64, 64):
            a = cast(X[t, d + 0], f32)
            b = cast(X[t, d + 64], f32)
            Y[t, d + 0] = a * c[t, d] - b * s[t, d]
            Y[t, d + 64] = a * s[t, d] + b * c[t, d]
""",
    "taps": """\
kernel taps(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        total = zeros(f32, m, n)
        for i in range(3):
            total = total + X[m + i, n]
        Y[m, n] = total
""",
    "taps_before": """\
kernel taps_before(X: bf16[B, M, N], w: f32[4, N], Y: f32[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 8), blocks(N, 64)):
        total = zeros(f32, m, n)
        for i in range(4):
            total = total + X[b, m - 3 + i, n] * w[i, n]
        Y[b, m, n] = total
""",
    "sums_of_columns": """\
kernel sums_of_columns(X: bf16[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 256)):
        total = zeros(f32, n)
        for m in blocks(M, 16):
            total += rowsum(cast(X[m, n], f32).T)
        Y[n] = total
""",
    "greatest_of_columns": """\
kernel greatest_of_columns(X: f32[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 64)):
        top = full(f32, -inf, n)
        for m in blocks(M, 16):
            top = max(top, rowmax(abs(X[m, n]).T))
        Y[n] = top
""",
    "row_before_as_it_is": """\
kernel row_before_as_it_is(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = X[m - 1, n]
""",
    "row_before": """\
kernel row_before(X: bf16[M, N], Y: f32[M, N]):
    for n in tasks(blocks(N, 64)):
        last = zeros(f32, n)
        for m in range(M):
            x = cast(X[m, n], f32)
            Y[m, n] = x - last
            last = x
""",
    "scaled_positions": """\
kernel scaled_positions(w: f32[48], Y: f32[M, 48]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = cast(positions(m), f32) * w[:]
""",
    "single_task": """\
kernel single_task(A: f32[40], w: f32[40], Y: f32[40]):
    for z in tasks(1):
        Y[:] = A[:] + w[:]
""",
    "parted_row": """\
kernel parted_row(X: f32[M, N], Y: f32[M, N]):
    for m in tasks(M):
        before = zeros(i32)
        for n in blocks(N, 64):
            hit = cast(X[m, n] > 0.0, i32)
            at = before + cumsum(hit) - hit
            Y[m, where(hit == 1, at, N - 1 - positions(n) + at)] = X[m, n]
            before += rowsum(hit)
""",
    "moved_row": """\
kernel moved_row(X: bf16[M, N], Y: bf16[M, N]):
    for m in tasks(M):
        at = zeros(i32)
        for n in blocks(N, 64):
            Y[m, at + positions(n) - start(n)] = X[m, n]
            at += 64
""",
    "first_row": """\
kernel first_row(X: e4m3[M, N], Y: e4m3[M, N], Z: e4m3[M, N]):
    for m, n in tasks(M, blocks(N, 64)):
        a = Y[m, n]
        if m > 0:
            a = X[m - 1, n]
        Z[m, n] = a
""",
    "row_div_loop2d": """\
kernel row_div_loop2d(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 128)):
        x = X[m, n]
        Y[m, n] = x / rowmax(abs(x))
""",
}
"""Tiles that meet no MMA: element by element, by rows of any length, transposed, of three axes."""
