/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_slots.c - storage for values at rest and, where something runs ahead,
 * slots for all others. There is one block for each kind of value, as large as
 * the most of that kind that the plans let live at once. A value that is made
 * ahead takes the place of one of its own kind that has ended, and waits for
 * that one alone. A block is made at the first BEGIN that needs it, and made
 * anew, larger, when a later one needs more: a pass without sync, a second
 * reduction in a step. From the second step on nothing is allocated.
 */
#include "impl_calls.h"

#include <stddef.h>

static void drop(struct fsdp_sharded *s, struct impl_block *block)
{
    const struct fsdp_device *d = impl_place_of(s, block->on_host);

    if (block->p) { /* or it was not made, and there may be no host */
        d->free(d->self, block->p);
    }
    *block = (struct impl_block){.on_host = block->on_host};
}

/* At least `room` words; what the block held before is gone. */
static int ensure(struct fsdp_sharded *s, struct impl_block *block,
                  uint64_t room, const char *what)
{
    const struct fsdp_device *d = impl_place_of(s, block->on_host);
    void *p = NULL;
    int status;

    if (block->p && block->room >= room) {
        return FSDP_OK;
    }
    if (block->p) { /* streams may still use it */
        FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
        drop(s, block);
    }
    status = d->alloc(d->self, room * sizeof(*block->p), &p);
    if (status != FSDP_OK) {
        return impl_fail(s->env, status, "impl.alloc",
                         "the %s has no %llu bytes for %s",
                         block->on_host ? "host" : "device",
                         (unsigned long long)room * sizeof(*block->p), what);
    }
    *block = (struct impl_block){p, room, block->on_host};
    return FSDP_OK;
}

/* ---- At rest ----------------------------------------------------------- */

/* Behind the others, live, and +0. */
static int begin_rest(struct fsdp_sharded *s, const struct impl_value *what,
                      float **next, float **out)
{
    *out = *next;
    *next += impl_room(what->n);
    impl_live(s, NULL, what, *out);
    return impl_fill_zero_at(s, NULL, what, *out);
}

static int make_rest(struct fsdp_sharded *s)
{
    uint64_t room[2] = {0, 0}; /* on the device, on the host */
    float *next[2];

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *x = &s->unit[u];

        room[x->shard_on_host] += impl_room(x->chunk);
        room[x->step_on_host] += s->n_states * impl_room(x->n_state);
    }
    FSDP_TRY(ensure(s, &s->rest, room[0], "shards and moments"));
    if (s->brings || s->lands) {
        FSDP_TRY(ensure(s, &s->host_rest, room[1], "shards and moments"));
    }
    next[0] = s->rest.p;
    next[1] = s->host_rest.p;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        const struct impl_value shard = {FSDP_PARAM_SHARD, u, FSDP_DTYPE_F32,
                                         x->chunk, x->shard_on_host};
        const struct impl_value state = {FSDP_OPTIM, u, FSDP_DTYPE_F32,
                                         x->n_state, x->step_on_host};

        FSDP_TRY(begin_rest(s, &shard, &next[shard.on_host], &x->shard));
        for (uint32_t i = 0; i < s->n_states; i++) {
            FSDP_TRY(begin_rest(s, &state, &next[state.on_host], &x->state[i]));
        }
    }
    return FSDP_OK;
}

/* ---- Places ------------------------------------------------------------ */

static void raise_to(uint64_t *room, uint64_t words)
{
    *room = impl_room(words) > *room ? impl_room(words) : *room;
}

/* Copies from the host or to it lie in staging for a while. */
static void measure_copies(struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_unit *x = &s->unit[u];

    if (x->shard_on_host && x->dtype.param != FSDP_DTYPE_F32) {
        raise_to(&s->brought_room[0], x->chunk);
    }
    if (x->shard_on_host != x->step_on_host) {
        raise_to(x->step_on_host ? &s->borrowed_room : &s->brought_room[1],
                 x->chunk);
    }
    if (x->step_on_host && x->trains) {
        raise_to(&s->landed_room, s->extent[u].sum);
    }
}

/* Where units lie when all of them live at once: values of one kind, one behind
 * the other. The copies that unshard_all makes are float32. */
static void place_all(struct fsdp_sharded *s)
{
    for (uint32_t i = 0; i < s->model->n_sequences; i++) {
        for (uint32_t k = 0; k < s->plan[i].n_actions; k++) {
            const struct impl_action *a = &s->plan[i].action[k];
            if (a->what == IMPL_GRADIENT) {
                s->unit[a->unit].trains = true;
            }
        }
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        uint64_t *sum =
            x->step_on_host ? &s->host_grad_sum : &s->grad_shard_sum;

        x->own_full = s->full_sum;
        x->own_grad = s->grad_sum;
        x->own_grad_shard = *sum;
        s->full_sum += impl_room(x->whole);
        s->grad_sum += x->trains ? impl_room(s->extent[u].grad) : 0;
        *sum += x->trains ? impl_room(x->grad_chunk) : 0;
        measure_copies(s, u);
    }
}

/* *room: the most of all sequences. */
static int place(const struct fsdp_sharded *s, struct impl_life *life,
                 uint32_t n, uint64_t *room)
{
    uint64_t needed;

    if (impl_place(life, n, IMPL_QUICKLY, &needed) != FSDP_OK) {
        return impl_out_of_memory(s->env);
    }
    *room = needed > *room ? needed : *room;
    return FSDP_OK;
}

int impl_place_plans(struct fsdp_sharded *s, struct impl_plan *plan)
{
    for (uint32_t i = 0; !s->strict && i < s->model->n_sequences; i++) {
        struct impl_plan *x = &plan[i];

        FSDP_TRY(place(s, x->full, x->n_full, &s->full_room));
        FSDP_TRY(place(s, x->grad, x->n_grad, &s->grad_room));
        FSDP_TRY(place(s, x->wire, x->n_wire, &s->wire_room));
    }
    return FSDP_OK;
}

int impl_slots_make(struct fsdp_sharded *s)
{
    s->host_rest.on_host = s->host_grads.on_host = true;
    s->host_staging.on_host = true;
    place_all(s);
    return make_rest(s);
}

void *impl_slot(const struct impl_block *block, uint64_t at)
{
    return block->p ? block->p + at : NULL;
}

/* ---- Staging ----------------------------------------------------------- */

/* With nothing in flight a contribution is complete within its point and may
 * lie where fresh gradients lie at other times. In flight, contributions lie
 * behind them: one, or two where replicas meet on a stream of their own. */
static int place_plan(struct fsdp_sharded *s, struct impl_plan *plan,
                      uint32_t stages, uint64_t *room)
{
    bool mixed = (stages & IMPL_STAGE_SUM) && s->n_sums == 0;

    /* fresh[] has room for the sums of the plan: both are at most a half. */
    for (uint32_t i = 0; i < plan->n_fresh; i++) {
        uint32_t m = plan->fresh_module[i];
        plan->fresh[i].size =
            stages & IMPL_STAGE_FRESH ? s->module_words[m] : 0;
    }
    for (uint32_t i = 0; i < plan->n_sum; i++) {
        plan->fresh[plan->n_fresh + i] = plan->sum[i];
    }
    FSDP_TRY(
        place(s, plan->fresh, plan->n_fresh + (mixed ? plan->n_sum : 0), room));
    for (uint32_t i = 0; i < plan->n_sum; i++) {
        plan->sum[i].offset = plan->fresh[plan->n_fresh + i].offset;
    }
    return FSDP_OK;
}

static uint64_t largest_sum(const struct fsdp_sharded *s)
{
    uint64_t most = 0;

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].trains && s->extent[u].sum > most) {
            most = s->extent[u].sum;
        }
    }
    return most;
}

static int make_staging(struct fsdp_sharded *s, uint32_t stages)
{
    uint64_t most = 0;

    s->stages = 0; /* until there is room for all of them */
    s->n_sums = s->options.reduces_in_flight == 0 ? 0 : 1;
    if (s->options.reduces_in_flight > 1 &&
        (s->reducing != s->last || s->lands)) {
        s->n_sums = 2;
    }
    for (uint32_t i = 0; i < s->model->n_sequences; i++) {
        FSDP_TRY(place_plan(s, &s->plan[i], stages, &most));
    }
    for (uint32_t i = 0; i < s->n_sums && (stages & IMPL_STAGE_SUM); i++) {
        s->sum_at[i] = most;
        most += impl_room(largest_sum(s));
    }
    FSDP_TRY(ensure(s, &s->staging, most, "staging"));
    s->stages = stages;
    /* Places have changed: what the last reductions have there may lie where
     * compute will write next, and later reductions follow compute. */
    return impl_wait(s, s->env->compute, s->last, 0, "reduce->reuse");
}

void impl_slots_resize(struct fsdp_sharded *s)
{
    s->full_sum = s->grad_sum = s->grad_shard_sum = s->host_grad_sum = 0;
    s->borrowed_room = s->landed_room = 0;
    s->brought_room[0] = s->brought_room[1] = 0;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        s->unit[u].trains = false;
    }
    place_all(s);
}

/* ---- A pass begins ----------------------------------------------------- */

/* Which staging this pass needs: for values that meet older ones, or that are
 * cast. */
static uint32_t stages_of(const struct fsdp_sharded *s,
                          const struct impl_plan *plan)
{
    uint32_t stages = plan->accumulates ? IMPL_STAGE_FRESH : 0;

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *x = &s->unit[u];
        bool casts = x->dtype.grad != x->dtype.accumulate;
        bool widens = x->dtype.reduce != FSDP_DTYPE_F32;

        if (x->frozen) {
            continue;
        }
        stages |= x->grad || casts || x->shares ? IMPL_STAGE_FRESH : 0;
        stages |= x->knob.sync && (x->grad_shard || x->partial || widens ||
                                   x->step_on_host || impl_steps_early(s, u))
                      ? IMPL_STAGE_SUM
                      : 0;
    }
    if (s->any_sync && plan->reduces_again) {
        stages |= IMPL_STAGE_SUM;
    }
    return stages;
}

/* Whether this pass leaves a gradient shard, or widens one where it rests, on
 * the host or on the device. */
static bool keeps_gradients(const struct fsdp_sharded *s, bool on_host)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *x = &s->unit[u];

        if (x->knob.sync && x->step_on_host == on_host &&
            (!impl_steps_early(s, u) || x->dtype.reduce != FSDP_DTYPE_F32)) {
            return true;
        }
    }
    return false;
}

/* In any profile: what the host is to have of gradients. */
static int begin_on_host(struct fsdp_sharded *s)
{
    const uint32_t f = s->options.reduces_in_flight;
    const uint64_t staging = s->borrowed_room + (f ? f : 1) * s->landed_room;

    if (keeps_gradients(s, true)) {
        FSDP_TRY(ensure(s, &s->host_grads, s->host_grad_sum,
                        "gradient shards on the host"));
    }
    return ensure(s, &s->host_staging, staging, "staging on the host");
}

int impl_slots_begin(struct fsdp_sharded *s, uint32_t sequence)
{
    const struct impl_plan *plan = &s->plan[sequence];
    uint32_t stages;

    if (s->lands && plan->has_backward) {
        FSDP_TRY(begin_on_host(s));
    }
    if (s->strict) {
        return impl_arena_begin(&s->arena, sequence, s->knobs + s->early.on);
    }
    if (s->shards > 1 || s->copies) {
        FSDP_TRY(ensure(s, &s->full, s->full_room, "unsharded parameters"));
    }
    if (s->brings) {
        FSDP_TRY(ensure(s, &s->brought, s->brought_room[0] + s->brought_room[1],
                        "shards from the host"));
    }
    if (s->packs || s->wire_room > 0) {
        FSDP_TRY(ensure(s, &s->wire, s->wire_room, "what is packed"));
    }
    if (!plan->has_backward) {
        return FSDP_OK;
    }
    s->resident = s->resident || !s->all_sync;
    FSDP_TRY(ensure(s, &s->grads, s->resident ? s->grad_sum : s->grad_room,
                    "unsharded gradients"));
    if (keeps_gradients(s, false)) {
        FSDP_TRY(
            ensure(s, &s->grad_shards, s->grad_shard_sum, "gradient shards"));
    }
    stages = s->stages | stages_of(s, plan);
    return stages == s->stages ? FSDP_OK : make_staging(s, stages);
}

int impl_slots_unshard_all(struct fsdp_sharded *s)
{
    uint64_t most = 0;

    if (s->strict) {
        return impl_arena_rest(&s->arena);
    }
    for (uint32_t u = 0; s->packs && u < s->units.n_units; u++) {
        most = s->unit[u].padded > most ? s->unit[u].padded : most;
    }
    if (s->packs) { /* one at a time */
        FSDP_TRY(ensure(s, &s->wire, most, "what is gathered"));
    }
    return ensure(s, &s->full, s->full_sum, "all unsharded parameters");
}

/* Frees the block that was made for unshard_all: the next pass needs less. */
int impl_slots_reshard_all(struct fsdp_sharded *s)
{
    if (s->full.room > s->full_room) {
        FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
        drop(s, &s->full);
    }
    return FSDP_OK;
}

void impl_slots_release(struct fsdp_sharded *s)
{
    struct impl_block *block[] = {
        &s->rest,         &s->grad_shards, &s->full,      &s->grads,
        &s->staging,      &s->wire,        &s->host_rest, &s->host_grads,
        &s->host_staging, &s->brought};

    for (uint32_t i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
        drop(s, block[i]);
    }
    impl_arena_release(&s->arena);
}
