/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_replace.c - what ranks hold becomes what a checkpoint has, on all
 * of them or on none.
 *
 * Every file has been verified before. What can still fail is the system: a
 * disk that does not give again what it gave, somebody who writes to a file
 * while it is read. Then all ranks bring back what they had. Only where that
 * fails too, or where there was no disk to keep it on, is memory torn: whoever
 * has no room for it would rather load, from files that are known to be good,
 * than not.
 */
#include "checkpoint_opened.h"
#include "checkpoint_undo.h"

#include <stdlib.h>

static const char where[] = "checkpoint.load";

static int read_slices(struct checkpoint *c, const struct checkpoint_target *t,
                       float *buffer, char *why)
{
    const struct checkpoint_source *s = &t->source;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct checkpoint_slice *x = &s->slice[i];
        const char *name = t->table->entry[x->entry].name;
        uint64_t n;

        for (uint64_t at = 0; name && at < x->n; at += n) {
            n = x->n - at < CHECKPOINT_BUFFER ? x->n - at : CHECKPOINT_BUFFER;
            FSDP_TRY(checkpoint_read(c, name, x->first + at, n, buffer, why));
            if (t->write(s->context, i, at, n, buffer) != FSDP_OK) {
                return checkpoint_refuse(why, FSDP_ERR_DEVICE,
                                         "the device does not take a shard");
            }
        }
    }
    return checkpoint_unchanged(c, why);
}

/* The first reason is the one that is told. */
static void bring_back(const struct fsdp_env *env,
                       const struct checkpoint_target *t,
                       const struct checkpoint_undo *undo, float *buffer,
                       bool *torn)
{
    char why[CHECKPOINT_WHY_BYTES] = "there was no disk to keep it on";
    struct fsdp_env quiet = *env;
    int status = undo->fd < 0 ? FSDP_ERR_IO
                              : checkpoint_undo_restore(undo, t, buffer, why);

    quiet.error = NULL;
    *torn = checkpoint_agree(&quiet, where, status, why) != FSDP_OK;
}

int checkpoint_replace(const struct fsdp_env *env, struct checkpoint *c,
                       const struct checkpoint_target *target, bool *torn)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    float *buffer = malloc(CHECKPOINT_BUFFER * sizeof *buffer);
    struct checkpoint_undo undo = {.fd = -1};
    int status = buffer ? FSDP_OK : checkpoint_no_memory(why);

    *torn = false;
    if (buffer && checkpoint_undo_open(&undo, c->directory)) {
        int kept = checkpoint_undo_keep(&undo, target, buffer, why);
        if (kept == FSDP_ERR_DEVICE) {
            status = kept;
        } else if (kept != FSDP_OK) {
            checkpoint_undo_close(&undo); /* a full disk: as if none */
        }
    }
    status = checkpoint_agree(env, where, status, why);
    if (status == FSDP_OK && buffer) {
        status = read_slices(c, target, buffer, why);
        status = checkpoint_agree(env, where, status, why);
        if (status != FSDP_OK) {
            bring_back(env, target, &undo, buffer, torn);
        }
    }
    checkpoint_undo_close(&undo);
    free(buffer);
    return status;
}
