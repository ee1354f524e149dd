/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_kept.c - checkpoints of the baseline: copies in memory, by the
 * name of their folder. They outlive the life that made them, and no file is
 * written: what files must hold is said by other rules than the numbers that
 * a run goes on with.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

/* The values and states of a model, and the products of its steps' betas; what
 * its parameters were called, and which of them had states. */
struct kept {
    struct kept *next;
    char *directory;
    uint64_t total;
    uint32_t n_parameters;
    float *data;       /* [3][total]: values, states */
    float (*power)[2]; /* [n_parameters] */
    char **name;       /* [n_parameters] */
    bool *trained;     /* [n_parameters] */
    char *buffers;
    uint64_t buffer_bytes;
    uint32_t what;  /* what was saved: bits of enum fsdp_save_part */
    uint32_t dtype; /* that values were rounded to; NONE: they were not */
};

/* Stands in env->engine, from open to close. */
struct home {
    void *device; /* ref_close's */
    struct kept *first;
};

static void release(struct kept *k)
{
    if (k) {
        for (uint32_t p = 0; k->name && p < k->n_parameters; p++) {
            free(k->name[p]);
        }
        free(k->name);
        free(k->trained);
        free(k->directory);
        free(k->data);
        free(k->power);
        free(k->buffers);
    }
    free(k);
}

int unsharded_open(struct fsdp_env *env)
{
    struct home *home = calloc(1, sizeof(*home));

    if (!home) {
        return ref_fail(env, FSDP_ERR_NOMEM, "unsharded.open", "out of memory");
    }
    if (ref_open(env) != FSDP_OK) {
        free(home);
        return FSDP_ERR_NOMEM;
    }
    home->device = env->engine;
    env->engine = home;
    return FSDP_OK;
}

void unsharded_close(struct fsdp_env *env)
{
    struct home *home = env->engine;

    if (!home) {
        return;
    }
    for (struct kept *k = home->first; k;) {
        struct kept *next = k->next;

        release(k);
        k = next;
    }
    env->engine = home->device;
    free(home);
    ref_close(env);
}

static float *part(const struct kept *k, uint32_t i)
{
    return k->data + i * k->total;
}

static int refuse_checkpoint(const struct fsdp_sharded *s, const char *why)
{
    return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.checkpoint", "%s",
                    why);
}

static bool keep_names(const struct fsdp_sharded *s, struct kept *k)
{
    k->name = calloc(k->n_parameters + 1u, sizeof(*k->name));
    k->trained = calloc(k->n_parameters + 1u, sizeof(*k->trained));
    for (uint32_t p = 0; k->name && k->trained && p < k->n_parameters; p++) {
        k->trained[p] = !unsharded_is_frozen(s, p);
        k->name[p] = strdup(s->model->parameter_name[p]);
        if (!k->name[p]) {
            return false;
        }
    }
    return k->name && k->trained;
}

static struct kept *make(struct fsdp_sharded *s, const char *directory)
{
    struct kept *k = calloc(1, sizeof(*k));
    const float *from[] = {s->value, s->state[0], s->state[1]};

    if (!k) {
        return NULL;
    }
    k->total = s->total;
    k->n_parameters = s->model->n_parameters;
    k->directory = strdup(directory);
    k->data = calloc(3 * s->total + 1, sizeof(*k->data));
    k->power = calloc(k->n_parameters + 1u, sizeof(*k->power));
    k->buffer_bytes = unsharded_kept_bytes(s);
    k->buffers = malloc(k->buffer_bytes + 1);
    if (!keep_names(s, k) || !k->directory || !k->data || !k->power ||
        !k->buffers || unsharded_keep_buffers(s, k->buffers) != FSDP_OK) {
        release(k);
        return NULL;
    }
    for (uint32_t i = 0; i < 3 && from[i]; i++) {
        memcpy(part(k, i), from[i], s->total * sizeof(*k->data));
    }
    for (uint32_t p = 0; p < k->n_parameters; p++) {
        memcpy(k->power[p], s->numbers[p].power, sizeof(*k->power));
    }
    return k;
}

int unsharded_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    if (s->sequence || s->saving || unsharded_has_gradients(s)) {
        return refuse_checkpoint(s,
                                 "in a pass, with gradients, or while saving");
    }
    s->saving = make(s, save->directory);
    if (s->saving) {
        s->saving->what = save->what ? save->what : 2 * FSDP_SAVE_EXTRA - 1;
        s->saving->dtype = save->dtype;
    }
    return s->saving ? FSDP_OK
                     : ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded.save",
                                "out of memory");
}

int unsharded_save_wait(struct fsdp_sharded *s)
{
    struct home *home = s->env->engine;

    if (!s->saving) {
        return refuse_checkpoint(s, "nothing is being saved");
    }
    s->saving->next = home->first; /* of several checkpoints by one name the
                                    * newest is found first */
    home->first = s->saving;
    s->saving = NULL;
    return FSDP_OK;
}

void unsharded_give_up(struct fsdp_sharded *s)
{
    release(s->saving);
    s->saving = NULL;
}

/* Takes a parameter's value, its states and the products of its betas; a
 * lenient load takes those that the checkpoint has by this name. */
static void take_parameter(struct fsdp_sharded *s, const struct kept *k,
                           uint32_t p, bool lenient)
{
    float *const to[] = {s->value, s->state[0], s->state[1]};
    const uint64_t n = fsdp_numel(s->model, p);
    const bool named = strcmp(k->name[p], s->model->parameter_name[p]) == 0;
    const bool states =
        !lenient || (k->trained[p] && (k->what & FSDP_SAVE_STATES));

    if (fsdp_original(s->model, p) != p || (lenient && !named)) {
        return;
    }
    for (uint32_t i = 0; i < 3 && to[i]; i++) {
        if (i == 0 ? (k->what & FSDP_SAVE_PARAMETERS) != 0 : states) {
            memcpy(to[i] + s->start[p], part(k, i) + s->start[p],
                   n * sizeof(*k->data));
        }
    }
    for (uint64_t i = 0; (k->what & FSDP_SAVE_PARAMETERS) && i < n; i++) {
        float *value = &s->value[s->start[p] + i];

        *value = fsdp_round(k->dtype, *value);
    }
    if (states) {
        memcpy(s->numbers[p].power, k->power[p], sizeof(*k->power));
    }
}

int unsharded_load(struct fsdp_sharded *s, const char *directory)
{
    return unsharded_load_from(
        s, &(struct fsdp_load){.size = sizeof(struct fsdp_load),
                               .directory = directory});
}

int unsharded_load_from(struct fsdp_sharded *s, const struct fsdp_load *how)
{
    const struct home *home = s->env->engine;
    const struct kept *k = home->first;

    while (k && strcmp(k->directory, how->directory) != 0) {
        k = k->next;
    }
    if (s->sequence || s->saving) {
        return refuse_checkpoint(s, "in a pass, or while saving");
    }
    if (!k || k->total != s->total ||
        k->n_parameters != s->model->n_parameters ||
        k->buffer_bytes != unsharded_kept_bytes(s)) {
        return refuse_checkpoint(s, "nothing of this model was saved there");
    }
    for (uint32_t p = 0; p < k->n_parameters; p++) {
        take_parameter(s, k, p, how->lenient != 0);
    }
    unsharded_drop_gradients(s);
    return k->what & FSDP_SAVE_BUFFERS ? unsharded_take_buffers(s, k->buffers)
                                       : FSDP_OK;
}
