/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - 1. Shard. Flat: flatten a unit's parameters, concatenate, pad to
 * a multiple of S, cut into S equal shards, keep mine. Per parameter: cut each
 * parameter into S blocks of ceil(d_0 / S) rows of dimension 0, the last of
 * them short or empty; keep mine, padded to a whole block each, one behind the
 * other.
 *
 * What follows from this is in one table: which part of which parameter lies
 * where in this rank's shards.
 */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

/* Parameter p between `low` and `high` of its unit's flat parameter. */
static void cut_flat(const struct fsdp_sharded *s, uint32_t p, uint32_t shard,
                     struct ref_part *out)
{
    const struct ref_parameter *x = &s->parameter[p];
    uint64_t chunk = s->unit[x->unit].chunk;
    uint64_t low = shard * chunk;
    uint64_t first = x->offset > low ? x->offset : low;
    uint64_t last = least(x->offset + x->numel, low + chunk);

    *out = (struct ref_part){.parameter = p,
                             .first = first - x->offset,
                             .n = last > first ? last - first : 0,
                             .local = first - low,
                             .frozen = x->frozen,
                             .grad = first - low};
}

static void cut_rows(const struct fsdp_sharded *s, uint32_t p, uint32_t shard,
                     struct ref_part *out)
{
    const struct ref_parameter *x = &s->parameter[p];
    uint64_t first = least(shard * x->block, x->numel);

    *out = (struct ref_part){.parameter = p,
                             .first = first,
                             .n = least(x->block, x->numel - first),
                             .local = x->local,
                             .frozen = x->frozen,
                             .grad = x->grad_local};
}

bool ref_part(const struct fsdp_sharded *s, uint32_t p, uint32_t shard,
              struct ref_part *out)
{
    if (s->options.layout == FSDP_LAYOUT_FLAT) {
        cut_flat(s, p, shard, out);
    } else {
        cut_rows(s, p, shard, out);
    }
    return out->n > 0;
}

/* Elements of the rows of p that a shard has room for; a scalar is a row. */
static uint64_t block_of(const struct fsdp_sharded *s, uint32_t p)
{
    uint64_t d0 =
        s->model->parameter_n_dims[p] > 0 ? s->model->parameter_shape[p][0] : 1;

    return d0 > 0 ? divide_up(d0, s->shards) * (s->parameter[p].numel / d0) : 0;
}

static void place(struct fsdp_sharded *s, uint32_t p, bool flat)
{
    struct ref_parameter *x = &s->parameter[p];
    struct ref_unit *unit;

    x->original = p;
    x->unit = fsdp_unit_of(s->model, s->units, p);
    x->numel = fsdp_numel(s->model, p);
    x->block = block_of(s, p);
    x->frozen = (s->model->parameter_flags[p] & FSDP_FROZEN) != 0;
    if (x->unit == FSDP_NO_UNIT) {
        return; /* ignored: it stays with the model */
    }
    unit = &s->unit[x->unit];
    x->offset = unit->numel;
    x->local = unit->chunk;
    unit->numel += x->numel;
    unit->chunk += flat ? 0 : x->block;
    unit->trains = unit->trains || !x->frozen;
    unit->freezes = unit->freezes || x->frozen;
    /* A flat parameter is cut into equal parts, so that frozen parameters have
     * a place in its gradient, too. */
    x->grad_offset = unit->grad_numel;
    x->grad_local = unit->grad_chunk;
    if (flat || !x->frozen) {
        unit->grad_numel += x->numel;
        unit->grad_chunk += flat ? 0 : x->block;
    }
}

/* A tied parameter lies where its original does. */
static void place_tied(struct fsdp_sharded *s, uint32_t p, uint32_t original)
{
    struct ref_parameter *x = &s->parameter[p];

    x->original = original;
    x->unit = s->parameter[original].unit;
    x->numel = s->parameter[original].numel;
    x->frozen = s->parameter[original].frozen;
    x->shared = s->parameter[original].shared = true;
}

int ref_check_owned(const struct fsdp_sharded *s, uint32_t p, const char *where)
{
    return s->parameter[p].unit != FSDP_NO_UNIT
               ? FSDP_OK
               : ref_fail(s->env, FSDP_ERR_INVALID, where,
                          "%s is ignored: it is in no unit",
                          s->model->parameter_name[p]);
}

bool ref_is_in(const struct fsdp_sharded *s, uint32_t p, uint32_t u)
{
    return s->parameter[p].unit == u && s->parameter[p].original == p;
}

/* Fills in the lengths of a unit's gradient and states, which are 0 if no
 * parameter of the unit is trained. */
static void measure_gradient(const struct fsdp_sharded *s, struct ref_unit *x,
                             bool flat)
{
    x->trains = x->trains || !x->freezes;
    x->has_holes = flat && x->freezes;
    x->grad_numel = x->trains ? x->grad_numel : 0;
    x->grad_chunk = flat ? divide_up(x->grad_numel, s->shards) : x->grad_chunk;
    x->grad_whole = flat ? x->grad_chunk * s->shards : x->grad_numel;
    x->n_states = x->has_holes ? 0 : x->grad_chunk;
}

/* Where this rank's trainable elements lie in states: as in the gradient, but
 * without holes. */
static void place_states(struct fsdp_sharded *s)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        struct ref_part *part = &s->part[i];
        struct ref_unit *x = &s->unit[s->parameter[part->parameter].unit];

        part->state = part->grad;
        if (x->has_holes && !part->frozen) {
            part->state = x->n_states;
            x->n_states += part->n;
        }
    }
}

/* Removes all parameters from the layout. */
static void clear(struct fsdp_sharded *s)
{
    s->n_parts = 0;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        x->numel = x->chunk = x->grad_numel = x->grad_chunk = 0;
        x->trains = x->freezes = false;
    }
}

void ref_layout(struct fsdp_sharded *s)
{
    bool flat = s->options.layout == FSDP_LAYOUT_FLAT;

    s->packs = !flat && s->shards > 1;
    clear(s);
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint32_t original = fsdp_original(s->model, p);

        if (original == p) {
            place(s, p, flat);
        } else {
            place_tied(s, p, original);
        }
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        x->chunk = flat ? divide_up(x->numel, s->shards) : x->chunk;
        x->whole = flat ? x->chunk * s->shards : x->numel;
        measure_gradient(s, x, flat);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        bool has_part = s->parameter[p].original == p &&
                        s->parameter[p].unit != FSDP_NO_UNIT &&
                        ref_part(s, p, s->coordinate, &s->part[s->n_parts]);

        s->n_parts += has_part ? 1 : 0;
    }
    place_states(s);
}

/* How parts are copied, one by one: they may be cast on the way. */
struct way {
    void *whole, *wire;
    uint32_t whole_dtype, wire_dtype;
    bool unpack;
};

/* Every shard's part of every parameter of the unit, copied once. */
static int copy_parts(struct fsdp_sharded *s, uint32_t u, const struct way *w)
{
    const struct ref_unit *unit = &s->unit[u];
    struct ref_part part;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct ref_parameter *x = &s->parameter[p];
        for (uint32_t k = 0; ref_is_in(s, p, u) && k < s->shards; k++) {
            void *sent;
            void *lies;
            if (!ref_part(s, p, k, &part) || (!w->unpack && part.frozen)) {
                continue;
            }
            sent = ref_at(w->wire, w->wire_dtype,
                          w->unpack ? k * unit->chunk + part.local
                                    : k * unit->grad_chunk + part.grad);
            lies =
                ref_at(w->whole, w->whole_dtype,
                       (w->unpack ? x->offset : x->grad_offset) + part.first);
            FSDP_TRY(w->unpack
                         ? ref_convert(s, REF_DEVICE, u, part.n, w->wire_dtype,
                                       sent, w->whole_dtype, lies)
                         : ref_convert(s, REF_DEVICE, u, part.n, w->whole_dtype,
                                       lies, w->wire_dtype, sent));
        }
    }
    return FSDP_OK;
}

int ref_pack(struct fsdp_sharded *s, uint32_t u)
{
    const struct ref_unit *x = &s->unit[u];
    const struct way way = {x->grad_full, x->wire, x->dtype.accumulate,
                            x->dtype.reduce, false};

    FSDP_TRY(ref_fill_zero(s, REF_DEVICE, u, x->dtype.reduce, x->wire,
                           x->grad_chunk * s->shards));
    return copy_parts(s, u, &way);
}

int ref_unpack(struct fsdp_sharded *s, uint32_t u, uint32_t dtype)
{
    const struct ref_unit *x = &s->unit[u];
    const struct way way = {x->full, x->wire, dtype, dtype, true};

    return copy_parts(s, u, &way);
}

/* Initial values are copied slice by slice: the model is never whole in
 * memory. */
int ref_initialise(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        FSDP_TRY(ref_take(s, x->shard_at, FSDP_PARAM_SHARD, u, x->chunk,
                          FSDP_DTYPE_F32, &x->shard));
        for (uint32_t i = 0; i < s->n_states; i++) {
            FSDP_TRY(ref_take(s, x->step_at, FSDP_OPTIM, u, x->n_states,
                              FSDP_DTYPE_F32, &x->state[i]));
        }
    }
    return ref_fill_initial(s);
}

int ref_read_initial(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                     uint64_t n, float *to)
{
    const struct fsdp_device *d = s->env->device;
    float slice[1024];

    for (uint64_t done = 0; done < n;) {
        uint64_t some = least(n - done, 1024);
        FSDP_TRY(
            s->model->initial(s->model->context, p, first + done, some, slice));
        FSDP_TRY(d->copy(d->self, NULL, to + done, slice, some * sizeof(*to)));
        done += some;
    }
    return FSDP_OK;
}

int ref_fill_initial(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        FSDP_TRY(ref_fill_zero(s, x->shard_at, u, FSDP_DTYPE_F32, x->shard,
                               x->chunk));
        for (uint32_t i = 0; i < s->n_states; i++) {
            FSDP_TRY(ref_fill_zero(s, x->step_at, u, FSDP_DTYPE_F32,
                                   x->state[i], x->n_states));
        }
    }
    FSDP_TRY(d->wait(d->self, NULL, s->env->compute, 0, "fill->copy"));
    if (s->rank0) {
        return ref_send_initial(s);
    }
    for (uint32_t i = 0; s->model->initial && i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        FSDP_TRY(ref_read_initial(
            s, part->parameter, part->first, part->n,
            s->unit[s->parameter[part->parameter].unit].shard + part->local));
    }
    return FSDP_OK;
}
