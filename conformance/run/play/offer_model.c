/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer_model.c - models, units and meshes that must be refused.
 */
#include "run/play/engine_claims.h"
#include "run/play/offer.h"

#include <string.h>

/* Freezes the last parameter only. */
static void unclaimed_frozen(struct driver *x, struct offer *o)
{
    o->flags[x->model->n_parameters - 1] |= FSDP_FROZEN;
}

static int no_initial_buffer(void *context, uint32_t b, uint64_t first,
                             uint64_t n, void *out)
{
    (void)context;
    (void)b;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

/* Gives the model one buffer, of one element. */
static void unclaimed_buffers(struct driver *x, struct offer *o)
{
    static const char *const name[] = {"offered"};
    static const uint32_t module[] = {0};
    static const uint32_t dtype[] = {FSDP_DTYPE_F32};
    static const uint32_t flags[] = {0};
    static const uint64_t numel[] = {1};

    (void)x;
    o->model.n_buffers = 1;
    o->model.buffer_name = name;
    o->model.buffer_module = module;
    o->model.buffer_dtype = dtype;
    o->model.buffer_flags = flags;
    o->model.buffer_numel = numel;
    o->model.initial_buffer = no_initial_buffer;
}

static void unit_out_of_range(struct driver *x, struct offer *o)
{
    o->of_module[x->model->n_modules - 1] = x->units->n_units + 7;
}

static void group_out_of_range(struct driver *x, struct offer *o)
{
    o->of_parameter[x->model->n_parameters - 1] = 2;
    o->options.n_groups = 2;
    o->options.group_of_parameter = o->of_parameter;
}

static void mesh_does_not_divide(struct driver *x, struct offer *o)
{
    (void)x;
    o->extent[0]++;
}

static void shards_do_not_divide(struct driver *x, struct offer *o)
{
    (void)x;
    o->extent[1]++;
}

/* Moves the last parameter to another unit, or to none. */
static void offer_move_last(struct driver *x, struct offer *o, uint32_t unit)
{
    o->unit_of[x->model->n_parameters - 1] = unit;
    o->units.unit_of_parameter = o->unit_of;
}

/* If there is only one unit, it stays in that. */
void offer_move_to_another(struct driver *x, struct offer *o)
{
    const uint32_t last = x->model->n_parameters - 1;

    offer_move_last(x, o, (o->unit_of[last] + 1) % x->units->n_units);
}

static void unclaimed_ignored(struct driver *x, struct offer *o)
{
    offer_move_last(x, o, FSDP_NO_UNIT);
}

static void parameter_unit_out_of_range(struct driver *x, struct offer *o)
{
    offer_move_last(x, o, x->units->n_units + 7);
    /* An engine without the claim refuses any such unit, whatever its number
     * is. */
    if (engine_claims(&x->engine, "parameter-units")) {
        o->option = x->model->parameter_name[x->model->n_parameters - 1];
    }
}

/* One name of a tied parameter is in a unit and the other is not. */
static void tied_to_ignored(struct driver *x, struct offer *o)
{
    offer_tie_last(x, o);
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        o->unit_of[p] = o->of_module[x->model->parameter_module[p]];
    }
    offer_move_last(x, o, FSDP_NO_UNIT);
}

/* Adds a sequence which begins as the training one does, and in which the
 * module of the last parameter then has another forward and another backward:
 * its unit has two backward windows. */
static void two_windows(struct driver *x, struct offer *o)
{
    static const uint32_t more[] = {FSDP_PRE_FORWARD, FSDP_POST_FORWARD,
                                    FSDP_PRE_BACKWARD, FSDP_POST_BACKWARD};
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];
    const uint32_t n = x->model->n_sequences < OFFER_MOST_SEQUENCES
                           ? x->model->n_sequences
                           : OFFER_MOST_SEQUENCES - 1;

    memcpy(o->point, q->point, q->n * sizeof(*o->point));
    memcpy(o->module, q->module, q->n * sizeof(*o->module));
    for (uint32_t i = 0; i < 4; i++) {
        o->point[q->n + i] = more[i];
        o->module[q->n + i] =
            x->model->parameter_module[x->model->n_parameters - 1];
    }
    o->trains = *q;
    o->trains.n = q->n + 4;
    o->trains.point = o->point;
    o->trains.module = o->module;
    o->trains.name = "again";
    for (uint32_t i = 0; i < n; i++) {
        o->sequence[i] = x->model->sequence[i];
    }
    o->sequence[n] = &o->trains;
    o->model.n_sequences = n + 1;
    o->model.sequence = o->sequence;
}

offer_change *const offer_model[SCRIPT_N_CALLS] = {
    [SCRIPT_CALL_UNCLAIMED_FROZEN] = unclaimed_frozen,
    [SCRIPT_CALL_UNCLAIMED_BUFFERS] = unclaimed_buffers,
    [SCRIPT_CALL_UNIT_OUT_OF_RANGE] = unit_out_of_range,
    [SCRIPT_CALL_GROUP_OUT_OF_RANGE] = group_out_of_range,
    [SCRIPT_CALL_MESH_DOES_NOT_DIVIDE] = mesh_does_not_divide,
    [SCRIPT_CALL_SHARDS_DO_NOT_DIVIDE] = shards_do_not_divide,
    [SCRIPT_CALL_UNCLAIMED_PARAMETER_UNITS] = offer_move_to_another,
    [SCRIPT_CALL_UNCLAIMED_IGNORED] = unclaimed_ignored,
    [SCRIPT_CALL_PARAMETER_UNIT_OUT_OF_RANGE] = parameter_unit_out_of_range,
    [SCRIPT_CALL_TIED_TO_IGNORED] = tied_to_ignored,
    [SCRIPT_CALL_BACKWARD_STEP_WINDOWS] = two_windows,
};
