/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_later_mutants.c - engines that thaw as they are told, and go on wrongly:
 * with the step count of other parameters, with less than was saved, or with
 * another dtype on the wire.
 */
#include "mutants/mutant_kit.h"

#include <fsdp/arith/cast.h>

#include <string.h>

enum {
    MOST_UNITS = 8,   /* of the models here */
    MOST_SENT = 1024, /* of a unit, on the wire */
    MOST_SAVES = 8,
};

static _Thread_local struct {
    uint64_t steps;
    bool loaded, reduced;
    uint32_t n_saves;
    struct {
        uint64_t hash, steps;
    } save[MOST_SAVES];
} now;

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

/* ---- With the steps of all ------------------------------------------------
 */

static void count_step(void)
{
    now.steps++;
}

static void by_all_steps(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_ADAMW) {
        op->f[5] = op->f[6] = 1.0f;
        for (uint64_t i = 0; i < now.steps; i++) {
            op->f[5] *= op->f[2];
            op->f[6] *= op->f[3];
        }
    }
}

static void by_loaded_steps(struct fsdp_op *op)
{
    if (now.loaded) {
        by_all_steps(op);
    }
}

static uint64_t name_of(const char *directory)
{
    uint64_t h = 0;

    for (; *directory; directory++) {
        h = h * 31 + (unsigned char)*directory;
    }
    return h;
}

static int note_save(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    if (now.n_saves < MOST_SAVES) {
        now.save[now.n_saves].hash = name_of(save->directory);
        now.save[now.n_saves++].steps = now.steps;
    }
    return mutant_real.engine.save_begin(s, save);
}

static int load_all_steps(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    for (uint32_t i = 0; i < now.n_saves; i++) {
        if (now.save[i].hash == name_of(directory)) {
            now.steps = now.save[i].steps;
        }
    }
    now.loaded = true;
    return FSDP_OK;
}

/* Only local saves are noted; other forms are right. */
static int note_local(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    return save->form == FSDP_SAVE_LOCAL
               ? note_save(s, save)
               : mutant_real.engine.save_begin(s, save);
}

static int load_local_steps(struct fsdp_sharded *s, const char *directory)
{
    const uint32_t n = now.n_saves;

    FSDP_TRY(load_all_steps(s, directory));
    now.loaded = n > 0;
    return FSDP_OK;
}

/* ---- As it was sharded ---------------------------------------------------
 */

/* A unit that is frozen as a whole when it is sharded reduces in its parameter
 * dtype. */
static int wire_of_frozen(struct mutant_told *t, const struct fsdp_env *env)
{
    static _Thread_local uint32_t dtype[MOST_UNITS];
    const struct fsdp_model *model = &t->model;

    (void)env;
    memset(dtype, 0, sizeof(dtype));
    for (uint32_t u = 0; u < t->units.n_units && u < MOST_UNITS; u++) {
        bool all = true;

        for (uint32_t p = 0; p < model->n_parameters; p++) {
            all = all && (fsdp_unit_of(model, &t->units, p) != u ||
                          (t->flags[p] & FSDP_FROZEN) != 0);
        }
        dtype[u] = all ? t->options->param_dtype : FSDP_DTYPE_NONE;
    }
    t->units.reduce_dtype = t->units.sum_dtype = dtype;
    return FSDP_OK;
}

/* ---- Another wire ---------------------------------------------------------
 */

/* Reduces the first pass with gradients in float32. */
static int reduce_wide(void *self, struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    struct fsdp_collective wide = *c;
    float in[MOST_SENT];
    float out[MOST_SENT];
    const uint64_t n = c->n * mutant_real.shards;

    (void)self;
    if (c->kind != FSDP_REDUCE_SCATTER || c->dtype == FSDP_DTYPE_F32 ||
        now.reduced || n > MOST_SENT) {
        return mutant_communicate(stream, c);
    }
    for (uint64_t i = 0; i < n; i++) {
        in[i] = fsdp_load(c->dtype, c->in, i);
    }
    wide.dtype = FSDP_DTYPE_F32;
    wide.sum_dtype = FSDP_DTYPE_NONE;
    wide.in = in;
    wide.out = out;
    FSDP_TRY(mutant_communicate(stream, &wide));
    for (uint64_t i = 0; i < c->n; i++) {
        fsdp_store(c->dtype, c->out, i, out[i]);
    }
    return FSDP_OK;
}

static void step_reduced(void)
{
    now.reduced = mutant_now.steps > 0; /* all is frozen in the first */
}

/* ---- Cases that show them -------------------------------------------------
 */

static bool thaws(const struct run_case *c)
{
    return mutant_plays_in_turn(c, "thaw") &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW &&
           c->strategy == CASE_FULL_SHARD;
}

static bool saves(const struct run_case *c)
{
    return mutant_plays_in_turn(c, "thaw-saved") &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

/* A case that thaws units which are frozen as a whole when they are sharded. */
static bool thaws_units(const struct run_case *c)
{
    return strcmp(c->script, "thaw-exact") == 0 &&
           c->frozen != WORKLOAD_TRAINS_ALL &&
           c->precision == CASE_BF16_ACCUMULATE;
}

const struct mutant thaw_later_mutants[] = {
    {.name = "load-counts-all",
     .text = "a checkpoint has one count of steps, and what was thawed goes on "
             "with that",
     .evidence = "an optimizer's step that is saved once",
     .kills = "thaw.loaded",
     .shows = {.in = saves},
     .before_step = count_step,
     .calls = {.save_begin = note_save, .load = load_all_steps},
     .op = by_loaded_steps,
     .forget = forget},
    {.name = "load-counts-local",
     .text = "in the local form a checkpoint has one count of steps, and what "
             "was thawed goes on with that",
     .evidence = "LOCAL_STATE_DICT, whose steps are of the flat parameter",
     .kills = "thaw.loaded",
     .shows = {.in = mutant_in_turn, .script = "thaw-local"},
     .before_step = count_step,
     .calls = {.save_begin = note_local, .load = load_local_steps},
     .op = by_loaded_steps,
     .forget = forget},
    {.name = "load-without-states",
     .text = "a load that lacks states of what is trained does nothing, and no "
             "error",
     .evidence = "strict=False as the only way",
     .kills = "error.load-without-states",
     .shows = {.in = saves},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(load), FSDP_ERR_INVALID},
     .when = mutant_is_outside_pass},
    {.name = "reduce-wide-at-first",
     .text = "what was frozen in the first forward is reduced in float32 when "
             "it is reduced for the first time",
     .evidence = "a reduce dtype that is read from the first gradient",
     .kills = "mixed.after-frozen-forward",
     .shows = {.in = mutant_in_turn, .script = "thaw-first", .mixed = true},
     .before_step = step_reduced,
     .comm.run = reduce_wide,
     .forget = forget},
    {.name = "thaw-counts-all",
     .text = "what is thawed is stepped as if it had taken all steps",
     .evidence = "one step count an optimizer",
     .kills = "thaw.stepped",
     .shows = {.in = thaws},
     .before_step = count_step,
     .op = by_all_steps,
     .forget = forget},
    {.name = "thaw-sends-param-dtype",
     .text = "a unit that was frozen as a whole when it was sharded is reduced "
             "in its parameter dtype once it is thawed",
     .evidence = "pytorch/pytorch#186998",
     .kills = "mixed.after-frozen-forward",
     .shows = {.in = thaws_units, .mixed = true},
     .told = wire_of_frozen},
    {0},
};
