/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_names.c - the names of the tensors in a checkpoint, as
 * docs/checkpoints.md says; a life in which one parameter has another name; and
 * whether a lenient load has told which names differ. A list is a text: a line
 * feed, then each name and a line feed, ascending by bytes.
 */
#include "run/play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALL = 2 * FSDP_SAVE_EXTRA - 1,
    NAMES = 3 /* names of a parameter: its own, and those of two states */
};

/* ---- Another name -------------------------------------------------------- */

int play_rename(struct driver *x, uint32_t renamed)
{
    const uint32_t n = x->model->n_parameters;

    if (renamed > n) {
        return FSDP_ERR_INVALID;
    }
    free(x->name);
    free(x->names);
    x->name = NULL;
    x->names = NULL;
    x->renamed = renamed;
    if (renamed == 0) {
        return FSDP_OK;
    }
    x->names = calloc(n, sizeof(*x->names));
    if (!x->names || asprintf(&x->name, "%s.renamed",
                              x->model->parameter_name[renamed - 1]) < 0) {
        x->name = NULL;
        return FSDP_ERR_NOMEM;
    }
    memcpy(x->names, x->model->parameter_name, n * sizeof(*x->names));
    x->names[renamed - 1] = x->name;
    return FSDP_OK;
}

/* ---- Lists ----------------------------------------------------------------
 */

struct list {
    char **name;
    uint32_t n;
    bool failed;
};

static void add_name(struct list *l, const char *before, const char *name,
                     const char *behind)
{
    char *text;

    if (asprintf(&text, "%s%s%s", before, name, behind) < 0) {
        l->failed = true;
        return;
    }
    l->name[l->n++] = text;
}

static int compare_names(const void *a, const void *b)
{
    char *const *left = a;
    char *const *right = b;

    return strcmp(*left, *right);
}

static void add_parameter(const struct driver *x, uint32_t p, uint32_t what,
                          struct list *l)
{
    const uint32_t optimizer = x->d->c->optimizer;
    const char *name = x->told.parameter_name[p];

    if (x->ignored[p] || fsdp_original(x->model, p) != p) {
        return;
    }
    if ((what & FSDP_SAVE_PARAMETERS) != 0) {
        add_name(l, "", name, "");
    }
    if ((x->flags[p] & FSDP_FROZEN) != 0 || (what & FSDP_SAVE_STATES) == 0) {
        return;
    }
    if (optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        add_name(l, "optim.state.", name, ".momentum_buffer");
    } else if (optimizer == FSDP_OPTIMIZER_ADAMW) {
        add_name(l, "optim.state.", name, ".exp_avg");
        add_name(l, "optim.state.", name, ".exp_avg_sq");
    }
}

static char *join(const struct list *l)
{
    size_t room = 2;
    char *text;
    char *at;

    for (uint32_t i = 0; i < l->n; i++) {
        room += strlen(l->name[i]) + 1;
    }
    text = malloc(room);
    at = text;
    for (uint32_t i = 0; text && i <= l->n; i++) {
        at = i > 0 ? stpcpy(at, l->name[i - 1]) : at;
        at = stpcpy(at, "\n");
    }
    return text;
}

/* The list of what the engine would save now, in these parts; NULL: no
 * memory. */
static char *list_now(const struct driver *x, uint32_t what)
{
    const struct fsdp_model *m = x->model;
    struct list l = {.n = 0};
    char *text = NULL;

    l.name = calloc((size_t)NAMES * m->n_parameters + m->n_buffers + 1,
                    sizeof(*l.name));
    for (uint32_t p = 0; l.name && p < m->n_parameters; p++) {
        add_parameter(x, p, what, &l);
    }
    for (uint32_t b = 0; l.name && b < m->n_buffers; b++) {
        if ((m->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0 &&
            (what & FSDP_SAVE_BUFFERS) != 0) {
            add_name(&l, "", m->buffer_name[b], "");
        }
    }
    if (l.name && !l.failed) {
        qsort(l.name, l.n, sizeof(*l.name), compare_names);
        text = join(&l);
    }
    for (uint32_t i = 0; i < l.n; i++) {
        free(l.name[i]);
    }
    free(l.name);
    return text;
}

/* The local form has no names, so that a load finds all it asks for. */
int play_save_names(struct driver *x, const struct script_action *a)
{
    char **names = &x->saved_names[a->slot];

    free(*names);
    *names = a->form == FSDP_SAVE_LOCAL ? strdup("")
                                        : list_now(x, a->what ? a->what : ALL);
    return *names ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* ---- What differs ---------------------------------------------------------
 */

/* Whether the next line of a text is `line`, which ends with a line feed, and
 * may be followed by more; then *at is behind it. */
static bool is_next(const char **at, const char *end, const char *line)
{
    const size_t bytes = (size_t)(strchr(line, '\n') - line) + 1;

    if ((size_t)(end - *at) < bytes || memcmp(*at, line, bytes) != 0) {
        return false;
    }
    *at += bytes;
    return true;
}

static bool is_in(const char *list, const char *before)
{
    return memmem(list, strlen(list), before,
                  (size_t)(strchr(before + 1, '\n') - before) + 1) != NULL;
}

/* OK if the engine has told exactly the names that the one list has and the
 * other lacks. */
static int told(struct driver *x, const char *name, const char *of,
                const char *lacking)
{
    const void *data = NULL;
    uint64_t bytes = 0;
    const char *at;
    const char *end;
    int status = x->engine.loaded_extra(x->sharded, name, &data, &bytes);

    if (status != FSDP_OK) {
        return status;
    }
    at = data ? data : "";
    end = at + (data ? bytes : 0);
    for (const char *line = of; line[0] && line[1];
         line = strchr(line + 1, '\n')) {
        if (!is_in(lacking, line) && !is_next(&at, end, line + 1)) {
            return FSDP_ERR_MISMATCH;
        }
    }
    return at == end ? FSDP_OK : FSDP_ERR_MISMATCH;
}

static int answer(struct driver *x, const char *name, int status)
{
    if (status == FSDP_ERR_MISMATCH) {
        *x->env.error =
            (struct fsdp_error){status, (int32_t)x->env.rank, 0, "driver",
                                "other names than those that differ were told"};
    }
    return drive_answer(x, name, status);
}

int play_check_names(struct driver *x, uint32_t slot)
{
    const char *saved = x->saved_names[slot];
    const bool parts = x->saved_parts[slot] != 0;
    char *now = saved && saved[0] ? list_now(x, ALL) : strdup("");
    int status = now && saved ? FSDP_OK : FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        status = answer(x, parts ? "parts-missing" : "lenient-missing",
                        told(x, "checkpoint.missing", now, saved));
    }
    if (status == FSDP_OK) {
        status = answer(x, parts ? "parts-unexpected" : "lenient-unexpected",
                        told(x, "checkpoint.unexpected", saved, now));
    }
    free(now);
    return status;
}
