/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_guard.c - wraps each function of an engine. These functions have no
 * context of their own, and a rank is a thread or a process: so this file keeps
 * its state for each thread.
 *
 * State that costs nothing to read is compared after each call. State that
 * takes a few system calls is compared after those calls that an engine gets a
 * few times a step, at rest or at the end of a pass. Handlers of signals and
 * limits take eighty system calls, a tenth of the time of a small case: they
 * are compared after a function's first call, after each eighth one, and at the
 * end. So a change that a function always makes is found at its first call. A
 * change that it makes once, and later, is found at the end of the rank at the
 * latest, unless the engine has undone it between two looks; the words name the
 * last call after which all was well.
 */
#include "run/witness/call_guard.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WHOLE_EACH = 8 /* calls of a function at rest */
};

static _Thread_local struct {
    struct fsdp_engine engine;
    struct process_state state;
    struct record_rank *out;
    uint32_t step;
    bool alone;
    /* Indexed by a function's place in fsdp_engine. */
    uint32_t calls[sizeof(struct fsdp_engine) / sizeof(void *)];
    /* The call after which all was compared last, and whether calls have
     * followed it. */
    const char *whole;
    uint32_t whole_step;
    bool skipped;
} my;

static void note_change(const char *call, const char *what)
{
    struct record_change *c = &my.out->change[my.out->n_changes];

    if (my.out->n_changes == RECORD_CHANGES) {
        return; /* the first ones tell enough */
    }
    *c = (struct record_change){.step = my.step};
    snprintf(c->call, sizeof(c->call), "%s", call);
    for (size_t i = 0; what[i] && i < sizeof(c->what) - 1; i++) {
        c->what[i] = (char)(what[i] < ' ' || what[i] > '~' ? '?' : what[i]);
    }
    my.out->n_changes++;
}

/* Adds to the words since when the change may have been there. */
static void say_since(char text[PROCESS_STATE_TEXT])
{
    const size_t n = strlen(text);

    snprintf(text + n, PROCESS_STATE_TEXT - n,
             "; looked at last after %s of step %u", my.whole, my.whole_step);
}

/* If the working folder has changed, goes back to it: the record is written by
 * a path that may be relative. */
static void look_after(const char *call, enum process_depth how)
{
    char folder[PROCESS_STATE_FOLDER];
    char text[PROCESS_STATE_TEXT];
    enum process_found found;

    if (!my.out) {
        return;
    }
    memcpy(folder, my.state.folder, sizeof(folder));
    found = process_state_changed(&my.state, how, my.alone, text);
    if (found == PROCESS_TABLES && my.skipped) {
        say_since(text);
    }
    if (found != PROCESS_SAME) {
        note_change(call, text);
    }
    if (folder[0] && strcmp(folder, my.state.folder) != 0 &&
        chdir(folder) == 0) {
        memcpy(my.state.folder, folder, sizeof(folder));
    }
    my.skipped = how != PROCESS_WHOLE;
    if (how == PROCESS_WHOLE) {
        my.whole = call;
        my.whole_step = my.step;
    }
}

void call_guard_begin(struct record_rank *out, const char *loading, bool alone)
{
    my.out = out;
    my.step = 0;
    my.alone = alone;
    my.skipped = false;
    my.whole = "load";
    my.whole_step = 0;
    memset(my.calls, 0, sizeof(my.calls));
    process_state_note(&my.state, alone);
    if (loading[0]) {
        note_change("load", loading);
    }
}

void call_guard_look(const char *call)
{
    look_after(call, PROCESS_WHOLE);
}

void call_guard_step(uint32_t step)
{
    my.step = step;
}

static enum process_depth how_at(size_t offset, bool at_rest)
{
    if (!at_rest) {
        return PROCESS_IN_PASS;
    }
    return my.calls[offset / sizeof(void *)]++ % WHOLE_EACH == 0
               ? PROCESS_WHOLE
               : PROCESS_AT_REST;
}

/* ---- The functions ----------------------------------------------------- */

/* Calls NAME(...) of the engine, and looks at what it may have changed. */
#define GUARDED(name, at_rest, parameters, arguments)                    \
    static int guarded_##name parameters                                 \
    {                                                                    \
        const int status = my.engine.name arguments;                     \
                                                                         \
        look_after(#name,                                                \
                   how_at(offsetof(struct fsdp_engine, name), at_rest)); \
        return status;                                                   \
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

GUARDED(set, true,
        (struct fsdp_sharded * s, uint32_t unit, uint32_t knob, float value),
        (s, unit, knob, value))
GUARDED(unshard, true, (struct fsdp_sharded * s, uint32_t unit), (s, unit))
GUARDED(reshard, true, (struct fsdp_sharded * s, uint32_t unit), (s, unit))
GUARDED(buffer, false,
        (struct fsdp_sharded * s, uint32_t b, struct fsdp_tensor *out),
        (s, b, out))
GUARDED(set_step, true, (struct fsdp_sharded * s, const struct fsdp_step *how),
        (s, how))
GUARDED(assign, true,
        (struct fsdp_sharded * s, uint32_t p, uint64_t first, uint64_t n,
         const void *host),
        (s, p, first, n, host))

GUARDED(summon, true, (struct fsdp_sharded * s, const struct fsdp_summon *how),
        (s, how))

GUARDED(load_from, true, (struct fsdp_sharded * s, const struct fsdp_load *how),
        (s, how))
GUARDED(send_values, true,
        (struct fsdp_sharded * s, const struct fsdp_values *from), (s, from))

static void guarded_destroy(struct fsdp_sharded *s)
{
    my.engine.destroy(s);
    look_after("destroy", PROCESS_WHOLE);
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
    WRAP(set);
    WRAP(unshard);
    WRAP(reshard);
    WRAP(buffer);
    WRAP(set_step);
    WRAP(assign);
    WRAP(summon);
    WRAP(load_from);
    WRAP(send_values);
    WRAP(destroy);
#undef WRAP
}
