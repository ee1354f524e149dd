/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kit.h - what nearly every engine of float32 begins with: a value on the
 * device with storage of its own, an operator, a collective, a tensor that is
 * lent, a failure with its words; what shard checks and fills; and where in a
 * sequence the model stands. For C and C++; all of it is in this header.
 *
 * Nothing here is part of the contract: an engine may do each of these in its
 * own way. All of it works on env->compute, the model's stream, so that what
 * is called one after the other happens one after the other. `n` counts
 * float32 elements, everywhere. Functions return enum fsdp_status; those of
 * the device and the communicator are handed on.
 */
#ifndef FSDP_KIT_H
#define FSDP_KIT_H

#include <fsdp/engine.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says what is wrong, where (the engine's own word, at most 31 bytes), and
 * returns `status`. The first failure stays. */
static inline int fsdp_fail(const struct fsdp_env *env, int status,
                            const char *where, const char *message)
{
    struct fsdp_error *e = env->error;

    if (e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        snprintf(e->where, sizeof(e->where), "%s", where);
        snprintf(e->message, sizeof(e->message), "%s", message);
    }
    return status;
}

/* Runs an operator (op.h) of one dimension n, with two factors: y[n] is made
 * from a[n] and b[n], of which those are NULL that the operator does not
 * have. */
static inline int fsdp_run(const struct fsdp_env *env, uint32_t kind,
                           uint64_t n, float f0, float f1, const float *a,
                           const float *b, float *y)
{
    const float *const in[2] = {a, b};
    struct fsdp_op op;

    memset(&op, 0, sizeof(op));
    op.size = sizeof(op);
    op.kind = kind;
    op.unit = FSDP_NO_UNIT;
    op.dim[0] = n;
    op.f[0] = f0;
    op.f[1] = f1;
    for (int i = 0; i < 2; i++) {
        if (in[i]) {
            op.in[op.n_in].p = in[i];
            op.in[op.n_in++].bytes = n * sizeof(float);
        }
    }
    op.n_out = 1;
    op.out[0].p = y;
    op.out[0].bytes = n * sizeof(float);
    return env->device->run(env->device->self, env->compute, &op);
}

/* Storage for n elements that hold a value of `kind` (enum fsdp_kind) of a
 * unit from now on, and undefined bytes. *out is fsdp_drop's to give back. */
static inline int fsdp_make(const struct fsdp_env *env, uint32_t kind,
                            uint32_t unit, uint64_t n, float **out)
{
    const struct fsdp_device *d = env->device;
    void *p = NULL;

    FSDP_TRY(d->alloc(d->self, n * sizeof(float), &p));
    d->live(d->self, env->compute, kind, unit, p, n * sizeof(float));
    *out = (float *)p;
    return FSDP_OK;
}

/* The same, filled with +0. */
static inline int fsdp_make_zero(const struct fsdp_env *env, uint32_t kind,
                                 uint32_t unit, uint64_t n, float **out)
{
    FSDP_TRY(fsdp_make(env, kind, unit, n, out));
    return fsdp_run(env, FSDP_OP_FILL, n, 0.0f, 0.0f, NULL, NULL, *out);
}

/* Gives back what fsdp_make gave for n elements, and sets *p to NULL; nothing
 * if it is NULL. Waits for the stream: storage may be given back when nothing
 * uses it any more. */
static inline void fsdp_drop(const struct fsdp_env *env, float **p, uint64_t n)
{
    const struct fsdp_device *d = env->device;

    if (*p) {
        if (n > 0) {
            d->dead(d->self, env->compute, *p);
        }
        (void)d->sync(d->self, env->compute);
        d->free(d->self, *p);
        *p = NULL;
    }
}

/* One collective of a unit (comm.h says what n, in and out are of each kind).
 * Collective. */
static inline int fsdp_communicate(const struct fsdp_env *env, uint32_t kind,
                                   uint32_t dim, uint32_t fold, uint32_t unit,
                                   uint64_t n, const float *in, float *out)
{
    const struct fsdp_device *d = env->device;
    struct fsdp_collective c;

    memset(&c, 0, sizeof(c));
    c.size = sizeof(c);
    c.kind = kind;
    c.dim = dim;
    c.dtype = FSDP_DTYPE_F32;
    c.fold = fold;
    c.unit = unit;
    c.n = n;
    c.in = in;
    c.out = out;
    if (!env->comm->takes_streams) { /* it reads at once what the stream is
                                      * still writing */
        FSDP_TRY(
            d->wait(d->self, NULL, env->compute, 0, "compute->communicator"));
    }
    return env->comm->run(env->comm->self, env->compute, &c);
}

/* Describes `data` as parameter p in full, dense and in C order: what `param`
 * and `grad` answer. `data` stays the engine's. */
static inline int fsdp_lend(const struct fsdp_env *env,
                            const struct fsdp_model *model, uint32_t p,
                            float *data, struct fsdp_tensor *out)
{
    int64_t stride = 1;

    memset(out, 0, sizeof(*out));
    out->data = data;
    out->dtype = FSDP_DTYPE_F32;
    out->place = env->device->place;
    out->n_dims = model->parameter_n_dims[p];
    for (uint32_t d = out->n_dims; d-- > 0;) {
        out->shape[d] = model->parameter_shape[p][d];
        out->stride[d] = stride;
        stride *= (int64_t)out->shape[d];
    }
    return FSDP_OK;
}

/* ---- What shard begins with ---- */

/* FNV-1a, 64 bits, from h on. */
static inline uint64_t fsdp_kit_hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    }
    return h;
}

/* *from of a driver of any version: what its struct is too short for is 0.
 * grad_dtype lies where an earlier struct ended in padding. */
static inline struct fsdp_options
fsdp_read_options(const struct fsdp_options *from)
{
    struct fsdp_options o;

    memset(&o, 0, sizeof(o));
    memcpy(&o, from, from->size < sizeof(o) ? from->size : sizeof(o));
    if (from->size <= offsetof(struct fsdp_options, accumulate_dtype)) {
        o.grad_dtype = FSDP_DTYPE_NONE;
    }
    return o;
}

static inline struct fsdp_units fsdp_read_units(const struct fsdp_units *from)
{
    struct fsdp_units u;

    memset(&u, 0, sizeof(u));
    memcpy(&u, from, from->size < sizeof(u) ? from->size : sizeof(u));
    return u;
}

/* A hash of what the units set for themselves. NULL and 0 are the same. */
static inline uint64_t fsdp_kit_hash_own(uint64_t h,
                                         const struct fsdp_units *units)
{
    const struct fsdp_units k = fsdp_read_units(units);
    const void *const own[] = {
        k.param_dtype,  k.reduce_dtype,          k.output_dtype,
        k.buffer_dtype, k.divide_factor,         k.offload,
        k.grad_dtype,   k.reshard_after_forward, k.accumulate_dtype,
        k.sum_dtype,    k.predivide_factor}; /* elements of 4 bytes, all of them
                                              */

    for (uint32_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        for (uint32_t u = 0; own[i] && u < k.n_units; u++) {
            uint32_t at[3] = {i, u, 0};

            memcpy(&at[2], (const char *)own[i] + u * sizeof(at[2]),
                   sizeof(at[2]));
            h = at[2] != 0 ? fsdp_kit_hash(h, at, sizeof(at)) : h;
        }
    }
    return h;
}

/* MISMATCH, on every rank, if ranks were given different options or units:
 * they would mix up parameters silently. To be asked before anything is
 * refused, since a rank may be alone with what it refuses. (Groups are not
 * compared.) Collective: a rank that cannot allocate 8 bytes for each rank of
 * the world answers NOMEM and leaves the others waiting, as any rank does that
 * fails on its own; it is the driver that ends them. */
static inline int fsdp_agree(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options)
{
    const size_t gap =
        offsetof(struct fsdp_options, n_groups) + sizeof(options->n_groups);
    const size_t behind = offsetof(struct fsdp_options, divide_factor);
    const size_t end = offsetof(struct fsdp_options, predivide_factor) +
                       sizeof(options->predivide_factor);
    const struct fsdp_options o = fsdp_read_options(options);
    const char *const bytes = (const char *)&o;
    uint64_t *all = (uint64_t *)calloc(env->world, sizeof(*all));
    uint64_t mine = 0xcbf29ce484222325u;
    bool same = true;
    int status = all ? FSDP_OK : FSDP_ERR_NOMEM;

    /* Between the two is an address, another one on each rank, and padding. */
    mine = fsdp_kit_hash(mine, bytes + sizeof(o.size), gap - sizeof(o.size));
    mine = fsdp_kit_hash(mine, bytes + behind, end - behind);
    mine = fsdp_kit_hash(mine, units->unit_of_module,
                         model->n_modules * sizeof(*units->unit_of_module));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint32_t unit = fsdp_unit_of(model, units, p);

        mine = fsdp_kit_hash(mine, &unit, sizeof(unit));
    }
    mine = fsdp_kit_hash_own(mine, units);
    if (status == FSDP_OK) {
        status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
    }
    for (uint32_t r = 0; status == FSDP_OK && r < env->world; r++) {
        same = same && all[r] == all[0];
    }
    free(all);
    return same ? status
                : fsdp_fail(env, FSDP_ERR_MISMATCH, "shard",
                            "ranks were given different options or units");
}

/* INVALID for what no engine can shard by: a mesh that is not the world, an
 * unknown fold, divide factors that are negative or not finite, a module's
 * unit that is unknown, a parameter without one. Local. */
static inline int fsdp_check_shard(const struct fsdp_env *env,
                                   const struct fsdp_model *model,
                                   const struct fsdp_units *units,
                                   const struct fsdp_options *options)
{
    const struct fsdp_units known = fsdp_read_units(units);
    const struct fsdp_mesh *mesh = env->mesh;

    if (mesh->n_dims != 2 ||
        (uint64_t)mesh->extent[0] * mesh->extent[1] != env->world) {
        return fsdp_fail(env, FSDP_ERR_INVALID, "shard",
                         "the mesh is not the world");
    }
    if (options->fold > FSDP_FOLD_TREE || !(options->divide_factor >= 0.0f) ||
        isinf(options->divide_factor)) {
        return fsdp_fail(env, FSDP_ERR_INVALID, "shard",
                         "fold, or divide_factor");
    }
    for (uint32_t u = 0; known.divide_factor && u < units->n_units; u++) {
        if (!(known.divide_factor[u] >= 0.0f) ||
            isinf(known.divide_factor[u])) {
            return fsdp_fail(env, FSDP_ERR_INVALID, "shard",
                             "divide_factor of a unit");
        }
    }
    for (uint32_t m = 0; m < model->n_modules; m++) {
        const uint32_t u = units->unit_of_module[m];

        if (u >= units->n_units && u != FSDP_NO_UNIT) {
            return fsdp_fail(env, FSDP_ERR_INVALID, "shard",
                             "a module's unit is unknown");
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (units->unit_of_module[model->parameter_module[p]] == FSDP_NO_UNIT) {
            return fsdp_fail(env, FSDP_ERR_INVALID, "shard",
                             "a parameter has no unit");
        }
    }
    return FSDP_OK;
}

/* UNSUPPORTED for all that is beside plain training in float32, by the name of
 * the option: other dtypes, frozen and tied parameters, buffers, parameter
 * groups, offload, running ahead, a predivide factor, units that differ from
 * the options in more than their divide factor, units of parameters. Layout,
 * strategy, fold and optimizer are left to the caller. Local. */
static inline int fsdp_check_plain(const struct fsdp_env *env,
                                   const struct fsdp_model *model,
                                   const struct fsdp_units *units,
                                   const struct fsdp_options *options)
{
    const struct fsdp_options o = fsdp_read_options(options);
    const struct fsdp_units u = fsdp_read_units(units);
    const struct {
        bool plain;
        const char *message;
    } option[] = {
        {o.n_groups <= 1, "n_groups over 1 is not claimed"},
        {!o.beta1_of_group && !o.beta2_of_group,
         "beta1_of_group, beta2_of_group are not claimed"},
        {!o.eps_of_group && !o.momentum_of_group,
         "eps_of_group, momentum_of_group are not claimed"},
        {o.param_dtype <= FSDP_DTYPE_F32 && !u.param_dtype,
         "param_dtype: float32 alone is claimed"},
        {o.grad_dtype <= FSDP_DTYPE_F32 && !u.grad_dtype,
         "grad_dtype: float32 alone is claimed"},
        {o.accumulate_dtype <= FSDP_DTYPE_F32 && !u.accumulate_dtype,
         "accumulate_dtype: float32 alone is claimed"},
        {o.reduce_dtype <= FSDP_DTYPE_F32 && !u.reduce_dtype,
         "reduce_dtype: float32 alone is claimed"},
        {o.sum_dtype <= FSDP_DTYPE_F32 && !u.sum_dtype,
         "sum_dtype: float32 alone is claimed"},
        {o.output_dtype <= FSDP_DTYPE_F32 && !u.output_dtype,
         "output_dtype: float32 alone is claimed"},
        {o.buffer_dtype <= FSDP_DTYPE_F32 && !u.buffer_dtype,
         "buffer_dtype: float32 alone is claimed"},
        {o.predivide_factor == 0.0f && !u.predivide_factor,
         "predivide_factor is not claimed"},
        {!o.offload && !u.offload, "offload is not claimed"},
        {!o.prefetch_forward && !o.prefetch_backward,
         "prefetch_forward, prefetch_backward: only 0 is claimed"},
        {!o.reduces_in_flight, "reduces_in_flight: only 0 is claimed"},
        {!u.reshard_after_forward,
         "reshard_after_forward of a unit is not claimed"},
        {!u.unit_of_parameter, "unit_of_parameter is not claimed"},
        {model->n_buffers == 0, "buffers are not claimed"},
        {model->initial != NULL, "initial is NULL: deferred is not claimed"},
    };

    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
        if (!option[i].plain) {
            return fsdp_fail(env, FSDP_ERR_UNSUPPORTED, "shard",
                             option[i].message);
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (model->parameter_dtype[p] != FSDP_DTYPE_F32 ||
            (model->parameter_flags[p] & FSDP_FROZEN) ||
            model->parameter_alias[p] >= 0) {
            return fsdp_fail(env, FSDP_ERR_UNSUPPORTED, "shard",
                             "a parameter is frozen, tied, or not float32");
        }
    }
    return FSDP_OK;
}

/* Writes the initial values of elements [first, first + n) of parameter p to
 * the device, slice by slice: no rank ever holds a whole parameter on the
 * host. Has finished on return; what `to` was given on a stream has been
 * synchronised before. Local. */
static inline int fsdp_initialise(const struct fsdp_env *env,
                                  const struct fsdp_model *model, uint32_t p,
                                  uint64_t first, uint64_t n, float *to)
{
    const struct fsdp_device *d = env->device;
    float slice[1024];

    for (uint64_t done = 0; done < n; done += 1024) {
        const uint64_t part = n - done < 1024 ? n - done : 1024;

        FSDP_TRY(model->initial(model->context, p, first + done, part, slice));
        FSDP_TRY(
            d->copy(d->self, NULL, to + done, slice, part * sizeof(*slice)));
    }
    return FSDP_OK;
}

/* ---- What is offloaded ---- */

/* Says of each unit whether it is offloaded (fsdp_units.offload): all of it, or
 * nothing. The largest come first, and of equal ones the first; what does not
 * fit into what is left of the budget stays. So never more bytes are offloaded
 * than that, and never fewer by a larger budget. Returns the bytes that are; 0
 * for a budget of 0, too, for which nothing is said: `offload` stays as it is.
 * Local. */
static inline uint64_t fsdp_offload_by_budget(uint32_t n_units,
                                              const uint64_t *unit_bytes,
                                              uint64_t budget,
                                              uint32_t *offload)
{
    uint64_t left = budget;

    for (uint32_t u = 0; budget > 0 && u < n_units; u++) {
        offload[u] = 0;
    }
    for (uint32_t i = 0; budget > 0 && i < n_units; i++) {
        uint32_t next = n_units;

        for (uint32_t u = 0; u < n_units; u++) {
            if (offload[u] == 0 &&
                (next == n_units || unit_bytes[u] > unit_bytes[next])) {
                next = u;
            }
        }
        offload[next] = unit_bytes[next] <= left ? 1 : 2;
        left -= offload[next] == 1 ? unit_bytes[next] : 0;
    }
    return budget - left;
}

/* ---- Where the model stands ---- */

/* All zero: at rest. */
struct fsdp_walk {
    const struct fsdp_sequence *sequence; /* NULL: at rest */
    uint32_t index;                       /* of the sequence */
    uint32_t next;                        /* the point that comes next */
};

/* Takes BEGIN, END or a point (fsdp_engine.at); CANCEL in a pass is the
 * engine's own matter. INVALID, and the walk stands where it stood: what is not
 * the next one. Local. */
static inline int fsdp_walk_to(const struct fsdp_env *env,
                               const struct fsdp_model *model,
                               struct fsdp_walk *walk, uint32_t point,
                               uint32_t index)
{
    const struct fsdp_sequence *q = walk->sequence;
    const uint32_t i = walk->next;
    bool right;

    if (point == FSDP_BEGIN) {
        right = !q && index < model->n_sequences;
    } else if (point == FSDP_END) {
        right = q && walk->index == index && i == q->n;
    } else {
        right = q && i < q->n && q->point[i] == point && q->module[i] == index;
    }
    if (!right) {
        return fsdp_fail(env, FSDP_ERR_INVALID, "at",
                         "this point is not the next one of a sequence");
    }
    if (point == FSDP_BEGIN) {
        walk->sequence = model->sequence[index];
        walk->index = index;
        walk->next = 0;
    } else if (point == FSDP_END) {
        walk->sequence = NULL;
    } else {
        walk->next++;
    }
    return FSDP_OK;
}

static inline bool fsdp_is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

/* Whether the point that was passed last is the unit's last one of this
 * phase: its window closes. */
static inline bool fsdp_window_ends(const struct fsdp_walk *walk,
                                    const struct fsdp_units *units)
{
    const struct fsdp_sequence *q = walk->sequence;
    const uint32_t i = walk->next - 1;
    const bool forward = fsdp_is_forward(q->point[i]);
    const uint32_t unit = units->unit_of_module[q->module[i]];
    uint32_t k = walk->next;

    while (k < q->n && fsdp_is_forward(q->point[k]) == forward &&
           units->unit_of_module[q->module[k]] != unit) {
        k++;
    }
    return k == q->n || fsdp_is_forward(q->point[k]) != forward;
}

#ifdef __cplusplus
}
#endif
#endif
