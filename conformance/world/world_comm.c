/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_comm.c - all collectives, in bounded turns of a carrier.
 *
 * Every turn carries a header that the carrier compares before anybody reads
 * what was sent, so ranks that disagree learn it instead of getting wrong
 * data. A collective that moves nothing still takes one turn.
 */
#include "world_comm.h"
#include "world_fold.h"

#include <stdio.h>
#include <string.h>

enum {
    KIND_EXCHANGE = FSDP_N_COLLECTIVES
};

/* One call, and how it is cut: elements [at, at + m) of n in a turn. */
struct call {
    struct world_comm *comm;
    uint32_t group;
    uint32_t extent;
    uint32_t me;
    uint64_t element_bytes;
    struct world_turn turn;
    const unsigned char *in;
    unsigned char *out;
    const unsigned char *part[WORLD_MAX_RANKS];
};

static bool is_reduction(uint32_t kind)
{
    return kind == FSDP_REDUCE_SCATTER || kind == FSDP_ALL_REDUCE;
}

static int refuse(const struct world_comm *comm, int32_t status,
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
        return refuse(comm, FSDP_ERR_INVALID, "n is out of range");
    }
    uint64_t bytes = c->n * element;
    bool sends = c->kind != FSDP_BROADCAST || c->root == group->me;
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (c->out == NULL || (sends && c->in == NULL)) {
        return refuse(comm, FSDP_ERR_INVALID, "a buffer is NULL");
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
        return refuse(comm, FSDP_ERR_INVALID, "in and out overlap");
    }
    return FSDP_OK;
}

static int check_call(const struct world_comm *comm,
                      const struct fsdp_collective *c, uint32_t *out_group)
{
    if (c == NULL || c->size < sizeof(*c)) {
        return refuse(comm, FSDP_ERR_INVALID, "no struct fsdp_collective");
    }
    if (c->kind >= FSDP_N_COLLECTIVES) {
        return refuse(comm, FSDP_ERR_INVALID, "no such kind of collective");
    }
    if (c->dim != FSDP_DIM_WORLD && c->dim >= comm->n_dims) {
        return refuse(comm, FSDP_ERR_INVALID, "the mesh has no such dim");
    }
    *out_group = c->dim == FSDP_DIM_WORLD ? comm->n_dims : c->dim;
    const struct world_group *group = &comm->group[*out_group];
    if (c->kind == FSDP_BARRIER) {
        return c->n == 0 ? FSDP_OK
                         : refuse(comm, FSDP_ERR_INVALID, "a barrier has n 0");
    }
    if (fsdp_dtype_bytes(c->dtype) == 0) {
        return refuse(comm, FSDP_ERR_INVALID, "no such dtype");
    }
    if (is_reduction(c->kind) && c->fold > FSDP_FOLD_TREE) {
        return refuse(comm, FSDP_ERR_INVALID, "no such fold");
    }
    if (is_reduction(c->kind) && c->dtype != FSDP_DTYPE_F32) {
        return refuse(comm, FSDP_ERR_UNSUPPORTED, "reductions are of float32");
    }
    if (c->kind == FSDP_BROADCAST && c->root >= group->extent) {
        return refuse(comm, FSDP_ERR_INVALID, "the group has no such root");
    }
    return check_buffers(comm, c, group);
}

/* Copies elements [at, at + m) of what this rank sends into its place. */
static void publish(struct call *call, uint64_t at, uint64_t m)
{
    uint64_t bytes = m * call->element_bytes;
    uint64_t from = at * call->element_bytes;
    if (bytes == 0 || (call->turn.pattern == WORLD_ROOT &&
                       call->turn.header.root != call->me)) {
        return;
    }
    unsigned char *to = call->comm->carrier->place(call->comm, call->group);
    if (call->turn.pattern != WORLD_EACH) {
        memcpy(to, call->in + from, bytes);
        return;
    }
    uint64_t stride = call->turn.header.n * call->element_bytes;
    for (uint32_t r = 0; r < call->extent; r++) {
        memcpy(to + r * bytes, call->in + r * stride + from, bytes);
    }
}

static void fold_part(struct call *call, uint32_t owner, uint64_t skip,
                      uint64_t m, float *out)
{
    const float *in[WORLD_MAX_RANKS];
    for (uint32_t r = 0; r < call->extent; r++) {
        in[r] = (const float *)(const void *)call->part[r] + skip;
    }
    world_fold(call->turn.header.fold, owner, in, call->extent, m, out);
}

/* Under RING the owner of an element depends on where it stands in the whole
 * call, wherever the turns cut it. */
static void fold_owned(struct call *call, uint64_t at, uint64_t m)
{
    float *out = (float *)(void *)call->out;
    uint64_t n = call->turn.header.n;
    uint64_t block = n / call->extent + (n % call->extent != 0);
    for (uint64_t i = at; i < at + m;) {
        uint64_t owner = i / block;
        uint64_t end = (owner + 1) * block;
        uint64_t run = (end < at + m ? end : at + m) - i;
        fold_part(call, (uint32_t)owner, i - at, run, out + i);
        i += run;
    }
}

/* Takes elements [at, at + m) from what the members sent. */
static void receive(struct call *call, uint64_t at, uint64_t m)
{
    uint64_t bytes = m * call->element_bytes;
    unsigned char *to = call->out + at * call->element_bytes;
    switch (call->turn.header.kind) {
    case FSDP_REDUCE_SCATTER:
        fold_part(call, call->me, 0, m, (float *)(void *)to);
        break;
    case FSDP_ALL_REDUCE:
        fold_owned(call, at, m);
        break;
    case FSDP_BROADCAST:
        memcpy(to, call->part[call->turn.header.root], bytes);
        break;
    default: /* FSDP_ALL_GATHER, KIND_EXCHANGE */
        for (uint32_t r = 0; r < call->extent; r++) {
            uint64_t whole = call->turn.header.n * call->element_bytes;
            memcpy(to + r * whole, call->part[r], bytes);
        }
    }
}

static int take_turns(struct call *call)
{
    struct world_comm *comm = call->comm;
    struct world_turn *turn = &call->turn;
    uint64_t n = turn->header.n;
    /* check_call refused what has no bytes.
     * NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    uint64_t most = WORLD_PLACE_BYTES / call->element_bytes;
    if (turn->pattern == WORLD_EACH) {
        most /= call->extent;
    }
    turn->header.sequence = comm->sequence[call->group]++;
    uint64_t at = 0;
    do {
        uint64_t m = n - at < most ? n - at : most;
        publish(call, at, m);
        turn->bytes = m * call->element_bytes;
        FSDP_TRY(comm->carrier->turn(comm, call->group, turn, call->part));
        atomic_fetch_add_explicit(&comm->progress->beats, 1,
                                  memory_order_relaxed);
        turn->header.turn++;
        if (m > 0) {
            receive(call, at, m);
        }
        at += m;
    } while (at < n);
    return FSDP_OK;
}

static void call_begin(struct call *call, struct world_comm *comm,
                       uint32_t group, uint64_t element_bytes)
{
    memset(call, 0, sizeof(*call));
    call->comm = comm;
    call->group = group;
    call->extent = comm->group[group].extent;
    call->me = comm->group[group].me;
    call->element_bytes = element_bytes;
}

static uint32_t pattern_of(uint32_t kind)
{
    switch (kind) {
    case FSDP_REDUCE_SCATTER:
        return WORLD_EACH;
    case FSDP_BROADCAST:
        return WORLD_ROOT;
    default:
        return WORLD_ALL;
    }
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

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    struct world_comm *comm = self;
    struct world_progress *progress = comm->progress;
    uint32_t group = 0;
    (void)stream;
    /* Who waited for what when a world was aborted is what one wants to know
     * of it. So the call that learns of it counts as entered and never left,
     * and later ones do not count. */
    if (atomic_load_explicit(&progress->in_collective, memory_order_relaxed)) {
        return FSDP_ERR_ABORTED;
    }
    FSDP_TRY(check_call(comm, c, &group));

    struct call call;
    call_begin(&call, comm, group,
               c->kind == FSDP_BARRIER ? 1 : fsdp_dtype_bytes(c->dtype));
    call.in = c->in;
    call.out = c->out;
    call.turn.pattern = pattern_of(c->kind);
    call.turn.header.kind = c->kind;
    call.turn.header.dtype = c->dtype;
    call.turn.header.fold = c->fold;
    call.turn.header.root = c->root;
    call.turn.header.n = c->n;
    enter(progress, c);
    int status = comm->carrier->check(comm);
    if (status == FSDP_OK) {
        status = take_turns(&call);
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
    if (bytes > WORLD_EXCHANGE_BYTES ||
        (bytes > 0 && (mine == NULL || all == NULL))) {
        return refuse(comm, FSDP_ERR_INVALID, "exchange: bad buffer or size");
    }
    struct call call;
    call_begin(&call, comm, comm->n_dims, 1);
    call.in = mine;
    call.out = all;
    call.turn.pattern = WORLD_ALL;
    call.turn.header.kind = KIND_EXCHANGE;
    call.turn.header.n = bytes;
    return take_turns(&call);
}

static void abort_comm(void *self, int32_t status)
{
    struct world_comm *comm = self;
    comm->carrier->abort(comm, status);
}

static void describe(const struct world_header *h, char *out, size_t room)
{
    static const char *const name[] = {"all_gather", "reduce_scatter",
                                       "all_reduce", "broadcast",
                                       "barrier",    "exchange"};
    const char *kind = h->kind <= KIND_EXCHANGE ? name[h->kind] : "?";
    (void)snprintf(
        out, room, "%s n %llu dtype %u fold %u root %u (no. %llu.%llu)", kind,
        (unsigned long long)h->n, h->dtype, h->fold, h->root,
        (unsigned long long)h->sequence, (unsigned long long)h->turn);
}

int world_comm_agree(struct world_comm *comm, uint32_t group,
                     const struct world_header *const *header)
{
    const struct world_group *g = &comm->group[group];
    for (uint32_t i = 1; i < g->extent; i++) {
        if (memcmp(header[i], header[0], sizeof(*header[0])) == 0) {
            continue;
        }
        char a[88];
        char b[88];
        describe(header[0], a, sizeof(a));
        describe(header[i], b, sizeof(b));
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

static void set_groups(struct world_comm *comm, const struct fsdp_mesh *mesh,
                       uint32_t rank)
{
    uint32_t stride = 1;
    comm->n_dims = mesh->n_dims;
    for (uint32_t d = mesh->n_dims; d-- > 0;) {
        uint32_t me = rank / stride % mesh->extent[d];
        comm->group[d] = (struct world_group){.extent = mesh->extent[d],
                                              .me = me,
                                              .first = rank - me * stride,
                                              .stride = stride};
        stride *= mesh->extent[d];
    }
    comm->group[mesh->n_dims] =
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
    set_groups(comm, mesh, rank);
    *out = (struct world_rank){
        .rank = rank,
        .world = comm->group[mesh->n_dims].extent,
        .comm = {.size = sizeof(struct fsdp_comm),
                 .self = comm,
                 .run = run,
                 .abort = abort_comm},
        .exchange = exchange,
        .exchange_self = comm,
        .error = error,
    };
}
