/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - the functions of the contract, and the walk through a pass, point
 * by point, in at(). Nothing runs ahead: a unit is gathered when its window
 * begins, and reduced when it ends.
 */
#include "ref/clip/norm.h"
#include "sharded.h"

#include <string.h>

/* ---- Points ------------------------------------------------------------ */

static int begin_pass(struct fsdp_sharded *s, uint32_t sequence)
{
    if (s->torn) {
        return ref_at_rest(s, "ref.at");
    }
    if (s->sequence || s->all_unsharded || sequence >= s->model->n_sequences) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.at",
                        "BEGIN of sequence %u: of %u, and only at rest",
                        sequence, s->model->n_sequences);
    }
    FSDP_TRY(ref_check_filled(s, "ref.at", true));
    s->sequence = s->model->sequence[sequence];
    s->sequence_index = sequence;
    s->next = 0;
    ref_turn_knobs(s);
    s->early.on = s->early.set;
    s->early.counted = false;
    return FSDP_OK;
}

/* Ends the pass, and with it the step that was set for it. */
static int leave(struct fsdp_sharded *s)
{
    s->early.set = s->early.on = false;
    s->sequence = NULL;
    return FSDP_OK;
}

static int end(struct fsdp_sharded *s, uint32_t sequence)
{
    if (!s->sequence || sequence != s->sequence_index ||
        s->next != s->sequence->n) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.at",
                        "END at point %u of %u", s->next,
                        s->sequence ? s->sequence->n : 0);
    }
    return leave(s);
}

static int cancel(struct fsdp_sharded *s)
{
    if (!s->sequence) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.at",
                        "CANCEL, but no pass has begun");
    }
    ref_reshard_each(s);
    ref_drop_gradients(s);
    memset(s->in_backward, 0, s->model->n_modules * sizeof(*s->in_backward));
    return leave(s);
}

static int end_window(struct fsdp_sharded *s, uint32_t u, uint8_t action)
{
    struct ref_unit *x = &s->unit[u];
    const bool early = s->early.on && ref_steps_early(s, u);

    if ((action & REF_HOLDABLE) && !x->knob.reshard_forward) {
        return FSDP_OK; /* it goes on */
    }
    x->windowed = false;
    if (!(action & REF_BACKWARD)) {
        ref_reshard(s, u);
        return FSDP_OK;
    }
    if (x->knob.reshard_backward || early) {
        ref_reshard(s, u);
    }
    FSDP_TRY(x->knob.sync ? ref_reduce(s, u) : FSDP_OK);
    return early ? ref_step_early(s, u) : FSDP_OK;
}

static int begin_window(struct fsdp_sharded *s, uint32_t u, uint8_t action)
{
    FSDP_TRY(ref_unshard(s, u, s->unit[u].dtype.param));
    s->unit[u].windowed = true;
    return action & REF_BACKWARD ? ref_open_gradient(s, u) : FSDP_OK;
}

/* The windows that begin or end at this point of the sequence. */
static int pass_point(struct fsdp_sharded *s, uint32_t point, uint32_t module)
{
    const uint32_t n = s->units->n_units;
    const uint8_t *action = s->action[s->sequence_index] + (size_t)s->next * n;

    s->next++;
    for (uint32_t u = 0; u < n; u++) {
        if (action[u] & REF_UNSHARD) {
            FSDP_TRY(begin_window(s, u, action[u]));
        }
    }
    if (point == FSDP_PRE_BACKWARD) {
        s->in_backward[module] = true;
    } else if (point == FSDP_POST_BACKWARD) {
        FSDP_TRY(ref_take_gradients(s, module));
        s->in_backward[module] = false;
    }
    for (uint32_t u = 0; u < n; u++) {
        if (action[u] & REF_RESHARD) {
            FSDP_TRY(end_window(s, u, action[u]));
        }
    }
    return FSDP_OK;
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_sequence *q = s->sequence;

    switch (point) {
    case FSDP_BEGIN:
        return begin_pass(s, index);
    case FSDP_END:
        return end(s, index);
    case FSDP_CANCEL:
        return cancel(s);
    default:
        if (!q || s->next >= q->n || q->point[s->next] != point ||
            q->module[s->next] != index) {
            return ref_fail(s->env, FSDP_ERR_INVALID, "ref.at",
                            "point %u of module %u is not point %u of the "
                            "sequence",
                            point, index, s->next);
        }
        return pass_point(s, point, index);
    }
}

/* ---- What the model asks for ------------------------------------------- */

static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    struct ref_unit *x;
    uint32_t original;

    *out = (struct fsdp_tensor){0};
    if (p >= s->model->n_parameters) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.param",
                        "parameter %u of %u", p, s->model->n_parameters);
    }
    FSDP_TRY(ref_check_owned(s, p, "ref.param"));
    x = &s->unit[s->parameter[p].unit];
    original = s->parameter[p].original;
    if (!x->open) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.param",
                        "%s is asked for outside its unit's window",
                        s->model->parameter_name[p]);
    }
    *out = ref_tensor(s->env, s->model, p, x->full_dtype,
                      ref_at(x->full ? x->full : x->shard, x->full_dtype,
                             s->parameter[original].offset));
    return FSDP_OK;
}

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    struct ref_parameter *x;
    struct ref_unit *u;
    bool apart;

    *out = (struct fsdp_tensor){0};
    if (p >= s->model->n_parameters ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.grad",
                        "gradient %u is asked for outside its module's "
                        "backward",
                        p);
    }
    FSDP_TRY(ref_check_owned(s, p, "ref.grad"));
    x = &s->parameter[p];
    if (x->frozen) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.grad",
                        "%s is frozen: it has no gradient",
                        s->model->parameter_name[p]);
    }
    u = &s->unit[x->unit];
    /* Two modules that share a parameter may be in their backward at once. */
    apart = x->accumulated || x->shared || u->dtype.grad != u->dtype.accumulate;
    if (apart && !x->staging) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, x->unit, x->numel,
                          u->dtype.grad, &x->staging));
    }
    x->fresh = true;
    *out = ref_tensor(
        s->env, s->model, p, u->dtype.grad,
        x->staging ? x->staging
                   : ref_at(u->grad_full, u->dtype.accumulate, x->grad_offset));
    return FSDP_OK;
}

/* ---- Between passes ---------------------------------------------------- */

int ref_at_rest(const struct fsdp_sharded *s, const char *where)
{
    if (s->torn) {
        return ref_fail(s->env, FSDP_ERR_INVALID, where,
                        "a load failed half way: load again");
    }
    if (s->sequence || s->all_unsharded) {
        return ref_fail(s->env, FSDP_ERR_INVALID, where,
                        "only at rest: not between BEGIN and END, nor between "
                        "unshard_all and reshard_all");
    }
    return FSDP_OK;
}

int ref_check_unset(const struct fsdp_sharded *s, const char *where)
{
    return !s->early.set ? FSDP_OK
                         : ref_fail(s->env, FSDP_ERR_INVALID, where,
                                    "set_step has given the step of the next "
                                    "pass: that comes first");
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(ref_at_rest(s, "ref.step"));
    FSDP_TRY(ref_check_unset(s, "ref.step"));
    FSDP_TRY(ref_check_groups(s, how, "ref.step"));
    if (how->inverse_scale != 0.0f) { /* a scale of 1 is a scale, too: found_inf
                                       * is set */
        FSDP_TRY(ref_check_scale(s->env, "ref.step", how->inverse_scale));
    }
    FSDP_TRY(ref_check_reduced(s, "ref.step"));
    ref_reshard_each(s); /* unsharded copies were kept of the old weights */
    how->found_inf = 0;
    if (how->inverse_scale != 0.0f) {
        FSDP_TRY(ref_find_inf(s, &how->found_inf));
        if (how->found_inf) {
            return FSDP_OK;
        }
        FSDP_TRY(ref_scale_gradients(s, how->inverse_scale));
    }
    return ref_step(s, how);
}

static int zero_grad(struct fsdp_sharded *s)
{
    FSDP_TRY(ref_at_rest(s, "ref.zero_grad"));
    ref_drop_gradients(s);
    return FSDP_OK;
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *, const struct fsdp_piece *),
                  void *context)
{
    FSDP_TRY(ref_at_rest(s, "ref.pieces"));
    FSDP_TRY(ref_check_filled(s, "ref.pieces", false));
    FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        struct ref_unit *u = &s->unit[s->parameter[part->parameter].unit];
        struct fsdp_piece piece = {.size = sizeof(piece),
                                   .parameter = part->parameter,
                                   .first = part->first,
                                   .n = part->n,
                                   .value = u->shard + part->local};
        if (u->grad_shard && !part->frozen) {
            piece.grad = u->grad_shard + part->grad;
        }
        for (uint32_t k = 0; k < s->n_states && !part->frozen; k++) {
            piece.state[k] = u->state[k] + part->state;
        }
        visit(context, &piece);
    }
    return FSDP_OK;
}

static int unshard_all(struct fsdp_sharded *s)
{
    FSDP_TRY(ref_at_rest(s, "ref.unshard_all"));
    FSDP_TRY(ref_check_filled(s, "ref.unshard_all", true));
    ref_reshard_each(s);
    s->all_unsharded = true;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        FSDP_TRY(ref_unshard(s, u, FSDP_DTYPE_F32)); /* float32 of the shards,
                                                      * never a copy that is
                                                      * already open */
    }
    return FSDP_OK;
}

static int reshard_all(struct fsdp_sharded *s)
{
    if (!s->all_unsharded) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.reshard_all",
                        "unshard_all comes first");
    }
    ref_reshard_each(s);
    s->all_unsharded = false;
    return FSDP_OK;
}

static const char *const claims[] = {
    "flat",
    "per-parameter",
    "full-shard",
    "shard-grad-op",
    "no-shard",
    "hybrid-shard",
    "hybrid-shard-zero2",
    "keep-root",
    "no-sync",
    "eval",
    "cancel",
    "unshard-all",
    "recompute",
    "frozen",
    "thaw",
    "shared",
    "parameter-units",
    "ignored",
    "buffers",
    "scripts",
    "sgd",
    "momentum",
    "adamw",
    "groups",
    "fold-rank",
    "fold-ring",
    "fold-tree",
    "f32-fma",
    "strict-memory",
    "strict-storage",
    "clip",
    "save-full",
    "save-sharded",
    "save-local",
    "load",
    "bf16",
    "fp16",
    "sum-f32",
    "loss-scale",
    "unit-controls",
    "partial-replicas",
    "factor-controls",
    "unit-factors",
    "groups-betas",
    "step-in-backward",
    "offload",
    "assign",
    "deferred",
    "rank0-initial",
    "summon",
    "lenient-load",
    "save-parts",
    "save-dtype",
    "send-values",
    NULL,
};

const struct fsdp_engine *fsdp_ref_engine(void)
{
    static const struct fsdp_engine engine = {
        .size = sizeof(engine),
        .abi = FSDP_ABI_VERSION,
        .name = "ref",
        .version = "0.1.0",
        .claims = claims,
        .open = ref_open,
        .close = ref_close,
        .shard = ref_shard,
        .at = at,
        .param = param,
        .grad = grad,
        .set_gradient_sync = ref_set_gradient_sync,
        .set_requires_grad = ref_set_requires_grad,
        .clip_grad_norm = ref_clip_grad_norm,
        .step = step,
        .zero_grad = zero_grad,
        .pieces = pieces,
        .unshard_all = unshard_all,
        .reshard_all = reshard_all,
        .save_begin = ref_save_begin,
        .save_wait = ref_save_wait,
        .load = ref_load,
        .destroy = ref_destroy,
        .loaded_extra = ref_loaded_extra,
        .set = ref_set,
        .unshard = ref_unshard_unit,
        .reshard = ref_reshard_unit,
        .buffer = ref_buffer,
        .set_step = ref_set_step,
        .assign = ref_assign,
        .summon = ref_summon,
        .load_from = ref_load_from,
        .send_values = ref_send_values};

    return &engine;
}
