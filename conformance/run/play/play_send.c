/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_send.c - has an engine send values in rank 0's memory to all ranks;
 * checks that the engine leaves that memory as it was; and makes such calls
 * that must be refused.
 */
#include "run/play/play.h"

#include <stdlib.h>
#include <string.h>

static int call(struct driver *x, const struct fsdp_values *from)
{
    return x->engine.send_values ? x->engine.send_values(x->sharded, from)
                                 : FSDP_ERR_INVALID; /* the engine claims it */
}

/* Frees the values that were given, by parameter; NULL: none were given. */
static void release(struct driver *x, float **value)
{
    for (uint32_t p = 0; value && p < x->model->n_parameters; p++) {
        free(value[p]);
    }
    free(value);
}

/* Makes the values of parameter p in new memory, if the action gives it any. A
 * parameter that is ignored, or is another name of a tied one, always has
 * memory, but with NaNs, since the engine must not read it. */
static int values_of(struct driver *x, const struct script_action *a,
                     uint32_t p, float **out)
{
    const bool all = a->parameter == SCRIPT_ALL;
    const uint32_t by = all ? p : a->parameter;
    const uint64_t n = fsdp_numel(x->model, p);
    const bool unread = x->ignored[p] || fsdp_original(x->model, p) != p;

    *out = NULL;
    if (!unread && fsdp_original(x->model, by) != p) {
        return FSDP_OK;
    }
    *out = malloc(n * sizeof(**out) + 1);
    if (*out && unread) {
        memset(*out, 0xff, n * sizeof(**out));
        return FSDP_OK;
    }
    return *out ? play_values(x, a, by, 0, n, *out) : FSDP_ERR_NOMEM;
}

static int make(struct driver *x, const struct script_action *a, float ***out)
{
    const uint32_t n = x->model->n_parameters;

    *out = calloc(n + 1u, sizeof(**out));
    if (!*out) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n; p++) {
        FSDP_TRY(values_of(x, a, p, &(*out)[p]));
    }
    return FSDP_OK;
}

/* OK if the given values are as they were; MISMATCH: they are not. */
static int compare_given(struct driver *x, const struct script_action *a,
                         float *const *value)
{
    bool same = true;

    for (uint32_t p = 0; value && p < x->model->n_parameters && same; p++) {
        float *was = NULL;
        const int status = values_of(x, a, p, &was);

        same = !was || memcmp(was, value[p],
                              fsdp_numel(x->model, p) * sizeof(*was)) == 0;
        free(was);
        FSDP_TRY(status);
    }
    return same ? FSDP_OK : FSDP_ERR_MISMATCH;
}

static int note_kept(struct driver *x, const struct script_action *a,
                     float *const *value)
{
    const int status = compare_given(x, a, value);

    if (status != FSDP_OK && status != FSDP_ERR_MISMATCH) {
        return status;
    }
    *x->env.error = (struct fsdp_error){status, (int32_t)x->env.rank, 0,
                                        "driver", "what was sent has changed"};
    return drive_answer(x, "sent-values-kept", status);
}

/* A serial run is given the same values. */
int play_send(struct driver *x, const struct script_action *a)
{
    const bool all = a->parameter == SCRIPT_ALL;
    struct fsdp_values from = {.size = sizeof(from), .lenient = !all};
    float **value = NULL;
    int status = FSDP_OK;

    if (!all && a->parameter >= x->model->n_parameters) {
        return FSDP_ERR_INVALID;
    }
    if (x->serial) {
        return !all && x->ignored[a->parameter] ? FSDP_OK : play_assign(x, a);
    }
    if (x->env.rank == 0) {
        status = make(x, a, &value);
        from.value = (const void *const *)value;
    }
    if (status == FSDP_OK) {
        status = x->engine.send_values ? play_send_values_sizes(x, &from)
                                       : FSDP_ERR_INVALID; /* the engine claims
                                                              it */
    }
    if (status == FSDP_OK) {
        status = note_kept(x, a, value);
    }
    release(x, value);
    return status;
}

/* ---- Calls that must be refused; *status is what the engine answered ----- */

/* The last parameter that is sent under its own name. */
static uint32_t last_sent(const struct driver *x)
{
    uint32_t p = x->model->n_parameters - 1;

    while (p > 0 && (x->ignored[p] || fsdp_original(x->model, p) != p)) {
        p--;
    }
    return p;
}

/* Notes whether the message has the word, or the name. */
static int note_named(struct driver *x, const struct play_wrong *how,
                      int status)
{
    const bool lacks = how->as == SCRIPT_CALL_SEND_LACKING;
    const char *what = lacks ? x->model->parameter_name[last_sent(x)]
                       : how->as == SCRIPT_CALL_SEND_LENIENCY ? "lenient"
                                                              : "value";

    return status == FSDP_OK || how->as == 0 || play_says(x->env.error, what)
               ? FSDP_OK
               : drive_answer_number(
                     x, lacks ? "unnamed-parameter" : "unnamed-option", 0);
}

/* Sends ones for all parameters, from rank 0; but for what is wrong. */
int play_wrong_send(struct driver *x, const struct play_wrong *how, int *status)
{
    const uint32_t last = x->env.world - 1;
    const bool of_last = how->as == SCRIPT_CALL_SEND_VALUES_OF_LAST;
    const bool none = how->as == SCRIPT_CALL_SEND_NONE;
    const bool gives =
        (x->env.rank == 0 && !none) || (of_last && x->env.rank == last);
    struct fsdp_values from = {.size = sizeof(from)};
    const void **value = calloc(x->model->n_parameters, sizeof(*value));
    float *ones = NULL;
    uint64_t most = 1;
    bool made;

    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(x->model, p);

        most = n > most ? n : most;
    }
    ones = malloc(most * sizeof(*ones));
    for (uint64_t i = 0; ones && i < most; i++) {
        ones[i] = 1.0f;
    }
    for (uint32_t p = 0; value && p < x->model->n_parameters; p++) {
        value[p] = ones;
    }
    if (value && how->as == SCRIPT_CALL_SEND_LACKING) {
        value[last_sent(x)] = NULL;
    }
    if (value && ones) {
        from.value = gives ? value : NULL;
        from.lenient = none || (how->as == SCRIPT_CALL_SEND_LENIENCY &&
                                x->env.rank == last);
        *status = call(x, &from);
    }
    made = value && ones;
    free(value);
    free(ones);
    return made ? note_named(x, how, *status) : FSDP_ERR_NOMEM;
}
