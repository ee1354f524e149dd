/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_values.c - reads and changes numbers on the device for mutants, and
 * gives sizes and pieces of the sharded model.
 */
#include "mutants/mutant_kit.h"

#include <fsdp/arith/bf16.h>

#include <string.h>
#include <sys/mman.h>

enum {
    BLOCK = 256 /* floats changed at a time */
};

float *mutant_input(const struct fsdp_collective *c)
{
    /* The engine's own, that it means not to change itself.
     * NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (float *)(uintptr_t)c->in;
}

int mutant_get(struct fsdp_stream *stream, const void *from, uint64_t n,
               float *to)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->copy(d->self, stream, to, from, n * sizeof(*to)));
    return d->sync(d->self, stream);
}

int mutant_put(struct fsdp_stream *stream, const float *from, uint64_t n,
               void *to)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->copy(d->self, stream, to, from, n * sizeof(*from)));
    return d->sync(d->self, stream);
}

int mutant_each(struct fsdp_stream *stream, void *p, uint64_t n,
                float (*change)(float x))
{
    float *at = p;
    float x[BLOCK];

    for (uint64_t done = 0; done < n; done += BLOCK) {
        uint64_t m = n - done < BLOCK ? n - done : BLOCK;

        FSDP_TRY(mutant_get(stream, at + done, m, x));
        for (uint64_t i = 0; i < m; i++) {
            x[i] = change(x[i]);
        }
        FSDP_TRY(mutant_put(stream, x, m, at + done));
    }
    return FSDP_OK;
}

float mutant_as_bf16(float x)
{
    return fsdp_bf16_to_f32(fsdp_bf16_from_f32(x));
}

void *mutant_room(void **room, size_t bytes)
{
    void *p = *room;

    if (!p) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *room = p == MAP_FAILED ? NULL : p;
    }
    return *room;
}

int mutant_take_whole(void **all)
{
    const struct fsdp_device *d = mutant_real.device;
    const uint64_t bytes = mutant_model_bytes(mutant_real.model);

    FSDP_TRY(d->alloc(d->self, bytes, all));
    d->live(d->self, NULL, FSDP_PARAM_FULL, 0, *all, bytes);
    return FSDP_OK;
}

void mutant_drop_whole(void *all)
{
    const struct fsdp_device *d = mutant_real.device;

    d->dead(d->self, NULL, all);
    d->free(d->self, all);
}

int mutant_whole_beside_broadcast(void *self, struct fsdp_stream *stream,
                                  const struct fsdp_collective *c)
{
    void *all;

    (void)self;
    if (c->kind != FSDP_BROADCAST) {
        return mutant_communicate(stream, c);
    }
    FSDP_TRY(mutant_take_whole(&all));
    FSDP_TRY(mutant_communicate(stream, c));
    mutant_drop_whole(all);
    return FSDP_OK;
}

static _Thread_local void (*my_look)(const struct fsdp_piece *piece);

static void look_at_piece(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    my_look(piece);
}

int mutant_each_piece(struct fsdp_sharded *s,
                      void (*look)(const struct fsdp_piece *piece))
{
    my_look = look;
    return mutant_real.engine.pieces(s, look_at_piece, NULL);
}

static _Thread_local float (*my_change)(float x);

static void change_gradient(const struct fsdp_piece *piece)
{
    if (piece->grad) {
        (void)mutant_each(NULL, (float *)piece->grad, piece->n, my_change);
    }
}

int mutant_each_gradient(struct fsdp_sharded *s, float (*change)(float x))
{
    my_change = change;
    return mutant_each_piece(s, change_gradient);
}

uint64_t mutant_block(uint32_t p)
{
    uint64_t rows = mutant_real.model->parameter_shape[p][0];

    return (rows + mutant_real.shards - 1) / mutant_real.shards *
           (fsdp_numel(mutant_real.model, p) / rows);
}

uint32_t mutant_unit(uint32_t p)
{
    return fsdp_unit_of(mutant_real.model, mutant_real.units, p);
}

uint64_t mutant_unit_numel(uint32_t unit)
{
    const struct fsdp_model *const m = mutant_real.model;
    uint64_t n = 0;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        n += mutant_unit(p) == unit && fsdp_original(m, p) == p
                 ? fsdp_numel(m, p)
                 : 0;
    }
    return n;
}

uint64_t mutant_chunk(uint32_t unit)
{
    const uint64_t n = mutant_unit_numel(unit);

    return n / mutant_real.shards + (n % mutant_real.shards != 0);
}

int mutant_meet(uint32_t kind, uint32_t unit)
{
    const struct fsdp_device *d = mutant_real.device;
    const uint64_t n = mutant_chunk(unit);
    const uint64_t bytes = n * (mutant_real.shards + 1) * sizeof(float);
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = FSDP_DIM_SHARD,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = FSDP_FOLD_RANK,
                                .unit = unit,
                                .n = n};
    void *all = NULL;
    int status;

    FSDP_TRY(d->alloc(d->self, bytes, &all));
    memset(all, 0, bytes);
    c.in = kind == FSDP_ALL_GATHER ? all : (float *)all + n;
    c.out = kind == FSDP_ALL_GATHER ? (float *)all + n : all;
    status = mutant_communicate(NULL, &c);
    d->free(d->self, all);
    return status;
}

size_t mutant_model_bytes(const struct fsdp_model *model)
{
    size_t bytes = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        bytes += fsdp_numel(model, p) * sizeof(float);
    }
    return bytes;
}
