/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_elementwise.cu - the operators whose every element is a function of the
 * elements in its own place: FILL, SCALE, ADD, COPY_2D, CAST, BIAS, RELU, GELU
 * and the backwards of the last two.
 */
#include "cuda_common.cuh"

#include <fsdp/arith/bf16.h>
#include <fsdp/arith/tanh.h>

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

struct scale {
    typedef float in;
    float *x;
    float factor;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        x[i] = a * factor;
    }
};

/* The two elements of operators with two inputs. */
struct pair {
    float a, b;
};

struct add {
    typedef pair in;
    const float *a, *b;
    float *y;

    __device__ in load(uint64_t i) const
    {
        return {a[i], b[i]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        y[i] = v.a + v.b;
    }
};

struct bias {
    typedef pair in;
    const float *x, *b;
    float *y;
    uint64_t n;

    __device__ in load(uint64_t i) const
    {
        return {x[i], b[i % n]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        y[i] = v.a + v.b;
    }
};

struct to_bf16 {
    typedef float in;
    const float *x;
    uint16_t *y;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        y[i] = fsdp_bf16_from_f32(a);
    }
};

struct from_bf16 {
    typedef uint16_t in;
    const uint16_t *x;
    float *y;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        y[i] = fsdp_bf16_to_f32(a);
    }
};

/* Rows of elements of type T, of any width; strides in elements. */
template <class T> struct copy_rows {
    typedef T in;
    const T *from;
    T *to;
    uint64_t width, to_stride, from_stride;

    __device__ in load(uint64_t i) const
    {
        return from[i / width * from_stride + i % width];
    }
    __device__ void store(uint64_t i, in a) const
    {
        to[i / width * to_stride + i % width] = a;
    }
};

/* y if x > 0, NaN if x is NaN, else +0. */
static __device__ __forceinline__ float where_positive(float x, float y)
{
    return x > 0.0f ? y : x != x ? x : 0.0f;
}

struct relu {
    typedef float in;
    const float *x;
    float *y;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        y[i] = where_positive(a, a);
    }
};

struct relu_backward {
    typedef pair in;
    const float *x, *dy;
    float *dx;

    __device__ in load(uint64_t i) const
    {
        return {x[i], dy[i]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        dx[i] = where_positive(v.a, v.b);
    }
};

static __device__ __forceinline__ float gelu_tanh(float x)
{
    float u = 0.797884561f * fmaf(0.044715f * (x * x), x, x);

    return fsdp_tanhf(u);
}

struct gelu {
    typedef float in;
    const float *x;
    float *y;

    __device__ in load(uint64_t i) const
    {
        return x[i];
    }
    __device__ void store(uint64_t i, in a) const
    {
        y[i] = (0.5f * a) * (1.0f + gelu_tanh(a));
    }
};

struct gelu_backward {
    typedef pair in;
    const float *x, *dy;
    float *dx;

    __device__ in load(uint64_t i) const
    {
        return {x[i], dy[i]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        float t = gelu_tanh(v.a);
        float slope = fmaf(-t, t, 1.0f);
        float inner = 0.797884561f * fmaf(0.134145f, v.a * v.a, 1.0f);

        dx[i] = v.b * fmaf((0.5f * v.a) * slope, inner, 0.5f * (1.0f + t));
    }
};

extern "C" cudaError_t cuda_op_fill(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    fill f = {out_of<float>(op, 0), op->f[0]};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_scale(const struct fsdp_op *op,
                                     const struct cuda_target *target)
{
    scale f = {out_of<float>(op, 0), op->f[0]};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_add(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    add f = {in_of<float>(op, 0), in_of<float>(op, 1), out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], f);
}

template <class T>
static cudaError_t copy_as(const struct fsdp_op *op,
                           const struct cuda_target *target)
{
    copy_rows<T> f = {in_of<T>(op, 0), out_of<T>(op, 0), op->dim[1] / sizeof(T),
                      op->dim[2] / sizeof(T), op->dim[3] / sizeof(T)};

    return launch_each(target, op->dim[0] * f.width, f);
}

/* As words where everything is a multiple of a word; strides of a single row
 * do not count. */
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
    return all % 4 == 0 ? copy_as<uint32_t>(op, target)
                        : copy_as<unsigned char>(op, target);
}

extern "C" cudaError_t cuda_op_cast(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    to_bf16 down = {in_of<float>(op, 0), out_of<uint16_t>(op, 0)};
    from_bf16 up = {in_of<uint16_t>(op, 0), out_of<float>(op, 0)};

    return op->aux[1] == FSDP_DTYPE_BF16 ? launch_each(target, op->dim[0], down)
                                         : launch_each(target, op->dim[0], up);
}

extern "C" cudaError_t cuda_op_bias(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    bias f = {in_of<float>(op, 0), in_of<float>(op, 1), out_of<float>(op, 0),
              op->dim[1]};

    return launch_each(target, op->dim[0] * op->dim[1], f);
}

extern "C" cudaError_t cuda_op_relu(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    relu f = {in_of<float>(op, 0), out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_relu_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    relu_backward f = {in_of<float>(op, 0), in_of<float>(op, 1),
                       out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_gelu(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    gelu f = {in_of<float>(op, 0), out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_gelu_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    gelu_backward f = {in_of<float>(op, 0), in_of<float>(op, 1),
                       out_of<float>(op, 0)};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_kernels_loadable(void)
{
    struct cudaFuncAttributes attributes;

    return cudaFuncGetAttributes(&attributes,
                                 reinterpret_cast<const void *>(each<fill>));
}
