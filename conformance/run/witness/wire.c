/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - see wire.h. Places are computed here from the definition of the
 * layouts, independently of all others that compute them.
 */
#include "run/witness/wire.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 1024 /* values compared at a time */
};

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Elements of the most rows of p that a shard may own. */
static uint64_t block_of(const struct fsdp_model *model, uint32_t p,
                         uint32_t shards)
{
    const uint64_t *shape = model->parameter_shape[p];
    uint64_t rows = model->parameter_n_dims[p] > 0 ? shape[0] : 1;

    if (rows == 0) {
        return 0;
    }
    return (rows / shards + (rows % shards != 0)) *
           (fsdp_numel(model, p) / rows);
}

/* Whether p has a place in unit u: a name of a tied parameter that is not the
 * original has none. */
static bool is_in(const struct wire *w, const struct fsdp_units *units,
                  uint32_t p, uint32_t u)
{
    return fsdp_unit_of(w->model, units, p) == u &&
           fsdp_original(w->model, p) == p;
}

static bool is_frozen(const struct wire *w, uint32_t p)
{
    return w->model->parameter_flags &&
           (w->model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* A unit of frozen parameters alone has no gradient; one without parameters has
 * an empty one. */
static bool has_gradient(const struct wire *w, const struct fsdp_units *units,
                         uint32_t u)
{
    bool freezes = false;

    for (uint32_t p = 0; p < w->model->n_parameters; p++) {
        if (is_in(w, units, p, u) && !is_frozen(w, p)) {
            return true;
        }
        freezes = freezes || is_in(w, units, p, u);
    }
    return !freezes;
}

/* Places of the flat layout: parameters one behind the other. */
static void place_flat(const struct wire *w, const struct fsdp_units *units,
                       uint32_t u, struct wire_places *out)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < w->model->n_parameters; p++) {
        if (is_in(w, units, p, u)) {
            out->block[out->begin[u + 1]++] =
                (struct wire_block){p, n, 0, fsdp_numel(w->model, p)};
            n += fsdp_numel(w->model, p);
        }
    }
    out->padded[u] = (n / w->shards + (n % w->shards != 0)) * w->shards;
}

/* Places of the layout by rows: shards one behind the other, each with its rows
 * of every parameter; in a gradient, of every trainable one. */
static void place_rows(const struct wire *w, const struct fsdp_units *units,
                       uint32_t u, struct wire_places *out)
{
    const bool of_gradients = out == &w->gradients;
    uint64_t at = 0;

    for (uint32_t s = 0; s < w->shards; s++) {
        for (uint32_t p = 0; p < w->model->n_parameters; p++) {
            uint64_t n = block_of(w->model, p, w->shards);
            uint64_t numel = fsdp_numel(w->model, p);
            uint64_t first = at_most(s * n, numel);

            if (is_in(w, units, p, u) && !(of_gradients && is_frozen(w, p))) {
                out->block[out->begin[u + 1]++] = (struct wire_block){
                    p, at, first, at_most(n, numel - first)};
                at += n;
            }
        }
    }
    out->padded[u] = at;
}

/* How many of a unit's places hold no element, or none that is trained. */
static uint64_t zeros_of(const struct wire *w, const struct wire_places *at,
                         uint32_t u)
{
    uint64_t n = at->padded[u];

    for (uint32_t i = at->begin[u]; i < at->begin[u + 1]; i++) {
        n -= is_frozen(w, at->block[i].parameter) ? 0 : at->block[i].n;
    }
    return n;
}

static int make_places(const struct wire *w, const struct fsdp_units *units,
                       uint32_t layout, struct wire_places *out, uint64_t *most)
{
    const size_t n = (size_t)units->n_units + 2;

    out->block = calloc((size_t)w->model->n_parameters * w->shards + 1,
                        sizeof(*out->block));
    out->begin = calloc(n, sizeof(*out->begin));
    out->padded = calloc(n, sizeof(*out->padded));
    if (!out->block || !out->begin || !out->padded) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        out->begin[u + 1] = out->begin[u];
        if (out == &w->gradients && !has_gradient(w, units, u)) {
            continue;
        }
        if (layout == FSDP_LAYOUT_FLAT) {
            place_flat(w, units, u, out);
        } else {
            place_rows(w, units, u, out);
        }
        *most = zeros_of(w, out, u) > *most ? zeros_of(w, out, u) : *most;
    }
    return FSDP_OK;
}

static void release_places(struct wire_places *at)
{
    free(at->block);
    free(at->begin);
    free(at->padded);
    *at = (struct wire_places){0};
}

int wire_make(const struct fsdp_model *model, const struct fsdp_units *units,
              uint32_t layout, uint32_t shards, bool values, struct wire *out)
{
    uint64_t most = 1;

    *out = (struct wire){
        .model = model, .n_units = units->n_units, .shards = shards};
    out->gathered = calloc((size_t)units->n_units + 1, sizeof(*out->gathered));
    out->calls = calloc((size_t)units->n_units + 1, sizeof(*out->calls));
    if (!out->gathered || !out->calls) {
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(make_places(out, units, layout, &out->values, &most));
    FSDP_TRY(make_places(out, units, layout, &out->gradients, &most));
    for (uint32_t u = 0; u < units->n_units; u++) {
        out->gathered[u] = !values;
    }
    out->aside = calloc(most, sizeof(*out->aside));
    return out->aside ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* After a change more of a gradient may have to be +0. */
int wire_change(struct wire *w, const struct fsdp_units *units, uint32_t layout)
{
    uint64_t most = 1;

    if (!w->model) { /* there is no wire */
        return FSDP_OK;
    }
    release_places(&w->values);
    release_places(&w->gradients);
    FSDP_TRY(make_places(w, units, layout, &w->values, &most));
    FSDP_TRY(make_places(w, units, layout, &w->gradients, &most));
    free(w->aside);
    w->aside = calloc(most, sizeof(*w->aside));
    return w->aside ? FSDP_OK : FSDP_ERR_NOMEM;
}

void wire_release(struct wire *w)
{
    release_places(&w->values);
    release_places(&w->gradients);
    free(w->gathered);
    free(w->calls);
    free(w->aside);
    *w = (struct wire){0};
}

/* A message that is being looked at; what must be +0 is copied together, and
 * then looked at once. */
struct message {
    struct wire *w;
    const struct fsdp_device *d;
    struct fsdp_stream *stream;
    const struct wire_places *at;
    uint32_t unit, dtype;
    const void *whole;
    uint64_t n; /* elements that were put aside */
};

/* Puts elements [from, to) aside. */
static int put_aside(struct message *m, uint64_t from, uint64_t to)
{
    const uint64_t bytes = fsdp_dtype_bytes(m->dtype);

    if (to > from) {
        FSDP_TRY(m->d->copy(
            m->d->self, m->stream, (char *)m->w->aside + m->n * bytes,
            (const char *)m->whole + from * bytes, (to - from) * bytes));
        m->n += to - from;
    }
    return FSDP_OK;
}

static int count_dirty(struct message *m, uint64_t *dirty)
{
    static const char zero[sizeof(float)];
    const uint64_t bytes = fsdp_dtype_bytes(m->dtype);

    if (m->n > 0) {
        FSDP_TRY(m->d->wait(m->d->self, NULL, m->stream, 0, "wire->recorder"));
    }
    for (uint64_t i = 0; i < m->n; i++) {
        *dirty +=
            memcmp((const char *)m->w->aside + i * bytes, zero, bytes) != 0;
    }
    m->n = 0;
    return FSDP_OK;
}

/* Looks at the padding between blocks. */
static int look_at_padding(struct message *m)
{
    const struct wire_places *const p = m->at;
    uint64_t at = 0;

    for (uint32_t i = p->begin[m->unit]; i < p->begin[m->unit + 1]; i++) {
        FSDP_TRY(put_aside(m, at, p->block[i].place));
        at = p->block[i].place + p->block[i].n;
    }
    FSDP_TRY(put_aside(m, at, p->padded[m->unit]));
    return count_dirty(m, &m->w->dirty);
}

/* Looks at the places of frozen parameters, which a gradient has only because
 * the layout does. */
static int look_at_frozen(struct message *m)
{
    const struct wire_places *const p = m->at;

    for (uint32_t i = p->begin[m->unit]; i < p->begin[m->unit + 1]; i++) {
        const struct wire_block *const b = &p->block[i];

        if (is_frozen(m->w, b->parameter)) {
            FSDP_TRY(put_aside(m, b->place, b->place + b->n));
        }
    }
    return count_dirty(m, &m->w->frozen);
}

static int look_at_values(struct wire *w, const struct fsdp_device *d,
                          struct fsdp_stream *stream,
                          const struct wire_block *b, uint32_t dtype,
                          const void *whole)
{
    const uint64_t bytes = fsdp_dtype_bytes(dtype);
    union {
        float wide[SLICE];
        uint16_t narrow[SLICE];
    } got;
    float want[SLICE];
    uint64_t n;

    for (uint64_t done = 0; done < b->n; done += n) {
        n = at_most(b->n - done, SLICE);
        FSDP_TRY(d->copy(d->self, stream, &got,
                         (const char *)whole + (b->place + done) * bytes,
                         n * bytes));
        FSDP_TRY(d->wait(d->self, NULL, stream, 0, "wire->recorder"));
        FSDP_TRY(w->model->initial(w->model->context, b->parameter,
                                   b->first + done, n, want));
        for (uint64_t i = 0; i < n; i++) {
            w->misplaced += fsdp_f32_bits(fsdp_load(dtype, &got, i)) !=
                            fsdp_f32_bits(fsdp_round(dtype, want[i]));
        }
    }
    return FSDP_OK;
}

int wire_look(struct wire *w, const struct fsdp_device *d,
              struct fsdp_stream *stream, const struct fsdp_collective *c,
              const void *whole)
{
    const bool of_gradient = c->kind == FSDP_REDUCE_SCATTER;
    const struct wire_places *const at =
        of_gradient ? &w->gradients : &w->values;
    const uint32_t u = c->unit;
    struct message m = {w, d, stream, at, u, c->dtype, whole, 0};

    if (u >= w->n_units || c->dim != FSDP_DIM_SHARD ||
        !fsdp_is_float(c->dtype) || !whole ||
        c->n != at->padded[u] / w->shards) {
        return FSDP_OK;
    }
    w->calls[u].gathers += c->kind == FSDP_ALL_GATHER;
    w->calls[u].reductions += of_gradient;
    FSDP_TRY(look_at_padding(&m));
    if (of_gradient) {
        return look_at_frozen(&m);
    }
    if (c->kind != FSDP_ALL_GATHER || w->gathered[u]) {
        return FSDP_OK;
    }
    w->gathered[u] = true;
    for (uint32_t i = at->begin[u]; i < at->begin[u + 1]; i++) {
        FSDP_TRY(look_at_values(w, d, stream, &at->block[i], c->dtype, whole));
    }
    return FSDP_OK;
}
