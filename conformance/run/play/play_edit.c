/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_edit.c - makes a script's edits to a pass's local gradients, behind the
 * backward of their module and before the engine takes them. They are enqueued
 * on the model's stream: an engine that orders its work behind that stream sees
 * them.
 */
#include "run/play/play.h"

#include <math.h>

enum {
    TIE = 3 /* elements that are not 0 */
};

/* n elements at p, of the dtype in which the gradient is lent. */
struct span {
    unsigned char *p;
    uint32_t dtype;
    uint64_t n;
};

static uint64_t bytes_of(struct span s, uint64_t n)
{
    return n * fsdp_dtype_bytes(s.dtype);
}

static struct span one_of(struct span s, uint64_t i)
{
    return (struct span){s.p + bytes_of(s, i), s.dtype, 1};
}

static int run_edit(struct driver *x, uint32_t kind, struct span s, float f)
{
    const struct fsdp_device *device = recorder_model_device(x->recorder);
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = kind,
                         .unit = FSDP_NO_UNIT,
                         .dim = {s.n},
                         .aux = {s.dtype},
                         .f = {f},
                         .n_out = 1,
                         .out = {{s.p, bytes_of(s, s.n)}}};

    if (kind == FSDP_OP_SCALE) {
        op.n_in = 1;
        op.in[0] = (struct fsdp_in){s.p, bytes_of(s, s.n)};
    }
    return s.n > 0 ? device->run(device->self, x->env.compute, &op) : FSDP_OK;
}

static int fill(struct driver *x, struct span s, float f)
{
    return run_edit(x, FSDP_OP_FILL, s, f);
}

/* Multiplies by 2^exponent, in factors that are no subnormal numbers. */
static int times(struct driver *x, struct span s, int32_t exponent)
{
    enum {
        LEAST = -126
    };

    while (exponent < LEAST) {
        FSDP_TRY(run_edit(x, FSDP_OP_SCALE, s, ldexpf(1.0f, LEAST)));
        exponent -= LEAST;
    }
    return run_edit(x, FSDP_OP_SCALE, s, ldexpf(1.0f, exponent));
}

static int tie(struct driver *x, struct span s)
{
    static const float element[TIE] = {1.0f, 0x1p-24f, 0x1p-80f};

    FSDP_TRY(fill(x, s, 0.0f));
    for (uint32_t i = 0; i < TIE && i < s.n; i++) {
        FSDP_TRY(fill(x, one_of(s, i), element[i]));
    }
    return FSDP_OK;
}

/* A number of the dtype that is subnormal there. */
static float subnormal(uint32_t dtype)
{
    return dtype == FSDP_DTYPE_F16    ? 0x1p-20f
           : dtype == FSDP_DTYPE_BF16 ? 0x1p-130f
                                      : 0x1p-140f;
}

static int edit(struct driver *x, const struct script_edit *e, struct span s)
{
    switch (e->kind) {
    case SCRIPT_EDIT_TIMES:
        return times(x, s, e->exponent);
    case SCRIPT_EDIT_INF:
        return fill(x, s, INFINITY);
    case SCRIPT_EDIT_NAN:
        return fill(x, s, NAN);
    case SCRIPT_EDIT_ZERO:
        return fill(x, s, 0.0f);
    case SCRIPT_EDIT_TIE:
        return tie(x, s);
    default:
        return fill(x, s, subnormal(s.dtype));
    }
}

/* Whether an edit of `said` is about number i of n. */
static bool is_meant(uint32_t said, uint32_t i, uint32_t n)
{
    return said == SCRIPT_ALL || said % n == i;
}

static int edit_parameter(struct driver *x, const struct script_edit *e,
                          uint32_t p)
{
    struct span s = {x->lent[p].data, x->lent[p].dtype,
                     fsdp_numel(x->model, p)};

    if (!is_meant(e->rank, x->env.rank, x->d->c->ranks) ||
        !is_meant(e->parameter, p, x->model->n_parameters) || !s.p ||
        s.n == 0) {
        return FSDP_OK;
    }
    if (e->element != SCRIPT_ALL && e->kind != SCRIPT_EDIT_TIE) {
        s = one_of(s, e->element % s.n);
    }
    return edit(x, e, s);
}

int play_edits(struct driver *x, const struct script_action *a, uint32_t module)
{
    const struct script_edit *e = x->d->script->edit + a->first_edit;

    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        if (x->model->parameter_module[p] != module) {
            continue;
        }
        for (uint32_t i = 0; i < a->n_edits; i++) {
            FSDP_TRY(edit_parameter(x, &e[i], p));
        }
    }
    return FSDP_OK;
}
