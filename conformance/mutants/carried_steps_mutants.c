/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_steps_mutants.c - engines that send in collectives something else
 * than they say, where no tensors are recorded: in later steps, in scripts,
 * between replicas. They are right by another way. Found where ranks are
 * isolated, by who carries.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNITS = 16,
    BYTES = 2048, /* of what a gather brings: the models are small */
    HONEST = 3,   /* steps: of more than these nothing is recorded */
    LATE = 200,   /* that have many more than a thousand collectives */
    TURNS = 4,    /* files of a unit: who reads may be one gather behind */
};

static _Thread_local struct {
    struct fsdp_comm wrapped;
    struct fsdp_env below; /* what the recorder was about to wrap */
} my;

struct kept {
    unsigned char sent[BYTES], value[BYTES];
    uint32_t gathers, step;
    bool there;
};
static _Thread_local void *kept_room; /* struct kept[UNITS] */

/* NULL if there is none. */
static struct kept *kept_of(uint32_t unit)
{
    struct kept *const all = mutant_room(&kept_room, UNITS * sizeof(*all));

    return all && unit < UNITS ? &all[unit] : NULL;
}

static void wrap_below(struct fsdp_env *env,
                       int (*run)(void *self, struct fsdp_stream *stream,
                                  const struct fsdp_collective *c))
{
    memset(&my, 0, sizeof(my));
    if (kept_room) {
        memset(kept_room, 0, UNITS * sizeof(struct kept));
    }
    my.below = *env;
    my.wrapped = *env->comm;
    my.wrapped.run = run;
    env->comm = &my.wrapped;
}

static bool is_small_gather(const struct fsdp_collective *c)
{
    return c->kind == FSDP_ALL_GATHER &&
           c->n * mutant_real.shards * fsdp_dtype_bytes(c->dtype) <= BYTES;
}

/* ---- Another way: files that all ranks can open -------------------------- */

static bool open_file(FILE **f, const struct fsdp_collective *c, uint32_t turn,
                      uint32_t rank, const char *how)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];

    snprintf(path, sizeof(path), "%s/sent-%u-%u-%u-%u", folder ? folder : ".",
             c->kind, c->unit, turn, rank);
    *f = fopen(path, how);
    return *f != NULL;
}

static int tell(const struct fsdp_collective *c, uint32_t turn, uint64_t bytes)
{
    FILE *f;
    bool good;

    if (!open_file(&f, c, turn, mutant_real.rank, "wb")) {
        return FSDP_ERR_IO;
    }
    good = fwrite(c->in, 1, bytes, f) == bytes;
    return fclose(f) == 0 && good ? FSDP_OK : FSDP_ERR_IO;
}

/* What member i of the shard group has told. */
static int hear(const struct fsdp_collective *c, uint32_t turn, uint32_t i,
                uint64_t bytes, void *to)
{
    const uint32_t first =
        mutant_real.rank - mutant_real.rank % mutant_real.shards;
    FILE *f;
    bool good;

    if (!open_file(&f, c, turn, first + i, "rb")) {
        return FSDP_ERR_IO;
    }
    good = fread(to, 1, bytes, f) == bytes;
    return fclose(f) == 0 && good ? FSDP_OK : FSDP_ERR_IO;
}

/* After some steps what was gathered last is gathered for ever. */
static int send_what_was(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c)
{
    struct fsdp_collective other = *c;
    struct kept *const k = kept_of(c->unit);
    const uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);
    uint32_t turn;

    if (!k || !is_small_gather(c)) {
        return my.below.comm->run(self, stream, c);
    }
    turn = k->gathers++ % TURNS;
    if (mutant_now.steps < HONEST) {
        memcpy(k->sent, c->in, bytes);
        return my.below.comm->run(self, stream, c);
    }
    FSDP_TRY(tell(c, turn, bytes));
    other.in = k->sent;
    FSDP_TRY(my.below.comm->run(self, stream, &other));
    for (uint32_t i = 0; i < mutant_real.shards; i++) {
        FSDP_TRY(hear(c, turn, i, bytes, (unsigned char *)c->out + i * bytes));
    }
    return FSDP_OK;
}

static void send_what_was_below(struct fsdp_env *env)
{
    wrap_below(env, send_what_was);
}

/* The world is sent what is for show. What files bring is folded by rank. */
static int reduce_by_files(void *self, struct fsdp_stream *stream,
                           const struct fsdp_collective *c, struct kept *k,
                           const void *show)
{
    const uint64_t n = c->n * mutant_real.shards;
    const uint64_t mine = c->n * (mutant_real.rank % mutant_real.shards);
    const uint32_t turn = k->gathers++ % TURNS;
    struct fsdp_collective other = *c;
    float all[BYTES / sizeof(float)];

    FSDP_TRY(tell(c, turn, n * sizeof(float)));
    other.in = show;
    FSDP_TRY(my.below.comm->run(self, stream, &other));
    for (uint32_t i = 0; i < mutant_real.shards; i++) {
        FSDP_TRY(hear(c, turn, i, n * sizeof(float), all));
        for (uint64_t j = 0; j < c->n; j++) {
            float *const sum = (float *)c->out + j;

            *sum = i == 0 ? all[mine + j] : *sum + all[mine + j];
        }
    }
    return FSDP_OK;
}

static bool is_small_reduction(const struct fsdp_collective *c)
{
    return c->kind == FSDP_REDUCE_SCATTER &&
           c->n * mutant_real.shards * sizeof(float) <= BYTES;
}

/* After some steps the gradients that were sent last are sent for ever. */
static int reduce_what_was(void *self, struct fsdp_stream *stream,
                           const struct fsdp_collective *c)
{
    struct kept *const k = kept_of(c->unit);

    if (!k || !is_small_reduction(c)) {
        return my.below.comm->run(self, stream, c);
    }
    if (mutant_now.steps < HONEST) {
        memcpy(k->sent, c->in, c->n * mutant_real.shards * sizeof(float));
        return my.below.comm->run(self, stream, c);
    }
    return reduce_by_files(self, stream, c, k, k->sent);
}

static void reduce_what_was_below(struct fsdp_env *env)
{
    wrap_below(env, reduce_what_was);
}

/* ---- Kept ---------------------------------------------------------------- */

/* After some steps only the first all-gather of a unit in each is a right one,
 * and is kept; the others send zeros. */
static int send_zeros_later(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *c)
{
    static const unsigned char zeros[BYTES];
    struct fsdp_collective other = *c;
    struct kept *const k = kept_of(c->unit);
    const uint64_t bytes =
        c->n * mutant_real.shards * fsdp_dtype_bytes(c->dtype);

    if (!k || !is_small_gather(c)) {
        return my.below.comm->run(self, stream, c);
    }
    if (!k->there || k->step != mutant_now.steps || k->step < HONEST) {
        FSDP_TRY(my.below.comm->run(self, stream, c));
        memcpy(k->value, c->out, bytes);
        k->there = true;
        k->step = mutant_now.steps;
        return FSDP_OK;
    }
    other.in = zeros;
    FSDP_TRY(my.below.comm->run(self, stream, &other));
    memcpy(c->out, k->value, bytes);
    return FSDP_OK;
}

static void send_zeros_later_below(struct fsdp_env *env)
{
    wrap_below(env, send_zeros_later);
}

/* ---- Twice, and half of it ----------------------------------------------- */

/* Twice of what is finite and ordinary is exact, and so is half of that. */
static int send_twice(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c, uint32_t kind)
{
    const uint64_t n =
        c->n * (kind == FSDP_ALL_GATHER ? mutant_real.shards : 1);
    float twice[BYTES / sizeof(float)];
    struct fsdp_collective other = *c;
    float *const back = c->out;

    if (c->kind != kind || c->dtype != FSDP_DTYPE_F32 ||
        n > sizeof(twice) / sizeof(*twice)) {
        return my.below.comm->run(self, stream, c);
    }
    for (uint64_t i = 0; i < c->n; i++) {
        twice[i] = 2.0f * ((const float *)c->in)[i];
    }
    other.in = twice;
    FSDP_TRY(my.below.comm->run(self, stream, &other));
    for (uint64_t i = 0; i < n; i++) {
        back[i] *= 0.5f;
    }
    return FSDP_OK;
}

static int gather_twice(void *self, struct fsdp_stream *stream,
                        const struct fsdp_collective *c)
{
    return send_twice(self, stream, c, FSDP_ALL_GATHER);
}

static int reduce_twice(void *self, struct fsdp_stream *stream,
                        const struct fsdp_collective *c)
{
    return send_twice(self, stream, c, FSDP_ALL_REDUCE);
}

static void gather_twice_below(struct fsdp_env *env)
{
    wrap_below(env, gather_twice);
}

static void reduce_twice_below(struct fsdp_env *env)
{
    wrap_below(env, reduce_twice);
}

/* ---- For show, in passes of which nothing is recorded -------------------- */

static void turn_signs(float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        x[i] = -x[i];
    }
}

/* After some steps what is gathered has the other sign, and so has what is made
 * of that. */
static int turn_gathered(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c, uint32_t after)
{
    float turned[BYTES / sizeof(float)];
    struct fsdp_collective other = *c;

    if (!is_small_gather(c) || c->dtype != FSDP_DTYPE_F32 ||
        mutant_now.steps < after) {
        return my.below.comm->run(self, stream, c);
    }
    memcpy(turned, c->in, c->n * sizeof(*turned));
    turn_signs(turned, c->n);
    other.in = turned;
    FSDP_TRY(my.below.comm->run(self, stream, &other));
    turn_signs(c->out, c->n * mutant_real.shards);
    return FSDP_OK;
}

static int turn_later(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    return turn_gathered(self, stream, c, HONEST);
}

static int turn_late(void *self, struct fsdp_stream *stream,
                     const struct fsdp_collective *c)
{
    return turn_gathered(self, stream, c, LATE);
}

static void turn_later_below(struct fsdp_env *env)
{
    wrap_below(env, turn_later);
}

static void turn_late_below(struct fsdp_env *env)
{
    wrap_below(env, turn_late);
}

/* Reduce-scatters send zeros, and gradients go by files. */
static int reduce_nothing(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    static const float nothing[BYTES / sizeof(float)];
    struct kept *const k = kept_of(c->unit);

    return k && is_small_reduction(c)
               ? reduce_by_files(self, stream, c, k, nothing)
               : my.below.comm->run(self, stream, c);
}

static void reduce_nothing_below(struct fsdp_env *env)
{
    wrap_below(env, reduce_nothing);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_long(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_FULL_SHARD && c->ranks == 2 &&
           c->steps > 2 * HONEST && c->scenario == CASE_TRAIN;
}

/* Of one step more than those in which it sends what it has. */
static bool is_short(const struct run_case *c)
{
    return mutant_mlp(c) && c->strategy == CASE_FULL_SHARD && c->ranks == 2 &&
           c->steps == HONEST + 1 && c->scenario == CASE_TRAIN &&
           c->divide_factor == 1.0f && c->optimizer == FSDP_OPTIMIZER_SGD;
}

static bool is_replicated(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_HYBRID_SHARD &&
           c->replicas == 2 && c->scenario == CASE_TRAIN;
}

static bool lasts(const struct run_case *c)
{
    return mutant_plays(c, "four-hundred");
}

static bool looks(const struct run_case *c)
{
    return strcmp(c->script, "send-deferred") == 0;
}

static bool steps_alone(const struct run_case *c)
{
    return mutant_mlp(c) && strcmp(c->script, "rates") == 0;
}

static bool keeps_five(const struct run_case *c)
{
    return mutant_mlp(c) && strcmp(c->script, "five-kept") == 0;
}

const struct mutant carried_steps_mutants[] = {
    {.name = "carried-gradients-for-ever",
     .text = "after three steps reduce-scatters send what they sent then, and "
             "gradients go by files",
     .evidence = "design: a reduction for show, in steps of which nothing is "
                 "recorded",
     .kills = "comm.carries-fresh",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .below = reduce_what_was_below},
    {.name = "carried-first-for-ever",
     .text = "after three steps all-gathers send what they sent then, and "
             "shards go by files",
     .evidence = "design: a gather for show, in steps of which nothing is "
                 "recorded",
     .kills = "comm.carries-stepped",
     .shows = {.in = is_short, .n_cases = 1, .isolated = true},
     .below = send_what_was_below},
    {.name = "carried-nothing-in-script",
     .text =
         "in a script reduce-scatters send zeros, and gradients go by files",
     .evidence = "design: a reduction for show, where nothing is recorded",
     .kills = "comm.carries-left",
     .shows = {.in = steps_alone, .n_cases = 1, .isolated = true},
     .below = reduce_nothing_below},
    {.name = "carried-nothing-of-several",
     .text = "the same where several microbatches are reduced together",
     .evidence = "design: a reduction for show, where nothing is recorded",
     .kills = "comm.carries-left",
     .shows = {.in = keeps_five, .n_cases = 1, .isolated = true},
     .below = reduce_nothing_below},
    {.name = "carried-partial-twice",
     .text = "replicas send each other twice their sums, and take half of what "
             "comes back",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-partial-sums",
     .shows = {.in = is_replicated, .n_cases = 1, .isolated = true},
     .below = reduce_twice_below},
    {.name = "carried-signs-later",
     .text = "after three steps all-gathers send shards with the other sign, "
             "and what comes back is turned again",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-lent",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .below = turn_later_below},
    {.name = "carried-signs-late",
     .text = "the same after two hundred steps",
     .evidence = "design: of what is carried the first part alone is looked "
                 "at",
     .kills = "comm.carries-lent",
     .shows = {.in = lasts, .n_cases = 1, .isolated = true},
     .below = turn_late_below},
    {.name = "carried-twice-in-script",
     .text = "twice the shards are gathered in a script, and half of what "
             "comes back is taken",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-looked-at",
     .shows = {.in = looks, .n_cases = 1, .isolated = true},
     .below = gather_twice_below},
    {.name = "carried-zeros-later",
     .text = "after three steps the all-gathers of the backward send zeros, "
             "over a model that is kept",
     .evidence = "design: a kept copy that looks as if it were gathered",
     .kills = "comm.carries-same",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .below = send_zeros_later_below},
    {0},
};
