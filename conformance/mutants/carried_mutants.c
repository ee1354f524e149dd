/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_mutants.c - engines that go past the recorder: ranks send each other
 * something else than is recorded. They also correct the counts of the world in
 * their own process. Found where ranks are isolated, by the process that
 * carries.
 */
#include "mutants/mutant_kit.h"
#include "world/world_comm.h"

#include <string.h>

enum {
    KEPT = 16,        /* all-gathers of a pass */
    KEPT_BYTES = 2048 /* of one gather: the models are small */
};

static _Thread_local uint32_t sent; /* all-gathers */

/* What the all-gathers of a unit brought since the last step. */
struct kept {
    bool there;
    unsigned char value[KEPT_BYTES];
    /* What this rank sent, since the last step and before it. */
    unsigned char sent[KEPT_BYTES], older[KEPT_BYTES];
};
static _Thread_local void *kept_room; /* struct kept[KEPT] */

/* NULL if there is none. */
static struct kept *kept_of(uint32_t unit)
{
    struct kept *const all = mutant_room(&kept_room, KEPT * sizeof(*all));

    return all && unit < KEPT ? &all[unit] : NULL;
}

static void forget(void)
{
    sent = 0;
    if (kept_room) {
        memset(kept_room, 0, KEPT * sizeof(struct kept));
    }
}

/* Sends past the recorder, and takes the collective out of the world's
 * counts. */
static int send_unseen(const struct fsdp_collective *c)
{
    struct world_comm *const world = mutant_below.comm->self;
    struct world_progress *const p = world->progress;
    const uint32_t kind = atomic_load(&p->last_kind);
    const uint32_t unit = atomic_load(&p->last_unit);
    const int status = mutant_carry(NULL, c);

    atomic_store(&p->last_kind, kind);
    atomic_store(&p->last_unit, unit);
    atomic_fetch_sub(&p->n_collectives, 1);
    return status;
}

static int gathers_unseen(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float mine = how->lr[0];
    float all[WORLD_MAX_RANKS];
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_ALL_GATHER,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .n = 1,
                                      .in = &mine,
                                      .out = all};

    FSDP_TRY(send_unseen(&c));
    return mutant_real.engine.step(s, how);
}

static int exchanges_unseen(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float all[WORLD_MAX_RANKS];

    FSDP_TRY(mutant_below.exchange(mutant_below.exchange_self, how->lr,
                                   sizeof(*how->lr), all));
    return mutant_real.engine.step(s, how);
}

/* Ranks ask for different numbers of elements, and the error tells each the
 * others': a message without a collective. */
static int disagrees_unseen(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float mine[KEPT] = {0}; /* of few ranks; nothing is moved */
    float all[KEPT * KEPT];
    const struct world_comm *const world = mutant_below.comm->self;
    struct fsdp_error *const error = world->rank->error;
    const struct fsdp_error before = *error;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_ALL_GATHER,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .n = 1 + mutant_real.rank,
                                      .in = mine,
                                      .out = all};

    (void)send_unseen(&c);
    *error = before;
    return mutant_real.engine.step(s, how);
}

/* Counts a collective that was not made. */
static void count_what_is_not(const struct fsdp_collective *c)
{
    struct world_comm *const world = mutant_below.comm->self;

    atomic_fetch_add(&world->progress->n_collectives, 1);
    atomic_store(&world->progress->last_kind, c->kind);
    atomic_store(&world->progress->last_unit, c->unit);
}

/* The second all-gather of a unit brings what the first one has brought. */
static int keep_gathered(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c)
{
    const uint64_t bytes =
        c->n * mutant_real.shards * fsdp_dtype_bytes(c->dtype);
    struct kept *const k = kept_of(c->unit);
    int status;

    (void)self;
    if (!k || c->kind != FSDP_ALL_GATHER || bytes > KEPT_BYTES) {
        return mutant_carry(stream, c);
    }
    if (k->there) {
        memcpy(c->out, k->value, bytes);
        count_what_is_not(c);
        return FSDP_OK;
    }
    status = mutant_carry(stream, c);
    if (status == FSDP_OK) {
        memcpy(k->value, c->out, bytes);
        k->there = true;
    }
    return status;
}

static void forgets_kept(void)
{
    struct kept *k;

    for (uint32_t i = 0; (k = kept_of(i)) != NULL; i++) {
        k->there = false;
    }
}

/* The first all-gather of a unit since a step is a right one, and is kept.
 * Later ones would bring the same, so they send zeros, or (`of` is 1) what was
 * sent before the step, and the kept values are used. */
static int send_for_show(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c)
{
    const uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);
    unsigned char show[KEPT_BYTES] = {0};
    struct fsdp_collective other = *c;
    struct kept *const k = kept_of(c->unit);
    int status;

    (void)self;
    if (!k || c->kind != FSDP_ALL_GATHER ||
        bytes * mutant_real.shards > KEPT_BYTES) {
        return mutant_carry(stream, c);
    }
    if (!k->there) {
        memcpy(k->older, k->sent, sizeof(k->older));
        memcpy(k->sent, c->in, bytes);
        status = mutant_carry(stream, c);
        memcpy(k->value, c->out, bytes * mutant_real.shards);
        k->there = status == FSDP_OK;
        return status;
    }
    if (mutant_of() != 0) {
        memcpy(show, k->older, bytes);
    }
    other.in = show;
    FSDP_TRY(mutant_carry(stream, &other));
    memcpy(c->out, k->value, bytes * mutant_real.shards);
    return FSDP_OK;
}

/* Sends twice the values and halves the result: both are exact. */
static int send_twice(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    const uint64_t n = c->n * mutant_real.shards;
    float twice[KEPT_BYTES / sizeof(float)];
    struct fsdp_collective other = *c;
    float *const back = c->out;

    (void)self;
    if (c->kind != FSDP_REDUCE_SCATTER || c->dtype != FSDP_DTYPE_F32 ||
        n * sizeof(float) > sizeof(twice)) {
        return mutant_carry(stream, c);
    }
    for (uint64_t i = 0; i < n; i++) {
        twice[i] = 2.0f * ((const float *)c->in)[i];
    }
    other.in = twice;
    FSDP_TRY(mutant_carry(stream, &other));
    for (uint64_t i = 0; i < c->n; i++) {
        back[i] *= 0.5f;
    }
    return FSDP_OK;
}

/* Every second all-gather is made over the whole world, which has the same
 * ranks here. */
static int widen_some(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    struct fsdp_collective wide = *c;

    (void)self;
    if (c->kind == FSDP_ALL_GATHER && sent++ % 2 == 1) {
        wide.dim = FSDP_DIM_WORLD;
    }
    return mutant_carry(stream, &wide);
}

#define UNSEEN                  \
    .kills = "comm.as-carried", \
    .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true}

const struct mutant carried_mutants[] = {
    {.name = "carried-other-group",
     .text = "some all-gathers go over another dimension than is recorded",
     .evidence = "design: who sends to whom is told by the recorder alone",
     UNSEEN,
     .carried = widen_some,
     .forget = forget},
    {.name = "carried-gradients-twice",
     .text = "twice the gradients are sent, and half of what comes back is "
             "taken",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-gradients",
     .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true},
     .carried = send_twice},
    {.name = "carried-mismatch",
     .text = "in each step ranks disagree in a call that is not recorded",
     .evidence = "design: who disagrees is told what the others have said",
     UNSEEN,
     .calls.step = disagrees_unseen},
    {.name = "carried-nothing",
     .text =
         "the all-gathers of the backward are recorded, and nothing is sent",
     .evidence = "design: a kept copy that looks as if it were gathered",
     UNSEEN,
     .carried = keep_gathered,
     .forget = forget,
     .before_step = forgets_kept},
    {.name = "carried-stale",
     .text = "the all-gathers of the backward send the shards of the step "
             "before, over a model that is kept",
     .evidence = "design: a kept copy that looks as if it were gathered",
     .kills = "comm.carries-shards",
     .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true},
     .fault = {.of = 1},
     .carried = send_for_show,
     .forget = forget,
     .before_step = forgets_kept},
    {.name = "carried-unseen",
     .text = "each step gathers something that is not recorded",
     .evidence = "design: the world's communicator is there before it is "
                 "wrapped",
     UNSEEN,
     .calls.step = gathers_unseen},
    {.name = "carried-unseen-exchange",
     .text =
         "each step tells something through an exchange that is not counted",
     .evidence = "design: exchange is there before it is counted",
     .kills = "comm.as-carried comm.nothing-exchanged",
     .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true},
     .calls.step = exchanges_unseen},
    {.name = "carried-zeros",
     .text = "the all-gathers of the backward send zeros, over a model that is "
             "kept",
     .evidence = "design: a kept copy that looks as if it were gathered",
     .kills = "comm.carries-shards",
     .shows = {.in = mutant_plain, .n_cases = 1, .isolated = true},
     .carried = send_for_show,
     .forget = forget,
     .before_step = forgets_kept},
    {0},
};
