/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_carrier.c - turns through shared memory, and a rank's life in it.
 *
 * A turn is one barrier. Each rank has two places in each of its groups and
 * fills them alternately: the others read what it wrote in turn t before they
 * arrive at turn t + 1, so when that turn is over the place is free for turn t
 * + 2.
 */
#include "arena.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

struct member {
    struct world_comm comm; /* the carrier's user knows this part */
    struct arena *arena;
    uint32_t turns[WORLD_MAX_GROUPS];
    pid_t pid;
    struct world_rank rank;
};

static struct arena_place *place_of(struct member *m, uint32_t group,
                                    uint32_t rank)
{
    /* Members of a group have taken the same number of turns in it. */
    uint32_t side = m->turns[group] & 1;
    struct arena *arena = m->arena;
    return &arena->place[(rank * arena->n_groups + group) * 2 + side];
}

static void *arena_place(struct world_comm *comm, uint32_t group)
{
    struct member *m = (struct member *)comm;
    return place_of(m, group, m->rank.rank)->data;
}

static int arena_check(struct world_comm *comm)
{
    struct member *m = (struct member *)comm;
    return atomic_load(&m->arena->aborted) == FSDP_OK ? FSDP_OK
                                                      : FSDP_ERR_ABORTED;
}

/* Why a barrier was shut. */
static int shut_status(struct member *m, const struct world_group *g)
{
    FSDP_TRY(arena_check(&m->comm));
    uint32_t left = g->first;
    for (uint32_t i = 0; i < g->extent; i++) {
        uint32_t r = g->first + i * g->stride;
        if (atomic_load(&m->arena->rank[r].left) != 0) {
            left = r;
            break;
        }
    }
    return world_comm_deserted(&m->comm, left);
}

static int arena_turn(struct world_comm *comm, uint32_t group,
                      const struct world_turn *turn,
                      const unsigned char **parts)
{
    struct member *m = (struct member *)comm;
    const struct world_group *g = &comm->group[group];
    const struct world_header *header[WORLD_MAX_RANKS];
    uint64_t skip = turn->pattern == WORLD_EACH ? g->me * turn->bytes : 0;

    place_of(m, group, m->rank.rank)->header = turn->header;
    if (!arena_meet(&m->arena->barrier[group][g->first], g->extent,
                    m->arena->spare)) {
        return shut_status(m, g);
    }
    for (uint32_t i = 0; i < g->extent; i++) {
        struct arena_place *other =
            place_of(m, group, g->first + i * g->stride);
        header[i] = &other->header;
        parts[i] = other->data + skip;
    }
    m->turns[group]++;
    return world_comm_agree(comm, group, header);
}

/* The kernel copies, and checks that the memory is still there: a member that
 * was aborted may have given it back. Threads have no such guard, so they do
 * not read each other's memory. */
static int fetch(struct world_comm *comm, uint32_t group, uint32_t member,
                 uint64_t theirs, void *to, uint64_t bytes)
{
    struct member *m = (struct member *)comm;
    const struct world_group *g = &comm->group[group];
    pid_t pid = m->arena->rank[g->first + member * g->stride].pid;
    unsigned char *at = to;
    if (pid == m->pid) {
        return FSDP_ERR_UNSUPPORTED;
    }
    while (bytes > 0) {
        struct iovec mine = {at, bytes};
        /* An address in another process, which is a pointer by its type alone.
         * NOLINTNEXTLINE(performance-no-int-to-ptr) */
        struct iovec other = {(void *)(uintptr_t)theirs, bytes};
        ssize_t n = process_vm_readv(pid, &mine, 1, &other, 1, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return FSDP_ERR_COMM;
        }
        at += n;
        theirs += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return FSDP_OK;
}

static void abort_world(struct world_comm *comm, int32_t status)
{
    arena_abort(((struct member *)comm)->arena, status);
}

static void stack_to(struct world_comm *comm, const char *file)
{
    struct member *m = (struct member *)comm;

    arena_stack_to(&m->arena->rank[m->rank.rank], &m->arena->aborted, file);
}

static const struct world_carrier carrier = {
    .place = arena_place,
    .turn = arena_turn,
    .abort = abort_world,
    .check = arena_check,
    .fetch = fetch,
    .stack_to = stack_to,
};

void arena_rank_run(struct arena *arena, const struct world_job *job,
                    uint32_t rank)
{
    struct member m = {.arena = arena, .pid = getpid()};
    struct arena_rank *own = &arena->rank[rank];
    own->pid = m.pid;
    /* If processes may read only their children's memory, this lets siblings do
     * so, too. If it fails, fetch finds out. */
    (void)prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
    world_comm_init(&m.comm, &carrier, job->mesh, rank, &own->progress,
                    &own->error, &m.rank);
    m.rank.shared = arena;
    m.rank.shared_bytes = arena->bytes;
    own->status = job->body(job->context, &m.rank);
    if (own->status != FSDP_OK) {
        arena_abort(arena, own->status);
    }
    /* Ranks that wait for this one would wait in vain. */
    atomic_store(&own->left, 1);
    for (uint32_t group = 0; group < arena->n_groups; group++) {
        arena_shut(&arena->barrier[group][m.comm.group[group].first]);
    }
}
