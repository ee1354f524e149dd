/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_layout.c - layouts as tables. Flat: a unit is its parameters one
 * behind the other, padded to a multiple of S and cut into S shards. Per
 * parameter: a shard is a block of ceil(d_0 / S) rows of each. All else reads
 * off these tables where a parameter lies and which part is whose.
 */
#include "impl_calls.h"

#include <math.h>
#include <stdlib.h>

/* No address is beyond PTRDIFF_MAX bytes, with a few copies of everything. */
#define MOST_ELEMENTS (UINT64_C(1) << 56)

/* A unit has what is stored there, a module all names. */
static bool is_indexed(const struct fsdp_sharded *s, uint32_t p, bool by_unit)
{
    return !by_unit || s->parameter[p].original == p;
}

/* Parameters by key, ascending: counted, summed up, dealt out. */
static int index_parameters(const struct fsdp_sharded *s, uint32_t n_keys,
                            bool by_unit, struct impl_index *out)
{
    uint32_t n = s->model->n_parameters;

    out->first = calloc(n_keys + (size_t)2, sizeof(*out->first));
    out->parameter = calloc(n + (size_t)1, sizeof(*out->parameter));
    if (!out->first || !out->parameter) {
        return impl_out_of_memory(s->env);
    }
    for (uint32_t p = 0; p < n; p++) {
        uint32_t key =
            by_unit ? s->parameter[p].unit : s->model->parameter_module[p];
        out->first[key + 2] += is_indexed(s, p, by_unit);
    }
    for (uint32_t k = 2; k < n_keys + 2; k++) {
        out->first[k] += out->first[k - 1];
    }
    for (uint32_t p = 0; p < n; p++) { /* moves first[key + 1] to its place */
        uint32_t key =
            by_unit ? s->parameter[p].unit : s->model->parameter_module[p];
        if (is_indexed(s, p, by_unit)) {
            out->parameter[out->first[key + 1]++] = p;
        }
    }
    return FSDP_OK;
}

/* The product of a shape, or false if it is more than can be stored. */
static bool count(const struct fsdp_model *model, uint32_t p, uint64_t *out)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < model->parameter_n_dims[p]; d++) {
        if (__builtin_mul_overflow(n, model->parameter_shape[p][d], &n)) {
            return false;
        }
    }
    *out = n;
    return n <= MOST_ELEMENTS;
}

/* Rows of the first dimension, as many as S shards need to hold them all; what
 * has no dimension is one row. */
static uint64_t block_of(const struct fsdp_sharded *s, uint32_t p)
{
    uint64_t rows =
        s->model->parameter_n_dims[p] > 0 ? s->model->parameter_shape[p][0] : 1;

    return rows == 0 ? 0
                     : (rows / s->shards + (rows % s->shards != 0)) *
                           (s->parameter[p].numel / rows);
}

uint64_t impl_rows(const struct impl_parameter *x, uint32_t k)
{
    uint64_t first = k * x->block;

    if (first >= x->numel) {
        return 0;
    }
    return x->numel - first < x->block ? x->numel - first : x->block;
}

static void shape_tensor(const struct fsdp_sharded *s, uint32_t p)
{
    struct fsdp_tensor *t = &s->parameter[p].tensor;
    int64_t stride = 1;

    *t = (struct fsdp_tensor){.dtype = FSDP_DTYPE_F32,
                              .place = s->env->device->place,
                              .n_dims = s->model->parameter_n_dims[p]};
    for (uint32_t d = t->n_dims; d-- > 0;) {
        t->shape[d] = s->model->parameter_shape[p][d];
        t->stride[d] = stride;
        stride *= (int64_t)t->shape[d];
    }
}

/* A fresh gradient has its own place among those of its module. */
static void place_fresh(struct fsdp_sharded *s, struct impl_parameter *x,
                        uint32_t module)
{
    const struct impl_dtypes d =
        impl_dtypes_of(&s->units, &s->options, x->unit);

    x->module_at = s->module_words[module];
    s->module_words[module] += x->frozen ? 0 : impl_words(d.grad, x->numel);
}

/* Equal parts of a flat unit leave no choice: what is frozen has its place in
 * the gradient, too. */
static void place_gradient(struct fsdp_sharded *s, struct impl_parameter *x)
{
    struct impl_unit *unit = &s->unit[x->unit];
    bool flat = s->options.layout == FSDP_LAYOUT_FLAT;

    x->grad_offset = unit->grad_numel;
    x->grad_block_at = unit->grad_chunk;
    unit->has_holes = unit->has_holes || (flat && x->frozen);
    if (flat || !x->frozen) {
        unit->grad_numel += x->numel;
        unit->grad_chunk += x->block;
    }
}

/* Another name of what has its place. */
static void place_tied(struct fsdp_sharded *s, struct impl_parameter *x)
{
    struct impl_parameter *original = &s->parameter[x->original];

    x->offset = original->offset;
    x->shared = original->shared = true;
    s->unit[x->unit].shares = true;
}

/* An ignored parameter is in a unit of number n_units, after the last real one.
 * Nothing is made of that unit, and the parameter is frozen. */
static uint32_t unit_of(const struct fsdp_sharded *s, uint32_t p)
{
    uint32_t u = fsdp_unit_of(s->model, &s->units, p);

    return u == FSDP_NO_UNIT ? s->units.n_units : u;
}

bool impl_is_ignored(const struct fsdp_sharded *s, uint32_t p)
{
    return s->parameter[p].unit == s->units.n_units;
}

int impl_check_owned(const struct fsdp_sharded *s, uint32_t p,
                     const char *where)
{
    return impl_is_ignored(s, p) ? impl_fail(s->env, FSDP_ERR_INVALID, where,
                                             "%s is ignored: no unit has it",
                                             s->model->parameter_name[p])
                                 : FSDP_OK;
}

static int place_parameters(struct fsdp_sharded *s)
{
    const struct fsdp_model *model = s->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        struct impl_parameter *x = &s->parameter[p];
        uint32_t m = model->parameter_module[p];
        struct impl_unit *unit = &s->unit[unit_of(s, p)];

        x->unit = unit_of(s, p);
        if (!count(model, p, &x->numel) ||
            unit->numel + x->numel > MOST_ELEMENTS) {
            return impl_fail(s->env, FSDP_ERR_INVALID, "impl.shard",
                             "parameter %s is larger than any storage",
                             model->parameter_name[p]);
        }
        x->frozen = (model->parameter_flags[p] & FSDP_FROZEN) != 0 ||
                    impl_is_ignored(s, p);
        x->original = fsdp_original(model, p);
        shape_tensor(s, p);
        if (!impl_is_ignored(s, p)) {
            place_fresh(s, x, m);
        }
        if (x->original != p) {
            place_tied(s, x);
            continue;
        }
        x->offset = unit->numel;
        unit->numel += x->numel;
        x->block = block_of(s, p);
        x->block_at = unit->chunk;
        unit->chunk += x->block;
        place_gradient(s, x);
    }
    return FSDP_OK;
}

static bool is_kept(const struct fsdp_sharded *s, uint32_t u)
{
    const uint32_t *own = s->units.reshard_after_forward;

    if (s->options.keep_root && u == s->units.unit_of_module[0]) {
        return true;
    }
    return own && own[u] ? own[u] == 2 : !s->options.reshard_after_forward;
}

/* A unit's own, or the option, or what is usual. */
static float factor_of(const float *own, uint32_t u, float option, float usual)
{
    if (own && own[u] != 0.0f) {
        return own[u];
    }
    return option != 0.0f ? option : usual;
}

static void settle_dtypes(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const struct impl_dtypes d = impl_dtypes_of(&s->units, &s->options, u);
    const uint32_t offload = impl_offload_of(&s->units, &s->options, u);
    bool copies;

    x->shard_on_host = (offload & FSDP_OFFLOAD_PARAMS) != 0;
    x->step_on_host = (offload & FSDP_OFFLOAD_OPTIMIZER) != 0;
    copies = d.param != FSDP_DTYPE_F32 || x->shard_on_host;
    x->dtype = d;
    x->repacks = s->packs || d.accumulate != d.reduce;
    s->copies = s->copies || copies;
    s->brings = s->brings || x->shard_on_host;
    s->lands = s->lands || x->step_on_host;
    s->extent[u] =
        (struct impl_extent){.full = impl_words(d.param, x->whole),
                             .arrived = impl_words(d.param, x->padded),
                             .grad = impl_words(d.accumulate, x->grad_whole),
                             .packed = impl_words(d.reduce, x->grad_padded),
                             .sum = impl_words(d.reduce, x->grad_chunk),
                             .kept = is_kept(s, u),
                             .unshards = s->shards > 1 || copies,
                             .repacks = x->repacks,
                             .frozen = x->frozen};
}

/* Behind the sizes of its parameters. A unit without any is not frozen. */
static void size_gradient(const struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const uint32_t *of = s->of_unit.first;

    x->frozen = of[u] < of[u + 1];
    for (uint32_t i = of[u]; i < of[u + 1]; i++) {
        x->frozen = x->frozen && s->parameter[s->of_unit.parameter[i]].frozen;
    }
    if (x->frozen) {
        x->has_holes = false;
        x->grad_numel = x->grad_chunk = 0;
    } else if (s->options.layout == FSDP_LAYOUT_FLAT) {
        x->grad_chunk = x->chunk;
    }
    x->grad_padded = x->grad_chunk * s->shards;
    x->grad_whole = s->packs ? x->grad_numel : x->grad_padded;
    x->n_state = x->has_holes ? 0 : x->grad_chunk;
}

static int size_units(struct fsdp_sharded *s)
{
    bool flat = s->options.layout == FSDP_LAYOUT_FLAT;

    s->packs = !flat && s->shards > 1;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        if (flat) {
            x->chunk = x->numel / s->shards + (x->numel % s->shards != 0);
        }
        if (x->chunk > MOST_ELEMENTS / s->shards) {
            return impl_fail(s->env, FSDP_ERR_INVALID, "impl.shard",
                             "unit %u, padded, is larger than any storage", u);
        }
        x->padded = x->chunk * s->shards;
        x->whole = s->packs ? x->numel : x->padded;
        size_gradient(s, u);
        settle_dtypes(s, u);
    }
    return FSDP_OK;
}

/* The factors that gradients are divided by until `set` changes them. */
static int find_factors(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        struct impl_knobs *knob = &x->next_knob;

        knob->divide =
            factor_of(s->units.divide_factor, u, s->options.divide_factor,
                      (float)s->env->world);
        knob->predivide = factor_of(s->units.predivide_factor, u,
                                    s->options.predivide_factor, 1.0f);
        if (!impl_has_factors(knob)) {
            return impl_fail(s->env, FSDP_ERR_INVALID, "impl.shard",
                             "unit %u: predivide_factor %g, divide_factor %g: "
                             "a gradient's factor would not be finite",
                             u, (double)knob->predivide, (double)knob->divide);
        }
        x->knob = *knob;
        impl_take_factors(x);
    }
    return FSDP_OK;
}

/* Elements that lie before `bound` of the unit, of those that x has. */
static uint64_t before(const struct impl_parameter *x, uint64_t bound)
{
    if (bound <= x->offset) {
        return 0;
    }
    return bound - x->offset < x->numel ? bound - x->offset : x->numel;
}

void impl_part(const struct fsdp_sharded *s, const struct impl_parameter *x,
               uint32_t k, uint64_t *first, uint64_t *n)
{
    if (s->options.layout == FSDP_LAYOUT_FLAT) {
        const uint64_t chunk = s->unit[x->unit].chunk;

        *first = before(x, k * chunk);
        *n = before(x, (k + (uint64_t)1) * chunk) - *first;
    } else {
        *n = impl_rows(x, k);
        *first = k * x->block;
    }
    *first = *n > 0 ? *first : 0;
}

/* The part of a parameter that is this rank's. */
static void cut_flat(const struct fsdp_sharded *s, struct impl_parameter *x)
{
    impl_part(s, x, s->coordinate, &x->first, &x->n);
    if (x->n > 0) {
        x->local = x->grad_local =
            x->offset + x->first - s->coordinate * s->unit[x->unit].chunk;
    }
}

static void cut_rows(const struct fsdp_sharded *s, struct impl_parameter *x)
{
    impl_part(s, x, s->coordinate, &x->first, &x->n);
    x->local = x->block_at;
    x->grad_local = x->grad_block_at;
}

/* The place in states: as in the gradient's shard, but without holes. */
static void place_state(struct fsdp_sharded *s, struct impl_parameter *x)
{
    struct impl_unit *unit = &s->unit[x->unit];

    x->state_local = x->grad_local;
    if (unit->has_holes && !x->frozen) {
        x->state_local = unit->n_state;
        unit->n_state += x->n;
    }
}

static void find_own_parts(struct fsdp_sharded *s)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->parameter[p].original != p || impl_is_ignored(s, p)) {
            continue;
        }
        if (s->options.layout == FSDP_LAYOUT_FLAT) {
            cut_flat(s, &s->parameter[p]);
        } else {
            cut_rows(s, &s->parameter[p]);
        }
        place_state(s, &s->parameter[p]);
    }
}

/* A group's own number, or that of the options. */
static float of_group(const struct fsdp_options *o, const float *own,
                      uint32_t group, float option)
{
    return own && o->n_groups > 0 ? own[group] : option;
}

/* While the options' arrays are there. */
static void read_numbers(struct fsdp_sharded *s)
{
    const struct fsdp_options *o = &s->options;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const uint32_t original = s->parameter[p].original;
        const uint32_t g = o->n_groups ? o->group_of_parameter[original] : 0;

        s->parameter[p].numbers = (struct impl_numbers){
            .group = g,
            .momentum = of_group(o, o->momentum_of_group, g, o->momentum),
            .beta1 = of_group(o, o->beta1_of_group, g, o->beta1),
            .beta2 = of_group(o, o->beta2_of_group, g, o->beta2),
            .eps = of_group(o, o->eps_of_group, g, o->eps)};
    }
}

int impl_lay_out(struct fsdp_sharded *s)
{
    s->unit = calloc(s->units.n_units + (size_t)1, sizeof(*s->unit));
    s->extent = calloc(s->units.n_units + (size_t)1, sizeof(*s->extent));
    s->parameter =
        calloc(s->model->n_parameters + (size_t)1, sizeof(*s->parameter));
    s->module_words =
        calloc(s->model->n_modules + (size_t)1, sizeof(*s->module_words));
    if (!s->unit || !s->extent || !s->parameter || !s->module_words) {
        return impl_out_of_memory(s->env);
    }
    FSDP_TRY(place_parameters(s));
    FSDP_TRY(index_parameters(s, s->units.n_units + 1, true, &s->of_unit));
    FSDP_TRY(index_parameters(s, s->model->n_modules, false, &s->of_module));
    FSDP_TRY(size_units(s));
    FSDP_TRY(find_factors(s));
    find_own_parts(s);
    read_numbers(s);
    return impl_find_spans(s);
}

int impl_lay_out_again(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u <= s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        x->numel = x->chunk = x->grad_numel = x->grad_chunk = 0;
        x->has_holes = false;
    }
    memset(s->module_words, 0, s->model->n_modules * sizeof(*s->module_words));
    FSDP_TRY(place_parameters(s));
    FSDP_TRY(size_units(s));
    find_own_parts(s);
    return impl_find_spans(s);
}

void impl_layout_release(struct fsdp_sharded *s)
{
    free(s->unit);
    free(s->extent);
    free(s->parameter);
    free(s->module_words);
    free(s->of_unit.first);
    free(s->of_unit.parameter);
    free(s->of_module.first);
    free(s->of_module.parameter);
    free(s->span);
}
