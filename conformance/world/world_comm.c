/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_comm.c - the calls of a rank: checks whether comm.h allows the call,
 * and whether all members of the group make the same one.
 *
 * Every turn carries a header, and the carrier compares headers before any rank
 * reads what was sent, so ranks that disagree learn it instead of getting wrong
 * data. A collective that moves nothing still takes one turn. How data move is
 * in world_turns.c and world_straight.c.
 */
#include "world_turns.h"

#include <fsdp/arith/cast.h>
#include <stdio.h>
#include <string.h>

static bool is_reduction(uint32_t kind)
{
    return kind == FSDP_REDUCE_SCATTER || kind == FSDP_ALL_REDUCE;
}

static int refuse_collective(const struct world_comm *comm, int32_t status,
                             const char *what)
{
    return world_fail(comm->rank->error, status, comm->rank->rank, 0, "comm",
                      "%s", what);
}

/* Whether two ranges share a byte. */
static bool overlap(const void *a, uint64_t a_bytes, const void *b,
                    uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;
    if (a_bytes == 0 || b_bytes == 0) {
        return false;
    }
    return x < y ? y - x < a_bytes : x - y < b_bytes;
}

/* The table of comm.h: which buffers a call needs and how they may lie. */
static int check_buffers(const struct world_comm *comm,
                         const struct fsdp_collective *c,
                         const struct world_group *group)
{
    uint64_t extent = group->extent;
    uint64_t element = fsdp_dtype_bytes(c->dtype);
    if (c->n > UINT64_MAX / 2 / element / extent) {
        return refuse_collective(comm, FSDP_ERR_INVALID, "n is out of range");
    }
    uint64_t bytes = c->n * element;
    bool sends = c->kind != FSDP_BROADCAST || c->root == group->me;
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (!c->out || (sends && !c->in)) {
        return refuse_collective(comm, FSDP_ERR_INVALID, "a buffer is NULL");
    }
    const unsigned char *allowed = c->out; /* where `in` may be in place */
    uint64_t in_bytes = bytes;
    uint64_t out_bytes = bytes;
    if (c->kind == FSDP_ALL_GATHER) {
        out_bytes = bytes * extent;
        allowed += bytes * group->me;
    } else if (c->kind == FSDP_REDUCE_SCATTER) {
        in_bytes = bytes * extent;
        allowed = NULL;
    }
    if (sends && c->in != allowed &&
        overlap(c->in, in_bytes, c->out, out_bytes)) {
        return refuse_collective(comm, FSDP_ERR_INVALID, "in and out overlap");
    }
    return FSDP_OK;
}

static int check_call(const struct world_comm *comm,
                      const struct fsdp_collective *c, uint32_t *out_group)
{
    if (c->kind >= FSDP_N_COLLECTIVES) {
        return refuse_collective(comm, FSDP_ERR_INVALID,
                                 "no such kind of collective");
    }
    if (c->dim != FSDP_DIM_WORLD && c->dim >= comm->n_dims) {
        return refuse_collective(comm, FSDP_ERR_INVALID,
                                 "the mesh has no such dim");
    }
    *out_group = c->dim == FSDP_DIM_WORLD ? comm->n_dims : c->dim;
    const struct world_group *group = &comm->group[*out_group];
    if (c->kind == FSDP_BARRIER) {
        return c->n == 0 ? FSDP_OK
                         : refuse_collective(comm, FSDP_ERR_INVALID,
                                             "a barrier has n 0");
    }
    if (fsdp_dtype_bytes(c->dtype) == 0) {
        return refuse_collective(comm, FSDP_ERR_INVALID, "no such dtype");
    }
    if (is_reduction(c->kind) && c->fold > FSDP_FOLD_TREE) {
        return refuse_collective(comm, FSDP_ERR_INVALID, "no such fold");
    }
    if (is_reduction(c->kind) && !fsdp_is_float(c->dtype)) {
        return refuse_collective(comm, FSDP_ERR_UNSUPPORTED,
                                 "reductions are of float32, bf16 or f16");
    }
    if (is_reduction(c->kind) && fsdp_sum_dtype(c) != c->dtype &&
        c->sum_dtype != FSDP_DTYPE_F32) {
        return refuse_collective(
            comm, FSDP_ERR_INVALID,
            "sum_dtype is neither that of the wire nor float32");
    }
    if (c->kind == FSDP_BROADCAST && c->root >= group->extent) {
        return refuse_collective(comm, FSDP_ERR_INVALID,
                                 "the group has no such root");
    }
    return check_buffers(comm, c, group);
}

static void call_begin(struct world_call *call, struct world_comm *comm,
                       uint32_t group, uint64_t element_bytes)
{
    memset(call, 0, sizeof(*call));
    call->comm = comm;
    call->group = group;
    call->extent = comm->group[group].extent;
    call->me = comm->group[group].me;
    call->element_bytes = element_bytes;
}

static void enter(struct world_progress *progress,
                  const struct fsdp_collective *c)
{
    atomic_store_explicit(&progress->last_kind, c->kind, memory_order_relaxed);
    atomic_store_explicit(&progress->last_unit, c->unit, memory_order_relaxed);
    atomic_store_explicit(&progress->in_collective, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->n_collectives, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->beats, 1, memory_order_relaxed);
}

static int world_comm_run(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *given)
{
    struct world_comm *comm = self;
    struct world_progress *progress = comm->progress;
    struct fsdp_collective whole;
    const struct fsdp_collective *c = &whole;
    uint32_t group = 0;
    (void)stream;
    /* When a world is aborted, the result should show which rank waited in
     * which collective. So the call that learns of the abort counts as entered
     * and never left, and later ones do not count. */
    if (atomic_load_explicit(&progress->in_collective, memory_order_relaxed)) {
        return FSDP_ERR_ABORTED;
    }
    if (!given || given->size < FSDP_COLLECTIVE_LEAST) {
        return refuse_collective(comm, FSDP_ERR_INVALID,
                                 "no struct fsdp_collective");
    }
    whole = fsdp_collective_of(given);
    FSDP_TRY(check_call(comm, c, &group));

    struct world_call call;
    call_begin(&call, comm, group,
               c->kind == FSDP_BARRIER ? 1 : fsdp_dtype_bytes(c->dtype));
    call.in = c->in;
    call.out = c->out;
    call.turn.header.kind = c->kind;
    call.turn.header.dtype = c->dtype;
    call.turn.header.fold = c->fold;
    call.turn.header.root = c->root;
    call.turn.header.sum_dtype = is_reduction(c->kind) ? fsdp_sum_dtype(c) : 0;
    call.turn.header.n = c->n;
    enter(progress, c);
    int status = comm->carrier->check(comm);
    if (status == FSDP_OK) {
        status = world_run_call(&call);
    }
    if (status != FSDP_ERR_ABORTED && status != FSDP_ERR_TIMEOUT) {
        atomic_store_explicit(&progress->in_collective, 0,
                              memory_order_relaxed);
    }
    return status;
}

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    struct world_comm *comm = self;
    FSDP_TRY(comm->carrier->check(comm));
    if (bytes > WORLD_EXCHANGE_BYTES || (bytes > 0 && (!mine || !all))) {
        return refuse_collective(comm, FSDP_ERR_INVALID,
                                 "exchange: bad buffer or size");
    }
    struct world_call call;
    call_begin(&call, comm, comm->n_dims, 1);
    call.in = mine;
    call.out = all;
    call.turn.header.kind = WORLD_EXCHANGE;
    call.turn.header.n = bytes;
    return world_run_call(&call);
}

static void abort_comm(void *self, int32_t status)
{
    struct world_comm *comm = self;
    comm->carrier->abort(comm, status);
}

/* Describes a header; fields on which most callers agree only if they
 * differ. */
static void describe(const struct world_header *h,
                     const struct world_header *other, char *out, size_t room)
{
    static const char *const name[] = {"all-gather", "reduce-scatter",
                                       "all-reduce", "broadcast",
                                       "barrier",    "exchange"};
    const char *kind = h->kind <= WORLD_EXCHANGE ? name[h->kind] : "?";
    char rest[56] = "";

    if (h->dtype != other->dtype || h->fold != other->fold ||
        h->root != other->root ||
        (h->kind == other->kind && h->sum_dtype != other->sum_dtype)) {
        snprintf(rest, sizeof(rest), " dtype %u fold %u root %u sum %u",
                 h->dtype, h->fold, h->root, h->sum_dtype);
    }
    snprintf(out, room, "%s n %llu%s (no. %llu)", kind,
             (unsigned long long)h->n, rest, (unsigned long long)h->sequence);
}

int world_comm_agree(struct world_comm *comm, uint32_t group,
                     const struct world_header *const *header)
{
    const struct world_group *g = &comm->group[group];
    for (uint32_t i = 1; i < g->extent; i++) {
        if (memcmp(header[i], header[0], sizeof(*header[0])) == 0) {
            continue;
        }
        char a[104];
        char b[104];
        describe(header[0], header[i], a, sizeof(a));
        describe(header[i], header[0], b, sizeof(b));
        return world_fail(comm->rank->error, FSDP_ERR_MISMATCH,
                          comm->rank->rank, 0, "comm",
                          "rank %u: %s; rank %u: %s", g->first, a,
                          g->first + i * g->stride, b);
    }
    return FSDP_OK;
}

int world_comm_deserted(struct world_comm *comm, uint32_t left)
{
    return world_fail(comm->rank->error, FSDP_ERR_MISMATCH, comm->rank->rank, 0,
                      "comm", "rank %u returned without this collective", left);
}

void world_comm_groups(const struct fsdp_mesh *mesh, uint32_t rank,
                       struct world_group group[WORLD_MAX_GROUPS])
{
    uint32_t stride = 1;
    for (uint32_t d = mesh->n_dims; d-- > 0;) {
        uint32_t me = rank / stride % mesh->extent[d];
        group[d] = (struct world_group){.extent = mesh->extent[d],
                                        .me = me,
                                        .first = rank - me * stride,
                                        .stride = stride};
        stride *= mesh->extent[d];
    }
    group[mesh->n_dims] =
        (struct world_group){.extent = stride, .me = rank, .stride = 1};
}

void world_comm_init(struct world_comm *comm,
                     const struct world_carrier *carrier,
                     const struct fsdp_mesh *mesh, uint32_t rank,
                     struct world_progress *progress, struct fsdp_error *error,
                     struct world_rank *out)
{
    memset(comm, 0, sizeof(*comm));
    comm->carrier = carrier;
    comm->progress = progress;
    comm->rank = out;
    comm->n_dims = mesh->n_dims;
    world_comm_groups(mesh, rank, comm->group);
    *out = (struct world_rank){
        .rank = rank,
        .world = comm->group[mesh->n_dims].extent,
        .comm = {.size = sizeof(struct fsdp_comm),
                 .self = comm,
                 .run = world_comm_run,
                 .abort = abort_comm},
        .exchange = exchange,
        .exchange_self = comm,
        .error = error,
    };
}

void world_stack_to(struct world_rank *rank, const char *file)
{
    struct world_comm *comm = rank->comm.self;

    if (comm->carrier->stack_to) {
        comm->carrier->stack_to(comm, file);
    }
}
