/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_env.c - gives each rank a GPU, and puts device and communicator into
 * its env.
 *
 * The ranks of a host take its GPUs in order, one each. A launcher that shows
 * each rank one GPU does the same thing by itself; so GPUs are told apart by
 * their place on the bus, not by their number.
 */
#include "cuda_env.h"

#include "cuda_comm.h"
#include "cuda_host.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUS_ID = 32,
};

struct cuda {
    struct cuda_watch *watch;
    struct fsdp_device device;
    struct fsdp_comm comm;
    struct fsdp_device host;
    /* The members of env that these replace. */
    const struct fsdp_device *real_device;
    const struct fsdp_device *real_host;
    const struct fsdp_comm *real_comm;
};

/* Which GPU a rank took, as all ranks learn it. */
struct choice {
    uint64_t host;
    int32_t native; /* what the runtime said: 0, or why there is none */
    char bus[BUS_ID];
};

__attribute__((format(printf, 4, 5))) static int
fail(const struct fsdp_env *env, int status, int native, const char *format,
     ...)
{
    struct fsdp_error *e = env->error;
    va_list arguments;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        e->native = native;
        snprintf(e->where, sizeof(e->where), "cuda");
        va_start(arguments, format);
        vsnprintf(e->message, sizeof(e->message), format, arguments);
        va_end(arguments);
    }
    return status;
}

/* All ranks report what one of them could not do: the reason once, and on which
 * rank. */
static int why_not(const struct fsdp_env *env, uint32_t rank,
                   const struct choice *c)
{
    cudaError_t error = (cudaError_t)c->native;
    int driver = 0;
    int runtime = 0;

    if (error == cudaErrorInsufficientDriver) {
        (void)cudaDriverGetVersion(&driver);
        (void)cudaRuntimeGetVersion(&runtime);
        if (driver == 0) {
            return fail(env, FSDP_ERR_DEVICE, c->native,
                        "rank %u: no GPU driver; this build needs one for "
                        "CUDA %d.%d or later",
                        rank, runtime / 1000, runtime / 10 % 100);
        }
        return fail(env, FSDP_ERR_DEVICE, c->native,
                    "rank %u: the GPU driver supports CUDA %d.%d; this build "
                    "needs %d.%d: install a newer driver",
                    rank, driver / 1000, driver / 10 % 100, runtime / 1000,
                    runtime / 10 % 100);
    }
    return fail(env, FSDP_ERR_DEVICE, c->native, "rank %u: no GPU: %s (%s)",
                rank, cudaGetErrorString(error), cudaGetErrorName(error));
}

static void take_gpu(uint32_t local_rank, struct choice *mine, int *ordinal)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    if (error == cudaSuccess && count == 0) {
        error = cudaErrorNoDevice;
    }
    if (error == cudaSuccess) {
        *ordinal = (int)(local_rank % (uint32_t)count);
        error = cudaDeviceGetPCIBusId(mine->bus, BUS_ID, *ordinal);
    }
    mine->native = (int32_t)error;
}

/* NCCL refuses two ranks on one GPU, unless it takes each for a host of its
 * own; then it knows no other way between them than sockets. */
static void pretend_hosts(const struct fsdp_env *env)
{
    char rank[16];

    snprintf(rank, sizeof(rank), "rank%u", env->rank);
    (void)setenv("NCCL_HOSTID", rank, 1);
    (void)setenv("NCCL_NET", "Socket", 0);
    (void)setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    (void)setenv("NCCL_MNNVL_ENABLE", "0", 0);
    (void)setenv("NCCL_MAX_CTAS", "2", 0);
}

/* Whether ranks share GPUs, the same answer on every rank. FSDP_CUDA_COMM of
 * the environment may ask for nccl, for ipc, or for nccl by sockets. */
static int check_choices(const struct fsdp_env *env, const struct choice *all,
                         const struct choice *mine, uint32_t locals,
                         bool *shares)
{
    const char *wish = getenv("FSDP_CUDA_COMM");
    uint32_t sharing = 0;
    bool one_host = true;

    for (uint32_t r = 0; r < env->world; r++) {
        if (all[r].native != 0) {
            return why_not(env, r, &all[r]);
        }
    }
    for (uint32_t r = 0; r < env->world; r++) {
        one_host = one_host && all[r].host == mine->host;
        for (uint32_t other = 0; other < r; other++) {
            sharing += all[r].host == all[other].host &&
                       strcmp(all[r].bus, all[other].bus) == 0;
        }
    }
    if (wish && strcmp(wish, "nccl-sockets") == 0) {
        pretend_hosts(env);
        *shares = false;
        return FSDP_OK;
    }
    *shares = sharing > 0 || (wish && strcmp(wish, "ipc") == 0);
    if (*shares && (!one_host || (wish && strcmp(wish, "nccl") == 0))) {
        return fail(env, FSDP_ERR_UNSUPPORTED, 0,
                    "%u ranks on this host, too few GPUs for one each: NCCL "
                    "needs a GPU a rank, and CUDA IPC all ranks on one host",
                    locals);
    }
    return FSDP_OK;
}

static int choose(const struct fsdp_env *env, const struct cuda_watch *watch,
                  int *ordinal, bool *shares)
{
    struct choice mine = {.host = cuda_watch_host(watch)};
    struct choice *all = calloc(env->world, sizeof(*all));
    int status;

    if (!all) {
        return fail(env, FSDP_ERR_NOMEM, 0, "out of host memory");
    }
    take_gpu(cuda_watch_local_rank(watch), &mine, ordinal);
    status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
    if (status == FSDP_OK) {
        status =
            check_choices(env, all, &mine, cuda_watch_locals(watch), shares);
    }
    free(all);
    return status;
}

static void release(struct cuda *c)
{
    cuda_comm_close(&c->comm);
    cuda_host_close(&c->host);
    cuda_device_close(&c->device);
    cuda_watch_close(c->watch);
    free(c);
}

/* A driver that is older has no place for it. */
static void put_host(struct fsdp_env *env, const struct fsdp_device *host)
{
    if (env->size > offsetof(struct fsdp_env, host)) {
        env->host = host;
    }
}

int cuda_open(struct fsdp_env *env)
{
    struct cuda *c = calloc(1, sizeof(*c));
    char why[128] = "the GPU could not be opened";
    bool shares = false;
    int ordinal = 0;
    int status;

    if (!c) {
        return fail(env, FSDP_ERR_NOMEM, 0, "out of host memory");
    }
    status = cuda_watch_open(env, &c->watch);
    if (status == FSDP_OK) {
        status = choose(env, c->watch, &ordinal, &shares);
    }
    if (status == FSDP_OK) {
        status = cuda_device_open(env, c->watch, ordinal, &c->device);
    }
    if (status == FSDP_OK) {
        status = cuda_comm_open(env, cuda_device_of(&c->device), c->watch,
                                shares, &c->comm);
    }
    if (status == FSDP_OK) {
        status = cuda_host_open(cuda_device_of(&c->device), &c->host, why,
                                sizeof(why));
    }
    if (status != FSDP_OK) {
        release(c);
        return fail(env, status, 0, "%s", why);
    }
    c->real_device = env->device;
    c->real_host = fsdp_host_of(env);
    c->real_comm = env->comm;
    env->device = &c->device;
    put_host(env, &c->host);
    env->comm = &c->comm;
    env->engine = c;
    return FSDP_OK;
}

void cuda_close(struct fsdp_env *env)
{
    struct cuda *c = env->engine;

    if (c) {
        env->device = c->real_device;
        put_host(env, c->real_host);
        env->comm = c->real_comm;
        env->engine = NULL;
        release(c);
    }
}
