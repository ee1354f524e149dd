/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_replace.c - replaces what ranks hold by what a checkpoint has, on
 * all of them or on none.
 *
 * Nothing changes before every file has been verified; meanwhile the old values
 * are kept (checkpoint_undo.h), unless they can be made once more. After that
 * only the system can fail: a disk does not give again what it gave before, or
 * another process writes to a file while it is read. Then all ranks bring back
 * their old values. Only where that fails too, or where there was no disk to
 * keep them on, is memory torn: a user who has no room for them would rather
 * load, from files that are known to be good, than not.
 */
#include "checkpoint_opened.h"
#include "checkpoint_undo.h"

#include <pthread.h>
#include <stdlib.h>

static const char where[] = "checkpoint.load";

/* ---- Verifying ---------------------------------------------------------- */

/* Hashes a rank's share of the files while its old values are kept: the former
 * reads a disk, the latter copies from a device. */
struct verifying {
    struct checkpoint *c;
    const struct fsdp_env *env;
    pthread_t thread;
    bool threaded;
    int status;
    char why[CHECKPOINT_WHY_BYTES];
};

static void *verify(void *context)
{
    struct verifying *v = context;

    v->status = checkpoint_verify(v->c, v->env->rank, v->env->world, v->why);
    return NULL;
}

static int end_verifying(struct verifying *v, char *why)
{
    if (!v->threaded || pthread_join(v->thread, NULL) != 0) {
        (void)verify(v); /* no thread could be started: verifies now */
    }
    return v->status == FSDP_OK
               ? FSDP_OK
               : checkpoint_refuse(why, v->status, "%s", v->why);
}

/* Keeps the old values. A disk that is full or read-only counts as none. */
static int keep(const struct checkpoint *c, const struct checkpoint_target *t,
                struct checkpoint_undo *undo, float *buffer, char *why)
{
    int status;

    if (!checkpoint_undo_open(undo, c->directory)) {
        return FSDP_OK;
    }
    status = checkpoint_undo_keep(undo, t, buffer, why);
    if (status != FSDP_OK) {
        checkpoint_undo_close(undo);
    }
    return status == FSDP_ERR_DEVICE ? status : FSDP_OK;
}

static int verify_and_keep(struct checkpoint *c, const struct fsdp_env *env,
                           const struct checkpoint_target *t,
                           struct checkpoint_undo *undo, float *buffer,
                           char *why)
{
    struct verifying v = {.c = c, .env = env};
    int kept = FSDP_OK;
    int status;

    if (!t->remake) {
        v.threaded = pthread_create(&v.thread, NULL, verify, &v) == 0;
        kept = keep(c, t, undo, buffer, why);
    }
    status = end_verifying(&v, why);
    return status == FSDP_OK ? kept : status;
}

/* ---- Replacing ---------------------------------------------------------- */

static int read_slices(struct checkpoint *c, const struct checkpoint_target *t,
                       float *buffer, char *why)
{
    const struct checkpoint_source *s = &t->source;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct checkpoint_slice *x = &s->slice[i];
        const char *name = t->table->entry[x->entry].name;
        uint64_t n;

        if (name && !checkpoint_has(c, name)) {
            continue; /* a slice that is not loaded keeps its values */
        }

        for (uint64_t at = 0; name && at < x->n; at += n) {
            n = x->n - at < CHECKPOINT_BUFFER ? x->n - at : CHECKPOINT_BUFFER;
            FSDP_TRY(
                checkpoint_read_f32(c, name, x->first + at, n, buffer, why));
            if (t->write(s->context, i, at, n, buffer) != FSDP_OK) {
                return checkpoint_refuse(why, FSDP_ERR_DEVICE,
                                         "the device does not take a shard");
            }
        }
    }
    return checkpoint_unchanged(c, why);
}

/* Brings back the old values; the first failure is the one that is reported. */
static void bring_back(const struct fsdp_env *env,
                       const struct checkpoint_target *t,
                       const struct checkpoint_undo *undo, float *buffer,
                       bool *torn)
{
    char why[CHECKPOINT_WHY_BYTES] = "there was no disk to keep it on";
    struct fsdp_env quiet = *env;
    int status = FSDP_ERR_IO;

    if (t->remake) {
        status = t->remake(t->source.context);
    } else if (undo->fd >= 0) {
        status = checkpoint_undo_restore(undo, t, buffer, why);
    }
    quiet.error = NULL;
    if (checkpoint_agree(&quiet, where, status, why) != FSDP_OK) {
        *torn = true;
    }
}

int checkpoint_replace(const struct fsdp_env *env, struct checkpoint *c,
                       const struct checkpoint_target *target, bool *torn)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    float *buffer = malloc(CHECKPOINT_BUFFER * sizeof(*buffer));
    struct checkpoint_undo undo = {.fd = -1};
    int status = buffer ? verify_and_keep(c, env, target, &undo, buffer, why)
                        : checkpoint_no_memory(why);

    status = checkpoint_agree(env, where, status, why);
    if (status == FSDP_OK && buffer) {
        status = read_slices(c, target, buffer, why);
        status = checkpoint_agree(env, where, status, why);
        if (status != FSDP_OK) {
            bring_back(env, target, &undo, buffer, torn);
        } else {
            *torn = false;
        }
    }
    checkpoint_undo_close(&undo);
    free(buffer);
    return status;
}
