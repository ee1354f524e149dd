/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_assign.c - gives a script's values to parameters; and makes such calls
 * that must be refused.
 */
#include "run/play/play.h"

#include <stdlib.h>
#include <string.h>

static bool assigns_summoned(const struct script *s)
{
    for (uint32_t i = 0; i < s->n_actions; i++) {
        if ((s->action[i].verb == SCRIPT_ASSIGN ||
             s->action[i].verb == SCRIPT_SEND) &&
            s->action[i].source == SCRIPT_SUMMONED) {
            return true;
        }
    }
    return false;
}

int play_keep_summoned(struct driver *x, uint32_t p,
                       const struct fsdp_tensor *t)
{
    const struct fsdp_device *d = x->env.device;
    const uint64_t bytes = fsdp_numel(x->model, p) * sizeof(float);

    if (!assigns_summoned(x->d->script)) {
        return FSDP_OK;
    }
    if (!x->summoned[p]) {
        x->summoned[p] = malloc(bytes + 1);
    }
    if (!x->summoned[p]) {
        return FSDP_ERR_NOMEM;
    }
    if (bytes == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(d->copy(d->self, x->env.compute, x->summoned[p], t->data, bytes));
    return d->sync(d->self, x->env.compute);
}

int play_values(struct driver *x, const struct script_action *a, uint32_t p,
                uint64_t first, uint64_t n, float *out)
{
    if (a->source == SCRIPT_INITIAL) {
        return x->model->initial(x->model->context, p, first, n, out);
    }
    if (a->source == SCRIPT_SUMMONED) {
        memcpy(out, x->summoned[p] + first, n * sizeof(*out));
        return FSDP_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        out[i] = script_value(a->number, p, first + i);
    }
    return FSDP_OK;
}

static int assign(struct driver *x, uint32_t p, uint64_t first, uint64_t n,
                  const float *host)
{
    return x->engine.assign ? x->engine.assign(x->sharded, p, first, n, host)
                            : FSDP_ERR_INVALID; /* the engine claims it */
}

/* Gives the values in slices, the last one first; a parameter without elements
 * is given an empty one. The memory is spoilt after each call, for an engine
 * that still reads it. */
static int give(struct driver *x, const struct script_action *a, uint32_t p)
{
    const uint64_t all = fsdp_numel(x->model, p);
    const uint64_t most = a->slice > 0 && a->slice < all ? a->slice : all;
    float *host = malloc(most * sizeof(*host) + 1);
    uint64_t end = all;
    int status;

    if (!host) {
        return FSDP_ERR_NOMEM;
    }
    do {
        const uint64_t n = end > 0 ? (end - 1) % most + 1 : 0;

        end -= n;
        status = play_values(x, a, p, end, n, host);
        if (status == FSDP_OK) {
            status = assign(x, p, end, n, host);
        }
        memset(host, 0xff, n * sizeof(*host));
    } while (status == FSDP_OK && end > 0);
    free(host);
    return status;
}

/* Parameters are given values one by one, the last one first. */
int play_assign(struct driver *x, const struct script_action *a)
{
    const bool all = a->parameter == SCRIPT_ALL;
    const uint32_t first = all ? 0 : a->parameter;
    uint32_t p = all ? x->model->n_parameters : a->parameter + 1;

    if (p > x->model->n_parameters) {
        return FSDP_ERR_INVALID;
    }
    while (p-- > first) {
        FSDP_TRY(all && x->ignored[p] ? FSDP_OK : give(x, a, p));
    }
    return FSDP_OK;
}

/* ---- Calls that must be refused; *status is what the engine answered ----- */

/* The first parameter that is in a unit. */
static uint32_t any_parameter(const struct driver *x)
{
    uint32_t p = 0;

    while (p + 1 < x->model->n_parameters && x->ignored[p]) {
        p++;
    }
    return p;
}

/* Assigns, from the first element on, so many elements more than the parameter
 * has. */
int play_wrong_assign(struct driver *x, const struct play_wrong *how,
                      int *status)
{
    const uint32_t p = any_parameter(x);
    const uint64_t n = fsdp_numel(x->model, p) + how->more;
    float *host = calloc(n + 1, sizeof(*host));

    if (!host) {
        return FSDP_ERR_NOMEM;
    }
    *status = assign(x, p, 0, n, host);
    free(host);
    return FSDP_OK;
}

/* Assigns a range whose end, modulo 2^64, lies in the parameter. */
int play_wrong_assign_far(struct driver *x, int *status)
{
    const float host[2] = {0.0f, 0.0f};

    *status = assign(x, any_parameter(x), UINT64_MAX, 2, host);
    return FSDP_OK;
}

int play_wrong_assign_unknown(struct driver *x, int *status)
{
    const uint32_t n = x->model->n_parameters;
    const float host = 0.0f;

    *status = assign(x, n, 0, 1, &host);
    return play_refused_by_number(x, "unnamed-parameter", n, *status);
}
