/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_shard.c - what the unsharded run has: everything in full. Values,
 * gradients and states lie in storage of [total] elements, each parameter in
 * one piece; where it would lie in the shards of its unit is known beside that,
 * for the order in which a ring adds up.
 *
 * And the folds of the specification (comm.h), literally, over what the ranks
 * of the baseline left behind.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

/* ---- Storage ------------------------------------------------------------- */

static int out_of_memory(const struct fsdp_sharded *s)
{
    return ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
}

/* The caller's flags say what is trained in the beginning. */
static int know_model(struct fsdp_sharded *s, const struct fsdp_model *model)
{
    const size_t bytes = model->n_parameters * sizeof(*s->flags);

    s->flags = malloc(bytes + 1);
    if (!s->flags) {
        (void)out_of_memory(s);
        return FSDP_ERR_NOMEM;
    }
    memcpy(s->flags, model->parameter_flags, bytes);
    ref_read(&s->known, sizeof(s->known), model, model->size);
    s->known.parameter_flags = s->flags;
    s->model = &s->known;
    return FSDP_OK;
}

static int make_arrays(struct fsdp_sharded *s)
{
    uint32_t n = s->model->n_parameters + 1u;

    s->start = calloc(n, sizeof(*s->start));
    s->offset = calloc(n, sizeof(*s->offset));
    s->block = calloc(n, sizeof(*s->block));
    s->chunk = calloc(s->units->n_units + 1u, sizeof(*s->chunk));
    s->dtype = calloc(s->units->n_units + 1u, sizeof(*s->dtype));
    s->divisors = calloc(s->units->n_units + 1u, sizeof(*s->divisors));
    s->factor = calloc(s->units->n_units + 1u, sizeof(*s->factor));
    s->touched = calloc(s->units->n_units + 1u, sizeof(*s->touched));
    s->asked = calloc(n, sizeof(*s->asked));
    s->numbers = calloc(n, sizeof(*s->numbers));
    s->in_backward = calloc(s->model->n_modules + 1u, sizeof(*s->in_backward));
    if (!s->start || !s->offset || !s->block || !s->chunk || !s->dtype ||
        !s->divisors || !s->factor || !s->touched || !s->asked || !s->numbers ||
        !s->in_backward || unsharded_make_gradients(s) != FSDP_OK) {
        return out_of_memory(s);
    }
    return FSDP_OK;
}

uint32_t unsharded_unit(const struct fsdp_sharded *s, uint32_t p)
{
    return fsdp_unit_of(s->model, s->units, p);
}

bool unsharded_is_of(const struct fsdp_sharded *s, uint32_t module, uint32_t u)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->model->parameter_module[p] == module &&
            unsharded_unit(s, p) == u) {
            return true;
        }
    }
    return s->units->unit_of_module[module] == u;
}

/* Storage of [total] elements for a value of `kind`. */
int unsharded_take(struct fsdp_sharded *s, uint32_t kind, float **out)
{
    const struct fsdp_device *d = s->env->device;
    void *p = NULL;

    if (d->alloc(d->self, s->total * sizeof(**out), &p) != FSDP_OK) {
        (void)out_of_memory(s);
        return FSDP_ERR_NOMEM;
    }
    d->live(d->self, NULL, kind, FSDP_NO_UNIT, p, s->total * sizeof(**out));
    *out = p;
    return FSDP_OK;
}

void unsharded_drop(struct fsdp_sharded *s, float **p)
{
    const struct fsdp_device *d = s->env->device;

    if (*p) {
        d->dead(d->self, NULL, *p);
        d->free(d->self, *p);
        *p = NULL;
    }
}

/* Elements of parameter p in one shard: as many rows of its first dimension as
 * S shards need to hold all of them. */
static uint64_t block_of(const struct fsdp_sharded *s, uint32_t p)
{
    bool scalar = s->model->parameter_n_dims[p] == 0;
    uint64_t d0 = scalar ? 1 : s->model->parameter_shape[p][0];
    uint64_t n = (d0 + s->shards - 1) / s->shards;

    for (uint32_t d = 1; d < s->model->parameter_n_dims[p]; d++) {
        n *= s->model->parameter_shape[p][d];
    }
    return n;
}

bool unsharded_is_frozen(const struct fsdp_sharded *s, uint32_t p)
{
    return (s->model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Where gradients would be reduced. By rows, those of trainable parameters
 * alone have a place; flat, frozen parameters have one, too. */
void unsharded_lay_out(struct fsdp_sharded *s)
{
    bool by_rows = s->options.layout == FSDP_LAYOUT_PER_PARAMETER;

    s->total = 0;
    memset(s->chunk, 0, s->units->n_units * sizeof(*s->chunk));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint32_t u = unsharded_unit(s, p);
        s->start[p] = s->total;
        s->total += fsdp_numel(s->model, p);
        if (unsharded_is_ignored(s, p)) {
            continue;
        }
        s->offset[p] = s->chunk[u];
        s->block[p] = by_rows ? block_of(s, p) : 0;
        if (fsdp_original(s->model, p) == p &&
            (!by_rows || !unsharded_is_frozen(s, p))) {
            s->chunk[u] += by_rows ? s->block[p] : fsdp_numel(s->model, p);
        }
    }
    for (uint32_t u = 0; !by_rows && u < s->units->n_units; u++) {
        s->chunk[u] = (s->chunk[u] + s->shards - 1) / s->shards;
    }
}

static int fill(struct fsdp_sharded *s)
{
    uint64_t bytes;

    FSDP_TRY(unsharded_take(s, FSDP_PARAM_SHARD, &s->value));
    FSDP_TRY(unsharded_take(s, FSDP_GRAD_SHARD, &s->reduced));
    FSDP_TRY(unsharded_take(s, FSDP_GRAD_FULL, &s->fresh));
    bytes = s->total * sizeof(*s->value);
    memset(s->value, 0, bytes);
    for (uint32_t i = 0; i < ref_optimizer_states(s->options.optimizer); i++) {
        FSDP_TRY(unsharded_take(s, FSDP_OPTIM, &s->state[i]));
        memset(s->state[i], 0, bytes);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (fsdp_original(s->model, p) == p && !unsharded_is_ignored(s, p)) {
            FSDP_TRY(s->model->initial(s->model->context, p, 0,
                                       fsdp_numel(s->model, p),
                                       s->value + s->start[p]));
        }
    }
    return FSDP_OK;
}

int unsharded_shard(const struct fsdp_env *env, const struct fsdp_model *model,
                    const struct fsdp_units *units,
                    const struct fsdp_options *options,
                    struct fsdp_sharded **out)
{
    struct fsdp_options known_options;
    struct fsdp_units known_units;
    struct fsdp_sharded *s;

    *out = NULL;
    ref_read_options(&known_options, options);
    ref_read(&known_units, sizeof(known_units), units, units->size);
    FSDP_TRY(ref_check(env, model, &known_units, &known_options));
    s = calloc(1, sizeof(*s));
    if (!s) {
        return ref_fail(env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
    }
    *out = s;
    s->env = env;
    s->units = units;
    s->options = known_options;
    s->replicas = env->mesh->extent[FSDP_DIM_REPLICATE];
    s->shards = env->mesh->extent[FSDP_DIM_SHARD];
    s->ranks = s->replicas * s->shards;
    FSDP_TRY(know_model(s, model));
    FSDP_TRY(make_arrays(s));
    for (uint32_t u = 0; u < units->n_units; u++) {
        s->dtype[u] = ref_dtypes(&known_options, &known_units, u);
        s->divisors[u] =
            ref_divisors(&known_options, &known_units, u, s->ranks);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->numbers[p] = ref_numbers(&s->options, p);
    }
    unsharded_lay_out(s);
    FSDP_TRY(fill(s));
    return model->n_buffers ? unsharded_make_buffers(s, &known_units) : FSDP_OK;
}

void unsharded_destroy(struct fsdp_sharded *s)
{
    if (!s) {
        return;
    }
    unsharded_free_gradients(s);
    unsharded_give_up(s);
    unsharded_drop(s, &s->value);
    unsharded_drop(s, &s->reduced);
    unsharded_drop(s, &s->fresh);
    unsharded_drop(s, &s->lent);
    unsharded_drop(s, &s->state[0]);
    unsharded_drop(s, &s->state[1]);
    if (s->buffer_dtype) {
        unsharded_free_buffers(s);
    }
    free(s->start);
    free(s->offset);
    free(s->block);
    free(s->chunk);
    free(s->dtype);
    free(s->divisors);
    free(s->factor);
    free(s->touched);
    free(s->asked);
    free(s->numbers);
    free(s->in_backward);
    free(s->flags);
    free(s->early.numbers);
    free(s);
}

/* ---- Folds --------------------------------------------------------------- */

/* The specification (comm.h) is recursive. Each sum is rounded to the dtype.
 * NOLINTNEXTLINE(misc-no-recursion) */
static float tree(uint32_t dtype, const float *x, uint32_t n)
{
    uint32_t half = n - n / 2;

    return n == 1 ? x[0]
                  : fsdp_round(dtype, tree(dtype, x, half) +
                                          tree(dtype, x + half, n - half));
}

/* x[0..n-1] in a fold (comm.h), rounded to the dtype of the wire. RANK starts
 * at 0; RING behind the owner, who comes last. */
static float fold(uint32_t how, const struct ref_dtypes *d, const float *x,
                  uint32_t n, uint32_t owner)
{
    uint32_t start = how == FSDP_FOLD_RING ? (owner + 1) % n : 0;
    /* There is always an x[0].
     * NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
    float sum = x[start];

    if (how == FSDP_FOLD_TREE) {
        return fsdp_round(d->reduce, tree(d->sum, x, n));
    }
    for (uint32_t i = 1; i < n; i++) {
        sum = fsdp_round(d->sum, sum + x[(start + i) % n]);
    }
    return fsdp_round(d->reduce, sum);
}

/* Where an element lies: at `local` in shard `owner`, which is `chunk` long. */
struct place {
    uint64_t owner, local, chunk;
};

static struct place find_place(const struct fsdp_sharded *s, uint32_t p,
                               uint64_t i)
{
    const uint64_t chunk = s->chunk[unsharded_unit(s, p)];
    const uint64_t block = s->block[p];
    const uint64_t flat = s->offset[p] + i;

    return block ? (struct place){i / block, s->offset[p] + i % block, chunk}
                 : (struct place){flat / chunk, flat % chunk, chunk};
}

/* Element i of p in the c-th contribution, within each replica's shard group.
 */
static void fold_shards(const struct fsdp_sharded *s, uint32_t p, uint64_t i,
                        uint32_t c, uint64_t owner, float *replica)
{
    const uint32_t u = unsharded_unit(s, p);
    const struct ref_dtypes *d = &s->dtype[u];
    float x[REF_MAX_RANKS];

    for (uint32_t r = 0; r < s->ranks; r++) {
        const struct contribution *of = &s->rank[r].of[c];
        float sent = of->sum[s->start[p] + i] * of->factor[u].before;
        x[r] = fsdp_round(d->reduce, fsdp_round(d->accumulate, sent));
    }
    for (uint32_t r = 0; r < s->replicas; r++) {
        replica[r] = fold(s->options.fold, d, x + (uint64_t)r * s->shards,
                          s->shards, (uint32_t)owner);
    }
}

/* Contributions [first, last] of one element: each is folded over the shards,
 * these sums add up, the replicas meet once. */
static float fold_element(const struct fsdp_sharded *s, uint32_t p, uint64_t i,
                          uint32_t first, uint32_t last)
{
    const struct ref_dtypes *d = &s->dtype[unsharded_unit(s, p)];
    const struct place at = find_place(s, p, i);
    uint64_t part = (at.chunk + s->replicas - 1) / s->replicas;
    float sum[REF_MAX_RANKS];
    float next[REF_MAX_RANKS];

    fold_shards(s, p, i, first, at.owner, sum);
    for (uint32_t c = first + 1; c <= last; c++) {
        fold_shards(s, p, i, c, at.owner, next);
        for (uint32_t r = 0; r < s->replicas; r++) {
            sum[r] = fsdp_round(d->reduce, sum[r] + next[r]);
        }
    }
    return fold(s->options.fold, d, sum, s->replicas,
                (uint32_t)(at.local / part));
}

static void fold_parameter(struct fsdp_sharded *s, uint32_t p, uint32_t first,
                           uint32_t last)
{
    const uint32_t u = unsharded_unit(s, p);
    const float behind = s->rank[0].of[last].factor[u].behind;

    for (uint64_t i = 0; i < fsdp_numel(s->model, p); i++) {
        float *to = &s->reduced[s->start[p] + i];
        float scaled = fsdp_round(s->dtype[u].reduce,
                                  fold_element(s, p, i, first, last) * behind);
        *to = s->folded[u] ? *to + scaled : scaled;
    }
}

static void fold_unit(struct fsdp_sharded *s, uint32_t u, uint32_t n)
{
    uint32_t first = 0;

    for (uint32_t c = 0; c < n; c++) {
        if (!s->rank[0].of[c].completes[u]) {
            continue;
        }
        for (uint32_t p = 0; p < s->model->n_parameters; p++) {
            if (unsharded_unit(s, p) == u && unsharded_is_stepped(s, p)) {
                fold_parameter(s, p, first, c);
            }
        }
        s->folded[u] = true;
        first = c + 1;
    }
}

int unsharded_reduce(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        const uint32_t n = unsharded_n_complete(s, &s->rank[0], u);

        for (uint32_t r = 0; r < s->ranks; r++) {
            if (unsharded_n_complete(s, &s->rank[r], u) != n) {
                return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.reduce",
                                "rank %u has made another number of passes", r);
            }
        }
        if (n > 0 && !s->has_reduced) { /* of what has no backward it is +0 */
            memset(s->reduced, 0, s->total * sizeof(*s->reduced));
            s->has_reduced = true;
        }
        fold_unit(s, u, n);
        for (uint32_t r = 0; r < s->ranks; r++) {
            unsharded_forget(s, &s->rank[r], u, n);
        }
    }
    return FSDP_OK;
}

int unsharded_reduce_all(struct fsdp_sharded *s, const char *where)
{
    if (unsharded_is_pending(s)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, where,
                        "a rank has gradients that were not reduced, or "
                        "not across replicas");
    }
    return unsharded_reduce(s);
}
