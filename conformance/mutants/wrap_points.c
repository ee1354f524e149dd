/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_points.c - the part of a mutant that is the same in those that do
 * something wrong at a point of a pass.
 */
#include "mutants/wrap_kit.h"

/* Of the one of them that this mutant has; each begins anew where it is asked
 * for. */
static _Thread_local struct {
    uint32_t collective;
    bool (*forgives)(uint32_t point);
    bool (*disturbs)(uint32_t point, int status);
    bool disturbed;
} my;

/* ---- Giving back at the end of the pass -------------------------------- */

static int hold_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    if (point == FSDP_END) {
        mutant_let_go();
    }
    return status;
}

void mutant_hold_pass(struct fsdp_env *env, struct fsdp_engine *engine,
                      uint32_t kind)
{
    mutant_hold(env, engine, kind);
    mutant_holding(true);
    engine->at = hold_at;
}

/* ---- A collective at the end of the pass ------------------------------- */

static int collective_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    struct fsdp_collective c = {.size = sizeof c,
                                .kind = my.collective,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = FSDP_NO_UNIT};

    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END ? mutant_communicate(NULL, &c) : FSDP_OK;
}

void mutant_communicate_at_end(struct fsdp_engine *engine, uint32_t kind)
{
    my.collective = kind;
    engine->at = collective_at;
}

/* ---- Refusals that are not told ---------------------------------------- */

static int forgive_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    return status == FSDP_ERR_INVALID && my.forgives(point) ? FSDP_OK : status;
}

void mutant_forgive(struct fsdp_engine *engine,
                    bool (*forgives)(uint32_t point))
{
    my.forgives = forgives;
    engine->at = forgive_at;
}

/* ---- Another average --------------------------------------------------- */

static int disturb_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    if (my.disturbs(point, status)) {
        my.disturbed = true;
    } else if (point == FSDP_END) {
        my.disturbed = false;
    }
    return status;
}

static int disturb_run(void *self, struct fsdp_stream *stream,
                       const struct fsdp_op *op)
{
    struct fsdp_op x = *op;

    (void)self;
    if (op->kind == FSDP_OP_SCALE && my.disturbed) {
        x.f[0] *= 2.0f;
    }
    return mutant_run(stream, &x);
}

void mutant_disturb(struct fsdp_env *env, struct fsdp_engine *engine,
                    bool (*disturbs)(uint32_t point, int status))
{
    my.disturbs = disturbs;
    my.disturbed = false;
    engine->at = disturb_at;
    mutant_device(env)->run = disturb_run;
}
