/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - the oracle's view of the layouts: which parameters make up a
 * unit, where they lie in its shards, and which part of each a shard owns.
 * Written from the contract alone; engines compute it themselves.
 */
#include "judge/oracle/expect.h"

#include "judge/oracle/expect_walk.h"
#include "judge/oracle/expect_walk_units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The room that each shard has for parameter p: ceil(d_0 / S) of its rows. A
 * parameter without dimensions is one row. */
static uint64_t block_of(const struct expect *e, uint32_t p)
{
    uint64_t rows = 1;
    uint64_t row = 1;

    for (uint32_t d = 0; d < e->model->parameter_n_dims[p]; d++) {
        uint64_t extent = e->model->parameter_shape[p][d];

        rows = d == 0 ? extent : rows;
        row = d == 0 ? row : row * extent;
    }
    return (rows / e->shards + (rows % e->shards != 0 ? 1 : 0)) * row;
}

static bool is_frozen(const struct expect *e, uint32_t p)
{
    return e->frozen[p];
}

const char *expect_unit_name(const struct expect *e, uint32_t u)
{
    for (uint32_t m = 0; m < e->model->n_modules; m++) {
        if (e->units->unit_of_module[m] == u) {
            const char *name = e->model->module_name[m];

            return name[0] != '\0' ? name : "(root)";
        }
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] == u && u < e->units->n_units) {
            return e->model->parameter_name[p];
        }
    }
    return NULL;
}

bool expect_is_ignored(const struct expect *e, uint32_t p)
{
    return e->unit_of_parameter[p] == e->units->n_units;
}

uint32_t expect_original(const struct expect *e, uint32_t p)
{
    const int32_t original = e->model->parameter_alias[p];

    return original < 0 ? p : (uint32_t)original;
}

/* Another name takes no place. */
static void place_tied(struct expect *e, uint32_t p, uint32_t original)
{
    e->unit_of_parameter[p] = e->unit_of_parameter[original];
    e->block[p] = e->block[original];
    e->offset[p] = e->offset[original];
    e->shared[p] = e->shared[original] = true;
}

/* The place of p in its unit's gradient. Flat: as in the unit; per parameter:
 * trainable parameters are laid out as if there were no others. */
static void place_gradient(struct expect *e, uint32_t p, bool flat)
{
    struct expect_unit *unit = &e->unit[e->unit_of_parameter[p]];

    if (expect_is_ignored(e, p)) {
        return;
    }
    e->grad_offset[p] = flat ? unit->grad_numel : unit->grad_chunk;
    if (flat || !is_frozen(e, p)) {
        unit->grad_numel += fsdp_numel(e->model, p);
        unit->grad_chunk += e->block[p];
    }
    unit->freezes = unit->freezes || is_frozen(e, p);
    unit->trains = unit->trains || !is_frozen(e, p);
}

/* Parameters follow each other in their unit in the model's order: in the
 * flat parameter, or in every shard. */
static void place_parameters(struct expect *e)
{
    bool flat = e->options.layout == FSDP_LAYOUT_FLAT;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t u = fsdp_unit_of(e->model, e->units, p);

        e->unit_of_parameter[p] = u == FSDP_NO_UNIT ? e->units->n_units : u;
        e->frozen[p] = e->frozen[p] || expect_is_ignored(e, p);
        if (expect_original(e, p) != p) {
            place_tied(e, p, expect_original(e, p));
            continue;
        }
        if (expect_is_ignored(e, p)) {
            continue;
        }
        e->block[p] = flat ? 0 : block_of(e, p);
        e->offset[p] = flat ? e->unit[u].numel : e->unit[u].chunk;
        e->unit[u].numel += fsdp_numel(e->model, p);
        e->unit[u].chunk += e->block[p];
    }
}

/* Called when parameters have their places: places those that are trained. */
static void place_gradients(struct expect *e)
{
    const bool flat = e->options.layout == FSDP_LAYOUT_FLAT;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        e->unit[u].grad_numel = e->unit[u].grad_chunk = 0;
        e->unit[u].freezes = e->unit[u].trains = false;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (expect_original(e, p) == p) {
            place_gradient(e, p, flat);
        } else {
            e->grad_offset[p] = e->grad_offset[expect_original(e, p)];
        }
    }
}

/* Sizes that follow from where parameters lie. */
static void measure(const struct expect *e, struct expect_unit *unit)
{
    unit->trains = unit->trains || !unit->freezes;
    unit->has_holes = unit->freezes && e->options.layout == FSDP_LAYOUT_FLAT;
    if (e->options.layout == FSDP_LAYOUT_FLAT) {
        unit->chunk = unit->numel / e->shards;
        unit->chunk += unit->numel % e->shards != 0 ? 1 : 0;
        unit->grad_chunk = unit->trains ? unit->chunk : 0;
        unit->grad_numel = unit->trains ? unit->numel : 0;
    }
    unit->padded = unit->chunk * e->shards;
    unit->whole = e->packs ? unit->numel : unit->padded;
    unit->grad_padded = unit->grad_chunk * e->shards;
    unit->grad_whole = e->packs ? unit->grad_numel : unit->grad_padded;
}

static uint32_t own_dtype(const uint32_t *own, uint32_t u, uint32_t option,
                          uint32_t usual)
{
    const uint32_t dtype = own && own[u] != FSDP_DTYPE_NONE ? own[u] : option;

    return dtype != FSDP_DTYPE_NONE ? dtype : usual;
}

static float own_factor(const float *own, uint32_t u, float option, float usual)
{
    const float factor = own && own[u] != 0.0f ? own[u] : option;

    return factor != 0.0f ? factor : usual;
}

uint32_t expect_buffer_dtype(const struct expect *e, uint32_t b)
{
    const uint32_t own = e->model->buffer_dtype[b];
    const uint32_t u = e->units->unit_of_module[e->model->buffer_module[b]];
    const uint32_t *of_unit = e->units->buffer_dtype;

    if (own == FSDP_DTYPE_I32 || own == FSDP_DTYPE_I64 ||
        own == FSDP_DTYPE_U8) {
        return own;
    }
    if (of_unit && u != FSDP_NO_UNIT && of_unit[u] != FSDP_DTYPE_NONE) {
        return of_unit[u];
    }
    return e->options.buffer_dtype != FSDP_DTYPE_NONE ? e->options.buffer_dtype
                                                      : own;
}

static void find_factors(const struct expect *e, uint32_t u,
                         struct expect_unit *unit)
{
    const float divide =
        own_factor(e->units->divide_factor, u, e->options.divide_factor,
                   (float)e->c->ranks);
    const float before = own_factor(e->units->predivide_factor, u,
                                    e->options.predivide_factor, 1.0f);

    unit->factor = (struct expect_factors){1.0f / before, before / divide};
    unit->divide = divide;
}

static struct expect_dtypes dtypes_of(const struct expect *e, uint32_t u)
{
    const struct fsdp_options *o = &e->options;
    const struct fsdp_units *n = e->units;
    struct expect_dtypes d = {.between = FSDP_DTYPE_NONE};

    d.param = own_dtype(n->param_dtype, u, o->param_dtype, FSDP_DTYPE_F32);
    d.reduce = own_dtype(n->reduce_dtype, u, o->reduce_dtype, FSDP_DTYPE_F32);
    d.grad = own_dtype(n->grad_dtype, u, o->grad_dtype, d.param);
    d.accumulate =
        own_dtype(n->accumulate_dtype, u, o->accumulate_dtype, d.reduce);
    d.sum = own_dtype(n->sum_dtype, u, o->sum_dtype, d.reduce);
    return d;
}

/* A unit's own bits replace the option's; ALL stands for both other bits. */
static void find_offload(const struct expect *e, uint32_t u,
                         struct expect_unit *unit)
{
    const uint32_t own = e->units->offload ? e->units->offload[u] : 0;
    uint32_t bits = e->options.offload;

    if (own & FSDP_OFFLOAD_OWN) {
        bits = own;
    } else if (own != 0) {
        bits = own == 1 ? FSDP_OFFLOAD_ALL : 0;
    }
    unit->shard_on_host = bits & (FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_PARAMS);
    unit->step_on_host = bits & (FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_OPTIMIZER);
}

bool expect_is_offloaded(const struct expect *e)
{
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (e->unit[u].shard_on_host || e->unit[u].step_on_host) {
            return true;
        }
    }
    return false;
}

static void lay_out(struct expect *e)
{
    bool flat = e->options.layout == FSDP_LAYOUT_FLAT;

    e->packs = !flat && e->shards > 1;
    place_parameters(e);
    place_gradients(e);
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        struct expect_unit *unit = &e->unit[u];

        measure(e, unit);
        unit->dtype = dtypes_of(e, u);
        find_factors(e, u, unit);
        find_offload(e, u, unit);
        e->total += unit->numel;
        e->resting += unit->chunk;
        if (unit->whole > e->largest) {
            e->largest = unit->whole;
        }
        if (unit->whole * fsdp_dtype_bytes(unit->dtype.param) >
            e->largest_bytes) {
            e->largest_bytes =
                unit->whole * fsdp_dtype_bytes(unit->dtype.param);
        }
    }
}

static void cut_flat(const struct expect *e, uint32_t p, uint32_t s,
                     struct expect_part *part)
{
    uint64_t chunk = e->unit[e->unit_of_parameter[p]].chunk;
    uint64_t shard_begin = s * chunk;
    uint64_t shard_end = shard_begin + chunk;
    uint64_t begin = e->offset[p];
    uint64_t end = begin + fsdp_numel(e->model, p);

    begin = begin < shard_begin ? shard_begin : begin;
    end = end > shard_end ? shard_end : end;
    part->parameter = p;
    part->first = begin - e->offset[p];
    part->n = begin < end ? end - begin : 0;
    part->local = begin - shard_begin;
}

/* torch.chunk: blocks of equal size for as long as there are elements. */
static void cut_rows(const struct expect *e, uint32_t p, uint32_t s,
                     struct expect_part *part)
{
    uint64_t numel = fsdp_numel(e->model, p);
    uint64_t begin = s * e->block[p];
    uint64_t end = begin + e->block[p];

    end = end > numel ? numel : end;
    part->parameter = p;
    part->first = begin;
    part->n = begin < end ? end - begin : 0;
    part->local = e->offset[p];
}

uint64_t expect_share(const struct expect *e, uint32_t p, uint32_t s)
{
    struct expect_part part;

    if (e->options.layout == FSDP_LAYOUT_FLAT) {
        cut_flat(e, p, s, &part);
    } else {
        cut_rows(e, p, s, &part);
    }
    return part.n;
}

void expect_lay_out_again(struct expect *e)
{
    place_gradients(e);
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        measure(e, &e->unit[u]);
    }
    expect_find_states(e);
}

int expect_make(const struct run_case *c, const struct fsdp_model *model,
                const struct fsdp_units *units, struct expect *out)
{
    return expect_make_idle(c, model, units, NULL, out);
}

int expect_make_idle(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units, const uint8_t *idle,
                     struct expect *out)
{
    return expect_make_watched(c, model, units, idle, NULL, out);
}

/* One more than is needed, so that no calloc is of 0 bytes. */
static bool make_arrays(struct expect *e)
{
    const size_t n = (size_t)e->model->n_parameters + 1;
    const size_t n_units = (size_t)e->units->n_units + 1;

    e->unit = calloc(n_units, sizeof(*e->unit));
    e->unit_of_parameter = calloc(n, sizeof(*e->unit_of_parameter));
    e->offset = calloc(n, sizeof(*e->offset));
    e->grad_offset = calloc(n, sizeof(*e->grad_offset));
    e->stepped = calloc(n, sizeof(*e->stepped));
    e->block = calloc(n, sizeof(*e->block));
    e->shared = calloc(n, sizeof(*e->shared));
    e->backwards = calloc(n, sizeof(*e->backwards));
    e->has_gradient = calloc(n, sizeof(*e->has_gradient));
    e->seen = calloc(n, sizeof(*e->seen));
    e->trained = calloc(n_units, sizeof(*e->trained));
    e->frozen = calloc(n, sizeof(*e->frozen));
    return e->unit && e->unit_of_parameter && e->offset && e->grad_offset &&
           e->stepped && e->block && e->shared && e->backwards &&
           e->has_gradient && e->seen && e->trained && e->frozen;
}

int expect_make_watched(const struct run_case *c,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units, const uint8_t *idle,
                        const struct expect_watch *watch, struct expect *out)
{
    int status = FSDP_OK;

    memset(out, 0, sizeof(*out));
    if (!expect_is_known(c, model, units)) {
        return FSDP_ERR_INVALID;
    }
    out->c = c;
    out->model = model;
    out->units = units;
    case_options(c, &out->options);
    if (case_is_script(c)) {
        struct fsdp_error why;

        status = script_make(c, false, &out->script, &why);
    }
    if (status != FSDP_OK) {
        expect_release(out);
        return status;
    }
    out->replicas = c->replicas;
    out->shards = c->ranks / c->replicas;
    if (!make_arrays(out)) {
        status = FSDP_ERR_NOMEM;
    } else {
        for (uint32_t p = 0; p < model->n_parameters; p++) {
            out->frozen[p] = (model->parameter_flags[p] & FSDP_FROZEN) != 0;
        }
        out->idle = idle;
        lay_out(out);
        expect_find_uses(out, idle);
        expect_find_states(out);
        status = expect_walk(out, watch);
        out->idle = NULL;
    }
    if (status != FSDP_OK) {
        expect_release(out);
    }
    return status;
}

void expect_release(struct expect *e)
{
    expect_release_sets(e);
    free(e->frozen);
    free(e->unit);
    free(e->unit_of_parameter);
    free(e->offset);
    free(e->grad_offset);
    free(e->stepped);
    free(e->block);
    free(e->shared);
    free(e->backwards);
    free(e->has_gradient);
    free(e->seen);
    free(e->trained);
    free(e->step.c);
    free(e->end.c);
    free(e->ahead.c);
    for (uint32_t i = 0; i < e->n_events; i++) {
        free(e->event[i].seen.c);
        free(e->event[i].ahead.c);
        free(e->event[i].reduced);
        free(e->event[i].stepped);
    }
    free(e->event);
    script_release(&e->script);
    memset(e, 0, sizeof(*e));
}

bool expect_is_trainable(const struct expect *e, uint32_t p)
{
    return !is_frozen(e, p);
}

/* The place of element i, with `chunk` elements a shard, in each of which p
 * begins at `offset`. */
static uint64_t place(const struct expect *e, uint32_t p, uint64_t i,
                      uint64_t offset, uint64_t chunk)
{
    const uint64_t block = e->block[p];
    /* Flat, or a parameter without elements: there are no blocks. */
    const uint64_t at =
        block == 0 ? offset + i : i / block * chunk + offset + i % block;

    assert(at < e->shards * chunk);
    return at;
}

uint64_t expect_place(const struct expect *e, uint32_t p, uint64_t i)
{
    return place(e, p, i, e->offset[p], e->unit[e->unit_of_parameter[p]].chunk);
}

uint64_t expect_place_of_gradient(const struct expect *e, uint32_t p,
                                  uint64_t i)
{
    return place(e, p, i, e->grad_offset[p],
                 e->unit[e->unit_of_parameter[p]].grad_chunk);
}

int expect_parts(const struct expect *e, uint32_t s, struct expect_part **out,
                 uint32_t *n)
{
    struct expect_part *part = NULL;

    *out = NULL;
    *n = 0;
    if (s >= e->shards) {
        return FSDP_ERR_INVALID;
    }
    /* A parameter is in one shard at one place at most. */
    part = calloc((size_t)e->model->n_parameters + 1, sizeof(*part));
    if (!part) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (expect_original(e, p) != p || expect_is_ignored(e, p)) {
            continue;
        }
        if (e->options.layout == FSDP_LAYOUT_FLAT) {
            cut_flat(e, p, s, &part[*n]);
        } else {
            cut_rows(e, p, s, &part[*n]);
        }
        *n += part[*n].n > 0 ? 1 : 0;
    }
    assert(*n <= e->model->n_parameters);
    memset(&part[*n], 0, sizeof(*part));
    *out = part;
    return FSDP_OK;
}
