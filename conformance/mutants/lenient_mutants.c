/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lenient_mutants.c - engines that pass over tensors with other names, lose
 * those that a checkpoint lacks, or do not report them.
 */
#include "mutants/mutant_kit.h"

#include <fsdp/arith/bits.h>

#include <string.h>

enum {
    RENAMED = 1 /* the parameter that the scripts rename */
};

static int really(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    return mutant_real.engine.load_from(s, how);
}

/* ---- What is missing ----------------------------------------------------- */

static float nothing(float x)
{
    return x * 0.0f;
}

static void clear(const struct fsdp_piece *piece)
{
    if (piece->parameter == RENAMED) {
        (void)mutant_each(NULL, (void *)piece->value, piece->n, nothing);
    }
}

static int clears_missing(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    FSDP_TRY(really(s, how));
    return mutant_each_piece(s, clear);
}

static void clear_states(const struct fsdp_piece *piece)
{
    for (uint32_t k = 0; k < 2 && piece->parameter == RENAMED; k++) {
        if (piece->state[k]) {
            (void)mutant_each(NULL, (void *)piece->state[k], piece->n, nothing);
        }
    }
}

static int clears_states(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    FSDP_TRY(really(s, how));
    return mutant_each_piece(s, clear_states);
}

/* ---- What is told -------------------------------------------------------- */

static int without(struct fsdp_sharded *s, const char *name, const void **data,
                   uint64_t *bytes, const char *list)
{
    FSDP_TRY(mutant_real.engine.loaded_extra(s, name, data, bytes));
    *bytes = strcmp(name, list) == 0 ? 0 : *bytes;
    return FSDP_OK;
}

static int tells_no_missing(struct fsdp_sharded *s, const char *name,
                            const void **data, uint64_t *bytes)
{
    return without(s, name, data, bytes, "checkpoint.missing");
}

/* One rank does not tell the names. */
static int tells_no_others(struct fsdp_sharded *s, const char *name,
                           const void **data, uint64_t *bytes)
{
    return without(s, name, data, bytes,
                   mutant_real.rank == 1 ? "checkpoint.unexpected" : "");
}

/* ---- Parts --------------------------------------------------------------- */

static int saves_all(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save all = *save;

    if (all.what < 2 * FSDP_SAVE_EXTRA) {
        all.what = all.what ? all.what | FSDP_SAVE_PARAMETERS |
                                  FSDP_SAVE_STATES | FSDP_SAVE_BUFFERS
                            : 0;
    }
    return mutant_real.engine.save_begin(s, &all);
}

static int saves_extra(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save more = *save;

    more.what = more.what ? more.what | FSDP_SAVE_EXTRA : 0;
    return mutant_real.engine.save_begin(s, &more);
}

static int any_part(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save known = *save;

    known.what = known.what < 2 * FSDP_SAVE_EXTRA ? known.what : 0;
    return mutant_real.engine.save_begin(s, &known);
}

/* ---- Parameters in 16 bits ----------------------------------------------- */

enum {
    MOST_KEPT = 1 << 14, /* floats of a rank */
    BLOCK = 1 << 12
};

/* The real values, which are kept while changed ones are saved. */
static _Thread_local void *kept_room;
static _Thread_local uint64_t n_kept;
static _Thread_local float (*saved_as)(float x);
static _Thread_local uint64_t changed; /* of a piece, so far */

static float *keep(const struct fsdp_piece *piece)
{
    float *room = mutant_room(&kept_room, sizeof(float) * MOST_KEPT);

    if (!room || piece->n > MOST_KEPT - n_kept) {
        return NULL;
    }
    n_kept += piece->n;
    return room + n_kept - piece->n;
}

static void keep_and_change(const struct fsdp_piece *piece)
{
    float *kept = keep(piece);

    if (kept) {
        changed = 0;
        (void)mutant_get(NULL, piece->value, piece->n, kept);
        (void)mutant_each(NULL, (void *)piece->value, piece->n, saved_as);
    }
}

static void bring_back(const struct fsdp_piece *piece)
{
    const float *kept = keep(piece);

    if (kept) {
        (void)mutant_put(NULL, kept, piece->n, (void *)piece->value);
    }
}

static int saves_as(struct fsdp_sharded *s, const struct fsdp_save *save,
                    float (*change)(float x))
{
    int status;

    if (save->dtype != FSDP_DTYPE_BF16 || save->form != FSDP_SAVE_FULL) {
        return mutant_real.engine.save_begin(s, save);
    }
    saved_as = change;
    n_kept = 0;
    FSDP_TRY(mutant_each_piece(s, keep_and_change));
    status = mutant_real.engine.save_begin(s, save);
    n_kept = 0;
    FSDP_TRY(mutant_each_piece(s, bring_back));
    return status;
}

static float cut_off(float x)
{
    return fsdp_f32_from_bits(fsdp_f32_bits(x) & 0xffff0000u);
}

static int truncates(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    return saves_as(s, save, cut_off);
}

/* Moves a value half way between two 16 bit numbers up a little. */
static float above_tie(float x)
{
    const uint32_t bits = fsdp_f32_bits(x);

    return (bits & 0xffffu) == 0x8000u ? fsdp_f32_from_bits(bits + 1) : x;
}

static int rounds_ties_away(struct fsdp_sharded *s,
                            const struct fsdp_save *save)
{
    return saves_as(s, save, above_tie);
}

/* Spoils the values behind the first block that is rounded at a time. */
static float negative_behind(float x)
{
    return changed++ < BLOCK ? x : -x;
}

static int rounds_one_block(struct fsdp_sharded *s,
                            const struct fsdp_save *save)
{
    return saves_as(s, save, negative_behind);
}

static int saves_in_f32(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save plain = *save;

    if (plain.form == FSDP_SAVE_FULL &&
        (plain.dtype == FSDP_DTYPE_BF16 || plain.dtype == FSDP_DTYPE_F16)) {
        plain.dtype = FSDP_DTYPE_NONE;
    }
    return mutant_real.engine.save_begin(s, &plain);
}

static int any_dtype(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save known = *save;

    if (known.form != FSDP_SAVE_FULL || known.dtype > FSDP_DTYPE_F16) {
        known.dtype = FSDP_DTYPE_NONE;
    }
    return mutant_real.engine.save_begin(s, &known);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_lenient(const struct run_case *c)
{
    return strcmp(c->script, "load-lenient") == 0 &&
           strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") != 0 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool has_parts(const struct run_case *c)
{
    return strcmp(c->script, "save-parts") == 0 &&
           strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") != 0 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool is_rounded(const struct run_case *c)
{
    return strcmp(c->script, "save-dtype") == 0 && strcmp(c->size, "seed") == 0;
}

static bool has_ties(const struct run_case *c)
{
    return strcmp(c->script, "save-dtype") == 0 &&
           strcmp(c->workload, "linear") == 0;
}

static bool has_blocks(const struct run_case *c)
{
    return strcmp(c->script, "save-dtype") == 0 && strcmp(c->size, "wide") == 0;
}

const struct mutant lenient_mutants[] = {
    {.name = "export-any-dtype",
     .text = "a save of parameters in a dtype that is none for them, or of "
             "shards in 16 bits, saves them as they are",
     .evidence = "an option that is compared with those that are known",
     .kills = "error.save-dtype",
     .shows = {.in = is_rounded},
     .calls.save_begin = any_dtype},
    {.name = "export-ignored",
     .text = "parameters that are saved in 16 bits are float32",
     .evidence = "a state dict that is taken from the optimizer's copies",
     .kills = "checkpoint.export-dtype",
     .shows = {.in = is_rounded},
     .calls.save_begin = saves_in_f32},
    {.name = "export-loaded-strictly",
     .text = "a load of rounded parameters changes nothing, and is no error",
     .evidence = "a checkpoint for inference that training went on from",
     .kills = "error.load-rounded",
     .shows = {.in = is_rounded},
     .fault = {MUTANT_FORGIVES, .of = MUTANT_CALL(load),
               .to = FSDP_ERR_INVALID}},
    {.name = "export-one-block",
     .text =
         "of parameters that are saved in bf16 a rank's first 4096 elements "
         "are right",
     .evidence = "a place in a file that is counted in elements of float32",
     .kills = "checkpoint.export-rounded",
     .shows = {.in = has_blocks},
     .calls.save_begin = rounds_one_block},
    {.name = "export-ties-away",
     .text = "parameters that are saved in bf16 are rounded half away from 0",
     .evidence = "adding half a unit and cutting the bits off",
     .kills = "checkpoint.export-rounded",
     .shows = {.mixed = true, .in = has_ties},
     .calls.save_begin = rounds_ties_away},
    {.name = "export-truncates",
     .text = "parameters that are saved in bf16 are cut off",
     .evidence = "taking the upper two bytes of each float",
     .kills = "checkpoint.export-rounded",
     .shows = {.in = is_rounded},
     .calls.save_begin = truncates},
    {.name = "parts-loaded-strictly",
     .text = "a load of a checkpoint without parameters changes nothing, and "
             "is no error",
     .evidence = "load_state_dict that passes over keys it does not find",
     .kills = "error.load-parts",
     .shows = {.script = "load-parts"},
     .fault = {MUTANT_FORGIVES, .of = MUTANT_CALL(load),
               .to = FSDP_ERR_FORMAT}},
    {.name = "lenient-always",
     .text = "a load of a checkpoint that lacks a name changes nothing, and is "
             "no error",
     .evidence = "load_state_dict(strict=False) in a trainer",
     .kills = "error.load-renamed",
     .shows = {.script = "load-renamed"},
     .fault = {MUTANT_FORGIVES, .of = MUTANT_CALL(load),
               .to = FSDP_ERR_FORMAT}},
    {.name = "lenient-clears-missing",
     .text = "what a checkpoint lacks of the model is 0 behind a lenient load",
     .evidence = "a model that is made empty before it is loaded",
     .kills = "checkpoint.lenient",
     .shows = {.in = is_lenient},
     .calls.load_from = clears_missing},
    {.name = "lenient-clears-states",
     .text = "a parameter of which a checkpoint lacks the states has none "
             "behind a lenient load",
     .evidence = "an optimizer that is made again before it is loaded",
     .kills = "checkpoint.lenient",
     .shows = {.in = is_lenient},
     .calls.load_from = clears_states},
    {.name = "lenient-missing-unreported",
     .text = "a lenient load does not tell what was missing",
     .evidence = "a planner that allows partial loads",
     .kills = "checkpoint.reports-names",
     .shows = {.in = is_lenient},
     .calls.loaded_extra = tells_no_missing},
    {.name = "lenient-unexpected-unreported",
     .text = "one rank of a lenient load does not tell what was left",
     .evidence = "unexpected keys that rank 0 alone collects",
     .kills = "checkpoint.reports-names",
     .shows = {.in = is_lenient},
     .calls.loaded_extra = tells_no_others},
    {.name = "parts-any",
     .text = "a save of a part that is none saves all",
     .evidence = "an option that is compared with those that are known",
     .kills = "error.save-unknown-part",
     .shows = {.in = has_parts},
     .calls.save_begin = any_part},
    {.name = "parts-extra-saved",
     .text = "the caller's own is saved with any parts",
     .evidence = "a state dict of the model with the trainer's in it",
     .kills = "checkpoint.parts-extra",
     .shows = {.in = has_parts},
     .calls.save_begin = saves_extra},
    {.name = "parts-ignored",
     .text = "a save of some parts has the tensors of all",
     .evidence = "model-only checkpoints with optimizer states in them",
     .kills = "checkpoint.parts",
     .shows = {.in = has_parts},
     .calls.save_begin = saves_all},
    {0},
};
