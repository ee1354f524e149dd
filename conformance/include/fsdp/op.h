/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - the operators of the arithmetic profile "f32-fma", specified to the
 * bit. A device runs them; models and engines ask for them.
 *
 * Notation. All values are float32 unless said otherwise, matrices are dense
 * and in C order, every + - * / and fma(a, b, c) is one IEEE operation
 * rounded to nearest even; nothing is contracted, reassociated or flushed.
 * exp, log, tanh and 1/sqrt are the correctly rounded functions of
 * <fsdp/arith/>. Where an operator names no order, each element is a function
 * of its own inputs. Where a result is NaN, any NaN will do.
 *
 *   chain(k; a_k, b_k)   acc = +0; for k ascending: acc = fma(a_k, b_k, acc)
 *   lanes(c; f)          32 accumulators, lane l = +0, takes c = l, l + 32,
 *                        ... ascending by `f`; then for o = 16, 8, 4, 2, 1:
 *                        lane[l] = lane[l] + lane[l ^ o], all lanes at
 *                        once; the sum is lane[0]
 *   maximum              max that propagates NaN, +0 above -0; starts from
 *                        -infinity
 *   tree(x_0 .. x_{g-1}) x_0 if g = 1, else tree(first ceil(g / 2)) +
 *                        tree(the rest)
 *
 * Grains. Operators that sum over rows of a batch (GEMM_GRAD, COLUMN_SUM,
 * NORM_GRAD, EMBEDDING_GRAD) cut the rows into `grains` equal, contiguous
 * parts, sum each by itself and combine the parts by tree. `grains` divides
 * the rows, is at most FSDP_MAX_GRAINS, and is 1 except under FSDP_FOLD_TREE,
 * where it makes a rank's gradient the subtree of its grains: the curve is
 * then the same for every world that divides the grains.
 *
 * Ranges: in[] and out[] name every byte that the operator may read or write,
 * so that a recorder sees races, and are exactly as long as the shapes below.
 * An operand that is updated in place is in both, as the same range. Unless
 * noted, in and out do not overlap; "may be" means the same range, too. A
 * dimension of 0 is allowed: a sum over nothing is +0.
 */
#ifndef FSDP_OP_H
#define FSDP_OP_H

#include <fsdp/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FSDP_MAX_GRAINS = 64,
    FSDP_OP_MAX_IN = 8,
    FSDP_OP_MAX_OUT = 4
};

/*
 * kind            dim[]                in[] -> out[]
 * Fields that a kind does not name are 0.
 * FILL            n                    -> x[n]
 *   x = f[0]. aux[0] is x's dtype, as ADD has it; f[0] is rounded to it.
 * SCALE           n                    x[n] -> x[n]  (in place)
 *   x = x * f[0]. aux[0] is x's dtype, as ADD has it; one rounding to float32
 *   and then one to the dtype.
 * ADD             n                    a[n], b[n] -> y[n]  (y may be a, b)
 *   y = a + b. aux[0] is the dtype of a and y, aux[1] that of b: F32, BF16 or
 *   F16, NONE counts as F32; others are UNSUPPORTED. Operands are widened, the
 *   sum is rounded to float32 and then to y's dtype: where both are of the
 *   same 16 bits, the exact sum rounded once. y may be b if dtypes are equal.
 * COPY_2D         rows, row_bytes, to_stride, from_stride (bytes)
 *                                      from -> to
 *   Rows of bytes, for packing and unpacking. Any dtype. A range reaches from
 *   its first row's first byte to its last row's last: (rows - 1) * stride +
 *   row_bytes, or 0. Rows of `to` do not overlap.
 * CAST            n                    x[n] -> y[n]
 *   from dtype aux[0] to dtype aux[1], each F32, BF16 or F16, to nearest even;
 *   what is too large becomes infinity, subnormals are kept. Other dtypes are
 *   UNSUPPORTED.
 *
 * GEMM            m, n, k              A[m,k], B[k,n] -> C[m,n]
 *   C[i,j] = chain(k; A[i,k], B[k,j]).
 *   With FSDP_OP_TRANSPOSE_B, B is given as [n,k].
 * GEMM_GRAD       m, n, rows, grains   X[rows,m], G[rows,n] -> W[m,n]
 *   W[i,j] = tree over grains of chain(r in grain; X[r,i], G[r,j]).
 * BIAS            rows, n              x[rows,n], b[n] -> y (y may be x)
 *   y[r,j] = x[r,j] + b[j].
 * COLUMN_SUM      rows, n, grains      x[rows,n] -> s[n]
 *   Per grain: total = +0; for blocks of 64 rows of the grain, in order, the
 *   last may be short: block = +0, block = block + x[r,j] for r ascending;
 *   total = total + block. Then tree over grains.
 *
 * RELU            n                    x -> y (y may be x)
 *   y = x if x > 0, NaN if x is NaN, else +0.
 * RELU_BACKWARD   n                    x, dy -> dx (dx may be dy)
 *   x is RELU's input. dx = dy if x > 0, NaN if x is NaN, else +0.
 * GELU            n                    x -> y
 *   u = c * fma(a * (x * x), x, x), t = tanh(u), y = (0.5 * x) * (1 + t),
 *   a = 0.044715f, c = 0.797884561f (the tanh form).
 * GELU_BACKWARD   n                    x, dy -> dx (dx may be dy)
 *   u, t as above; v = c * fma(a3, x * x, 1), a3 = 0.134145f;
 *   dx = dy * fma((0.5 * x) * fma(-t, t, 1), v, 0.5 * (1 + t)).
 *
 * NORM            rows, n; f[0] = eps  x[rows,n], gamma[n], beta[n]
 *                                      -> y[rows,n], stat[rows,2]
 *   Layer normalisation. mean = lanes(c; acc + x) / (float)n;
 *   d = x - mean; var = lanes(c; fma(d, d, acc)) / (float)n;
 *   r = 1/sqrt(var + eps); y = fma(d * r, gamma, beta);
 *   stat[row] = {mean, r}.
 * NORM_BACKWARD   rows, n              x, gamma, stat, dy -> dx[rows,n]
 *   h = (x - mean) * r; g = dy * gamma; s1 = lanes(c; acc + g) / (float)n;
 *   s2 = lanes(c; fma(g, h, acc)) / (float)n;
 *   dx = r * fma(-h, s2, g - s1).
 * NORM_GRAD       rows, n, grains      x, stat, dy -> dgamma[n], dbeta[n]
 *   As COLUMN_SUM, in blocks of 64 rows: dgamma with block = fma(dy, h,
 *   block), dbeta with block = block + dy.
 *
 * EMBEDDING       rows, n, period, vocabulary
 *                                      id[rows] (int32), table[vocabulary,n],
 *                                      position[period,n] -> y[rows,n]
 *   y[r,j] = table[id[r],j] + position[r % period,j]. An id outside
 *   [0, vocabulary) is an error (INVALID).
 * EMBEDDING_GRAD  rows, n, period, vocabulary, grains
 *                                      id[rows], dy[rows,n]
 *                                      -> dtable[vocabulary,n],
 *                                         dposition[period,n]
 *   Per grain, each element from +0, adding dy[r,j] for r ascending over the
 *   rows with that id (that r % period); then tree over grains. An id outside
 *   [0, vocabulary) is an error (INVALID).
 *
 * ATTENTION       batch, time, heads, head_dim; f[0] = scale
 *                                      qkv[batch*time, 3*heads*head_dim]
 *                                      -> o[batch*time, heads*head_dim],
 *                                         stat[batch*time*heads, 2]
 *   Causal. Row of qkv: q, k, v, each heads x head_dim; row of stat: that of
 *   qkv times heads, plus the head. For query i:
 *   s_j = chain(d; q_i[d], k_j[d]) * scale for j <= i; m = maximum of s_j;
 *   e_j = exp(s_j - m); l = +0, l = l + e_j for j ascending;
 *   o_i[d] = chain(j; e_j, v_j[d]) / l; stat = {m, l}.
 * ATTENTION_BACKWARD  batch, time, heads, head_dim; f[0] = scale
 *                                      qkv, o, stat, do -> dqkv
 *   p_ij = exp(s_ij - m_i) / l_i; D_i = chain(d; do_i[d], o_i[d]);
 *   dv_j[d] = chain(i = j..time-1; p_ij, do_i[d]);
 *   ds_ij = p_ij * (chain(d; do_i[d], v_j[d]) - D_i);
 *   dq_i[d] = chain(j = 0..i; ds_ij, k_j[d]) * scale;
 *   dk_j[d] = chain(i = j..time-1; ds_ij, q_i[d]) * scale.
 *
 * MSE             rows, n; f[0]        y[rows,n], target[rows,n]
 *                                      -> row_loss[rows], dy[rows,n]
 *   d = y - target; row_loss = lanes(c; fma(d, d, acc)); dy = f[0] * d.
 * LINEAR_LOSS     rows, n; f[0]        y[rows,n], c[rows,n]
 *                                      -> row_loss[rows], dy[rows,n]
 *   row_loss = lanes(j; fma(y, c, acc)); dy = f[0] * c. A loss whose gradient
 *   does not depend on y.
 * CROSS_ENTROPY   rows, n; f[0]        logits[rows,n], id[rows] (int32)
 *                                      -> row_loss[rows], dlogits (may be
 *                                         logits)
 *   m = maximum; e_j = exp(x_j - m); s = lanes(c; acc + e);
 *   row_loss = log(s) - (x_id - m);
 *   dlogits_j = (e_j / s - (j == id ? 1 : 0)) * f[0].
 *   An id outside [0, n) is an error (INVALID).
 *
 * SGD             n; f[] = lr, wd      w[n], g[n] -> w[n]
 *   d = g if wd = 0, else fma(wd, w, g); w = fma(-lr, d, w).
 * MOMENTUM        n; f[] = lr, wd, mu  w, g, v -> w, v
 *   d as in SGD; v = fma(mu, v, d) (v starts as +0); w = fma(-lr, v, w).
 * ADAMW           n; f[] = lr, wd, beta1, beta2, eps, p1, p2
 *                                      w, g, m, v -> w, m, v
 *   p1, p2 are the running products of beta1, beta2 over the steps taken,
 *   this one included, each multiplied in float32.
 *   m = fma(beta1, m, (1 - beta1) * g); v = fma(beta2, v, ((1 - beta2) * g)
 *   * g); w = fma(-(lr * wd), w, w);
 *   w = fma(-(lr / (1 - p1)), m / (sqrt(v) / sqrt(1 - p2) + eps), w).
 *
 * NORM_SUM        n; aux[0] = p (1, 2)  x[n] -> acc[words] (int64)
 *   acc += the exact sum of |x|^p as an integer, for the gradient norm; see
 *   clip_grad_norm in engine.h. In place. Reserved, as is the number of words:
 *   no device of this version has it, all answer UNSUPPORTED.
 */
enum fsdp_op_kind {
    FSDP_OP_FILL = 0,
    FSDP_OP_SCALE = 1,
    FSDP_OP_ADD = 2,
    FSDP_OP_COPY_2D = 3,
    FSDP_OP_CAST = 4,
    FSDP_OP_GEMM = 5,
    FSDP_OP_GEMM_GRAD = 6,
    FSDP_OP_BIAS = 7,
    FSDP_OP_COLUMN_SUM = 8,
    FSDP_OP_RELU = 9,
    FSDP_OP_RELU_BACKWARD = 10,
    FSDP_OP_GELU = 11,
    FSDP_OP_GELU_BACKWARD = 12,
    FSDP_OP_NORM = 13,
    FSDP_OP_NORM_BACKWARD = 14,
    FSDP_OP_NORM_GRAD = 15,
    FSDP_OP_EMBEDDING = 16,
    FSDP_OP_EMBEDDING_GRAD = 17,
    FSDP_OP_ATTENTION = 18,
    FSDP_OP_ATTENTION_BACKWARD = 19,
    FSDP_OP_MSE = 20,
    FSDP_OP_CROSS_ENTROPY = 21,
    FSDP_OP_SGD = 22,
    FSDP_OP_MOMENTUM = 23,
    FSDP_OP_ADAMW = 24,
    FSDP_OP_NORM_SUM = 25,
    FSDP_OP_LINEAR_LOSS = 26,
    FSDP_N_OPS = 27,
};

enum {
    FSDP_OP_TRANSPOSE_B = 1u
}; /* flags */

struct fsdp_in {
    const void *p;
    uint64_t bytes;
};

struct fsdp_out {
    void *p;
    uint64_t bytes;
};

struct fsdp_op {
    uint32_t size;
    uint32_t kind;
    uint32_t flags;
    uint32_t unit; /* for records and traces; FSDP_NO_UNIT if none */
    uint32_t aux[2];
    uint64_t dim[6];
    float f[8];
    uint32_t n_in;
    uint32_t n_out;
    struct fsdp_in in[FSDP_OP_MAX_IN];
    struct fsdp_out out[FSDP_OP_MAX_OUT];
};

#ifdef __cplusplus
}
#endif
#endif
