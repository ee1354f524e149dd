/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_steps_mutants.c - engines that send something else in collectives
 * than they should, where no tensors are recorded: in later steps, in scripts,
 * between replicas. Their results are right, as they exchange values in another
 * way. Found where ranks are isolated, by the process that carries.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNITS = 16,
    BYTES = 2048, /* of the result of a gather: the models are small */
    HONEST = 3,   /* steps: tensors of later ones are not recorded */
    LATE = 200,   /* steps with many more than a thousand collectives */
    TURNS = 4,    /* files of a unit: a reader may be one gather behind */
};

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

static void forget(void)
{
    if (kept_room) {
        memset(kept_room, 0, UNITS * sizeof(struct kept));
    }
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

/* Reads what member i of the shard group has written for the others. */
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

/* After some steps every gather sends what was gathered last. */
static int send_what_was(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c)
{
    struct fsdp_collective other = *c;
    struct kept *const k = kept_of(c->unit);
    const uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);
    uint32_t turn;

    (void)self;
    if (!k || !is_small_gather(c)) {
        return mutant_carry(stream, c);
    }
    turn = k->gathers++ % TURNS;
    if (mutant_now.steps < HONEST) {
        memcpy(k->sent, c->in, bytes);
        return mutant_carry(stream, c);
    }
    FSDP_TRY(tell(c, turn, bytes));
    other.in = k->sent;
    FSDP_TRY(mutant_carry(stream, &other));
    for (uint32_t i = 0; i < mutant_real.shards; i++) {
        FSDP_TRY(hear(c, turn, i, bytes, (unsigned char *)c->out + i * bytes));
    }
    return FSDP_OK;
}

/* Sends `show` in the collective, exchanges the real values by files, and folds
 * them by rank. */
static int reduce_by_files(struct fsdp_stream *stream,
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
    FSDP_TRY(mutant_carry(stream, &other));
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

/* After some steps every reduction sends the gradients that were sent last. */
static int reduce_what_was(void *self, struct fsdp_stream *stream,
                           const struct fsdp_collective *c)
{
    struct kept *const k = kept_of(c->unit);

    (void)self;
    if (!k || !is_small_reduction(c)) {
        return mutant_carry(stream, c);
    }
    if (mutant_now.steps < HONEST) {
        memcpy(k->sent, c->in, c->n * mutant_real.shards * sizeof(float));
        return mutant_carry(stream, c);
    }
    return reduce_by_files(stream, c, k, k->sent);
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

    (void)self;
    if (!k || !is_small_gather(c)) {
        return mutant_carry(stream, c);
    }
    if (!k->there || k->step != mutant_now.steps || k->step < HONEST) {
        FSDP_TRY(mutant_carry(stream, c));
        memcpy(k->value, c->out, bytes);
        k->there = true;
        k->step = mutant_now.steps;
        return FSDP_OK;
    }
    other.in = zeros;
    FSDP_TRY(mutant_carry(stream, &other));
    memcpy(c->out, k->value, bytes);
    return FSDP_OK;
}

/* ---- Twice, and half of it ----------------------------------------------- */

/* Sends twice the values and halves the result: for finite, ordinary numbers
 * both are exact. */
static int send_twice(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    const uint32_t kind = (uint32_t)mutant_of();
    const uint64_t n =
        c->n * (kind == FSDP_ALL_GATHER ? mutant_real.shards : 1);
    float twice[BYTES / sizeof(float)];
    struct fsdp_collective other = *c;
    float *const back = c->out;

    (void)self;
    if (c->kind != kind || c->dtype != FSDP_DTYPE_F32 ||
        n > sizeof(twice) / sizeof(*twice)) {
        return mutant_carry(stream, c);
    }
    for (uint64_t i = 0; i < c->n; i++) {
        twice[i] = 2.0f * ((const float *)c->in)[i];
    }
    other.in = twice;
    FSDP_TRY(mutant_carry(stream, &other));
    for (uint64_t i = 0; i < n; i++) {
        back[i] *= 0.5f;
    }
    return FSDP_OK;
}

/* ---- For show, in passes of which nothing is recorded -------------------- */

static void turn_signs(float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        x[i] = -x[i];
    }
}

/* After some steps turns the sign of what is sent, and of what comes back. */
static int turn_gathered(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *c)
{
    float turned[BYTES / sizeof(float)];
    struct fsdp_collective other = *c;

    (void)self;
    if (!is_small_gather(c) || c->dtype != FSDP_DTYPE_F32 ||
        mutant_now.steps < mutant_of()) {
        return mutant_carry(stream, c);
    }
    memcpy(turned, c->in, c->n * sizeof(*turned));
    turn_signs(turned, c->n);
    other.in = turned;
    FSDP_TRY(mutant_carry(stream, &other));
    turn_signs(c->out, c->n * mutant_real.shards);
    return FSDP_OK;
}

/* Reduce-scatters send zeros, and gradients are exchanged by files. */
static int reduce_nothing(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    static const float nothing[BYTES / sizeof(float)];
    struct kept *const k = kept_of(c->unit);

    (void)self;
    return k && is_small_reduction(c) ? reduce_by_files(stream, c, k, nothing)
                                      : mutant_carry(stream, c);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_long(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_FULL_SHARD && c->ranks == 2 &&
           c->steps > 2 * HONEST && c->scenario == CASE_TRAIN;
}

/* A case with one step more than those in which the mutant is honest. */
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

const struct mutant carried_steps_mutants[] = {
    {.name = "carried-gradients-for-ever",
     .text = "after three steps reduce-scatters send what they sent then, and "
             "gradients go by files",
     .evidence = "design: a reduction for show, in steps of which nothing is "
                 "recorded",
     .kills = "comm.carries-fresh",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .carried = reduce_what_was,
     .forget = forget},
    {.name = "carried-first-for-ever",
     .text = "after three steps all-gathers send what they sent then, and "
             "shards go by files",
     .evidence = "design: a gather for show, in steps of which nothing is "
                 "recorded",
     .kills = "comm.carries-stepped",
     .shows = {.in = is_short, .n_cases = 1, .isolated = true},
     .carried = send_what_was,
     .forget = forget},
    {.name = "carried-nothing-in-script",
     .text =
         "in a script reduce-scatters send zeros, and gradients go by files",
     .evidence = "design: a reduction for show, where nothing is recorded",
     .kills = "comm.carries-left",
     .shows =
         {.in = mutant_mlp, .script = "rates", .n_cases = 1, .isolated = true},
     .carried = reduce_nothing,
     .forget = forget},
    {.name = "carried-nothing-of-several",
     .text = "the same where several microbatches are reduced together",
     .evidence = "design: a reduction for show, where nothing is recorded",
     .kills = "comm.carries-left",
     .shows = {.in = mutant_mlp,
               .script = "five-kept",
               .n_cases = 1,
               .isolated = true},
     .carried = reduce_nothing,
     .forget = forget},
    {.name = "carried-partial-twice",
     .text = "replicas send each other twice their sums, and take half of what "
             "comes back",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-partial-sums",
     .shows = {.in = is_replicated, .n_cases = 1, .isolated = true},
     .fault = {.of = FSDP_ALL_REDUCE},
     .carried = send_twice},
    {.name = "carried-signs-later",
     .text = "after three steps all-gathers send shards with the other sign, "
             "and what comes back is turned again",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-lent",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .fault = {.of = HONEST},
     .carried = turn_gathered},
    {.name = "carried-signs-late",
     .text = "the same after two hundred steps",
     .evidence = "design: of what is carried the first part alone is looked "
                 "at",
     .kills = "comm.carries-lent",
     .shows = {.script = "four-hundred", .n_cases = 1, .isolated = true},
     .fault = {.of = LATE},
     .carried = turn_gathered},
    {.name = "carried-twice-in-script",
     .text = "twice the shards are gathered in a script, and half of what "
             "comes back is taken",
     .evidence = "design: what is right by another way than that which is "
                 "recorded",
     .kills = "comm.carries-looked-at",
     .shows = {.script = "send-deferred", .n_cases = 1, .isolated = true},
     .fault = {.of = FSDP_ALL_GATHER},
     .carried = send_twice},
    {.name = "carried-zeros-later",
     .text = "after three steps the all-gathers of the backward send zeros, "
             "over a model that is kept",
     .evidence = "design: a kept copy that looks as if it were gathered",
     .kills = "comm.carries-same",
     .shows = {.in = is_long, .n_cases = 1, .isolated = true},
     .carried = send_zeros_later,
     .forget = forget},
    {0},
};
