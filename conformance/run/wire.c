/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - see wire.h. Places are worked out here from the layouts'
 * definition, as everyone does who has to know them.
 */
#include "run/wire.h"

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

/* Room for the rows of p that a shard may own. */
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

static uint32_t unit_of(const struct wire *w, const struct fsdp_units *units,
                        uint32_t p)
{
    return units->unit_of_module[w->model->parameter_module[p]];
}

/* Parameters one behind the other. */
static void place_flat(struct wire *w, const struct fsdp_units *units,
                       uint32_t u)
{
    uint64_t n = 0;

    for (uint32_t p = 0; p < w->model->n_parameters; p++) {
        if (unit_of(w, units, p) == u) {
            w->block[w->begin[u + 1]++] =
                (struct wire_block){p, n, 0, fsdp_numel(w->model, p)};
            n += fsdp_numel(w->model, p);
        }
    }
    w->padded[u] = (n / w->shards + (n % w->shards != 0)) * w->shards;
}

/* Shards one behind the other, each with its rows of every parameter. */
static void place_rows(struct wire *w, const struct fsdp_units *units,
                       uint32_t u)
{
    uint64_t at = 0;

    for (uint32_t s = 0; s < w->shards; s++) {
        for (uint32_t p = 0; p < w->model->n_parameters; p++) {
            uint64_t n = block_of(w->model, p, w->shards);
            uint64_t numel = fsdp_numel(w->model, p);
            uint64_t first = at_most(s * n, numel);

            if (unit_of(w, units, p) == u) {
                w->block[w->begin[u + 1]++] = (struct wire_block){
                    p, at, first, at_most(n, numel - first)};
                at += n;
            }
        }
    }
    w->padded[u] = at;
}

static uint64_t padding_of(const struct wire *w, uint32_t u)
{
    uint64_t n = w->padded[u];

    for (uint32_t i = w->begin[u]; i < w->begin[u + 1]; i++) {
        n -= w->block[i].n;
    }
    return n;
}

int wire_make(const struct fsdp_model *model, const struct fsdp_units *units,
              uint32_t layout, uint32_t shards, bool values, struct wire *out)
{
    const size_t n = (size_t)units->n_units + 2;
    uint64_t most = 1;

    *out = (struct wire){
        .model = model, .n_units = units->n_units, .shards = shards};
    out->block =
        calloc((size_t)model->n_parameters * shards + 1, sizeof(*out->block));
    out->begin = calloc(n, sizeof(*out->begin));
    out->padded = calloc(n, sizeof(*out->padded));
    out->gathered = calloc(n, sizeof(*out->gathered));
    if (!out->block || !out->begin || !out->padded || !out->gathered) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        out->begin[u + 1] = out->begin[u];
        if (layout == FSDP_LAYOUT_FLAT) {
            place_flat(out, units, u);
        } else {
            place_rows(out, units, u);
        }
        out->gathered[u] = !values;
        most = padding_of(out, u) > most ? padding_of(out, u) : most;
    }
    out->padding = calloc(most, sizeof(*out->padding));
    return out->padding ? FSDP_OK : FSDP_ERR_NOMEM;
}

void wire_release(struct wire *w)
{
    free(w->block);
    free(w->begin);
    free(w->padded);
    free(w->gathered);
    free(w->padding);
    *w = (struct wire){0};
}

static bool is_dirty(const char *element, uint64_t bytes)
{
    static const char zero[sizeof(float)];

    return memcmp(element, zero, bytes) != 0;
}

/* What lies between blocks is copied together and then looked at once. */
static int look_at_padding(struct wire *w, const struct fsdp_device *d,
                           struct fsdp_stream *stream, uint32_t u,
                           uint32_t dtype, const void *whole)
{
    const uint64_t bytes = fsdp_dtype_bytes(dtype);
    char *const padding = (char *)w->padding;
    uint64_t n = 0;
    uint64_t at = 0;

    for (uint32_t i = w->begin[u]; i <= w->begin[u + 1]; i++) {
        bool last = i == w->begin[u + 1];
        uint64_t next = last ? w->padded[u] : w->block[i].place;

        if (next > at) {
            FSDP_TRY(d->copy(d->self, stream, padding + n * bytes,
                             (const char *)whole + at * bytes,
                             (next - at) * bytes));
            n += next - at;
        }
        at = last ? next : next + w->block[i].n;
    }
    if (n > 0) {
        FSDP_TRY(d->wait(d->self, NULL, stream, 0, "wire->recorder"));
    }
    for (uint64_t i = 0; i < n; i++) {
        w->dirty += is_dirty(padding + i * bytes, bytes);
    }
    return FSDP_OK;
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
    const uint32_t u = c->unit;

    if (u >= w->n_units || c->dim != FSDP_DIM_SHARD ||
        !fsdp_is_float(c->dtype) || !whole ||
        c->n != w->padded[u] / w->shards) {
        return FSDP_OK;
    }
    FSDP_TRY(look_at_padding(w, d, stream, u, c->dtype, whole));
    if (c->kind != FSDP_ALL_GATHER || w->gathered[u]) {
        return FSDP_OK;
    }
    w->gathered[u] = true;
    for (uint32_t i = w->begin[u]; i < w->begin[u + 1]; i++) {
        FSDP_TRY(look_at_values(w, d, stream, &w->block[i], c->dtype, whole));
    }
    return FSDP_OK;
}
