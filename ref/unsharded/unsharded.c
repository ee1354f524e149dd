/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded.c - the baseline: the run that nobody shards. One process holds
 * full parameters and plays the ranks one after the other (claim "serial":
 * the driver sets env->rank between passes); every rank's gradients are kept
 * (unsharded_gradients.c) and folded (unsharded_fold.c); the optimizer makes
 * one full step; what is saved is a copy in memory (unsharded_kept.c).
 *
 * It shares no schedule, layout table or collective with the sharded engine,
 * so that a fault in those cannot be in both.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(const struct fsdp_sharded *s)
{
    return ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
}

/* ---- Shard: everything in full ----------------------------------------- */

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

/* The model's own. */
static bool is_ignored(const struct fsdp_sharded *s, uint32_t p)
{
    return unsharded_unit(s, p) == FSDP_NO_UNIT;
}

static int check_owned(const struct fsdp_sharded *s, uint32_t p)
{
    return is_ignored(s, p) ? ref_fail(s->env, FSDP_ERR_INVALID, "unsharded",
                                       "%s is ignored: it is in no unit",
                                       s->model->parameter_name[p])
                            : FSDP_OK;
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

/* What a shard holds of parameter p, by rows of its first dimension: as many
 * as it takes for S shards to hold them all. */
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

/* Where gradients would be reduced: by rows, those of trainable parameters;
 * flat, with a place for what is frozen. */
static void lay_out(struct fsdp_sharded *s)
{
    bool by_rows = s->options.layout == FSDP_LAYOUT_PER_PARAMETER;

    s->total = 0;
    memset(s->chunk, 0, s->units->n_units * sizeof(*s->chunk));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint32_t u = unsharded_unit(s, p);
        s->start[p] = s->total;
        s->total += fsdp_numel(s->model, p);
        if (is_ignored(s, p)) {
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
        if (fsdp_original(s->model, p) == p && !is_ignored(s, p)) {
            FSDP_TRY(s->model->initial(s->model->context, p, 0,
                                       fsdp_numel(s->model, p),
                                       s->value + s->start[p]));
        }
    }
    return FSDP_OK;
}

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
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
    lay_out(s);
    FSDP_TRY(fill(s));
    return unsharded_make_buffers(s, &known_units);
}

static void destroy(struct fsdp_sharded *s)
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
    unsharded_free_buffers(s);
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
    ref_early_release(&s->early);
    free(s);
}

/* ---- One full step ------------------------------------------------------ */

static int step_parameter(struct fsdp_sharded *s, uint32_t p,
                          const struct fsdp_step *how)
{
    float *state[2] = {s->state[0] + s->start[p], s->state[1] + s->start[p]};
    struct ref_hyper h;
    struct fsdp_op op;

    ref_count(&s->numbers[p]);
    h = ref_hyper(s->options.optimizer, &s->numbers[p],
                  s->model->parameter_flags[p], how);
    op = ref_optimizer_op(&h, fsdp_numel(s->model, p), s->reduced + s->start[p],
                          s->value + s->start[p], state);
    op.size = sizeof(op);
    return s->env->device->run(s->env->device->self, NULL, &op);
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(unsharded_reduce_all(s, "unsharded.step"));
    FSDP_TRY(unsharded_unscale(s, how));
    if (how->found_inf) {
        return FSDP_OK;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (unsharded_is_stepped(s, p) && s->touched[unsharded_unit(s, p)]) {
            FSDP_TRY(step_parameter(s, p, how));
        }
    }
    return FSDP_OK;
}

/* ---- Points: only gradients matter ------------------------------------- */

static int pass_point(struct fsdp_sharded *s, uint32_t point, uint32_t module)
{
    s->next++;
    if (point == FSDP_PRE_BACKWARD) {
        s->in_backward[module] = true;
        for (uint32_t u = 0; u < s->units->n_units; u++) {
            s->touched[u] = s->touched[u] || unsharded_is_of(s, module, u);
            s->backwards[u] = s->backwards[u] || unsharded_is_of(s, module, u);
        }
    } else if (point == FSDP_POST_BACKWARD) {
        s->in_backward[module] = false;
        return unsharded_take_gradients(s, module);
    }
    return FSDP_OK;
}

/* What is behind the last backward of a unit, in this pass, is reduced. */
static bool has_closed(const struct fsdp_sharded *s, uint32_t u)
{
    const struct fsdp_sequence *q = s->sequence;
    bool closed = s->backwards[u];

    for (uint32_t i = s->next; i < q->n; i++) {
        const bool forward =
            q->point[i] == FSDP_PRE_FORWARD || q->point[i] == FSDP_POST_FORWARD;

        closed = closed && (forward || !unsharded_is_of(s, q->module[i], u));
    }
    return closed;
}

/* All ranks have gone through a pass that was given its step, or as far as it
 * was cancelled: what they reduced is stepped, behind it, which is to be the
 * same. */
static int step_behind(struct fsdp_sharded *s)
{
    FSDP_TRY(unsharded_reduce(s));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const uint32_t u = unsharded_unit(s, p);

        if (unsharded_is_stepped(s, p) && s->backwards[u] && s->sync[u] &&
            s->all_reduce[u]) {
            FSDP_TRY(step_parameter(s, p, &s->early.how));
        }
    }
    s->has_reduced = false;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->backwards[u] && s->sync[u] && s->all_reduce[u]) {
            s->folded[u] = s->touched[u] = false;
        }
        s->has_reduced = s->has_reduced || s->folded[u];
    }
    s->early.set = false;
    return FSDP_OK;
}

static bool is_last(const struct fsdp_sharded *s)
{
    return s->env->rank + 1 == s->ranks;
}

static int end(struct fsdp_sharded *s)
{
    unsharded_end_pass(s);
    s->sequence = NULL;
    return s->early.set && is_last(s) ? step_behind(s) : FSDP_OK;
}

/* What has not closed has had no backward. What ranks have closed is there
 * until the last one has come as far. */
static int cancel(struct fsdp_sharded *s)
{
    const bool steps = s->early.set;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->backwards[u] = has_closed(s, u);
    }
    if (steps) {
        FSDP_TRY(end(s));
    }
    if (!steps || is_last(s)) {
        unsharded_drop_gradients(s);
    }
    memset(s->asked, 0, s->model->n_parameters * sizeof(*s->asked));
    memset(s->in_backward, 0, s->model->n_modules * sizeof(*s->in_backward));
    s->sequence = NULL;
    return FSDP_OK;
}

static int set_step(struct fsdp_sharded *s, const struct fsdp_step *step)
{
    return ref_keep_step(s->env, step, &s->early);
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_sequence *q = s->sequence;

    if (point == FSDP_BEGIN && !q && index < s->model->n_sequences) {
        s->sequence = s->model->sequence[index];
        s->sequence_index = index;
        s->next = 0;
        unsharded_begin_pass(s);
        return FSDP_OK;
    }
    if (point == FSDP_END && q && index == s->sequence_index &&
        s->next == q->n) {
        return end(s);
    }
    if (point == FSDP_CANCEL && q) {
        return cancel(s);
    }
    if (!q || s->next >= q->n || q->point[s->next] != point ||
        q->module[s->next] != index) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.at",
                        "point %u of module %u is out of sequence", point,
                        index);
    }
    return pass_point(s, point, index);
}

/* In a pass rounded to the unit's dtype; at rest, as who summons it sees it,
 * as it is. */
static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    uint32_t dtype;
    uint64_t start;
    float *value;

    if (p >= s->model->n_parameters) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.param",
                        "parameter %u of %u", p, s->model->n_parameters);
    }
    FSDP_TRY(check_owned(s, p));
    dtype = s->sequence || s->shown[unsharded_unit(s, p)]
                ? s->dtype[unsharded_unit(s, p)].param
                : FSDP_DTYPE_F32;
    start = s->start[fsdp_original(s->model, p)];
    value = s->value + start;
    if (dtype != FSDP_DTYPE_F32) {
        if (!s->lent) {
            FSDP_TRY(unsharded_take(s, FSDP_PARAM_FULL, &s->lent));
        }
        for (uint64_t i = 0; i < fsdp_numel(s->model, p); i++) {
            fsdp_store(dtype, s->lent + start, i, value[i]);
        }
        value = s->lent + start;
    }
    *out = ref_tensor(s->env, s->model, p, dtype, value);
    return FSDP_OK;
}

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    if (p >= s->model->n_parameters ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.grad",
                        "gradient %u outside its module's backward", p);
    }
    FSDP_TRY(check_owned(s, p));
    if (unsharded_is_frozen(s, p)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.grad",
                        "%s is frozen: it has no gradient",
                        s->model->parameter_name[p]);
    }
    s->asked[p] = true;
    *out = ref_tensor(s->env, s->model, p, s->dtype[unsharded_unit(s, p)].grad,
                      s->fresh + s->start[p]);
    return FSDP_OK;
}

/* ---- Between passes ---------------------------------------------------- */

static int zero_grad(struct fsdp_sharded *s)
{
    unsharded_drop_gradients(s);
    return FSDP_OK;
}

/* Its states are as in the beginning, whenever it is trained again. */
static int set_requires_grad(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    const uint32_t original = fsdp_original(s->model, p);

    FSDP_TRY(check_owned(s, p));
    if (unsharded_is_frozen(s, p) == (on == 0)) {
        return FSDP_OK;
    }
    for (uint32_t q = 0; q < s->model->n_parameters; q++) {
        if (fsdp_original(s->model, q) == original) {
            s->flags[q] ^= FSDP_FROZEN;
        }
    }
    s->numbers[original].power[0] = s->numbers[original].power[1] = 1.0f;
    for (uint32_t i = 0; i < 2 && s->state[i]; i++) {
        memset(s->state[i] + s->start[original], 0,
               fsdp_numel(s->model, original) * sizeof(float));
    }
    lay_out(s);
    unsharded_find_trained(s);
    return FSDP_OK;
}

static int assign(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                  uint64_t n, const void *host)
{
    FSDP_TRY(check_owned(s, p));
    memcpy(s->value + s->start[fsdp_original(s->model, p)] + first, host,
           n * sizeof(*s->value));
    return FSDP_OK;
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *, const struct fsdp_piece *),
                  void *context)
{
    FSDP_TRY(unsharded_reduce(s));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct fsdp_piece piece = {.size = sizeof(piece),
                                   .parameter = p,
                                   .n = fsdp_numel(s->model, p),
                                   .value = s->value + s->start[p]};
        if (fsdp_original(s->model, p) != p || is_ignored(s, p)) {
            continue;
        }
        if (s->has_reduced && !unsharded_is_frozen(s, p)) {
            piece.grad = s->reduced + s->start[p];
        }
        for (uint32_t i = 0; i < 2 && s->state[i] && !unsharded_is_frozen(s, p);
             i++) {
            piece.state[i] = s->state[i] + s->start[p];
        }
        visit(context, &piece);
    }
    return FSDP_OK;
}

const struct fsdp_engine *fsdp_unsharded_engine(void)
{
    /* What records of it have said always: it is asked for any case. */
    static const char *const claims[] = {
        "serial",    "flat",      "per-parameter", "full-shard",
        "no-shard",  "sgd",       "momentum",      "adamw",
        "groups",    "no-sync",   "eval",          "cancel",
        "fold-rank", "fold-ring", "fold-tree",     "f32-fma",
        "clip",      NULL};
    static const struct fsdp_engine engine = {
        .size = sizeof(engine),
        .abi = FSDP_ABI_VERSION,
        .name = "unsharded",
        .version = "0.1.0",
        .claims = claims,
        .open = unsharded_open,
        .close = unsharded_close,
        .shard = shard,
        .at = at,
        .param = param,
        .grad = grad,
        .set_gradient_sync = unsharded_set_gradient_sync,
        .set_requires_grad = set_requires_grad,
        .clip_grad_norm = unsharded_clip_grad_norm,
        .step = step,
        .zero_grad = zero_grad,
        .pieces = pieces,
        .save_begin = unsharded_save_begin,
        .save_wait = unsharded_save_wait,
        .load = unsharded_load,
        .load_from = unsharded_load_from,
        .destroy = destroy,
        .set = unsharded_set,
        .unshard = unsharded_unshard,
        .reshard = unsharded_reshard,
        .buffer = unsharded_buffer,
        .set_step = set_step,
        .assign = assign};

    return &engine;
}
