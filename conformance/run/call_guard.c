/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_guard.c - a function around each of an engine's. These have no context
 * of their own, and a rank is a thread or a process: so this file's state is
 * a thread's.
 *
 * What can be asked for nothing is compared after each call; the rest after
 * those that an engine makes a few times a step, at rest or at the end of a
 * pass.
 */
#include "run/call_guard.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local struct {
    struct fsdp_engine engine;
    struct process_state state;
    struct record_rank *out;
    uint32_t step;
    bool alone;
} my;

static void note(const char *call, const char *what)
{
    struct record_change *c = &my.out->change[my.out->n_changes];

    if (my.out->n_changes == RECORD_CHANGES) {
        return; /* the first ones tell enough */
    }
    *c = (struct record_change){.step = my.step};
    (void)snprintf(c->call, sizeof(c->call), "%s", call);
    for (size_t i = 0; what[i] && i < sizeof(c->what) - 1; i++) {
        c->what[i] = (char)(what[i] < ' ' || what[i] > '~' ? '?' : what[i]);
    }
    my.out->n_changes++;
}

/* The record is written by a name that may be relative: where the working
 * folder is another one now, back. */
static void look(const char *call, bool at_rest)
{
    char folder[PROCESS_STATE_FOLDER];
    char text[PROCESS_STATE_TEXT];

    if (!my.out) {
        return;
    }
    if (at_rest) {
        memcpy(folder, my.state.folder, sizeof(folder));
    }
    if (process_state_changed(&my.state, at_rest, my.alone, text)) {
        note(call, text);
    }
    if (at_rest && folder[0] && strcmp(folder, my.state.folder) != 0 &&
        chdir(folder) == 0) {
        memcpy(my.state.folder, folder, sizeof(folder));
    }
}

void call_guard_begin(struct record_rank *out, const char *loading, bool alone)
{
    my.out = out;
    my.step = 0;
    my.alone = alone;
    process_state_note(&my.state, alone);
    if (loading[0]) {
        note("load", loading);
    }
}

void call_guard_look(const char *call)
{
    look(call, true);
}

void call_guard_step(uint32_t step)
{
    my.step = step;
}

/* ---- The functions ----------------------------------------------------- */

/* NAME(...) of the engine, and a look at what it may have changed. */
#define GUARDED(name, at_rest, parameters, arguments) \
    static int guarded_##name parameters              \
    {                                                 \
        const int status = my.engine.name arguments;  \
                                                      \
        look(#name, at_rest);                         \
        return status;                                \
    }

GUARDED(shard, true,
        (const struct fsdp_env *env, const struct fsdp_model *model,
         const struct fsdp_units *units, const struct fsdp_options *options,
         struct fsdp_sharded **out),
        (env, model, units, options, out))
GUARDED(at, point == FSDP_END || point == FSDP_CANCEL,
        (struct fsdp_sharded * s, uint32_t point, uint32_t index),
        (s, point, index))
GUARDED(param, false,
        (struct fsdp_sharded * s, uint32_t p, struct fsdp_tensor *out),
        (s, p, out))
GUARDED(grad, false,
        (struct fsdp_sharded * s, uint32_t p, struct fsdp_tensor *out),
        (s, p, out))
GUARDED(set_gradient_sync, true, (struct fsdp_sharded * s, uint32_t on),
        (s, on))
GUARDED(set_requires_grad, true,
        (struct fsdp_sharded * s, uint32_t p, uint32_t on), (s, p, on))
GUARDED(clip_grad_norm, true,
        (struct fsdp_sharded * s, const struct fsdp_clip *clip, float *norm),
        (s, clip, norm))
GUARDED(step, true, (struct fsdp_sharded * s, struct fsdp_step *how), (s, how))
GUARDED(zero_grad, true, (struct fsdp_sharded * s), (s))
GUARDED(pieces, true,
        (struct fsdp_sharded * s,
         void (*visit)(void *context, const struct fsdp_piece *piece),
         void *context),
        (s, visit, context))
GUARDED(unshard_all, true, (struct fsdp_sharded * s), (s))
GUARDED(reshard_all, true, (struct fsdp_sharded * s), (s))
GUARDED(save_begin, true,
        (struct fsdp_sharded * s, const struct fsdp_save *save), (s, save))
GUARDED(save_wait, true, (struct fsdp_sharded * s), (s))
GUARDED(load, true, (struct fsdp_sharded * s, const char *directory),
        (s, directory))
GUARDED(loaded_extra, true,
        (struct fsdp_sharded * s, const char *name, const void **data,
         uint64_t *bytes),
        (s, name, data, bytes))

static void guarded_destroy(struct fsdp_sharded *s)
{
    my.engine.destroy(s);
    look("destroy", true);
}

void call_guard_wrap(struct fsdp_engine *e)
{
    my.engine = *e;
#define WRAP(name) e->name = e->name ? guarded_##name : NULL
    WRAP(shard);
    WRAP(at);
    WRAP(param);
    WRAP(grad);
    WRAP(set_gradient_sync);
    WRAP(set_requires_grad);
    WRAP(clip_grad_norm);
    WRAP(step);
    WRAP(zero_grad);
    WRAP(pieces);
    WRAP(unshard_all);
    WRAP(reshard_all);
    WRAP(save_begin);
    WRAP(save_wait);
    WRAP(load);
    WRAP(loaded_extra);
    WRAP(destroy);
#undef WRAP
}
