/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_requirements.c - the table.
 */
#include "tools/check/own_requirement.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool has_frozen(const struct own_set *s)
{
    for (uint32_t p = 0; p < s->unsharded.n_parameters; p++) {
        if (!s->unsharded.parameter[p].trainable) {
            return true;
        }
    }
    return false;
}

static bool has_buffers(const struct own_set *s)
{
    return s->unsharded.n_buffers > 0;
}

static bool has_states(const struct own_set *s)
{
    return own_has_stage(s, "state.");
}

/* Whether a rank saved states: a sharded model that never reduces has none. */
static bool has_saved_states(const struct own_set *s)
{
    for (uint32_t r = 0; r < s->world; r++) {
        for (uint32_t i = 0; i < s->rank[r].n_tensors; i++) {
            if (own_stage_is(&s->rank[r].tensor[i], "state.")) {
                return true;
            }
        }
    }
    return false;
}

static bool has_evaluations(const struct own_set *s)
{
    return own_has_stage(s, "evaluated.");
}

#define CHECK(name) .holds = name##_holds, .spoil = name##_spoil

const struct own_requirement own_requirements[] = {
    {"own.completes", "Every rank, and the unsharded run, comes to its end.",
     CHECK(own_ends)},
    {"own.tied",
     "Names that are one parameter in the unsharded model are one in the "
     "sharded model.",
     CHECK(own_tied)},
    {"own.parameters",
     "The sharded model has the parameters of the unsharded one: the same "
     "names, sizes, dtypes, and the same of them are trained.",
     CHECK(own_model)},
    {"own.units", "All ranks are cut into the same units.",
     .applies = own_has_units, CHECK(own_units)},
    {"own.layout",
     "Each element of each parameter is on exactly one rank; without sharding "
     "on every rank.",
     CHECK(own_layout)},
    {"own.optimizer-holds",
     "The optimizer has each parameter of the sharded model that the unsharded "
     "run's has, in the same group, and nothing else.",
     CHECK(own_optimizer)},
    {"own.initial",
     "Shards begin as the unsharded model's weights, in every "
     "bit.",
     CHECK(own_same), .stage = "initial", .words = "initial weights"},
    {"own.batches",
     "A rank gets the batch that the unsharded run plays for "
     "it.",
     CHECK(own_batches)},
    {"own.batches-differ", "No two ranks have the same batch in a step.",
     CHECK(own_batches_differ)},
    {"own.random-state",
     "A pass begins with the random state that it has in the unsharded run, so "
     "that dropout draws the same masks.",
     CHECK(own_random)},
    {"own.gathers",
     "A unit is gathered once for each window in which it is needed, and not "
     "otherwise.",
     .applies = own_has_units, CHECK(own_gathers), .kind = OWN_ALL_GATHER},
    {"own.wire",
     "Each collective has the elements of its unit's shards, and the dtype "
     "that was asked for.",
     .applies = own_has_units, CHECK(own_wire)},
    {"own.order", "All ranks make the same collectives in the same order.",
     .applies = own_is_sharded, CHECK(own_order)},
    {"own.memory",
     "No more whole weights are there than the units in use, and in the "
     "backward one more that was gathered ahead; behind a pass none are.",
     .applies = own_has_units, CHECK(own_memory)},
    {"own.unsharded",
     "The weights that a forward sees are the unsharded run's, in every bit.",
     CHECK(own_same), .stage = "unsharded",
     .words = "weights seen by the forward"},
    {"own.loss", "Each loss is the unsharded run's, in every bit: the curve.",
     CHECK(own_loss)},
    {"own.local-grad",
     "The gradient of each rank's pass, before anything is reduced, is the "
     "unsharded run's, in every bit.",
     CHECK(own_same), .stage = "local-gradient", .words = "local gradient"},
    {"own.buffers",
     "Each rank's buffers are, after a step's passes, those that it has in the "
     "unsharded run, in every bit.",
     .applies = has_buffers, CHECK(own_buffers)},
    {"own.reductions",
     "A unit is reduced once in the last microbatch of a step, if it has a "
     "gradient.",
     .applies = own_has_units, CHECK(own_reductions),
     .kind = OWN_REDUCE_SCATTER},
    {"own.reduced",
     "A reduced gradient is the mean of the ranks' local gradients, bit for "
     "bit, in some order.",
     CHECK(own_reduced), .stage = "reduced"},
    {"own.step",
     "Weights after a step of the optimizer are the unsharded run's, in every "
     "bit.",
     CHECK(own_same), .stage = "after", .words = "weights after the step"},
    {"own.states",
     "The optimizer's states are the unsharded run's, in every bit.",
     .applies = has_states, CHECK(own_same), .stage = "state.",
     .words = "optimizer's state"},
    {"own.evaluated",
     "The weights that an evaluation in a step of the optimizer sees are the "
     "unsharded run's, in every bit.",
     .applies = has_evaluations, CHECK(own_same), .stage = "evaluated.",
     .words = "weights seen by evaluation"},
    {"own.frozen-still", "Parameters that are not trained keep their bits.",
     .applies = has_frozen, CHECK(own_frozen)},
    {"own.saved-weights",
     "Weights come back from a checkpoint as they were saved, in every bit.",
     CHECK(own_saved), .stage = "loaded", .with = "after", .words = "weights"},
    {"own.saved-states",
     "The optimizer's states come back from a checkpoint as they were saved, "
     "in every bit.",
     .applies = has_saved_states, CHECK(own_saved), .stage = "loaded.",
     .with = "state.", .words = "optimizer's state"},
};
const uint32_t own_n_requirements =
    sizeof(own_requirements) / sizeof(own_requirements[0]);

bool own_is_basis(const struct own_requirement *q)
{
    return q->holds == own_ends_holds || q->holds == own_model_holds ||
           q->holds == own_units_holds;
}

bool own_fail(struct own_finding *f, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(f->text, sizeof(f->text), format, arguments);
    va_end(arguments);
    return false;
}

struct own_finding own_nowhere(void)
{
    return (struct own_finding){-1, -1, -1, -1, -1, -1, "", false};
}

void own_damage(struct own_spoil *undo, void *at, size_t bytes)
{
    undo->at = at;
    undo->bytes = bytes < sizeof(undo->old) ? bytes : sizeof(undo->old);
    memcpy(undo->old, at, undo->bytes);
}

void own_repair(const struct own_spoil *undo)
{
    memcpy(undo->at, undo->old, undo->bytes);
}

/* As a double: all 16 bit values, and float32, are some. */
static bool number_of(uint32_t dtype, uint64_t bits, double *out)
{
    uint32_t word = (uint32_t)bits;
    float x;

    switch (dtype) {
    case OWN_BF16:
        word <<= 16;
        break;
    case OWN_F32:
        break;
    case OWN_F64:
        memcpy(out, &bits, sizeof(*out));
        return true;
    case OWN_I32:
    case OWN_I64:
    case OWN_U8:
    case OWN_BOOL:
        *out = dtype == OWN_I32 ? (int32_t)word : (double)(int64_t)bits;
        return true;
    default:
        return false;
    }
    memcpy(&x, &word, sizeof(x));
    *out = (double)x;
    return true;
}

void own_value(uint32_t dtype, uint64_t bits, char text[OWN_VALUE_BYTES])
{
    const int digits = 2 * (int)own_dtype_bytes(dtype);
    double x;

    if (number_of(dtype, bits, &x)) {
        snprintf(text, OWN_VALUE_BYTES, "%.9g (0x%0*" PRIx64 ")", x, digits,
                 bits);
    } else {
        snprintf(text, OWN_VALUE_BYTES, "0x%0*" PRIx64, digits, bits);
    }
}
