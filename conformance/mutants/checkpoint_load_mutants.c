/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_load_mutants.c - engines that do not go on with the saved state,
 * or load what they must not.
 */
#include "mutants/mutant_kit.h"

#include "checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local uint32_t n_pieces;
static _Thread_local float *before; /* of checkpoint_load_elsewhere */
static _Thread_local uint64_t n_read, n_used;
static _Thread_local float begun[2]; /* products at the load; 0: none yet */
static _Thread_local bool loaded;
static _Thread_local unsigned char first_extra[64];
static _Thread_local uint64_t first_bytes; /* 0: none has come */
static _Thread_local bool extra_dropped;

static void load_forget(void)
{
    first_bytes = 0;
    loaded = extra_dropped = false;
    begun[0] = begun[1] = 0.0f;
}

static void count_piece(const struct fsdp_piece *piece)
{
    (void)piece;
    n_pieces++;
}

static float nothing(float x)
{
    return x * 0.0f;
}

static void lose_moment(const struct fsdp_piece *piece)
{
    if (piece->state[0]) {
        (void)mutant_each(NULL, (void *)piece->state[0], piece->n, nothing);
    }
}

/* A rank without a part of some parameter has no optimizer state. */
static int checkpoint_empty_lost(struct fsdp_sharded *s, const char *directory)
{
    n_pieces = 0;
    FSDP_TRY(mutant_real.engine.load(s, directory));
    FSDP_TRY(mutant_each_piece(s, count_piece));
    return n_pieces < mutant_real.world ? mutant_each_piece(s, lose_moment)
                                        : FSDP_OK;
}

/* The caller's own state of the first load is returned for good. */
static int checkpoint_extra_first(struct fsdp_sharded *s, const char *name,
                                  const void **data, uint64_t *bytes)
{
    int status = mutant_real.engine.loaded_extra(s, name, data, bytes);

    if (status != FSDP_OK || strcmp(name, "position") != 0 ||
        *bytes > sizeof(first_extra)) {
        return status;
    }
    if (first_bytes == 0) {
        first_bytes = *bytes;
        memcpy(first_extra, *data, *bytes);
    }
    *data = first_extra;
    *bytes = first_bytes;
    return FSDP_OK;
}

/* A load that is refused has already dropped the caller's own state of the one
 * before. */
static int extra_dropped_load(struct fsdp_sharded *s, const char *directory)
{
    const int status = mutant_real.engine.load(s, directory);

    extra_dropped = status != FSDP_OK && !mutant_now.in_pass;
    return status;
}

static int extra_dropped_find(struct fsdp_sharded *s, const char *name,
                              const void **data, uint64_t *bytes)
{
    return extra_dropped
               ? FSDP_ERR_INVALID
               : mutant_real.engine.loaded_extra(s, name, data, bytes);
}

static int reshards_first(struct fsdp_sharded *s, const char *directory)
{
    for (uint32_t u = 0; !mutant_now.in_pass && u < mutant_real.units->n_units;
         u++) {
        FSDP_TRY(mutant_real.engine.reshard(s, u));
    }
    return mutant_real.engine.load(s, directory);
}

static bool loads_empty_shards(const struct run_case *c)
{
    return c->scenario == CASE_RESUME && strcmp(c->size, "empty") == 0 &&
           c->ranks > c->replicas;
}

/* More bytes than the largest unit, fewer than training needs. */
static uint64_t bytes_of_load(void)
{
    uint64_t most = 0;

    for (uint32_t u = 0; u < mutant_real.units->n_units; u++) {
        const uint64_t numel = mutant_unit_numel(u);

        most = numel > most ? numel : most;
    }
    return (most + mutant_real.world) * sizeof(float);
}

static int checkpoint_gathers_all(struct fsdp_sharded *s, const char *directory)
{
    const struct fsdp_device *d = mutant_real.device;
    const uint64_t bytes = bytes_of_load();
    void *all = NULL;
    int status;

    FSDP_TRY(d->alloc(d->self, bytes, &all));
    d->live(d->self, NULL, FSDP_STAGING, FSDP_NO_UNIT, all, bytes);
    status = mutant_real.engine.load(s, directory);
    d->dead(d->self, NULL, all);
    d->free(d->self, all);
    return status;
}

static void remember_piece(const struct fsdp_piece *piece)
{
    float *more = realloc(before, (n_used + piece->n) * sizeof(*more));

    if (more) {
        before = more;
        (void)mutant_get(NULL, piece->value, piece->n, before + n_used);
        n_used += piece->n;
    }
}

static void put_piece_back(const struct fsdp_piece *piece)
{
    (void)mutant_put(NULL, before + n_read, piece->n, (void *)piece->value);
    n_read += piece->n;
}

/* Loaded values do not reach the weights that are trained. */
static int checkpoint_load_elsewhere(struct fsdp_sharded *s,
                                     const char *directory)
{
    int status;

    n_used = n_read = 0;
    (void)mutant_each_piece(s, remember_piece);
    status = mutant_real.engine.load(s, directory);
    if (status == FSDP_OK) {
        (void)mutant_each_piece(s, put_piece_back);
    }
    free(before);
    before = NULL;
    return status;
}

/* Moments come back in reverse: the first element's come last. */
static void checkpoint_moments_order(const struct fsdp_piece *piece)
{
    float *x = malloc(piece->n * sizeof(*x));

    if (x && mutant_get(NULL, piece->state[0], piece->n, x) == FSDP_OK) {
        for (uint64_t i = 0; i < piece->n / 2; i++) {
            float first = x[i];
            x[i] = x[piece->n - 1 - i];
            x[piece->n - 1 - i] = first;
        }
        (void)mutant_put(NULL, x, piece->n, (void *)piece->state[0]);
    }
    free(x);
}

/* Shards other than the first get the elements one place in front of theirs. */
static void shift_piece(const struct fsdp_piece *piece)
{
    float *x = malloc((piece->n + 1) * sizeof(*x));

    if (x && piece->n > 1 &&
        mutant_get(NULL, piece->value, piece->n, x + 1) == FSDP_OK) {
        x[0] = x[piece->n];
        (void)mutant_put(NULL, x, piece->n, (void *)piece->value);
    }
    free(x);
}

static bool is_of_other_layout(const char *directory)
{
    char why[CHECKPOINT_WHY_BYTES];
    struct checkpoint *c;
    bool other;

    if (checkpoint_open(directory, &c, why) != FSDP_OK) {
        return false;
    }
    other = (strcmp(checkpoint_manifest_of(c)->layout, "flat") == 0) !=
            (mutant_real.layout == FSDP_LAYOUT_FLAT);
    checkpoint_close(c);
    return other;
}

/* Only loads in the layout of the save are right. */
static int checkpoint_other_layout(struct fsdp_sharded *s,
                                   const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    if (status == FSDP_OK && is_of_other_layout(directory)) {
        (void)mutant_each_piece(s, shift_piece);
    }
    return status;
}

static bool loads_other_layout(const struct run_case *c)
{
    struct run_case saver;

    return case_saver(c, &saver) && saver.layout != c->layout;
}

/* Refuses a checkpoint that was saved by a world of another size. */
static int checkpoint_one_world(struct fsdp_sharded *s, const char *directory)
{
    char why[CHECKPOINT_WHY_BYTES];
    struct checkpoint *c;
    bool other;

    if (checkpoint_open(directory, &c, why) != FSDP_OK) {
        return mutant_real.engine.load(s, directory);
    }
    other = checkpoint_manifest_of(c)->world != mutant_real.world;
    checkpoint_close(c);
    return other ? FSDP_ERR_MISMATCH : mutant_real.engine.load(s, directory);
}

static bool loads_other_world(const struct run_case *c)
{
    return mutant_mlp(c) &&
           (c->scenario == CASE_GROW || c->scenario == CASE_SHRINK);
}

/* Padding comes before what lies behind it. */
static void checkpoint_padding_saved(const struct fsdp_piece *piece)
{
    float *x = calloc(piece->n + 1, sizeof(*x));

    if (x && piece->parameter > 0 &&
        mutant_get(NULL, piece->value, piece->n, x + 1) == FSDP_OK) {
        (void)mutant_put(NULL, x, piece->n, (void *)piece->value);
    }
    free(x);
}

static int checkpoint_step_lost_load(struct fsdp_sharded *s,
                                     const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    loaded = loaded || status == FSDP_OK;
    return status;
}

static void checkpoint_step_lost(struct fsdp_op *x)
{
    if (x->kind == FSDP_OP_ADAMW && loaded) {
        if (begun[0] == 0.0f) {
            begun[0] = x->f[5] / x->f[2];
            begun[1] = x->f[6] / x->f[3];
        }
        x->f[5] = x->f[5] / begun[0];
        x->f[6] = x->f[6] / begun[1];
    }
}

static void checkpoint_uneven_as_even(const struct fsdp_piece *piece)
{
    const void *all[] = {piece->value, piece->state[0], piece->state[1]};
    float *x = malloc(piece->n * sizeof(*x));

    for (uint32_t k = 0; x && k < 3 && piece->first > 0; k++) {
        if (all[k] && mutant_get(NULL, all[k], piece->n, x) == FSDP_OK) {
            for (uint64_t i = piece->n - 1; i > 0; i--) {
                x[i] = x[i - 1];
            }
            (void)mutant_put(NULL, x, piece->n, (void *)all[k]);
        }
    }
    free(x);
}

const struct mutant checkpoint_load_mutants[] = {
    /* A turned bit is loaded like any other. */
    {.name = "checkpoint-damage-unseen",
     .text = "a damaged checkpoint is not refused",
     .evidence = "deepspeedai/DeepSpeed#1748",
     .kills = "error.load-damaged",
     .shows = {.in = mutant_resume},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(load), FSDP_ERR_FORMAT}},
    {.name = "checkpoint-empty-lost",
     .text = "moments are lost on ranks that own few parameters",
     .evidence = "pytorch/pytorch#102821",
     .kills = "checkpoint.canonical checkpoint.moments",
     .shows = {.in = loads_empty_shards},
     .calls.load = checkpoint_empty_lost},
    {.name = "checkpoint-extra-dropped",
     .text = "behind a load that was refused there is nothing that the caller "
             "saved of its own",
     .evidence = "a loader that begins with what it returns",
     .kills = "checkpoint.extra error.says-why",
     .shows = {.script = "load-refused"},
     .calls = {.load = extra_dropped_load, .loaded_extra = extra_dropped_find},
     .forget = load_forget},
    {.name = "checkpoint-extra-first",
     .text = "behind a second load, what the caller saved of its own is that "
             "of the first",
     .evidence = "no report: state of the caller's that is read once a life",
     .kills = "checkpoint.extra",
     .shows = {.script = "worn-out"},
     .calls.loaded_extra = checkpoint_extra_first,
     .forget = load_forget},
    /* A load has the whole model in memory before it shards it. */
    {.name = "checkpoint-gathers-all",
     .text = "a load needs memory for more than what a rank owns",
     .evidence = "a load whose memory grows with the model",
     .kills = "memory.checkpoint-bound",
     .shows = {.in = mutant_resume},
     .calls.load = checkpoint_gathers_all},
    {.name = "checkpoint-load-elsewhere",
     .text = "a load leaves the parameters of the live shards as they were",
     .evidence = "ISEEKYAN/Megatron-LM#104",
     .kills = "checkpoint.canonical checkpoint.parameters",
     .shows = {.in = mutant_resume},
     .calls.load = checkpoint_load_elsewhere},
    /* Weights may change under a pass. */
    {.name = "checkpoint-load-in-pass",
     .text = "a load in a pass is not refused",
     .evidence = "a load while gathers are in flight",
     .kills = "error.load-in-pass",
     .shows = {.in = mutant_resume},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(load), FSDP_ERR_INVALID}},
    /* Moments are saved in another order than that in which they are loaded. */
    {.name = "checkpoint-moments-order",
     .text = "a load brings the first moments back in another order",
     .evidence = "NVIDIA/physicsnemo#1597",
     .kills = "checkpoint.canonical checkpoint.moments",
     .shows = {.in = mutant_resume},
     .loaded = checkpoint_moments_order},
    {.name = "checkpoint-one-world",
     .text = "a checkpoint is loaded by as many ranks as saved it, or not",
     .evidence = "deepspeedai/DeepSpeed#2898",
     .kills = "run.completes",
     .shows = {.in = loads_other_world},
     .calls.load = checkpoint_one_world},
    {.name = "checkpoint-other-layout",
     .text = "what was saved in the other layout is loaded as if in this one",
     .evidence =
         "no report: where a load takes offsets for those of its own layout",
     .kills = "checkpoint.parameters",
     .shows = {.in = loads_other_layout},
     .calls.load = checkpoint_other_layout},
    /* Flat parameters are saved with their padding, and cut up again as if
     * there were none. */
    {.name = "checkpoint-padding-saved",
     .text = "padding takes the place of parameters after a load",
     .evidence = "pytorch/pytorch#83111",
     .kills = "checkpoint.canonical checkpoint.parameters",
     .shows = {.in = mutant_resume},
     .loaded = checkpoint_padding_saved},
    /* The bias correction of Adam begins anew after a load. */
    {.name = "checkpoint-reshards-first",
     .text = "a load that is refused has ended unsharded copies that were kept",
     .evidence = "a loader that makes room before it looks at what there is",
     .kills = "control.reshard-backward script.rest",
     .shows = {.script = "load-refused"},
     .calls.load = reshards_first},
    {.name = "checkpoint-step-lost",
     .text = "the running products of the betas are not part of a checkpoint",
     .evidence = "deepspeedai/DeepSpeed#4396",
     .kills = "checkpoint.step",
     .shows = {.in = mutant_resume},
     .calls.load = checkpoint_step_lost_load,
     .op = checkpoint_step_lost,
     .forget = load_forget},
    /* A tensor of 9 rows on one rank and 7 on another is recorded as 8 and 8:
     * what is loaded lies one element off. */
    {.name = "checkpoint-uneven-as-even",
     .text = "shards that are not the first are loaded one element off",
     .evidence =
         "NVIDIA/Megatron-LM: shards of 9 and 7 rows recorded as 8 and 8",
     .kills = "checkpoint.canonical checkpoint.moments checkpoint.parameters",
     .shows = {.in = mutant_resume},
     .loaded = checkpoint_uneven_as_even},
    {0},
};
