/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_carrier.c - how a rank takes its turns if a broker carries them.
 */
#include "broker.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
    TURN = 2 /* of `answered` */
};

struct member {
    struct world_comm comm; /* the carrier's user knows this part */
    struct broker_area *own;
    int bell;
    bool spare; /* there is a core for each rank and the broker */
    struct world_rank rank;
};

void broker_keep_own(const struct broker *b, uint32_t rank)
{
    const struct arena *arena = b->arena;
    char *const all = (char *)b->arena;
    char *const own = all + arena->areas_at + arena->area_bytes * rank;
    char *const end = all + arena->bytes;
    char *const next = own + arena->area_bytes;

    for (uint32_t r = 0; r <= arena->n_ranks; r++) {
        if (r != rank) {
            (void)close(b->bell[r]);
        }
    }
    if (next < end) {
        (void)munmap(next, (size_t)(end - next));
    }
    (void)munmap(all, (size_t)(own - all));
}

/* Rings the rank's bell. If the bell is gone the rank is heard when the broker
 * looks by itself. */
static void ring(struct broker_area *own, int bell)
{
    const uint64_t once = 1;

    if (atomic_load(&own->asleep) != 0) {
        (void)!write(bell, &once, sizeof(once));
    }
}

static void *broker_place(struct world_comm *comm, uint32_t group)
{
    (void)group;
    return ((struct member *)comm)->own->out;
}

static int broker_check(struct world_comm *comm)
{
    struct member *m = (struct member *)comm;
    return atomic_load(&m->own->aborted) == FSDP_OK ? FSDP_OK
                                                    : FSDP_ERR_ABORTED;
}

/* Takes the parts that the broker has put there for this rank. */
static void take_parts(struct member *m, uint32_t group,
                       const struct world_turn *turn,
                       const unsigned char **parts)
{
    const struct world_group *g = &m->comm.group[group];
    const uint64_t step = broker_part(turn->bytes);
    const uint64_t skip = turn->pattern == WORLD_EACH ? g->me * turn->bytes : 0;

    for (uint32_t i = 0; i < g->extent; i++) {
        parts[i] = i == g->me ? m->own->out + skip : m->own->in + i * step;
    }
    if (turn->pattern == WORLD_ROOT && turn->header.root != g->me) {
        parts[turn->header.root] = m->own->in;
    }
}

/* Why there are no parts. */
static int refused(struct member *m, uint32_t group)
{
    struct broker_area *const own = m->own;
    const struct world_header *header[WORLD_MAX_RANKS];

    if (own->left < m->rank.world) {
        return world_comm_deserted(&m->comm, own->left);
    }
    for (uint32_t i = 0; i < m->comm.group[group].extent; i++) {
        header[i] = &own->header[i];
    }
    if (own->verdict == FSDP_ERR_MISMATCH) {
        FSDP_TRY(world_comm_agree(&m->comm, group, header));
    }
    return world_fail(m->rank.error, own->verdict, m->rank.rank, 0, "comm",
                      "what was posted is no turn of a collective");
}

static int broker_turn(struct world_comm *comm, uint32_t group,
                       const struct world_turn *turn,
                       const unsigned char **parts)
{
    struct member *m = (struct member *)comm;
    struct broker_area *const own = m->own;
    const uint32_t seen =
        TURN * atomic_load_explicit(&own->posted, memory_order_relaxed);

    FSDP_TRY(broker_check(comm));
    own->group = group;
    own->turn = *turn;
    atomic_fetch_add(&own->posted, 1);
    ring(own, m->bell);
    if (!arena_await(&own->answered, &own->sleepers, seen, m->spare)) {
        return FSDP_ERR_ABORTED;
    }
    if (own->verdict != FSDP_OK) {
        return refused(m, group);
    }
    take_parts(m, group, turn, parts);
    return FSDP_OK;
}

static void give_up(struct broker_area *own, int bell, int32_t status)
{
    int32_t none = FSDP_OK;

    (void)atomic_compare_exchange_strong(
        &own->gives_up, &none, status == FSDP_OK ? FSDP_ERR_ABORTED : status);
    ring(own, bell);
    /* The rank's own calls fail from here on, even before the others learn
     * it. */
    none = FSDP_OK;
    (void)atomic_compare_exchange_strong(&own->aborted, &none,
                                         atomic_load(&own->gives_up));
}

static void abort_world(struct world_comm *comm, int32_t status)
{
    struct member *m = (struct member *)comm;

    give_up(m->own, m->bell, status);
}

static void stack_to(struct world_comm *comm, const char *file)
{
    struct member *m = (struct member *)comm;

    arena_stack_to(&m->own->self, &m->own->aborted, file);
}

static const struct world_carrier carrier = {
    .place = broker_place,
    .turn = broker_turn,
    .abort = abort_world,
    .check = broker_check,
    .stack_to = stack_to,
};

void broker_rank_run(struct broker_area *own, int bell, bool spare,
                     const struct world_job *job, uint32_t rank)
{
    struct member m = {.own = own, .bell = bell, .spare = spare};
    struct arena_rank *const self = &own->self;

    self->pid = getpid();
    world_comm_init(&m.comm, &carrier, job->mesh, rank, &self->progress,
                    &self->error, &m.rank);
    m.rank.shared = own;
    m.rank.shared_bytes =
        sizeof(*own) + (size_t)job->n_ranks * WORLD_PLACE_BYTES;
    self->status = job->body(job->context, &m.rank);
    if (self->status != FSDP_OK) {
        give_up(own, bell, self->status);
    }
    /* Ranks that wait for this one would wait in vain. */
    atomic_store(&self->left, 1);
    ring(own, bell);
}

void broker_rank_end(struct broker_area *own, int bell)
{
    atomic_store(&own->self.ended, 1);
    ring(own, bell);
}
