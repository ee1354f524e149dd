/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_build_finish.c - finishes a description: its sequences, and parallel
 * arrays. Sequences are walks over the tree of modules, without recursion, as
 * the tree may be as deep as its author likes.
 */
#include "model_build_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Walks --------------------------------------------------------------- */

/* The next child of `parent` behind `child` (-1: its first), or n. */
static uint32_t next_child(uint32_t n, const int32_t *parent, int32_t of,
                           int32_t child)
{
    uint32_t m = child < 0 ? (uint32_t)of + 1 : (uint32_t)child + 1;

    while (m < n && parent[m] != of) {
        m++;
    }
    return m;
}

/* Writes the 2 * n points of a forward pass, depth first; children in the
 * order of their numbers. Parents have smaller numbers than children. */
static void walk_forward(uint32_t n, const int32_t *parent, uint32_t *point,
                         uint32_t *module)
{
    int32_t at = 0;    /* the module that is open */
    int32_t done = -1; /* its child that was closed last */

    point[0] = FSDP_PRE_FORWARD;
    module[0] = 0;
    for (uint32_t i = 1; i < 2 * n; i++) {
        const uint32_t child = next_child(n, parent, at, done);

        if (child < n) {
            at = (int32_t)child;
            done = -1;
            point[i] = FSDP_PRE_FORWARD;
            module[i] = child;
        } else {
            point[i] = FSDP_POST_FORWARD;
            module[i] = (uint32_t)at;
            done = at;
            at = parent[at];
        }
    }
}

/* Behind the n forward points writes the n points of their backward: the
 * same in reverse, where a POST_FORWARD becomes a PRE_BACKWARD. */
static void walk_mirror(uint32_t n, uint32_t *point, uint32_t *module)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = n - 1 - i;

        point[n + i] = point[from] == FSDP_POST_FORWARD ? FSDP_PRE_BACKWARD
                                                        : FSDP_POST_BACKWARD;
        module[n + i] = module[from];
    }
}

/* Appends to the `at` points of a sequence those of the 2 * n points of a
 * forward that belong to a checkpoint, as points of a recompute. */
static uint32_t add_recompute(uint32_t n, const uint32_t *checkpoint,
                              uint32_t which, uint32_t at, uint32_t *point,
                              uint32_t *module)
{
    for (uint32_t i = 0; i < 2 * n; i++) {
        if (checkpoint[module[i]] == which) {
            point[at] = point[i] == FSDP_PRE_FORWARD ? FSDP_PRE_RECOMPUTE
                                                     : FSDP_POST_RECOMPUTE;
            module[at++] = module[i];
        }
    }
    return at;
}

/*
 * Writes the training pass of a tree in which checkpoints are recomputed, and
 * returns how many points it has: at most 6 * n. checkpoint[m] is the
 * checkpoint of module m; 0: its own activations are kept. The forward points
 * of a checkpoint's modules come again, as those of a recompute, before the
 * first backward point of any of them. So modules b.x and b.y, in one
 * checkpoint without the module b above them, are recomputed inside b's
 * backward; and with b, before it:
 *
 *     PRE_BACKWARD b, recompute x, recompute y, backward y, backward x, ...
 *     PRE_RECOMPUTE b, recompute x, recompute y, POST_RECOMPUTE b,
 *         PRE_BACKWARD b, backward y, backward x, ...
 */
static uint32_t walk_recomputed(uint32_t n, const int32_t *parent,
                                const uint32_t *checkpoint, uint32_t *point,
                                uint32_t *module)
{
    uint32_t at = 2 * n;
    uint32_t done = 0; /* checkpoints are met from the last to the first */

    walk_forward(n, parent, point, module);
    for (uint32_t i = 2 * n; i-- > 0;) {
        const uint32_t m = module[i];

        if (checkpoint[m] != 0 && checkpoint[m] != done) {
            done = checkpoint[m];
            at = add_recompute(n, checkpoint, done, at, point, module);
        }
        point[at] = point[i] == FSDP_POST_FORWARD ? FSDP_PRE_BACKWARD
                                                  : FSDP_POST_BACKWARD;
        module[at++] = m;
    }
    assert(at <= 6 * n);
    return at;
}

/* The PRE point that a POST point closes; BEGIN for a point that closes
 * none. */
static uint32_t opener(uint32_t point)
{
    switch (point) {
    case FSDP_POST_FORWARD:
        return FSDP_PRE_FORWARD;
    case FSDP_POST_BACKWARD:
        return FSDP_PRE_BACKWARD;
    case FSDP_POST_RECOMPUTE:
        return FSDP_PRE_RECOMPUTE;
    default:
        return FSDP_BEGIN;
    }
}

/* `open` is a stack of indices into the sequence. */
static int check_nesting(const struct fsdp_sequence *s, uint32_t n_modules,
                         uint32_t *open, char *detail, size_t bytes)
{
    uint32_t n_open = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t wants = opener(s->point[i]);

        if (s->module[i] >= n_modules) {
            snprintf(detail, bytes, "point %u: there is no module %u",
                     (unsigned)i, (unsigned)s->module[i]);
            return FSDP_ERR_INVALID;
        }
        if (s->point[i] == FSDP_PRE_FORWARD ||
            s->point[i] == FSDP_PRE_BACKWARD ||
            s->point[i] == FSDP_PRE_RECOMPUTE) {
            open[n_open++] = i;
            continue;
        }
        if (wants == FSDP_BEGIN) {
            snprintf(detail, bytes, "point %u: a %u is neither PRE nor POST",
                     (unsigned)i, (unsigned)s->point[i]);
            return FSDP_ERR_INVALID;
        }
        if (n_open == 0 || s->point[open[n_open - 1]] != wants ||
            s->module[open[n_open - 1]] != s->module[i]) {
            snprintf(detail, bytes, "point %u: module %u was not opened last",
                     (unsigned)i, (unsigned)s->module[i]);
            return FSDP_ERR_INVALID;
        }
        n_open--;
    }
    if (n_open != 0) {
        snprintf(detail, bytes, "module %u stays open",
                 (unsigned)s->module[open[n_open - 1]]);
        return FSDP_ERR_INVALID;
    }
    return FSDP_OK;
}

int model_sequence_check(const struct fsdp_sequence *sequence,
                         uint32_t n_modules, char *detail, size_t bytes)
{
    uint32_t *open = calloc((size_t)sequence->n + 1, sizeof(*open));
    int status;

    if (!open) {
        snprintf(detail, bytes, "out of memory");
        return FSDP_ERR_NOMEM;
    }
    status = check_nesting(sequence, n_modules, open, detail, bytes);
    free(open);
    return status;
}

/* ---- The builder --------------------------------------------------------- */

/* The model's own sequences are stored as they come, and train and eval have
 * fixed slots in front of them; the array grows by copying. */
static int build_slot(struct model_build *b, const char *name, uint32_t *slot)
{
    const struct fsdp_sequence **grown;
    const uint32_t n = b->n_sequences < 2 ? 2 : b->n_sequences;

    *slot = n;
    if (strcmp(name, "train") == 0) {
        *slot = FSDP_SEQUENCE_TRAIN;
    } else if (strcmp(name, "eval") == 0) {
        *slot = FSDP_SEQUENCE_EVAL;
    }
    for (uint32_t i = 0; i < b->n_sequences; i++) {
        if (b->sequence[i] && strcmp(b->sequence[i]->name, name) == 0) {
            return model_build_fail(b, FSDP_ERR_INVALID,
                                    "sequence %s: a second one", name);
        }
    }
    grown = model_build_alloc(b, n + 1, sizeof(struct fsdp_sequence *));
    if (!grown) {
        return b->status;
    }
    for (uint32_t i = 0; i < b->n_sequences; i++) {
        grown[i] = b->sequence[i];
    }
    b->sequence = grown;
    b->n_sequences = *slot == n ? n + 1 : n;
    return FSDP_OK;
}

static int build_store(struct model_build *b, uint32_t slot, const char *name,
                       uint32_t n, uint32_t **point, uint32_t **module)
{
    struct fsdp_sequence *sequence = model_build_alloc(b, 1, sizeof(*sequence));

    *point = model_build_alloc(b, n, sizeof(uint32_t));
    *module = model_build_alloc(b, n, sizeof(uint32_t));
    if (b->status != FSDP_OK) {
        return b->status;
    }
    sequence->size = sizeof(*sequence);
    sequence->n = n;
    sequence->name = model_build_string(b, name);
    sequence->point = *point;
    sequence->module = *module;
    b->sequence[slot] = sequence;
    return b->status;
}

/* The first n points of a sequence that was stored. */
static int build_cut(struct model_build *b, uint32_t slot, uint32_t n)
{
    struct fsdp_sequence *cut = model_build_alloc(b, 1, sizeof(*cut));

    if (!cut) {
        return b->status;
    }
    *cut = *b->sequence[slot];
    cut->n = n;
    b->sequence[slot] = cut;
    return b->status;
}

int model_build_sequence(struct model_build *b, const char *name, uint32_t n,
                         const uint32_t *point, const uint32_t *module)
{
    uint32_t slot;
    uint32_t *points;
    uint32_t *modules;
    char detail[96] = "";

    FSDP_TRY(model_build_open(b, name));
    FSDP_TRY(build_slot(b, name, &slot));
    FSDP_TRY(build_store(b, slot, name, n, &points, &modules));
    for (uint32_t i = 0; i < n; i++) {
        points[i] = point[i];
        modules[i] = module[i];
    }
    if (model_sequence_check(b->sequence[slot], b->modules.n, detail,
                             sizeof(detail)) != FSDP_OK) {
        return model_build_fail(b, FSDP_ERR_INVALID, "sequence %s: %s", name,
                                detail);
    }
    return FSDP_OK;
}

int model_build_recompute(struct model_build *b, const uint32_t *checkpoint)
{
    const uint32_t n = b->modules.n;
    int32_t *parent = model_build_alloc(b, n, sizeof(*parent));
    uint32_t *point = model_build_alloc(b, (size_t)6 * n, sizeof(*point));
    uint32_t *module = model_build_alloc(b, (size_t)6 * n, sizeof(*module));
    size_t i = 0;

    FSDP_TRY(model_build_open(b, "train"));
    if (n == 0 || n > UINT32_MAX / 6) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%u modules", (unsigned)n);
    }
    for (const struct build_node *m = b->modules.first; m; m = m->next) {
        parent[i++] = m->owner;
    }
    return model_build_sequence(
        b, "train", walk_recomputed(n, parent, checkpoint, point, module),
        point, module);
}

/* Whether a module (-1: any) has a parameter that is frozen, or one that is
 * not. */
static bool owns(const struct model_build *b, int32_t module, bool frozen)
{
    for (const struct build_node *p = b->parameters.first; p; p = p->next) {
        if ((module < 0 || p->owner == module) &&
            ((p->flags & FSDP_FROZEN) != 0) == frozen) {
            return true;
        }
    }
    return false;
}

/* Drops the backward points of the model's frozen beginning: a module has a
 * backward only if it, or a module before it, has trainable parameters. Returns
 * how many points are left; if nothing is frozen, all are. */
static uint32_t leave_out_frozen(struct model_build *b, uint32_t n,
                                 uint32_t *point, uint32_t *module)
{
    bool *goes_back = model_build_alloc(b, b->modules.n, sizeof(*goes_back));
    bool any = false;
    uint32_t left = 0;

    if (!goes_back || !owns(b, -1, true)) {
        return n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t m = module[i];

        any =
            any || (point[i] == FSDP_PRE_FORWARD && owns(b, (int32_t)m, false));
        if (point[i] == FSDP_POST_FORWARD) {
            goes_back[m] = any;
        }
        if (point[i] == FSDP_PRE_FORWARD || point[i] == FSDP_POST_FORWARD ||
            goes_back[m]) {
            point[left] = point[i];
            module[left++] = m;
        }
    }
    return left;
}

/* Makes train and eval from the tree, unless the model gave its own. */
static int build_derived(struct model_build *b, const int32_t *parent)
{
    const uint32_t n = b->modules.n;
    uint32_t slot;
    uint32_t *point;
    uint32_t *module;

    if (b->n_sequences == 0) {
        b->sequence = model_build_alloc(b, 2, sizeof(struct fsdp_sequence *));
        if (!b->sequence) {
            return b->status;
        }
        b->n_sequences = 2;
    }
    for (slot = 0; slot < 2; slot++) {
        const bool train = slot == FSDP_SEQUENCE_TRAIN;
        uint32_t points = (train ? 4 : 2) * n;

        if (b->sequence[slot]) {
            continue;
        }
        if (n > UINT32_MAX / 4) {
            return model_build_fail(b, FSDP_ERR_INVALID, "too many modules");
        }
        FSDP_TRY(build_store(b, slot, train ? "train" : "eval", points, &point,
                             &module));
        walk_forward(n, parent, point, module);
        if (train) {
            walk_mirror(2 * n, point, module);
            points = leave_out_frozen(b, points, point, module);
            FSDP_TRY(build_cut(b, slot, points));
        }
    }
    return FSDP_OK;
}

static int build_modules(struct model_build *b, struct fsdp_model *out)
{
    const size_t n = b->modules.n;
    const char **name = model_build_alloc(b, n, sizeof(char *));
    const char **class_name = model_build_alloc(b, n, sizeof(char *));
    int32_t *parent = model_build_alloc(b, n, sizeof(int32_t));
    size_t i = 0;

    if (b->status != FSDP_OK) {
        return b->status;
    }
    for (const struct build_node *m = b->modules.first; m; m = m->next, i++) {
        name[i] = m->name;
        class_name[i] = m->class_name;
        parent[i] = m->owner;
    }
    out->n_modules = b->modules.n;
    out->module_name = name;
    out->module_class = class_name;
    out->module_parent = parent;
    return build_derived(b, parent);
}

static int build_parameters(struct model_build *b, struct fsdp_model *out)
{
    const size_t n = b->parameters.n;
    const char **name = model_build_alloc(b, n, sizeof(char *));
    uint32_t *module = model_build_alloc(b, n, sizeof(uint32_t));
    uint64_t(*shape)[FSDP_MAX_DIMS] = model_build_alloc(b, n, sizeof(*shape));
    uint32_t *n_dims = model_build_alloc(b, n, sizeof(uint32_t));
    uint32_t *dtype = model_build_alloc(b, n, sizeof(uint32_t));
    uint32_t *flags = model_build_alloc(b, n, sizeof(uint32_t));
    int32_t *alias = model_build_alloc(b, n, sizeof(int32_t));
    size_t i = 0;

    if (b->status != FSDP_OK) {
        return b->status;
    }
    for (const struct build_node *p = b->parameters.first; p;
         p = p->next, i++) {
        name[i] = p->name;
        module[i] = (uint32_t)p->owner;
        memcpy(shape[i], p->shape, sizeof(shape[i]));
        n_dims[i] = p->n_dims;
        dtype[i] = p->dtype;
        flags[i] = p->flags;
        alias[i] = p->alias;
    }
    out->n_parameters = b->parameters.n;
    out->parameter_name = name;
    out->parameter_module = module;
    out->parameter_shape = (const uint64_t(*)[FSDP_MAX_DIMS])shape;
    out->parameter_n_dims = n_dims;
    out->parameter_dtype = dtype;
    out->parameter_flags = flags;
    out->parameter_alias = alias;
    return FSDP_OK;
}

static int build_buffers(struct model_build *b, struct fsdp_model *out)
{
    const size_t n = b->buffers.n;
    const char **name = model_build_alloc(b, n, sizeof(char *));
    uint32_t *module = model_build_alloc(b, n, sizeof(uint32_t));
    uint64_t *numel = model_build_alloc(b, n, sizeof(uint64_t));
    uint32_t *dtype = model_build_alloc(b, n, sizeof(uint32_t));
    uint32_t *flags = model_build_alloc(b, n, sizeof(uint32_t));
    size_t i = 0;

    if (b->status != FSDP_OK) {
        return b->status;
    }
    for (const struct build_node *p = b->buffers.first; p; p = p->next, i++) {
        name[i] = p->name;
        module[i] = (uint32_t)p->owner;
        numel[i] = p->shape[0];
        dtype[i] = p->dtype;
        flags[i] = p->flags;
    }
    out->n_buffers = b->buffers.n;
    out->buffer_name = name;
    out->buffer_module = module;
    out->buffer_numel = numel;
    out->buffer_dtype = dtype;
    out->buffer_flags = flags;
    return FSDP_OK;
}

int model_build_finish(struct model_build *b, struct fsdp_model *out)
{
    struct fsdp_model model = {.size = sizeof(model)};

    memset(out, 0, sizeof(*out));
    FSDP_TRY(model_build_open(b, "finish"));
    if (b->modules.n == 0) {
        return model_build_fail(b, FSDP_ERR_INVALID, "there is no module");
    }
    FSDP_TRY(build_modules(b, &model));
    FSDP_TRY(build_parameters(b, &model));
    FSDP_TRY(build_buffers(b, &model));
    model.n_sequences = b->n_sequences;
    model.sequence = b->sequence;
    b->finished = true;
    *out = model;
    return FSDP_OK;
}
