/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank0.c - values that only rank 0 has: initial values, or a state dict in its
 * memory. Rank 0 sends one whole parameter after the other, and each rank keeps
 * the part that it owns.
 */
#include "sharded.h"

#include "checkpoint/checkpoint.h"

static const char where[] = "ref.send_values";

static int broadcast(struct fsdp_sharded *s, uint32_t p, float *whole)
{
    const struct fsdp_comm *comm = s->env->comm;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_BROADCAST,
                                      .dim = FSDP_DIM_WORLD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .root = 0,
                                      .unit = s->parameter[p].unit,
                                      .n = s->parameter[p].numel,
                                      .in = s->env->rank == 0 ? whole : NULL,
                                      .out = whole};

    return comm->run(comm->self, NULL, &c);
}

static int keep(struct fsdp_sharded *s, uint32_t p, const float *whole)
{
    const struct fsdp_device *d = s->env->device;
    struct ref_part part;

    return ref_part(s, p, s->coordinate, &part)
               ? d->copy(d->self, NULL,
                         s->unit[s->parameter[p].unit].shard + part.local,
                         whole + part.first, part.n * sizeof(*whole))
               : FSDP_OK;
}

/* `whole` is a staged parameter, which has its values on rank 0 alone. */
static int pass_on(struct fsdp_sharded *s, uint32_t p, float *whole)
{
    if (s->env->world > 1) {
        FSDP_TRY(broadcast(s, p, whole));
    }
    return keep(s, p, whole);
}

/* ---- Initial values ------------------------------------------------------ */

static int send(struct fsdp_sharded *s, uint32_t p)
{
    const struct fsdp_device *d = s->env->device;
    const struct ref_parameter *x = &s->parameter[p];
    float *whole = NULL;
    int status;

    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, x->unit, x->numel,
                      FSDP_DTYPE_F32, &whole));
    status = d->wait(d->self, NULL, s->env->compute, 0, "fill->copy");
    if (status == FSDP_OK && s->env->rank == 0) {
        status = ref_read_initial(s, p, 0, x->numel, whole);
    }
    if (status == FSDP_OK) {
        status = pass_on(s, p, whole);
    }
    ref_drop(s, REF_DEVICE, &whole);
    return status;
}

/* Whether parameter p is in a unit, and not another name of an earlier one. */
static bool is_sent(const struct fsdp_sharded *s, uint32_t p)
{
    return s->parameter[p].unit != FSDP_NO_UNIT &&
           s->parameter[p].original == p;
}

int ref_send_initial(struct fsdp_sharded *s)
{
    s->loaded = true; /* a load that fails cannot ask for the initial values
                       * again */
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (is_sent(s, p) && s->parameter[p].numel > 0) {
            FSDP_TRY(send(s, p));
        }
    }
    return FSDP_OK;
}

/* ---- Of a state dict ----------------------------------------------------- */

/* What a rank tells the others. */
struct told {
    uint32_t lenient, has_values;
    uint32_t lacking; /* the first parameter without values */
};

static struct told told_by(const struct fsdp_sharded *s,
                           const struct fsdp_values *from)
{
    struct told told = {from->lenient, from->value != NULL, 0};

    while (from->value && told.lacking < s->model->n_parameters &&
           (from->value[told.lacking] || !is_sent(s, told.lacking))) {
        told.lacking++;
    }
    return told;
}

/* Every rank comes to the same result. */
static int check_agreed(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    const struct told mine = told_by(s, from);
    struct told all[REF_MAX_RANKS];

    FSDP_TRY(s->env->exchange(s->env->exchange_self, &mine, sizeof(mine), all));
    for (uint32_t r = 1; r < s->env->world; r++) {
        if (all[r].lenient != all[0].lenient) {
            return ref_fail(s->env, FSDP_ERR_MISMATCH, where,
                            "lenient is %u on rank %u, and %u on rank 0",
                            all[r].lenient, r, all[0].lenient);
        }
        if (all[r].has_values) {
            return ref_fail(s->env, FSDP_ERR_MISMATCH, where,
                            "value: rank %u has some, but rank 0 alone is "
                            "asked for them",
                            r);
        }
    }
    if (!all[0].has_values) {
        return ref_fail(s->env, FSDP_ERR_INVALID, where,
                        "value: rank 0 has none");
    }
    return from->lenient || all[0].lacking == s->model->n_parameters
               ? FSDP_OK
               : ref_fail(s->env, FSDP_ERR_INVALID, where,
                          "rank 0 has no value of %s; lenient would leave it "
                          "as it is",
                          s->model->parameter_name[all[0].lacking]);
}

/* Whether rank 0 has values of p, which it tells where that may be otherwise.
 */
static int ask(struct fsdp_sharded *s, const struct fsdp_values *from,
               uint32_t p, bool *has)
{
    const uint32_t mine = from->value && from->value[p];
    uint32_t all[REF_MAX_RANKS];

    *has = true;
    if (from->lenient) {
        FSDP_TRY(
            s->env->exchange(s->env->exchange_self, &mine, sizeof(mine), all));
        *has = all[0] != 0;
    }
    return FSDP_OK;
}

static int send_value(struct fsdp_sharded *s, const struct fsdp_values *from,
                      uint32_t p, float *whole)
{
    const struct fsdp_device *d = s->env->device;
    struct ref_part part;
    bool has;

    FSDP_TRY(ask(s, from, p, &has));
    if (!has || s->parameter[p].numel == 0) {
        return FSDP_OK;
    }
    if (s->env->rank == 0) {
        FSDP_TRY(d->copy(d->self, NULL, whole, from->value[p],
                         s->parameter[p].numel * sizeof(*whole)));
    }
    FSDP_TRY(pass_on(s, p, whole));
    if (ref_part(s, p, s->coordinate, &part)) {
        ref_has_values(s, s->parameter[p].unit, part.local, part.n);
    }
    return FSDP_OK;
}

/* Elements of the largest parameter. */
static uint64_t largest(const struct fsdp_sharded *s)
{
    uint64_t most = 0;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        most = is_sent(s, p) && s->parameter[p].numel > most
                   ? s->parameter[p].numel
                   : most;
    }
    return most;
}

/* Takes the staging memory before anything changes. */
int ref_send_values(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    const struct fsdp_device *d = s->env->device;
    float *whole = NULL;
    int status;

    FSDP_TRY(ref_at_rest(s, where));
    FSDP_TRY(check_agreed(s, from));
    status = ref_take(s, REF_DEVICE, FSDP_STAGING, 0, largest(s),
                      FSDP_DTYPE_F32, &whole);
    status = checkpoint_agree(s->env, where, status, "no memory to stage it");
    if (status == FSDP_OK) {
        ref_reshard_each(s); /* unsharded copies were kept of the old weights */
        s->loaded = true;    /* a load that fails must restore these values */
        status = d->sync(d->self, NULL);
    }
    for (uint32_t p = 0; p < s->model->n_parameters && status == FSDP_OK; p++) {
        status = is_sent(s, p) ? send_value(s, from, p, whole) : FSDP_OK;
    }
    ref_drop(s, REF_DEVICE, &whole);
    return status;
}
