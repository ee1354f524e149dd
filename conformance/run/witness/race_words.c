/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_words.c - describes a race: the accesses, their streams, where the run
 * stood, and the name of the wait that is missing.
 */
#include "run/witness/race.h"

#include <stdio.h>
#include <string.h>

static const char *const operators[FSDP_N_OPS] = {
    "fill",          "scale",          "add",           "copy-2d",
    "cast",          "gemm",           "gemm-grad",     "bias",
    "column-sum",    "relu",           "relu-backward", "gelu",
    "gelu-backward", "norm",           "norm-backward", "norm-grad",
    "embedding",     "embedding-grad", "attention",     "attention-backward",
    "mse",           "cross-entropy",  "sgd",           "momentum",
    "adamw",         "norm-sum",       "linear-loss",
};
static const char *const collectives[FSDP_N_COLLECTIVES] = {
    "all-gather", "reduce-scatter", "all-reduce", "broadcast", "barrier"};
static const char *const others[] = {"copy", "live", "dead", "free", "record"};
static const char *const points[RACE_N_POINTS] = {
    "begin",         "pre-forward",   "post-forward",   "pre-backward",
    "post-backward", "pre-recompute", "post-recompute", "end",
    "cancel",        "shard",         "step",           "pieces",
    "zero-grad",     "summon",        "destroy",
};

const char *race_what_name(uint32_t what)
{
    if (what >= RACE_COPY) {
        return others[what - RACE_COPY];
    }
    if (what >= RACE_COLLECTIVE) {
        return what - RACE_COLLECTIVE < FSDP_N_COLLECTIVES
                   ? collectives[what - RACE_COLLECTIVE]
                   : "collective";
    }
    return what < FSDP_N_OPS ? operators[what] : "operator";
}

const char *race_point_name(uint32_t point)
{
    return point < RACE_N_POINTS ? points[point] : "unknown";
}

static const char *stream_name(const struct race *r, uint32_t stream)
{
    return stream < RACE_STREAMS ? r->stream[stream].name : "host";
}

/* One side of an edge's name. An operator stands for what its stream does. */
static const char *side_name(const struct race *r, const struct race_access *a)
{
    switch (a->what) {
    case RACE_OPERATOR + FSDP_OP_SGD:
    case RACE_OPERATOR + FSDP_OP_MOMENTUM:
    case RACE_OPERATOR + FSDP_OP_ADAMW:
        return "optimizer";
    case RACE_LIVE:
        return "reuse";
    case RACE_RECORD:
        return stream_name(r, a->stream);
    default:
        return a->what >= RACE_COLLECTIVE ? race_what_name(a->what)
                                          : stream_name(r, a->stream);
    }
}

static void fill_side(const struct race *r, const struct race_access *a,
                      struct record_race_side *out)
{
    snprintf(out->what, sizeof(out->what), "%s", race_what_name(a->what));
    snprintf(out->stream, sizeof(out->stream), "%s", stream_name(r, a->stream));
    snprintf(out->point, sizeof(out->point), "%s", race_point_name(a->point));
    out->step = a->step;
    out->module = a->module;
}

/* Whether a race at this edge, with the same kind of live memory, was described
 * before. */
static bool is_known(const struct record_races *found,
                     const struct record_race *x)
{
    for (uint32_t i = 0; i < found->n; i++) {
        if (found->race[i].kind == x->kind &&
            strcmp(found->race[i].edge, x->edge) == 0) {
            return true;
        }
    }
    return false;
}

void race_describe(struct race *r, const struct race_range *earlier,
                   const struct race_access *later, uintptr_t at)
{
    struct record_races *found = &r->found;
    struct record_race x = {.kind = FSDP_N_KINDS, .unit = later->unit};
    uint32_t unit = FSDP_NO_UNIT;

    found->count++;
    if (found->n == RECORD_RACES) {
        return;
    }
    if (r->look_up) {
        r->look_up(r->self, at, &x.kind, &unit);
    }
    x.unit = x.unit != FSDP_NO_UNIT ? x.unit : earlier->access.unit;
    x.unit = x.unit != FSDP_NO_UNIT ? x.unit : unit;
    snprintf(x.edge, sizeof(x.edge), "%s->%s", side_name(r, &earlier->access),
             side_name(r, later));
    fill_side(r, &earlier->access, &x.earlier);
    fill_side(r, later, &x.later);
    if (!is_known(found, &x)) {
        found->race[found->n++] = x;
    }
}
