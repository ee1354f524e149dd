/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_sizes.c - calls whose struct is that of an older caller, who lacks its
 * last fields, or of a newer one, who has more behind them: none is refused for
 * that, nothing is read that an older one lacks, and nothing that is behind.
 * An answer tells what was refused, or came out otherwise; no answer, nothing.
 */
#include "run/play/play.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    MORE = 64 /* bytes, of fields that nobody knows yet */
};

static int note(struct driver *x, bool good, const char *name)
{
    *x->env.error = (struct fsdp_error){0};
    return good ? FSDP_OK : drive_answer_number(x, name, 0);
}

/* Measures alone. */
static bool measures(struct driver *x, const struct fsdp_clip *clip, float want)
{
    float norm = NAN;

    return x->engine.clip_grad_norm(x->sharded, clip, &norm) == FSDP_OK &&
           memcmp(&norm, &want, sizeof(norm)) == 0;
}

int play_clip_sizes(struct driver *x)
{
    const struct fsdp_clip whole = {
        .size = sizeof(whole), .max_norm = INFINITY, .p = 2.0f};
    struct fsdp_clip older = whole;
    struct {
        struct fsdp_clip known;
        unsigned char more[MORE];
    } newer = {.known = whole};
    float want = NAN;

    if (x->d->c->scenario != CASE_CLIP || !x->engine.clip_grad_norm) {
        return FSDP_OK;
    }
    FSDP_TRY(x->engine.clip_grad_norm(x->sharded, &whole, &want));
    older.size = offsetof(struct fsdp_clip, inverse_scale);
    older.inverse_scale = -1.0f; /* no number that a caller may give */
    newer.known.size = sizeof(newer);
    memset(newer.more, 0xff, sizeof(newer.more));
    FSDP_TRY(note(x, measures(x, &older, want), "size-clip-older"));
    return note(x, measures(x, &newer.known, want), "size-clip-newer");
}

/* Whoever is refused for the size goes on with the usual one. */
int play_step_sizes(struct driver *x, struct fsdp_step *step)
{
    struct {
        struct fsdp_step known;
        unsigned char more[MORE];
    } newer = {.known = *step};
    int status;

    if (x->d->c->scenario != CASE_MISUSE || x->serial) {
        return x->engine.step(x->sharded, step);
    }
    newer.known.size = sizeof(newer);
    memset(newer.more, 0xff, sizeof(newer.more));
    status = x->engine.step(x->sharded, &newer.known);
    if (status == FSDP_ERR_INVALID || status == FSDP_ERR_UNSUPPORTED) {
        FSDP_TRY(note(x, false, "size-step-newer"));
        return x->engine.step(x->sharded, step);
    }
    step->found_inf = newer.known.found_inf;
    return status;
}

int play_shard_sizes(struct driver *x, const struct fsdp_options *options)
{
    struct {
        struct fsdp_options known;
        unsigned char more[MORE];
    } newer = {.known = *options};
    int status;

    if (x->d->c->scenario != CASE_MISUSE || x->serial) {
        return x->engine.shard(&x->env, &x->told, x->units, options,
                               &x->sharded);
    }
    newer.known.size = sizeof(newer);
    memset(newer.more, 0xff, sizeof(newer.more));
    status =
        x->engine.shard(&x->env, &x->told, x->units, &newer.known, &x->sharded);
    if (status == FSDP_ERR_INVALID || status == FSDP_ERR_UNSUPPORTED) {
        FSDP_TRY(note(x, false, "size-options-newer"));
        x->sharded = NULL;
        return x->engine.shard(&x->env, &x->told, x->units, options,
                               &x->sharded);
    }
    return status;
}
