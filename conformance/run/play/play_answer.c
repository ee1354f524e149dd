/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_answer.c - notes an engine's answers for the record, and whether the
 * message of a refusal says what it refused.
 */
#include "run/play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_answer(struct record_rank *out, const char *name, int status)
{
    struct record_answer *grown =
        realloc(out->answer, (out->n_answers + 1u) * sizeof(*grown));

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    out->answer = grown;
    grown += out->n_answers++;
    memset(grown, 0, sizeof(*grown));
    strncpy(grown->name, name, sizeof(grown->name) - 1);
    grown->status = status;
    return FSDP_OK;
}

int drive_answer(struct driver *x, const char *name, int status)
{
    struct fsdp_error *e = x->env.error;
    bool silent = status != FSDP_OK &&
                  (e->status != status || e->rank != (int32_t)x->env.rank ||
                   !record_is_text(e->where, sizeof(e->where)) ||
                   !record_is_text(e->message, sizeof(e->message)));

    /* The call was to be refused, so that its error is not the end of the
     * run. */
    *e = (struct fsdp_error){0};
    FSDP_TRY(add_answer(x->out, name, status));
    return silent ? add_answer(x->out, "said-nothing", status) : FSDP_OK;
}

int drive_answer_number(struct driver *x, const char *name, uint64_t number)
{
    return add_answer(x->out, name,
                      number < INT32_MAX ? (int)number : INT32_MAX);
}

bool play_says(const struct fsdp_error *e, const char *what)
{
    return memmem(e->message, strnlen(e->message, sizeof(e->message)), what,
                  strnlen(what, sizeof(e->message) / 2)) != NULL;
}

bool play_says_number(const struct fsdp_error *e, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return play_says(e, text);
}

int play_refused_by_number(struct driver *x, const char *answer,
                           uint32_t number, int status)
{
    return status == FSDP_OK || play_says_number(x->env.error, number)
               ? FSDP_OK
               : drive_answer_number(x, answer, number);
}

int play_late_error(struct driver *x)
{
    const struct fsdp_error first = {.status = FSDP_ERR_IO,
                                     .rank = (int32_t)x->env.rank,
                                     .native = 5,
                                     .where = "driver",
                                     .message = "something failed before"};
    struct fsdp_tensor t;
    bool stays;

    *x->env.error = first;
    (void)x->engine.param(x->sharded, x->model->n_parameters, &t);
    stays = memcmp(x->env.error, &first, sizeof(first)) == 0;
    *x->env.error = (struct fsdp_error){0};
    return stays ? FSDP_OK : drive_answer_number(x, "first-error-lost", 0);
}

int play_wrong(struct driver *x, uint32_t call)
{
    int status;

    world_stack_doing(script_calls[call].name);
    status = play_wrong_call(x, call);
    world_stack_doing(NULL);
    return status;
}
