/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded.c - the baseline: the run in which nothing is sharded. One process
 * holds full parameters and plays the ranks one after the other (claim
 * "serial": the driver sets env->rank between passes) with values in full
 * (unsharded_shard.c). Every rank's gradients are kept (unsharded_gradients.c)
 * and folded (unsharded_shard.c), and the optimizer makes one full step. A save
 * is a copy in memory (unsharded_kept.c).
 *
 * It shares no schedule, layout table or collective with the sharded engine, so
 * that a fault in those cannot be in both.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

static int check_owned(const struct fsdp_sharded *s, uint32_t p)
{
    return unsharded_is_ignored(s, p)
               ? ref_fail(s->env, FSDP_ERR_INVALID, "unsharded",
                          "%s is ignored: it is in no unit",
                          s->model->parameter_name[p])
               : FSDP_OK;
}

/* ---- One full step ------------------------------------------------------ */

static int step_parameter(struct fsdp_sharded *s, uint32_t p,
                          const struct fsdp_step *how)
{
    float *state[2] = {NULL, NULL};
    struct ref_hyper h;
    struct fsdp_op op;

    for (uint32_t i = 0; i < 2 && s->state[i]; i++) {
        state[i] = s->state[i] + s->start[p];
    }
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
    how->found_inf = 0;
    if (how->inverse_scale != 0.0f) {
        FSDP_TRY(unsharded_unscale(s, how));
    }
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
    if (point == FSDP_PRE_BACKWARD || point == FSDP_POST_BACKWARD) {
        s->in_backward[module] = point == FSDP_PRE_BACKWARD;
    }
    /* Recomputing belongs to the backward, but has no gradient of its own. */
    if (point == FSDP_PRE_BACKWARD || point == FSDP_PRE_RECOMPUTE) {
        for (uint32_t u = 0; u < s->units->n_units; u++) {
            s->touched[u] = s->touched[u] || unsharded_is_of(s, module, u);
            s->backwards[u] = s->backwards[u] || unsharded_is_of(s, module, u);
        }
    } else if (point == FSDP_POST_BACKWARD || point == FSDP_POST_RECOMPUTE) {
        return unsharded_take_gradients(s, module);
    }
    return FSDP_OK;
}

/* Whether unit u would have been reduced by now: its last backward in this pass
 * is over. */
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

/* All ranks have played a pass that was given its step, or played it up to
 * where it was cancelled. The units that they reduced are stepped here, after
 * the pass, which must give the same values as a step within it. */
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

/* A unit whose backward has not closed counts as one without a backward. What
 * ranks have closed stays until the last rank has played as far. */
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

/* The value of p: in a pass rounded to the unit's dtype; at rest, where summon
 * looks at it, as it is stored. */
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

/* The states begin anew, for the time when the parameter is trained again. */
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
    unsharded_lay_out(s);
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
        if (fsdp_original(s->model, p) != p || unsharded_is_ignored(s, p)) {
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
    /* Records of the baseline have always said these claims: it plays any
     * case. */
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
        .shard = unsharded_shard,
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
        .destroy = unsharded_destroy,
        .set = unsharded_set,
        .unshard = unsharded_unshard,
        .reshard = unsharded_reshard,
        .buffer = unsharded_buffer,
        .set_step = set_step,
        .assign = assign};

    return &engine;
}
