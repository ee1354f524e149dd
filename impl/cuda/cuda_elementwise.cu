/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_elementwise.cu - the operators whose every element is a function of the
 * elements in its own place: FILL, SCALE, ADD, COPY_2D, CAST, BIAS, RELU, GELU
 * and the backwards of the last two.
 */
#include "cuda_math.cuh"

#include <fsdp/arith/bf16.h>

struct fill {
    struct in {};
    float *x;
    float value;

    __device__ in load(uint64_t) const
    {
        return in();
    }
    __device__ void store(uint64_t i, in) const
    {
        x[i] = value;
    }
};

/* y = f.of(x), element by element; y may be x. */
template <class F, class X = float, class Y = float> struct unary {
    typedef X in;
    const X *x;
    Y *y;
    F f;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        y[i] = f.of(a);
    }
};

struct pair {
    float a, b;
};

/* The same of two. */
template <class F> struct binary {
    typedef pair in;
    const float *a, *b;
    float *y;

    __device__ in load(uint64_t i) const
    {
        return {a[i], b[i]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        y[i] = F::of(v.a, v.b);
    }
};

/* Rows of n elements; b is one row. */
struct bias {
    typedef pair in;
    const float *x, *b;
    float *y;
    struct divisor n;

    __device__ in load(uint64_t i) const
    {
        return {x[i], b[i - n.quotient(i) * n.n]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        y[i] = v.a + v.b;
    }
};

/* Rows of elements of type T, of any width; strides in elements. */
template <class T> struct copy_rows {
    typedef T in;
    const T *from;
    T *to;
    struct divisor width;
    uint64_t to_gap, from_gap; /* behind a row */

    __device__ in load(uint64_t i) const
    {
        return from[i + width.quotient(i) * from_gap];
    }
    __device__ void store(uint64_t i, in a) const
    {
        to[i + width.quotient(i) * to_gap] = a;
    }
};

/* y if x > 0, NaN if x is NaN, else +0. */
static __device__ __forceinline__ float where_positive(float x, float y)
{
    return x > 0.0f ? y : x != x ? x : 0.0f;
}

static __device__ __forceinline__ float gelu_tanh(float x)
{
    float u = 0.797884561f * fmaf(0.044715f * (x * x), x, x);

    return cuda_tanhf(u);
}

struct to_bf16 {
    __device__ uint16_t of(float a) const
    {
        return fsdp_bf16_from_f32(a);
    }
};

struct from_bf16 {
    __device__ float of(uint16_t a) const
    {
        return fsdp_bf16_to_f32(a);
    }
};

struct scale {
    float factor;

    __device__ float of(float a) const
    {
        return a * factor;
    }
};

struct relu {
    __device__ float of(float a) const
    {
        return where_positive(a, a);
    }
};

struct gelu {
    __device__ float of(float a) const
    {
        return (0.5f * a) * (1.0f + gelu_tanh(a));
    }
};

struct add {
    static __device__ float of(float a, float b)
    {
        return a + b;
    }
};

struct relu_backward {
    static __device__ float of(float x, float dy)
    {
        return where_positive(x, dy);
    }
};

struct gelu_backward {
    static __device__ float of(float x, float dy)
    {
        float t = gelu_tanh(x);
        float slope = fmaf(-t, t, 1.0f);
        float inner = 0.797884561f * fmaf(0.134145f, x * x, 1.0f);

        return dy * fmaf((0.5f * x) * slope, inner, 0.5f * (1.0f + t));
    }
};

/* ---- Operators --------------------------------------------------------- */

template <class X, class Y, class F>
static cudaError_t run_unary(const struct fsdp_op *op,
                             const struct cuda_target *target, F f)
{
    unary<F, X, Y> all = {in_of<X>(op, 0), out_of<Y>(op, 0), f};

    return launch_each(target, op->dim[0], all);
}

template <class F>
static cudaError_t run_binary(const struct fsdp_op *op,
                              const struct cuda_target *target)
{
    binary<F> all = {in_of<float>(op, 0), in_of<float>(op, 1),
                     out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], all);
}

extern "C" cudaError_t cuda_op_fill(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    fill f = {out_of<float>(op, 0), op->f[0]};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_scale(const struct fsdp_op *op,
                                     const struct cuda_target *target)
{
    return run_unary<float, float>(op, target, scale{op->f[0]});
}

extern "C" cudaError_t cuda_op_add(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    return run_binary<add>(op, target);
}

template <class T>
static cudaError_t copy_as(const struct fsdp_op *op,
                           const struct cuda_target *target)
{
    const uint64_t width = op->dim[1] / sizeof(T);
    copy_rows<T> f = {in_of<T>(op, 0), out_of<T>(op, 0), divisor_of(width),
                      op->dim[2] / sizeof(T) - width,
                      op->dim[3] / sizeof(T) - width};

    return launch_each(target, op->dim[0] * width, f);
}

/* Sixteen bytes, in one access. */
struct __align__(16) sixteen
{
    uint32_t word[4];
};

/* As the largest words of which everything is a multiple; strides of a single
 * row do not count. */
extern "C" cudaError_t cuda_op_copy_2d(const struct fsdp_op *op,
                                       const struct cuda_target *target)
{
    uint64_t all = (uint64_t)(uintptr_t)op->in[0].p |
                   (uint64_t)(uintptr_t)op->out[0].p | op->dim[1];

    if (op->dim[0] == 0 || op->dim[1] == 0) {
        return cudaSuccess;
    }
    if (op->dim[0] > 1) {
        all |= op->dim[2] | op->dim[3];
    }
    if (all % sizeof(sixteen) == 0) {
        return copy_as<sixteen>(op, target);
    }
    return all % 4 == 0 ? copy_as<uint32_t>(op, target)
                        : copy_as<unsigned char>(op, target);
}

extern "C" cudaError_t cuda_op_cast(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return op->aux[1] == FSDP_DTYPE_BF16
               ? run_unary<float, uint16_t>(op, target, to_bf16())
               : run_unary<uint16_t, float>(op, target, from_bf16());
}

extern "C" cudaError_t cuda_op_bias(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    bias f = {in_of<float>(op, 0), in_of<float>(op, 1), out_of<float>(op, 0),
              divisor_of(op->dim[1])};

    return launch_each(target, op->dim[0] * op->dim[1], f);
}

extern "C" cudaError_t cuda_op_relu(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return run_unary<float, float>(op, target, relu());
}

extern "C" cudaError_t cuda_op_relu_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return run_binary<relu_backward>(op, target);
}

extern "C" cudaError_t cuda_op_gelu(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return run_unary<float, float>(op, target, gelu());
}

extern "C" cudaError_t cuda_op_gelu_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return run_binary<gelu_backward>(op, target);
}

extern "C" cudaError_t cuda_load_elementwise(void)
{
    return load(each<fill>, each<unary<scale>>, each<binary<add>>,
                each<copy_rows<sixteen>>, each<copy_rows<uint32_t>>,
                each<copy_rows<unsigned char>>,
                each<unary<to_bf16, float, uint16_t>>,
                each<unary<from_bf16, uint16_t, float>>, each<bias>,
                each<unary<relu>>, each<binary<relu_backward>>,
                each<unary<gelu>>, each<binary<gelu_backward>>);
}
