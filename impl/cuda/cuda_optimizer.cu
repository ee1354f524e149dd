/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_optimizer.cu - SGD, MOMENTUM and ADAMW, each in one pass over a shard.
 */
#include "cuda_common.cuh"

/* The gradient with weight decay. */
static __device__ __forceinline__ float decayed(float wd, float w, float g)
{
    return wd == 0.0f ? g : fmaf(wd, w, g);
}

struct sgd {
    struct in {
        float w, g;
    };
    float *w;
    const float *g;
    float lr, wd;

    __device__ in load(uint64_t i) const
    {
        return {w[i], g[i]};
    }
    __device__ void store(uint64_t i, in x) const
    {
        w[i] = fmaf(-lr, decayed(wd, x.w, x.g), x.w);
    }
};

struct momentum {
    struct in {
        float w, g, v;
    };
    float *w;
    const float *g;
    float *v;
    float lr, wd, mu;

    __device__ in load(uint64_t i) const
    {
        return {w[i], g[i], v[i]};
    }
    __device__ void store(uint64_t i, in x) const
    {
        float next = fmaf(mu, x.v, decayed(wd, x.w, x.g));

        v[i] = next;
        w[i] = fmaf(-lr, next, x.w);
    }
};

/* The factors are of the host, where they are computed once. */
struct adamw {
    struct in {
        float w, g, m, v;
    };
    float *w;
    const float *g;
    float *m, *v;
    float beta1, rest1, beta2, rest2, eps, shrink, rate, root;

    __device__ in load(uint64_t i) const
    {
        return {w[i], g[i], m[i], v[i]};
    }
    __device__ void store(uint64_t i, in x) const
    {
        float first = fmaf(beta1, x.m, rest1 * x.g);
        float second = fmaf(beta2, x.v, (rest2 * x.g) * x.g);
        float shrunk = fmaf(-shrink, x.w, x.w);

        m[i] = first;
        v[i] = second;
        w[i] = fmaf(-rate, first / (sqrtf(second) / root + eps), shrunk);
    }
};

extern "C" cudaError_t cuda_op_sgd(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    sgd f = {out_of<float>(op, 0), in_of<float>(op, 1), op->f[0], op->f[1]};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_momentum(const struct fsdp_op *op,
                                        const struct cuda_target *target)
{
    momentum f = {out_of<float>(op, 0),
                  in_of<float>(op, 1),
                  out_of<float>(op, 1),
                  op->f[0],
                  op->f[1],
                  op->f[2]};

    return launch_each(target, op->dim[0], f);
}

extern "C" cudaError_t cuda_op_adamw(const struct fsdp_op *op,
                                     const struct cuda_target *target)
{
    const float *f = op->f;
    adamw x = {out_of<float>(op, 0),
               in_of<float>(op, 1),
               out_of<float>(op, 1),
               out_of<float>(op, 2),
               f[2],
               1.0f - f[2],
               f[3],
               1.0f - f[3],
               f[4],
               f[0] * f[1],
               f[0] / (1.0f - f[5]),
               sqrtf(1.0f - f[6])};

    return launch_each(target, op->dim[0], x);
}

extern "C" cudaError_t cuda_load_optimizer(void)
{
    return load(each<sgd>, each<momentum>, each<adamw>);
}
