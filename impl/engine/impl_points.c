/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_points.c - a pass, point by point: does what the plan says, refuses a
 * point that is not the next one, and lends what the model asks for.
 */
#include "impl_calls.h"

#include <string.h>

static int refuse_point(const struct fsdp_sharded *s, const char *what)
{
    return impl_fail(s->env, FSDP_ERR_INVALID, "impl.at", "%s", what);
}

static int begin_pass(struct fsdp_sharded *s, uint32_t index)
{
    if (s->torn) {
        return refuse_point(s, "BEGIN: a load failed half way: load again");
    }
    if (s->sequence || s->all_unsharded) {
        return refuse_point(s, "BEGIN: a pass has begun, or all is unsharded");
    }
    if (index >= s->model->n_sequences) {
        return refuse_point(s,
                            "BEGIN of a sequence that the model does not have");
    }
    FSDP_TRY(impl_check_filled(s, "impl.at", true));
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_turn_knobs(s));
    impl_early_begin(s);
    FSDP_TRY(impl_slots_begin(s, index));
    FSDP_TRY(impl_mark(s, s->env->compute, &s->begun));
    s->sequence = s->model->sequence[index];
    s->index = index;
    s->next = 0;
    return FSDP_OK;
}

static int end(struct fsdp_sharded *s, uint32_t index)
{
    if (!s->sequence || s->index != index || s->next != s->sequence->n) {
        return refuse_point(s, "END before the last point of its sequence");
    }
    s->sequence = NULL;
    FSDP_TRY(impl_early_end(s));
    impl_arena_end(&s->arena, false);
    return impl_arena_settle(&s->arena);
}

static int cancel(struct fsdp_sharded *s)
{
    if (!s->sequence) {
        return refuse_point(s, "CANCEL, but no pass has begun");
    }
    s->sequence = NULL;
    memset(s->in_backward, 0, s->model->n_modules * sizeof(*s->in_backward));
    FSDP_TRY(impl_reshard_each(s));
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_early_end(s));
    impl_arena_end(&s->arena, true);
    return impl_drop_gradients(s);
}

/* Without anything ahead all that was done before is over first. */
static int gather(struct fsdp_sharded *s, struct impl_plan *plan,
                  const struct impl_action *a, uint32_t point)
{
    const struct impl_life *of = s->packs ? plan->wire : plan->full;
    const struct impl_life *life = &of[a->life];
    const struct impl_block *block = s->packs ? &s->wire : &s->full;
    bool forward = point == FSDP_PRE_FORWARD;
    uint32_t depth =
        forward ? s->options.prefetch_forward : s->options.prefetch_backward;
    uint64_t free_at = 0;
    void *slot = s->packs || s->unit[a->unit].knob.reshard_backward
                     ? impl_slot(block, life->offset)
                     : NULL;

    if (depth > 0) {
        free_at = life->after != IMPL_NO_LIFE ? of[life->after].died : s->begun;
    }
    return impl_gather(s, a->unit, s->unit[a->unit].dtype.param, slot, free_at);
}

/* A unit that stays unsharded after the pass has storage of its own. */
static void *slot_of(const struct fsdp_sharded *s, uint32_t u, uint64_t at)
{
    return s->unit[u].knob.reshard_backward ? impl_slot(&s->full, at) : NULL;
}

/* The unit may be unsharded already: since an earlier pass, or by hand. */
static int gather_if_sharded(struct fsdp_sharded *s, struct impl_plan *plan,
                             const struct impl_action *a, uint32_t point)
{
    struct impl_unit *x = &s->unit[a->unit];

    if (s->packs) {
        x->arrived_life = &plan->wire[a->life];
    }
    return x->full || x->arrived ? FSDP_OK : gather(s, plan, a, point);
}

/* A unit that was unsharded when the plan gathers it may have been resharded by
 * hand since. */
static int open(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    x->windowed = true;
    if (s->extent[u].unshards && !x->full && !x->arrived) {
        FSDP_TRY(impl_gather(s, u, x->dtype.param, NULL, 0));
    }
    return impl_open(s, u);
}

/* Nothing lay in this place, but the value that takes it next waits for its end
 * in any case. */
static int skip(const struct fsdp_sharded *s, struct impl_life *life)
{
    return life ? impl_mark(s, s->env->compute, &life->died) : FSDP_OK;
}

static int unpack(struct fsdp_sharded *s, uint32_t u, uint64_t at)
{
    struct impl_unit *x = &s->unit[u];

    return x->arrived ? impl_unpack(s, u, slot_of(s, u, at))
                      : skip(s, x->arrived_life);
}

static int close(struct fsdp_sharded *s, uint32_t u, struct impl_life *life,
                 bool backward)
{
    uint64_t died;

    s->unit[u].windowed = false;
    if (backward && !s->unit[u].knob.reshard_backward &&
        !impl_steps_early(s, u)) {
        s->keeps = true;
        return skip(s, life);
    }
    return impl_reshard(s, u, life ? &life->died : &died);
}

static int do_action(struct fsdp_sharded *s, struct impl_plan *plan,
                     const struct impl_action *a, uint32_t point)
{
    const struct impl_knobs *knob = &s->unit[a->unit].knob;

    switch (a->what) {
    case IMPL_GATHER:
        return gather_if_sharded(s, plan, a, point);
    case IMPL_UNPACK:
        return unpack(s, a->unit, plan->full[a->life].offset);
    case IMPL_PACK:
        return knob->sync ? impl_pack(s, a->unit, &plan->wire[a->life])
                          : FSDP_OK;
    case IMPL_OPEN:
        return open(s, a->unit);
    case IMPL_GRADIENT:
        return impl_open_gradient(s, a->unit, &plan->grad[a->life]);
    case IMPL_RESHARD:
        return close(s, a->unit,
                     a->life != IMPL_NO_LIFE ? &plan->full[a->life] : NULL,
                     point != FSDP_POST_FORWARD);
    case IMPL_REDUCE:
        return knob->sync ? impl_reduce(s, a->unit, &plan->sum[a->life])
                          : FSDP_OK;
    default:
        if (knob->sync) {
            return impl_retire(s, a->unit);
        }
        /* Nothing was sent, but what lay there before is as dead. */
        return a->life != IMPL_NO_LIFE
                   ? impl_mark(s, s->env->compute, &plan->wire[a->life].died)
                   : FSDP_OK;
    }
}

static int pass_point(struct fsdp_sharded *s, uint32_t point, uint32_t module)
{
    struct impl_plan *plan = &s->plan[s->index];
    uint32_t i = s->next++;

    if (point == FSDP_PRE_BACKWARD) {
        s->in_backward[module] = i + 1;
    } else if (point == FSDP_POST_BACKWARD) {
        s->in_backward[module] = 0;
        FSDP_TRY(impl_take_gradients(s, module));
    }
    for (uint32_t k = plan->first[i]; k < plan->first[i + 1]; k++) {
        FSDP_TRY(do_action(s, plan, &plan->action[k], point));
    }
    return FSDP_OK;
}

int impl_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
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
            return refuse_point(
                s, "this point is not the next one of the sequence");
        }
        return pass_point(s, point, index);
    }
}

int impl_param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    const struct impl_unit *x;

    *out = (struct fsdp_tensor){0};
    if (p >= s->model->n_parameters) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.param",
                         "parameter %u of %u", p, s->model->n_parameters);
    }
    FSDP_TRY(impl_check_owned(s, p, "impl.param"));
    x = &s->unit[s->parameter[p].unit];
    if (!x->open && (!x->by_hand || s->sequence)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.param",
                         "%s is asked for outside its unit's window",
                         s->model->parameter_name[p]);
    }
    if (!x->open) {
        FSDP_TRY(impl_open(s, s->parameter[p].unit));
    }
    *out = s->parameter[p].tensor;
    out->dtype = x->full ? x->full_dtype : FSDP_DTYPE_F32;
    out->data = impl_element(x->full ? x->full : x->shard, out->dtype,
                             s->parameter[p].offset);
    return FSDP_OK;
}

int impl_grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    void *data;

    *out = (struct fsdp_tensor){0};
    if (p >= s->model->n_parameters ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.grad",
                         "gradient %u is asked for outside its module's "
                         "backward",
                         p);
    }
    FSDP_TRY(impl_check_owned(s, p, "impl.grad"));
    if (s->parameter[p].frozen) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.grad",
                         "%s is frozen: it has no gradient",
                         s->model->parameter_name[p]);
    }
    FSDP_TRY(impl_lend_gradient(s, p, &data));
    *out = s->parameter[p].tensor;
    out->dtype = s->unit[s->parameter[p].unit].dtype.grad;
    out->data = data;
    return FSDP_OK;
}
