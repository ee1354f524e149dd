/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_elementwise.cu - the operators whose every element is a function of the
 * elements in its own place: FILL, SCALE, ADD, COPY_2D, CAST, BIAS, RELU, GELU
 * and the backwards of the last two.
 */
#include "cuda_math.cuh"
#include "cuda_number.cuh"

template <class X> struct fill {
    struct in {};
    typename X::type *x;
    float value;

    __device__ in load(uint64_t) const
    {
        return in();
    }
    __device__ void store(uint64_t i, in) const
    {
        x[i] = X::narrow(value);
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

/* The same of two inputs. */
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

template <class X, class Y> struct cast {
    __device__ typename Y::type of(typename X::type a) const
    {
        return Y::narrow(X::wide(a));
    }
};

template <class X> struct scale_as {
    float factor;

    __device__ typename X::type of(typename X::type a) const
    {
        return X::narrow(X::wide(a) * factor);
    }
};

/* y = a + b, where a and y are of one dtype. */
template <class A, class B> struct add_as {
    struct in {
        typename A::type a;
        typename B::type b;
    };
    const typename A::type *a;
    const typename B::type *b;
    typename A::type *y;

    __device__ in load(uint64_t i) const
    {
        return {a[i], b[i]};
    }
    __device__ void store(uint64_t i, in v) const
    {
        y[i] = A::narrow(A::wide(v.a) + B::wide(v.b));
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

/* Calls X of the class that stands for a dtype; NONE is float32. */
template <template <class> class X>
static cudaError_t by_dtype(uint32_t dtype, const struct fsdp_op *op,
                            const struct cuda_target *target)
{
    return dtype == FSDP_DTYPE_BF16  ? X<bf16>::run(op, target)
           : dtype == FSDP_DTYPE_F16 ? X<f16>::run(op, target)
                                     : X<f32>::run(op, target);
}

template <class X> struct fill_of {
    static cudaError_t run(const struct fsdp_op *op,
                           const struct cuda_target *target)
    {
        fill<X> f = {out_of<typename X::type>(op, 0), op->f[0]};

        return launch_each(target, op->dim[0], f);
    }
};

template <class X> struct scale_of {
    static cudaError_t run(const struct fsdp_op *op,
                           const struct cuda_target *target)
    {
        return run_unary<typename X::type, typename X::type>(
            op, target, scale_as<X>{op->f[0]});
    }
};

template <class A> struct add_to {
    template <class B> struct another {
        static cudaError_t run(const struct fsdp_op *op,
                               const struct cuda_target *target)
        {
            add_as<A, B> f = {in_of<typename A::type>(op, 0),
                              in_of<typename B::type>(op, 1),
                              out_of<typename A::type>(op, 0)};

            return launch_each(target, op->dim[0], f);
        }
    };

    static cudaError_t run(const struct fsdp_op *op,
                           const struct cuda_target *target)
    {
        return by_dtype<another>(op->aux[1], op, target);
    }
};

template <class X> struct cast_of {
    template <class Y> struct to {
        static cudaError_t run(const struct fsdp_op *op,
                               const struct cuda_target *target)
        {
            return run_unary<typename X::type, typename Y::type>(op, target,
                                                                 cast<X, Y>());
        }
    };

    static cudaError_t run(const struct fsdp_op *op,
                           const struct cuda_target *target)
    {
        return by_dtype<to>(op->aux[1], op, target);
    }
};

extern "C" cudaError_t cuda_op_fill(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return by_dtype<fill_of>(op->aux[0], op, target);
}

extern "C" cudaError_t cuda_op_scale(const struct fsdp_op *op,
                                     const struct cuda_target *target)
{
    return by_dtype<scale_of>(op->aux[0], op, target);
}

extern "C" cudaError_t cuda_op_add(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    return by_dtype<add_to>(op->aux[0], op, target);
}

extern "C" cudaError_t cuda_op_cast(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return by_dtype<cast_of>(op->aux[0], op, target);
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

/* Copies in the largest words that divide all addresses and lengths; the
 * strides of a single row do not count. */
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

/* The kernels of one dtype with each. */
template <class X> static cudaError_t load_of(void)
{
    typedef typename X::type type;

    return load(each<fill<X>>, each<unary<scale_as<X>, type, type>>,
                each<add_as<X, f32>>, each<add_as<X, bf16>>,
                each<add_as<X, f16>>, each<unary<cast<X, f32>, type, float>>,
                each<unary<cast<X, bf16>, type, uint16_t>>,
                each<unary<cast<X, f16>, type, uint16_t>>);
}

extern "C" cudaError_t cuda_load_elementwise(void)
{
    cudaError_t (*const numbers[])(void) = {load_of<f32>, load_of<bf16>,
                                            load_of<f16>};

    for (int i = 0; i < 3; i++) {
        cudaError_t status = numbers[i]();

        if (status != cudaSuccess) {
            return status;
        }
    }
    return load(each<copy_rows<sixteen>>, each<copy_rows<uint32_t>>,
                each<copy_rows<unsigned char>>, each<bias>, each<unary<relu>>,
                each<binary<relu_backward>>, each<unary<gelu>>,
                each<binary<gelu_backward>>);
}
