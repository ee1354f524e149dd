/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_points.c - a pass, point by point: what the plan says is done, what
 * is not the next point is refused, and what the model asks for is lent.
 */
#include "impl_state.h"

#include <string.h>

static int refuse(const struct fsdp_sharded *s, const char *what)
{
    return impl_fail(s->env, FSDP_ERR_INVALID, "impl.at", "%s", what);
}

static int begin(struct fsdp_sharded *s, uint32_t index)
{
    if (s->torn) {
        return refuse(s, "BEGIN: a load failed half way: load again");
    }
    if (s->sequence || s->all_unsharded) {
        return refuse(s, "BEGIN: a pass has begun, or all is unsharded");
    }
    if (index >= s->model->n_sequences) {
        return refuse(s, "BEGIN of a sequence that the model does not have");
    }
    FSDP_TRY(impl_retire_all(s));
    impl_turn_knobs(s);
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
        return refuse(s, "END before the last point of its sequence");
    }
    s->sequence = NULL;
    impl_arena_end(&s->arena, false);
    return impl_arena_settle(&s->arena);
}

static int cancel(struct fsdp_sharded *s)
{
    if (!s->sequence) {
        return refuse(s, "CANCEL, but no pass has begun");
    }
    s->sequence = NULL;
    memset(s->in_backward, 0, s->model->n_modules * sizeof(*s->in_backward));
    FSDP_TRY(impl_reshard_each(s));
    FSDP_TRY(impl_retire_all(s));
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
    void *slot = impl_slot(block, life->offset);

    if (s->shards == 1) {
        return impl_cast_alone(s, a->unit, slot);
    }
    if (depth > 0) {
        free_at = life->after != IMPL_NO_LIFE ? of[life->after].died : s->begun;
    }
    return impl_gather(s, a->unit, s->unit[a->unit].dtype.param, slot, free_at);
}

static int do_action(struct fsdp_sharded *s, struct impl_plan *plan,
                     const struct impl_action *a, uint32_t point)
{
    const struct impl_knobs *knob = &s->unit[a->unit].knob;
    uint64_t died;

    switch (a->what) {
    case IMPL_GATHER:
        if (s->packs) {
            s->unit[a->unit].arrived_life = &plan->wire[a->life];
        }
        return gather(s, plan, a, point);
    case IMPL_UNPACK:
        return impl_unpack(s, a->unit,
                           impl_slot(&s->full, plan->full[a->life].offset));
    case IMPL_PACK:
        return knob->sync ? impl_pack(s, a->unit, &plan->wire[a->life])
                          : FSDP_OK;
    case IMPL_OPEN:
        return impl_open(s, a->unit);
    case IMPL_GRADIENT:
        return impl_open_gradient(s, a->unit, &plan->grad[a->life]);
    case IMPL_RESHARD:
        return impl_reshard(s, a->unit,
                            a->life != IMPL_NO_LIFE ? &plan->full[a->life].died
                                                    : &died);
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
        return begin(s, index);
    case FSDP_END:
        return end(s, index);
    case FSDP_CANCEL:
        return cancel(s);
    default:
        if (!q || s->next >= q->n || q->point[s->next] != point ||
            q->module[s->next] != index) {
            return refuse(s, "this point is not the next one of the sequence");
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
    x = &s->unit[s->parameter[p].unit];
    if (!x->open) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.param",
                         "%s is asked for outside its unit's window",
                         s->model->parameter_name[p]);
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
