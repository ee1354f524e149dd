/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_save.c - a snapshot, and the thread that writes it while training
 * goes on.
 */
#include "impl_checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum {
    WRITER_BYTES = 16 << 20 /* a thread's stack, and what it writes through */
};

/* ---- What this rank holds ------------------------------------------------ */

static bool hold(struct impl_holding *h, const struct checkpoint_slice *slice,
                 float *at, bool on_host)
{
    const uint64_t n = slice->n;

    if (n > 0) {
        h->slice[h->n] = *slice;
        h->at[h->n] = at;
        h->on_host[h->n] = on_host;
        h->in[h->n++] = h->sum;
        h->sum += n;
    }
    return n > 0;
}

static int make_room(struct impl_holding *h, uint32_t n)
{
    h->slice = calloc(n + (size_t)1, sizeof(*h->slice));
    h->at = calloc(n + (size_t)1, sizeof(*h->at));
    h->in = calloc(n + (size_t)1, sizeof(*h->in));
    h->on_host = calloc(n + (size_t)1, sizeof(*h->on_host));
    return h->slice && h->at && h->in && h->on_host ? FSDP_OK : FSDP_ERR_NOMEM;
}

static int hold_named(struct fsdp_sharded *s, struct impl_holding *h, char *why)
{
    uint32_t each = 1 + s->n_states;

    FSDP_TRY(checkpoint_table_of_model(s->model, &s->units,
                                       s->options.optimizer, &h->table, why));
    FSDP_TRY(make_room(h, s->model->n_parameters * each));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];
        const struct impl_unit *u = &s->unit[x->unit];
        if (impl_is_ignored(s, p)) {
            continue;
        }
        (void)hold(h, &(struct checkpoint_slice){p * each, x->first, x->n},
                   u->shard + x->local, u->shard_on_host);
        for (uint32_t k = 0; k < s->n_states && !x->frozen; k++) {
            (void)hold(
                h, &(struct checkpoint_slice){p * each + 1 + k, x->first, x->n},
                u->state[k] + x->state_local, u->step_on_host);
        }
    }
    return FSDP_OK;
}

/* Trainable elements of a flat unit that lie before element `end`. */
static uint64_t trainable_before(const struct fsdp_sharded *s, uint32_t u,
                                 uint64_t end)
{
    const struct impl_index *of = &s->of_unit;
    uint64_t n = 0;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const struct impl_parameter *x = &s->parameter[of->parameter[i]];

        if (!x->frozen && x->offset < end) {
            n += end - x->offset < x->numel ? end - x->offset : x->numel;
        }
    }
    return n;
}

/* The element at which shard k of a unit begins, among those of all its shards.
 * A state has no elements for frozen parameters. */
static uint64_t shard_begins(const struct fsdp_sharded *s, uint32_t u,
                             bool state, uint32_t k)
{
    const struct impl_unit *x = &s->unit[u];

    if (!state) {
        return k * x->chunk;
    }
    return x->has_holes ? trainable_before(s, u, k * x->chunk)
                        : k * x->grad_chunk;
}

static int hold_flat(struct fsdp_sharded *s, struct impl_holding *h)
{
    FSDP_TRY(make_room(h, s->units.n_units * (1 + s->n_states)));
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *x = &s->unit[u];
        for (uint32_t k = 0; k <= (x->frozen ? 0 : s->n_states); k++) {
            char name[CHECKPOINT_UNIT_NAME_BYTES];
            const uint64_t n = shard_begins(s, u, k > 0, s->shards);
            uint32_t entry;
            checkpoint_unit_name(s->model, &s->units, s->options.layout, u, k,
                                 name);
            FSDP_TRY(
                checkpoint_table_add(&h->table, name, 1, &n, k > 0, &entry));
            (void)hold(h,
                       &(struct checkpoint_slice){
                           entry, shard_begins(s, u, k > 0, s->coordinate),
                           k > 0 ? x->n_state : x->chunk},
                       k > 0 ? x->state[k - 1] : x->shard,
                       k > 0 ? x->step_on_host : x->shard_on_host);
        }
    }
    return checkpoint_table_add_buffers(s->model, &h->table);
}

static void release_holding(struct impl_holding *h)
{
    checkpoint_table_release(&h->table);
    free(h->slice);
    free(h->at);
    free(h->in);
    free(h->on_host);
    *h = (struct impl_holding){0};
}

int impl_checkpoints(struct fsdp_sharded *s)
{
    char why[CHECKPOINT_WHY_BYTES] = "out of host memory";
    struct impl_checkpoints *c = s->checkpoints;
    int status = FSDP_ERR_NOMEM;

    if (c && !c->changed) {
        return FSDP_OK;
    }
    if (!c) {
        c = s->checkpoints = calloc(1, sizeof(*c));
    }
    if (c) {
        release_holding(&c->named);
        release_holding(&c->flat);
        c->changed = true; /* until all is there */
        status = hold_named(s, &c->named, why);
    }
    if (status == FSDP_OK) {
        status = hold_flat(s, &c->flat);
    }
    if (status != FSDP_OK) {
        return impl_fail(s->env, status, "impl.checkpoint", "%s", why);
    }
    c->changed = false;
    return FSDP_OK;
}

static void end_writing(struct impl_checkpoints *c)
{
    if (c->writes) {
        (void)pthread_join(c->writer, NULL);
        c->writes = false;
    }
    free(c->snapshot);
    c->snapshot = NULL;
}

void impl_checkpoints_release(struct fsdp_sharded *s)
{
    struct impl_checkpoints *c = s->checkpoints;

    if (c) {
        end_writing(c);
        checkpoint_drop(c->saving);
        checkpoint_kept_release(&c->kept);
        release_holding(&c->named);
        release_holding(&c->flat);
        free(c);
    }
    s->checkpoints = NULL;
}

/* ---- The snapshot -------------------------------------------------------- */

/* Room for the snapshot. NULL if there is none, or if the thread that writes
 * would have no memory left. */
static float *snapshot_room(uint64_t n)
{
    float *room = malloc(n * sizeof(*room) + WRITER_BYTES);
    float *fits = room ? realloc(room, n * sizeof(*room) + 1) : NULL;

    if (!fits) {
        free(room);
    }
    return fits;
}

/* On the compute stream, which makes what rests; finished on return. */
static int take_snapshot(struct fsdp_sharded *s)
{
    struct impl_checkpoints *c = s->checkpoints;
    const struct impl_holding *h = c->saved;
    const struct fsdp_device *d = s->env->device;

    c->snapshot = snapshot_room(h->sum);
    for (uint32_t i = 0; c->snapshot && i < h->n; i++) {
        if (checkpoint_saves(c->saving, h->slice[i].entry)) {
            FSDP_TRY(d->copy(d->self, s->env->compute, c->snapshot + h->in[i],
                             h->at[i], h->slice[i].n * sizeof(*c->snapshot)));
        }
    }
    return d->sync(d->self, s->env->compute);
}

/* Without a snapshot: from where it rests. */
static int read_saved(void *context, uint32_t i, uint64_t at, uint64_t n,
                      float *to)
{
    const struct fsdp_sharded *s = context;
    const struct impl_checkpoints *c = s->checkpoints;
    const struct fsdp_device *d = s->env->device;

    if (c->snapshot) {
        memcpy(to, c->snapshot + c->saved->in[i] + at, n * sizeof(*to));
        return FSDP_OK;
    }
    FSDP_TRY(d->copy(d->self, s->env->compute, to, c->saved->at[i] + at,
                     n * sizeof(*to)));
    return d->sync(d->self, s->env->compute);
}

static void *write_snapshot(void *context)
{
    checkpoint_write(context);
    return NULL;
}

/* ---- The contract -------------------------------------------------------- */

bool impl_has_gradients(const struct fsdp_sharded *s, uint32_t *unit)
{
    for (*unit = 0; *unit < s->units.n_units; (*unit)++) {
        const struct impl_unit *x = &s->unit[*unit];
        if ((x->grad && !x->in_flight) || x->grad_shard || x->partial) {
            return true;
        }
    }
    return false;
}

bool impl_is_saving(const struct fsdp_sharded *s)
{
    return s->checkpoints && s->checkpoints->saving;
}

void impl_checkpoints_changed(struct fsdp_sharded *s)
{
    if (s->checkpoints) {
        s->checkpoints->changed = true;
    }
}

/* Counts of parameters that have not taken all steps of their unit. */
static struct checkpoint_own_steps *own_steps(const struct fsdp_sharded *s,
                                              uint32_t *n)
{
    struct checkpoint_own_steps *own =
        calloc(s->model->n_parameters + (size_t)1, sizeof(*own));

    *n = 0;
    for (uint32_t p = 0; own && p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];
        const uint64_t steps = s->unit[x->unit].steps - x->begun;
        if (x->original == p && !x->frozen && steps != s->steps) {
            own[(*n)++] = (struct checkpoint_own_steps){
                s->model->parameter_name[p], steps};
        }
    }
    return own;
}

static int check_state(struct fsdp_sharded *s)
{
    uint32_t u;

    FSDP_TRY(impl_at_rest(s, "impl.save_begin"));
    if (s->checkpoints && s->checkpoints->saving) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.save_begin",
                         "another save is under way: save_wait comes first");
    }
    if (impl_has_gradients(s, &u)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.save_begin",
                         "unit %u has gradients, which are no part of a "
                         "checkpoint: step and zero_grad come first",
                         u);
    }
    return impl_retire_all(s);
}

/* On rank 0, copies the buffers that persist: they stand last in any table. */
static int take_buffers(struct fsdp_sharded *s, uint32_t n_entries,
                        struct checkpoint_whole *whole, uint32_t *n)
{
    const uint32_t first = n_entries - s->model->n_buffers;

    *n = 0;
    for (uint32_t b = 0; s->env->rank == 0 && b < s->model->n_buffers; b++) {
        void *stored = impl_persists(s, b) ? impl_stored_buffer(s, b) : NULL;

        if (!impl_persists(s, b)) {
            continue;
        }
        if (!stored) {
            return impl_out_of_memory(s->env);
        }
        whole[(*n)++] = (struct checkpoint_whole){first + b, stored};
        FSDP_TRY(impl_read_buffer(s, b, stored));
    }
    return FSDP_OK;
}

/* Fills in where values are read, and copies the buffers. */
static int take_source(struct fsdp_sharded *s, struct checkpoint_request *r,
                       struct checkpoint_whole *whole)
{
    struct impl_checkpoints *c;

    FSDP_TRY(impl_checkpoints(s));
    c = s->checkpoints;
    c->saved = r->save->form == FSDP_SAVE_LOCAL ? &c->flat : &c->named;
    r->table = &c->saved->table;
    r->source = (struct checkpoint_source){.slice = c->saved->slice,
                                           .n = c->saved->n,
                                           .read = read_saved,
                                           .context = s,
                                           .whole = whole};
    return take_buffers(s, r->table->n, whole, &r->source.n_whole);
}

static int begin_save(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    static const char *const layout[] = {"flat", "per-parameter"};
    static const char *const optimizer[] = {"sgd", "momentum", "adamw"};
    struct checkpoint_request request = {
        .env = s->env,
        .save = save,
        .world = s->env->world,
        .shards = s->shards,
        .replicas = s->replicas,
        .layout = layout[s->options.layout],
        .optimizer = optimizer[s->options.optimizer],
        .state = {s->steps, {s->power[0], s->power[1]}}};

    struct checkpoint_own_steps *own = own_steps(s, &request.n_own);
    struct checkpoint_whole *whole =
        calloc(s->model->n_buffers + (size_t)1, sizeof(*whole));
    int status =
        own && whole ? take_source(s, &request, whole) : FSDP_ERR_NOMEM;

    request.own = own;
    /* A rank that failed alone would leave the others waiting for it. */
    status = checkpoint_agree(s->env, "impl.save_begin", status,
                              status == FSDP_ERR_NOMEM
                                  ? "out of memory"
                                  : "the device does not give a buffer");
    if (status == FSDP_OK) {
        status = checkpoint_begin(&request, &s->checkpoints->saving);
    }
    for (uint32_t i = 0; i < request.source.n_whole; i++) {
        free((void *)whole[i].data);
    }
    free(whole);
    free(own);
    return status;
}

int impl_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct impl_checkpoints *c;
    bool alone = save->form == FSDP_SAVE_FULL && save->rank0_only;
    bool owner = s->env->rank < s->shards; /* of the first replica */
    bool waits = true;                     /* what rests may change at once */

    FSDP_TRY(check_state(s));
    FSDP_TRY(impl_check_filled(s, "impl.save_begin", true));
    FSDP_TRY(begin_save(s, save));
    c = s->checkpoints;
    if (!c) {
        return FSDP_ERR_INTERNAL; /* it was made just now */
    }
    if (alone) {
        const int status = impl_gather_full(s);
        if (status != FSDP_OK) {
            checkpoint_cancel(c->saving);
            c->saving = NULL;
            return status;
        }
    } else if (owner) {
        checkpoint_fail(c->saving, take_snapshot(s),
                        "the device does not give a shard");
        waits = c->snapshot != NULL;
    }
    c->writes = waits && pthread_create(&c->writer, NULL, write_snapshot,
                                        c->saving) == 0;
    /* No memory for a snapshot, or no thread is to be had: then now. */
    if (!c->writes) {
        checkpoint_write(c->saving);
    }
    return FSDP_OK;
}

int impl_save_wait(struct fsdp_sharded *s)
{
    struct checkpoint_saving *saving;

    if (!s->checkpoints || !s->checkpoints->saving) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.save_wait",
                         "save_begin comes first");
    }
    end_writing(s->checkpoints);
    saving = s->checkpoints->saving;
    s->checkpoints->saving = NULL;
    return checkpoint_finish(s->env, saving);
}
