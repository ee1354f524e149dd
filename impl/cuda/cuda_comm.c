/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm.c - groups of ranks, checks, and the order of collectives.
 * cuda_collective.c has each collective's own work.
 */
#include "cuda_comm.h"

#include "cuda_collective.h"
#include "cuda_trace.h"

#include <fsdp/arith/cast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIMS = 2,
    GROUPS = MOST_DIMS + 1, /* and the world */
    STAGING = 32 << 20,
};

struct cuda_comm {
    const struct fsdp_env *env;
    const struct fsdp_comm *real;
    struct cuda_device *device;
    struct cuda_watch *watch;
    uint32_t n_dims;
    struct cuda_member member[GROUPS]; /* of the dims, then of the world */
};

/* ---- What is asked for ------------------------------------------------- */

static int refuse_collective(const struct cuda_comm *x, int status,
                             const char *what)
{
    struct fsdp_error *e = x->env->error;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)x->env->rank;
        snprintf(e->where, sizeof(e->where), "comm");
        snprintf(e->message, sizeof(e->message), "%s", what);
    }
    return status;
}

static int check_collective(const struct cuda_comm *x,
                            const struct fsdp_collective *c, uint32_t *group)
{
    bool reduces;

    if (c->kind >= FSDP_N_COLLECTIVES) {
        return refuse_collective(x, FSDP_ERR_INVALID, "no such collective");
    }
    if (c->dim != FSDP_DIM_WORLD && c->dim >= x->n_dims) {
        return refuse_collective(x, FSDP_ERR_INVALID,
                                 "the mesh has no such dim");
    }
    *group = c->dim == FSDP_DIM_WORLD ? x->n_dims : c->dim;
    if (c->kind == FSDP_BARRIER) {
        return c->n == 0 ? FSDP_OK
                         : refuse_collective(x, FSDP_ERR_INVALID,
                                             "a barrier has n 0");
    }
    reduces = c->kind == FSDP_REDUCE_SCATTER || c->kind == FSDP_ALL_REDUCE;
    if (fsdp_dtype_bytes(c->dtype) == 0) {
        return refuse_collective(x, FSDP_ERR_INVALID, "no such dtype");
    }
    if (reduces && c->fold > FSDP_FOLD_TREE) {
        return refuse_collective(x, FSDP_ERR_INVALID, "no such fold");
    }
    if (reduces && !fsdp_is_float(c->dtype)) {
        return refuse_collective(x, FSDP_ERR_UNSUPPORTED,
                                 "reductions are of float32, bf16 or f16");
    }
    if (reduces && fsdp_sum_dtype(c) != c->dtype &&
        c->sum_dtype != FSDP_DTYPE_F32) {
        return refuse_collective(
            x, FSDP_ERR_INVALID,
            "sum_dtype is neither that of the wire nor float32");
    }
    if (c->kind == FSDP_BROADCAST &&
        c->root >= x->member[*group].group.extent) {
        return refuse_collective(x, FSDP_ERR_INVALID,
                                 "the group has no such root");
    }
    if (c->n > 0 &&
        (!c->out || (!c->in && !(c->kind == FSDP_BROADCAST &&
                                 c->root != x->member[*group].group.me)))) {
        return refuse_collective(x, FSDP_ERR_INVALID, "a buffer is NULL");
    }
    if (c->n > 0 &&
        ((uintptr_t)c->in | (uintptr_t)c->out) % fsdp_dtype_bytes(c->dtype) !=
            0) {
        return refuse_collective(x, FSDP_ERR_INVALID, "a buffer is misaligned");
    }
    return FSDP_OK;
}

/* ---- Collectives, in the order of the calls ---------------------------- */

static int cuda_comm_run(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *given)
{
    static const char *const names[] = {"all_gather", "reduce_scatter",
                                        "all_reduce", "broadcast", "barrier"};
    struct cuda_comm *x = self;
    struct cuda_device *d = x->device;
    struct fsdp_collective whole;
    const struct fsdp_collective *c = &whole;
    struct fsdp_stream *on;
    struct cuda_target target;
    struct cuda_member *m;
    uint32_t group = 0;
    int status;

    FSDP_TRY(cuda_device_status(d));
    if (!given || given->size < FSDP_COLLECTIVE_LEAST) {
        return refuse_collective(x, FSDP_ERR_INVALID,
                                 "no struct fsdp_collective");
    }
    whole = fsdp_collective_of(given);
    FSDP_TRY(check_collective(x, c, &group));
    m = &x->member[group];
    on = cuda_device_stream(d, stream, &target);
    FSDP_TRY(cuda_device_check(d,
                               cudaStreamWaitEvent(target.stream, m->last, 0),
                               "cudaStreamWaitEvent"));
    cuda_trace_push(names[c->kind], c->unit);
    status = cuda_collective(m, &target, c);
    cuda_trace_pop();
    FSDP_TRY(status);
    FSDP_TRY(cuda_device_check(d, cudaEventRecord(m->last, target.stream),
                               "cudaEventRecord"));
    /* The trial of a ring has waited for all streams before this was given. */
    (void)cuda_device_stream(d, on, NULL);
    return !stream ? cuda_device_finish(d, on) : FSDP_OK;
}

/* May be called from any thread: a waiting thread sees it in the watch. */
static void abort_all(void *self, int32_t status)
{
    struct cuda_comm *x = self;

    cuda_watch_abort(x->watch);
    x->real->abort(x->real->self, status);
}

/* ---- Hooks of waits ---------------------------------------------------- */

static int cuda_comm_look(void *self)
{
    struct cuda_comm *x = self;

    for (uint32_t g = 0; g <= x->n_dims; g++) {
        struct cuda_transport *t = &x->member[g].transport;

        if (t->self) {
            FSDP_TRY(t->look(t->self));
        }
    }
    return FSDP_OK;
}

static void give_up(void *self)
{
    struct cuda_comm *x = self;

    for (uint32_t g = 0; g <= x->n_dims; g++) {
        struct cuda_transport *t = &x->member[g].transport;

        if (t->self) {
            t->give_up(t->self);
        }
    }
}

/* ---- Open and close ---------------------------------------------------- */

/* The last dimension is the fastest; the world comes last. */
static void set_groups(struct cuda_comm *x)
{
    const struct fsdp_mesh *mesh = x->env->mesh;
    uint32_t stride = 1;

    for (uint32_t d = x->n_dims; d-- > 0;) {
        uint32_t me = x->env->rank / stride % mesh->extent[d];

        x->member[d].group = (struct cuda_group){
            x->device, mesh->extent[d], me, x->env->rank - me * stride, stride};
        stride *= mesh->extent[d];
    }
    x->member[x->n_dims].group =
        (struct cuda_group){x->device, x->env->world, x->env->rank, 0, 1};
}

static uint64_t staging_bytes(void)
{
    const char *text = getenv("FSDP_CUDA_STAGING");
    unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;

    return bytes > 0 ? bytes : STAGING;
}

/* A dimension that is the whole world shares nothing with the group of the
 * world, which serves the few collectives that ask for it. */
static int open_member(struct cuda_comm *x, uint32_t g)
{
    struct cuda_member *m = &x->member[g];
    uint64_t bytes = staging_bytes();
    void *p = NULL;

    FSDP_TRY(cuda_device_check(
        x->device, cudaEventCreateWithFlags(&m->last, cudaEventDisableTiming),
        "cudaEventCreate"));
    if (m->group.extent == 1) {
        return FSDP_OK;
    }
    m->chunk = bytes / sizeof(float) / m->group.extent;
    m->chunk = m->chunk > 0 ? m->chunk : 1;
    if (cudaMalloc(&p, m->chunk * m->group.extent * sizeof(float)) !=
        cudaSuccess) {
        return cuda_device_fail(x->device, FSDP_ERR_NOMEM, 0,
                                "the communicator", "no memory for staging");
    }
    m->staging = p;
    return FSDP_OK;
}

/* The first member of a group makes its id; all learn all of them. */
static int open_nccl(struct cuda_comm *x, struct cuda_member *m)
{
    const struct fsdp_env *env = x->env;
    unsigned char id[CUDA_NCCL_ID] = {0};
    unsigned char(*all)[CUDA_NCCL_ID] = calloc(env->world, sizeof(*all));
    int made = FSDP_OK;
    int status;

    if (!all) {
        return cuda_device_fail(x->device, FSDP_ERR_NOMEM, 0,
                                "the communicator", "no host memory");
    }
    if (m->group.first == env->rank && m->group.extent > 1) {
        made = cuda_nccl_id(x->device, id);
    }
    status = env->exchange(env->exchange_self, id, sizeof(id), all);
    status = made != FSDP_OK ? made : status;
    if (status == FSDP_OK && m->group.extent > 1) {
        status = cuda_nccl_open(&m->group, all[m->group.first], &m->transport);
    }
    free(all);
    return status;
}

static int open_all(struct cuda_comm *x, bool shares)
{
    set_groups(x);
    if (!shares) {
        FSDP_TRY(cuda_nccl_check(x->device));
    }
    for (uint32_t g = 0; g <= x->n_dims; g++) {
        struct cuda_member *m = &x->member[g];

        FSDP_TRY(open_member(x, g));
        if (shares) {
            FSDP_TRY(cuda_ipc_open(x->env, &m->group,
                                   cuda_watch_counters(x->watch, g),
                                   m->chunk * sizeof(float), &m->transport));
        } else {
            FSDP_TRY(open_nccl(x, m));
        }
    }
    return FSDP_OK;
}

/* Connects ranks before the first step, within each dimension. The world's own
 * group is not connected, as it may never be used. */
static int connect_all(struct cuda_comm *x)
{
    struct cuda_target target;
    struct fsdp_stream *on = cuda_device_stream(x->device, NULL, &target);

    for (uint32_t g = 0; g < x->n_dims; g++) {
        FSDP_TRY(cuda_collective_connect(&x->member[g], &target));
    }
    return cuda_device_finish(x->device, on);
}

int cuda_comm_open(const struct fsdp_env *env, struct cuda_device *device,
                   struct cuda_watch *watch, bool shares, struct fsdp_comm *out)
{
    struct cuda_comm *x = calloc(1, sizeof(*x));

    *out = (struct fsdp_comm){0};
    if (!x || env->mesh->n_dims > MOST_DIMS) {
        free(x);
        return cuda_device_fail(device, FSDP_ERR_UNSUPPORTED, 0, "the mesh",
                                "has more dimensions than two");
    }
    x->env = env;
    x->real = env->comm;
    x->device = device;
    x->watch = watch;
    x->n_dims = env->mesh->n_dims;
    *out = (struct fsdp_comm){.size = sizeof(*out),
                              .place = FSDP_PLACE_CUDA,
                              .takes_streams = 1,
                              .self = x,
                              .run = cuda_comm_run,
                              .abort = abort_all};
    cuda_device_hook(device, &(struct cuda_hooks){x, cuda_comm_look, give_up});
    FSDP_TRY(open_all(x, shares));
    return connect_all(x);
}

void cuda_comm_close(struct fsdp_comm *comm)
{
    struct cuda_comm *x = comm->self;

    if (!x) {
        return;
    }
    /* Closing another process's memory unmaps it even while work still reads
     * it; and when NCCL frees a communicator's memory, it may wait for the
     * whole GPU, in a place where no thread looks around. */
    (void)cuda_device_idle(x->device);
    for (uint32_t g = 0; g <= x->n_dims; g++) {
        struct cuda_member *m = &x->member[g];

        if (m->transport.self) {
            m->transport.close(m->transport.self);
            m->transport.self = NULL;
        }
        if (m->last) {
            (void)cudaEventDestroy(m->last);
        }
        cuda_device_free(x->device, m->staging);
    }
    cuda_device_hook(x->device, &(struct cuda_hooks){0});
    free(x);
    *comm = (struct fsdp_comm){0};
}
