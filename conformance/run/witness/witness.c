/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - see witness.h. It uses the places of the wire (wire.h). */
#include "run/witness/witness.h"

#include <stdlib.h>
#include <string.h>

int witness_make(struct wire *wire, const struct fsdp_units *units, uint32_t me,
                 struct witness *out)
{
    const struct fsdp_model *const m = wire->model;

    *out = (struct witness){.wire = wire, .units = units, .me = me};
    out->parameter = calloc(m->n_parameters + 1u, sizeof(*out->parameter));
    out->unit = calloc(units->n_units + 1u, sizeof(*out->unit));
    return out->parameter && out->unit ? FSDP_OK : FSDP_ERR_NOMEM;
}

void witness_release(struct witness *w)
{
    free(w->parameter);
    free(w->unit);
    *w = (struct witness){0};
}

void witness_forget(struct witness *w)
{
    for (uint32_t u = 0; w->wire && u < w->wire->n_units; u++) {
        w->wire->calls[u] = (struct wire_calls){0};
    }
}

void witness_begin(struct witness *w, uint32_t step, uint32_t microbatch)
{
    if (!w->wire) {
        return;
    }
    memset(w->parameter, 0,
           w->wire->model->n_parameters * sizeof(*w->parameter));
    for (uint32_t u = 0; u < w->wire->n_units; u++) {
        w->unit[u] = (struct witness_unit){
            .seen = {.step = step,
                     .microbatch = microbatch,
                     .unit = u,
                     .reductions = w->wire->calls[u].reductions}};
    }
}

/* The unit of p; none for a parameter without elements. */
static uint32_t unit_of(const struct witness *w, uint32_t p)
{
    const uint32_t u = fsdp_unit_of(w->wire->model, w->units, p);

    return u < w->wire->n_units && fsdp_numel(w->wire->model, p) > 0
               ? u
               : FSDP_NO_UNIT;
}

/* The number (record_digest_add) for elements [from, to) of a block of the
 * wire. */
static uint64_t worth(const struct wire_block *b, uint64_t from, uint64_t to,
                      const struct fsdp_tensor *t)
{
    const uint32_t bytes = (uint32_t)fsdp_dtype_bytes(t->dtype);
    const uint64_t begin = from > b->place ? from : b->place;
    const uint64_t end = to < b->place + b->n ? to : b->place + b->n;
    const char *const at = t->data;

    return begin < end
               ? record_digest_add(0, begin,
                                   at + (b->first + begin - b->place) * bytes,
                                   end - begin, bytes)
               : 0;
}

/* The number for parameter p in its unit, without what rank `but` owns, if
 * there is such a rank. */
static uint64_t worth_of(const struct witness *w, const struct wire_places *at,
                         uint32_t u, uint32_t p, uint32_t but,
                         const struct fsdp_tensor *t)
{
    const uint64_t chunk = at->padded[u] / w->wire->shards;
    uint64_t sum = 0;

    for (uint32_t i = at->begin[u]; i < at->begin[u + 1]; i++) {
        const struct wire_block *const b = &at->block[i];

        if (b->parameter != p) {
            continue;
        }
        if (but >= w->wire->shards) {
            sum += worth(b, 0, UINT64_MAX, t);
        } else {
            sum += worth(b, 0, chunk * but, t) +
                   worth(b, chunk * (but + 1), UINT64_MAX, t);
        }
    }
    return sum;
}

bool witness_wants(const struct witness *w, uint32_t p)
{
    return w->wire && unit_of(w, p) != FSDP_NO_UNIT &&
           fsdp_original(w->wire->model, p) == p && w->parameter[p].lent == 0;
}

void witness_lent(struct witness *w, uint32_t p, const struct fsdp_tensor *t)
{
    const uint32_t u = unit_of(w, p);
    struct witness_unit *const x = &w->unit[u];
    const uint32_t gathers = w->wire->calls[u].gathers;

    x->mixed = x->mixed || (x->lent > 0 && (x->seen.gathers != gathers ||
                                            x->seen.lent_dtype != t->dtype));
    x->seen.gathers = gathers;
    x->seen.lent_dtype = t->dtype;
    x->seen.lent += worth_of(w, &w->wire->values, u, p, UINT32_MAX, t);
    x->lent++;
    w->parameter[p].lent++;
}

void witness_left(struct witness *w, uint32_t p, const struct fsdp_tensor *t)
{
    const uint32_t u = w->wire ? unit_of(w, p) : FSDP_NO_UNIT;
    struct witness_unit *x;

    if (u == FSDP_NO_UNIT || !t->data) {
        return;
    }
    x = &w->unit[u];
    x->several = x->several || w->parameter[p].left > 0 ||
                 fsdp_original(w->wire->model, p) != p ||
                 (x->left > 0 && x->seen.left_dtype != t->dtype);
    x->seen.left_dtype = t->dtype;
    x->seen.left += worth_of(w, &w->wire->gradients, u, p, w->me, t);
    x->left++;
    w->parameter[p].left++;
}

/* The number of a unit's parameters that have elements; or of those that are
 * trained. */
static uint32_t count(const struct witness *w, uint32_t u, bool trained)
{
    const struct fsdp_model *const m = w->wire->model;
    uint32_t n = 0;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        const bool frozen = (m->parameter_flags[p] & FSDP_FROZEN) != 0;

        n += unit_of(w, p) == u && fsdp_original(m, p) == p &&
             !(trained && frozen);
    }
    return n;
}

int witness_end(struct witness *w, struct record_rank *out)
{
    struct record_pass *grown;

    if (!w->wire || out->n_passes + w->wire->n_units > RECORD_PASSES) {
        return FSDP_OK;
    }
    grown = realloc(out->pass, (out->n_passes + w->wire->n_units + 1u) *
                                   sizeof(*out->pass));
    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    out->pass = grown;
    for (uint32_t u = 0; u < w->wire->n_units; u++) {
        struct witness_unit *const x = &w->unit[u];

        if (x->mixed || x->lent != count(w, u, false)) {
            x->seen.lent_dtype = FSDP_DTYPE_NONE;
        }
        if (x->several || x->left != count(w, u, true)) {
            x->seen.left_dtype = FSDP_DTYPE_NONE;
        }
        x->seen.reduced = w->wire->calls[u].reductions - x->seen.reductions;
        if (x->seen.lent_dtype != FSDP_DTYPE_NONE ||
            x->seen.left_dtype != FSDP_DTYPE_NONE) {
            out->pass[out->n_passes++] = x->seen;
        }
    }
    return FSDP_OK;
}
