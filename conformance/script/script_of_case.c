/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_of_case.c - what each scenario does, as a script. `cancel` with two
 * recorded steps of four, for example:
 *
 *     script 1
 *     --
 *     look
 *     pass 0.0 s until 5/8
 *     ! param-after-cancel
 *     ! grad-after-cancel
 *     pass 0.0 s
 *     look
 *     step lr 0.05
 *     look
 *     zero
 *     pass 1.0 s until 5/8
 *     pass 1.0 s
 *     look
 *     step lr 0.05
 *     look
 *     zero
 *     repeat 2 {
 *     pass i+2.0 s until 5/8
 *     pass i+2.0 s
 *     step lr 0.05
 *     zero
 *     }
 *     look
 *     pass 4.0 left-open 5/8
 */
#include "cases/case_graph.h"
#include "script/script.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One step of a script: written out, or as the body of a repeat. */
struct step {
    const struct run_case *c;
    FILE *f;
    uint32_t step;
    bool counted; /* the repeat's turn is added */
    bool first;   /* the first of its life, during which wrong calls are made */
    bool recorded; /* looks are taken on the way */
};

static bool is(const struct step *s, uint32_t scenario)
{
    return s->c->scenario == scenario;
}

static void write_number(FILE *f, float x)
{
    char text[CASE_FLOAT_BYTES];

    case_float_text(x, text);
    fprintf(f, "%s", isinf(x) ? "inf" : text);
}

static void write_batch(const struct step *s, const char *verb, uint32_t step,
                        uint32_t microbatch)
{
    fprintf(s->f, s->counted ? "%s i+%u.%u" : "%s %u.%u", verb, step,
            microbatch);
}

static void look_if(const struct step *s, bool wanted)
{
    if (wanted) {
        fprintf(s->f, "look\n");
    }
}

/* Writes wrong calls at places of the first pass. */
static void write_inside(const struct step *s)
{
    if (is(s, CASE_MISUSE)) {
        fprintf(s->f, " at 0 ! begin-twice at 0 ! step-in-pass"
                      " at 0 ! pieces-in-pass at 0 ! end-early"
                      " at 0 ! point-out-of-order at 0 ! unknown-module"
                      " at 0 ! unshard-all-in-pass at 1 ! unknown-parameter"
                      " at 1 ! grad-in-forward at 1/1 ! point-after-last"
                      " at 1/1 ! end-of-another at 1/1 ! grad-after-backward");
        if (case_has_buffers(s->c)) {
            fprintf(s->f, " at 3 ! unknown-buffer");
        }
        if (s->c->frozen != WORKLOAD_TRAINS_ALL) {
            for (uint32_t i = 9; i < 16; i++) { /* of the backward */
                fprintf(s->f, " at %u/16 ! grad-of-frozen", i);
            }
        }
        if (s->c->recompute != WORKLOAD_KEEPS) {
            for (uint32_t i = 9; i < 16; i++) {
                fprintf(s->f, " at %u/16 ! grad-in-recompute", i);
            }
        }
        if (case_ignores(s->c)) {
            for (uint32_t i = 1; i < 16; i++) {
                fprintf(s->f, " at %u/16 ! %s-of-ignored", i,
                        i < 9 ? "param" : "grad");
            }
        }
    } else if (is(s, CASE_CLIP)) {
        fprintf(s->f, " at 0 ! clip-in-pass");
    } else if (case_resumes(s->c) && s->recorded) {
        fprintf(s->f, " at 0 ! save-in-pass at 0 ! load-in-pass");
    }
}

static void write_passes(const struct step *s)
{
    for (uint32_t b = 0; b < s->c->microbatches; b++) {
        bool on = s->c->sync[b] != 0;

        write_batch(s, "pass", s->step, b);
        fprintf(s->f, on ? " s" : " n");
        if (s->first && b == 0) {
            write_inside(s);
        }
        fprintf(s->f, "\n");
        if (is(s, CASE_MISUSE) && s->first && !on) {
            fprintf(s->f, "! step-with-pending\n");
        }
    }
}

/* A pass is begun and cancelled before each step. */
static void write_cancelled(const struct step *s)
{
    if (!is(s, CASE_CANCEL)) {
        return;
    }
    write_batch(s, "pass", s->step, 0);
    fprintf(s->f, " s until 5/8\n");
    if (s->first) {
        fprintf(s->f, "! param-after-cancel\n! grad-after-cancel\n");
    }
}

static void write_clip(const struct step *s)
{
    struct fsdp_clip clip;

    if (!is(s, CASE_CLIP)) {
        return;
    }
    if (s->first) {
        fprintf(s->f, "! clip-to-zero\n! clip-to-nan\n! clip-by-third\n");
    }
    for (uint32_t n = 0; n < CASE_N_NORMS; n++) {
        fprintf(s->f, "clip inf p ");
        write_number(s->f, case_norm_p[n]);
        fprintf(s->f, "\n");
    }
    case_clip(s->c, s->step, &clip);
    fprintf(s->f, "clip ");
    write_number(s->f, clip.max_norm);
    fprintf(s->f, " p ");
    write_number(s->f, clip.p);
    fprintf(s->f, "\n");
    look_if(s, s->recorded);
}

static void write_numbers(const struct step *s, const char *word,
                          float (*of)(const struct run_case *, uint32_t))
{
    for (uint32_t g = 0; g < case_groups(s->c); g++) {
        fprintf(s->f, "%s", g == 0 ? word : ",");
        write_number(s->f, of(s->c, g));
    }
}

static void write_optimizer(const struct step *s)
{
    fprintf(s->f, "step");
    write_numbers(s, " lr ", case_group_lr);
    write_numbers(s, " decay ", case_group_decay);
    fprintf(s->f, is(s, CASE_MISUSE) && s->first ? " finite\n" : "\n");
    look_if(s, s->recorded);
    fprintf(s->f, "zero\n");
}

static void write_step(const struct step *s)
{
    write_cancelled(s);
    write_passes(s);
    if (case_resumes(s->c) && s->first && s->recorded) {
        fprintf(s->f, "! save-with-gradients\n");
    }
    look_if(s, s->recorded);
    write_clip(s);
    write_optimizer(s);
    if (is(s, CASE_EVAL)) {
        write_batch(s, "eval", s->step + 1, 0);
        fprintf(s->f, "\n");
    }
}

/* Writes steps [from, to), with looks in those below recorded_steps. Equal
 * steps become a repeat. */
static void write_steps(FILE *f, const struct run_case *c, uint32_t from,
                        uint32_t to)
{
    for (uint32_t step = from; step < to; step++) {
        bool differs = c->scenario == CASE_CLIP || step == 0;
        bool recorded = step < c->recorded_steps;
        uint32_t end =
            recorded && c->recorded_steps < to ? c->recorded_steps : to;
        struct step s = {c,         f,       step, !differs && end - step > 1,
                         step == 0, recorded};

        if (s.counted) {
            fprintf(f, "repeat %u {\n", end - step);
        }
        write_step(&s);
        if (s.counted) {
            fprintf(f, "}\n");
            step = end - 1;
        }
    }
}

/* ---- Lives ---- */

static void write_training(FILE *f, const struct run_case *c)
{
    if (c->recorded_steps > 0) {
        fprintf(f, "look\n");
    }
    if (c->scenario == CASE_MISUSE) {
        fprintf(f,
                "! point-before-begin\n! param-at-rest\n! grad-at-rest\n"
                "! cancel-at-rest\n! end-at-rest\n! unknown-sequence\n"
                "! step-groups\n! unknown-parameter\n%s%s",
                case_ignores(c) ? "! freeze-of-ignored\n" : "",
                case_has_buffers(c) ? "! unknown-buffer\n" : "");
    }
    write_steps(f, c, 0, c->steps);
    if (c->scenario == CASE_SUMMON) {
        fprintf(f, "summon\n");
    }
    if (c->recorded_steps > 0) {
        fprintf(f, "look\n");
    }
    if (c->scenario == CASE_CANCEL) {
        fprintf(f, "pass %u.0 left-open 5/8\n", c->steps);
    }
}

static void write_save(FILE *f, const struct run_case *c, char slot)
{
    const char *form = "sharded";

    if (c->scenario == CASE_RESUME_FULL) {
        form = c->wrap == CASE_WRAP_LAYER ? "full-rank0" : "full";
    } else if (c->scenario == CASE_RESUME_LOCAL) {
        form = "local";
    }
    fprintf(f, "save %c %s\n", slot, form);
}

/* The step behind the save is played while the checkpoint is written, and once
 * more by the second life. */
static void write_resume(FILE *f, const struct run_case *c)
{
    bool saves = c->scenario != CASE_GROW && c->scenario != CASE_SHRINK;
    const uint32_t half = c->steps / 2;
    struct step next = {.c = c, .f = f, .step = half};

    if (c->recorded_steps > 0) {
        fprintf(f, "look\n");
    }
    write_steps(f, c, 0, half);
    if (saves) {
        fprintf(f, "! wait-before-save\n");
        write_save(f, c, 'a');
        fprintf(f, "! save-twice\n");
        write_step(&next);
        fprintf(f, "wait a\n");
    }
    fprintf(f, "again\nload a\n");
    if (c->recorded_steps > half) {
        fprintf(f, "look\n");
    }
    if (saves) {
        write_save(f, c, 'b');
        fprintf(f, "wait b same a\n");
    }
    write_steps(f, c, half, c->steps);
    fprintf(f, "! load-missing\n! load-damaged\n");
    if (c->recorded_steps > 0) {
        fprintf(f, "look\n");
    }
}

static void write_saver(FILE *f, const struct run_case *c)
{
    write_steps(f, c, 0, c->steps / 2);
    write_save(f, c, 'a');
    fprintf(f, "wait a\n");
}

static void write_case(FILE *f, const struct run_case *c, bool saves_only)
{
    switch (c->scenario) {
    case CASE_OPTIONS:
        for (uint32_t i = 0; i < SCRIPT_N_CALLS; i++) {
            if (script_calls[i].when == SCRIPT_UNTRAINED &&
                script_calls[i].refusal != SCRIPT_IS_A_MISMATCH) {
                fprintf(f, "! %s\n", script_calls[i].name);
            }
        }
        break;
    case CASE_DISAGREE:
        fprintf(f, "! shard\n! shard-units\n%s%s%s%s%s%s%s%s%s",
                c->frozen != WORKLOAD_TRAINS_ALL ? "! shard-frozen\n" : "",
                case_is_tied(c) ? "! shard-tied\n" : "",
                c->wrap == CASE_WRAP_APART ? "! shard-parameter-units\n" : "",
                c->wrap == CASE_WRAP_IGNORE ? "! shard-ignored\n" : "",
                c->factors == CASE_UNIT_FACTORS ? "! shard-factors\n" : "",
                case_has_buffers(c) ? "! shard-buffers\n" : "",
                c->precision == CASE_BF16
                    ? "! shard-dtypes\n! shard-reduce-dtype\n"
                      "! shard-grad-dtype\n! shard-accumulate-dtype\n"
                    : "",
                c->precision == CASE_BF16 && case_has_buffers(c)
                    ? "! shard-buffer-dtype\n"
                    : "",
                c->offload != CASE_NOT_OFFLOADED
                    ? "! shard-offload\n! shard-offload-kinds\n"
                    : "");
        break;
    case CASE_SHARD:
        fprintf(f, "look\n");
        break;
    case CASE_AGAIN:
        write_training(f, c);
        fprintf(f, "again\n");
        write_training(f, c);
        break;
    default:
        if (saves_only) {
            write_saver(f, c);
        } else if (case_resumes(c)) {
            write_resume(f, c);
        } else {
            write_training(f, c);
        }
        break;
    }
}

char *script_of_case(const struct run_case *c, bool saves_only)
{
    const struct case_script *own = case_script_of(c);
    char *text = NULL;
    size_t n = 0;
    FILE *f;

    if (own) {
        return strdup(own->text);
    }
    f = open_memstream(&text, &n);

    if (!f) {
        return NULL;
    }
    fprintf(f, "script %d\n", SCRIPT_VERSION);
    if (case_groups(c) > 1) {
        fprintf(f, "groups %u\n", case_groups(c));
    }
    if (c->scenario == CASE_GROW || c->scenario == CASE_SHRINK) {
        fprintf(f, "given a\n"); /* by a world of its own */
    }
    fprintf(f, "--\n");
    write_case(f, c, saves_only);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int script_make(const struct run_case *c, bool saves_only, struct script *out,
                struct fsdp_error *error)
{
    char *text = script_of_case(c, saves_only);
    int status = text ? script_parse(text, out, error) : FSDP_ERR_NOMEM;

    free(text);
    return status;
}
