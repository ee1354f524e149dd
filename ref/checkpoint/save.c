/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.c - 6. Checkpoints: each rank writes its parts by name, or all parts are
 * gathered on one rank, which writes them. A snapshot is written at once, but
 * counts only after save_wait.
 */
#include "checkpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is this rank's ------------------------------------------------ */

/* Trainable elements of a flat unit that lie before element `end`. */
static uint64_t trainable_before(const struct fsdp_sharded *s, uint32_t u,
                                 uint64_t end)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct ref_parameter *x = &s->parameter[p];

        if (ref_is_in(s, p, u) && !x->frozen && x->offset < end) {
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
    const struct ref_unit *x = &s->unit[u];

    if (!state) {
        return k * x->chunk;
    }
    return x->has_holes ? trainable_before(s, u, k * x->chunk)
                        : k * x->grad_chunk;
}

static int local_table(struct fsdp_sharded *s, struct ref_checkpoints *c)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        const struct ref_unit *x = &s->unit[u];
        for (uint32_t k = 0; k <= s->n_states; k++) {
            uint64_t n = shard_begins(s, u, k > 0, s->shards);
            char name[CHECKPOINT_UNIT_NAME_BYTES];
            checkpoint_unit_name(s->model, s->units, s->options.layout, u, k,
                                 name);
            FSDP_TRY(checkpoint_table_add(&c->local,
                                          k > 0 && !x->trains ? NULL : name, 1,
                                          &n, k > 0, NULL));
        }
    }
    return checkpoint_table_add_buffers(s->model, &c->local);
}

/* Buffers are saved as rank 0 has them. */
static int keep_buffers(struct fsdp_sharded *s, uint32_t first,
                        struct checkpoint_whole *all, uint32_t *n)
{
    *n = 0;
    for (uint32_t b = 0; s->env->rank == 0 && b < s->model->n_buffers; b++) {
        uint32_t dtype = s->model->buffer_dtype[b];
        void *data;
        if (s->model->buffer_flags[b] & FSDP_NOT_PERSISTED) {
            continue;
        }
        data = malloc(s->buffer[b].numel * fsdp_dtype_bytes(dtype) + 1);
        if (!data) {
            return FSDP_ERR_NOMEM;
        }
        all[(*n)++] = (struct checkpoint_whole){first + b, data};
        FSDP_TRY(ref_read_buffer(s, b, data));
    }
    return FSDP_OK;
}

static void forget_buffers(struct checkpoint_whole *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free((void *)all[i].data);
    }
    free(all);
}

static void list_slices(struct fsdp_sharded *s, struct ref_checkpoints *c)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        const struct ref_unit *u = &s->unit[s->parameter[part->parameter].unit];
        for (uint32_t k = 0; k <= (part->frozen ? 0 : s->n_states); k++) {
            c->slice[c->n] = (struct checkpoint_slice){
                part->parameter * (1 + s->n_states) + k, part->first, part->n};
            c->at[c->n++] =
                k ? u->state[k - 1] + part->state : u->shard + part->local;
        }
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        const struct ref_unit *x = &s->unit[u];
        for (uint32_t k = 0; k <= (x->trains ? s->n_states : 0); k++) {
            c->local_slice[c->n_local] = (struct checkpoint_slice){
                u * (1 + s->n_states) + k,
                shard_begins(s, u, k > 0, s->coordinate),
                k ? x->n_states : x->chunk};
            c->local_at[c->n_local++] = k ? x->state[k - 1] : x->shard;
        }
    }
}

static void release_tables(struct ref_checkpoints *c)
{
    checkpoint_table_release(&c->table);
    checkpoint_table_release(&c->local);
    free(c->slice);
    free(c->local_slice);
    free(c->at);
    free(c->local_at);
    c->slice = c->local_slice = NULL;
    c->at = c->local_at = NULL;
    c->n = c->n_local = 0;
}

bool ref_is_saving(const struct fsdp_sharded *s)
{
    return s->checkpoints && s->checkpoints->saving;
}

void ref_checkpoints_changed(struct fsdp_sharded *s)
{
    if (s->checkpoints) {
        s->checkpoints->changed = true;
    }
}

int ref_checkpoints(struct fsdp_sharded *s)
{
    char why[CHECKPOINT_WHY_BYTES] = "out of memory";
    size_t n = (size_t)(s->n_parts + s->units->n_units) * (1 + s->n_states) + 1;
    struct ref_checkpoints *c = s->checkpoints;
    int status;

    if (c && !c->changed) {
        return FSDP_OK;
    }
    if (!c) {
        c = s->checkpoints = calloc(1, sizeof(*c));
    }
    if (!c) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.checkpoint", "%s", why);
    }
    release_tables(c);
    c->changed = true; /* until all is there */
    c->slice = calloc(n, sizeof(*c->slice));
    c->local_slice = calloc(n, sizeof(*c->local_slice));
    c->at = calloc(n, sizeof(*c->at));
    c->local_at = calloc(n, sizeof(*c->local_at));
    status = c->slice && c->local_slice && c->at && c->local_at
                 ? checkpoint_table_of_model(
                       s->model, s->units, s->options.optimizer, &c->table, why)
                 : FSDP_ERR_NOMEM;
    if (status == FSDP_OK) {
        status = local_table(s, c);
    }
    if (status != FSDP_OK) {
        return ref_fail(s->env, status, "ref.checkpoint", "%s", why);
    }
    list_slices(s, c);
    c->changed = false;
    return FSDP_OK;
}

void ref_checkpoints_release(struct fsdp_sharded *s)
{
    struct ref_checkpoints *c = s->checkpoints;

    checkpoint_drop(c->saving);
    checkpoint_kept_release(&c->kept);
    release_tables(c);
    free(c);
    s->checkpoints = NULL;
}

/* ---- One rank writes, the others send ----------------------------------- */

/* Rank 0 puts n elements at p where they belong; other ranks do nothing. */
static void put_slice(struct fsdp_sharded *s, uint32_t entry, uint64_t first,
                      const float *p, uint64_t n)
{
    struct checkpoint_saving *saving = s->checkpoints->saving;
    const struct fsdp_device *d = s->env->device;
    float slice[1024];

    for (uint64_t done = 0; s->env->rank == 0 && done < n;) {
        uint64_t m = n - done < 1024 ? n - done : 1024;
        /* save_wait reports a failure: here the other ranks must not wait. */
        checkpoint_fail(saving,
                        d->copy(d->self, NULL, slice, p + done, m * sizeof(*p)),
                        "the device does not give a slice");
        (void)checkpoint_put(saving, entry, first + done, m, slice);
        done += m;
    }
}

/* Sends one slice of shard `root` to rank 0; every rank calls it. */
static int send_slice(struct fsdp_sharded *s, uint32_t root,
                      const struct checkpoint_slice *x, float *p)
{
    const struct fsdp_device *d = s->env->device;
    const struct fsdp_comm *comm = s->env->comm;
    int status = FSDP_OK;

    if (s->shards > 1) {
        struct fsdp_collective c = {.size = sizeof(c),
                                    .kind = FSDP_BROADCAST,
                                    .dim = FSDP_DIM_SHARD,
                                    .dtype = FSDP_DTYPE_F32,
                                    .root = root,
                                    .unit = FSDP_NO_UNIT,
                                    .n = x->n,
                                    .in = s->coordinate == root ? p : NULL,
                                    .out = p};
        status =
            d->wait(d->self, NULL, s->env->compute, 0, "compute->communicator");
        if (status == FSDP_OK) {
            status = comm->run(comm->self, NULL, &c);
        }
    }
    if (status == FSDP_OK) {
        put_slice(s, x->entry, x->first, p, x->n);
    }
    return status;
}

/* Takes room for the largest slice that another rank sends, on all ranks of the
 * first replica or on none: the others would wait for a rank that fails
 * later. */
static int take_staging(struct fsdp_sharded *s, float **staging)
{
    struct ref_checkpoints *c = s->checkpoints;
    uint64_t all[CHECKPOINT_MAX_WORLD];
    uint64_t own = 0;
    uint64_t most = 0;
    int status = FSDP_OK;

    for (uint32_t i = 0; i < c->n; i++) {
        if (checkpoint_saves(c->saving, c->slice[i].entry)) {
            own = c->slice[i].n > own ? c->slice[i].n : own;
        }
    }
    FSDP_TRY(s->env->exchange(s->env->exchange_self, &own, sizeof(own), all));
    for (uint32_t r = 0; s->env->rank < s->shards && r < s->shards; r++) {
        most = r != s->coordinate && all[r] > most ? all[r] : most;
    }
    if (most > 0) {
        status = ref_take(s, REF_DEVICE, FSDP_STAGING, FSDP_NO_UNIT, most,
                          FSDP_DTYPE_F32, staging);
    }
    return checkpoint_agree(s->env, "ref.save_begin", status,
                            "no memory for a slice of a tensor");
}

/* Slice by slice, so that a rank holds no more than one slice in addition. */
static int send_slices(struct fsdp_sharded *s, float *staging)
{
    struct ref_checkpoints *c = s->checkpoints;
    struct checkpoint_slice all[CHECKPOINT_MAX_WORLD];
    bool more = true;

    for (uint32_t i = 0; more; i++) {
        struct checkpoint_slice mine = {0, 0, 0};
        if (i < c->n) {
            mine = c->slice[i];
        }
        FSDP_TRY(
            s->env->exchange(s->env->exchange_self, &mine, sizeof(mine), all));
        more = false;
        for (uint32_t r = 0; r < s->shards; r++) {
            more = more || all[r].n > 0;
            if (all[r].n > 0 && s->env->rank < s->shards &&
                checkpoint_saves(c->saving, all[r].entry)) {
                FSDP_TRY(send_slice(s, r, &all[r],
                                    s->coordinate == r ? c->at[i] : staging));
            }
        }
    }
    return FSDP_OK;
}

static int send_all(struct fsdp_sharded *s)
{
    float *staging = NULL;
    int status = take_staging(s, &staging);

    if (status == FSDP_OK) {
        status = send_slices(s, staging);
    }
    ref_drop(s, REF_DEVICE, &staging);
    return status;
}

/* ---- The contract ------------------------------------------------------- */

static int read_slice(void *context, uint32_t i, uint64_t at, uint64_t n,
                      float *to)
{
    struct fsdp_sharded *s = context;
    const struct fsdp_device *d = s->env->device;

    return d->copy(d->self, NULL, to, s->checkpoints->at[i] + at,
                   n * sizeof(*to));
}

static int read_local(void *context, uint32_t i, uint64_t at, uint64_t n,
                      float *to)
{
    struct fsdp_sharded *s = context;
    const struct fsdp_device *d = s->env->device;

    return d->copy(d->self, NULL, to, s->checkpoints->local_at[i] + at,
                   n * sizeof(*to));
}

struct checkpoint_source ref_checkpoint_source(struct fsdp_sharded *s,
                                               bool local)
{
    const struct ref_checkpoints *c = s->checkpoints;

    return (struct checkpoint_source){.slice =
                                          local ? c->local_slice : c->slice,
                                      .n = local ? c->n_local : c->n,
                                      .read = local ? read_local : read_slice,
                                      .context = s};
}

bool ref_has_gradients(const struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->unit[u].grad_full || s->unit[u].grad_shard ||
            s->unit[u].partial) {
            return true;
        }
    }
    return false;
}

static int check_state(struct fsdp_sharded *s)
{
    FSDP_TRY(ref_at_rest(s, "ref.save_begin"));
    if (s->checkpoints && s->checkpoints->saving) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.save_begin",
                        "another save is under way: save_wait comes first");
    }
    return ref_has_gradients(s)
               ? ref_fail(s->env, FSDP_ERR_INVALID, "ref.save_begin",
                          "there are gradients, which are no part of a "
                          "checkpoint: step and zero_grad come first")
               : FSDP_OK;
}

/* The parameters whose own count of steps differs from that of the model. */
static struct checkpoint_own_steps *own_steps(const struct fsdp_sharded *s,
                                              uint32_t *n)
{
    struct checkpoint_own_steps *own =
        calloc(s->model->n_parameters + (size_t)1, sizeof(*own));

    *n = 0;
    for (uint32_t p = 0; own && p < s->model->n_parameters; p++) {
        const struct ref_parameter *x = &s->parameter[p];
        bool kept = x->original == p && x->unit != FSDP_NO_UNIT;
        if (kept && !x->frozen && x->steps != s->steps) {
            own[(*n)++] = (struct checkpoint_own_steps){
                s->model->parameter_name[p], x->steps};
        }
    }
    return own;
}

/* Fills in where values are read, and copies the buffers. */
static int take_source(struct fsdp_sharded *s, struct checkpoint_request *r,
                       struct checkpoint_whole *whole)
{
    bool local = r->save->form == FSDP_SAVE_LOCAL;

    FSDP_TRY(ref_checkpoints(s));
    r->table = local ? &s->checkpoints->local : &s->checkpoints->table;
    r->source = ref_checkpoint_source(s, local);
    r->source.whole = whole;
    return keep_buffers(s, r->table->n - s->model->n_buffers, whole,
                        &r->source.n_whole);
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
    status = checkpoint_agree(s->env, "ref.save_begin", status,
                              status == FSDP_ERR_NOMEM
                                  ? "out of memory"
                                  : "the device does not give a buffer");
    if (status == FSDP_OK) {
        status = checkpoint_begin(&request, &s->checkpoints->saving);
    }
    forget_buffers(whole, request.source.n_whole);
    free(own);
    return status;
}

int ref_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    int status = FSDP_OK;

    FSDP_TRY(check_state(s));
    FSDP_TRY(ref_check_filled(s, "ref.save_begin", true));
    FSDP_TRY(begin_save(s, save));
    if (save->form == FSDP_SAVE_FULL && save->rank0_only) {
        status = send_all(s);
    }
    if (status != FSDP_OK) {
        checkpoint_cancel(s->checkpoints->saving);
        s->checkpoints->saving = NULL;
        return status;
    }
    checkpoint_write(s->checkpoints->saving);
    return FSDP_OK;
}

int ref_save_wait(struct fsdp_sharded *s)
{
    struct checkpoint_saving *saving;

    if (!s->checkpoints || !s->checkpoints->saving) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.save_wait",
                        "save_begin comes first");
    }
    saving = s->checkpoints->saving;
    s->checkpoints->saving = NULL;
    return checkpoint_finish(s->env, saving);
}
