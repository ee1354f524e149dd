/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_device.c - the reference device: memory, streams on which everything
 * has finished when the call returns, and the choice of operators.
 *
 * Checks that all operators share are made here: how many ranges there are,
 * that none of them is missing, and which of them may overlap.
 */
#include "plain_device.h"

#include "op_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ALIGNMENT = 64
};

struct fsdp_stream {
    const char *name;
    uint64_t tickets;
};

/* Of this processor: whoever opens a device writes the same. */
static _Atomic(const struct ref_operator *) chosen = ref_operators_plain;

static bool overlap(const void *a, uint64_t a_bytes, const void *b,
                    uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;

    if (a_bytes == 0 || b_bytes == 0) {
        return false;
    }
    return x <= y ? y - x < a_bytes : x - y < b_bytes;
}

/* May out[o] lie where it lies? */
static bool placed_well(const struct fsdp_op *op,
                        const struct ref_operator *rule, uint32_t o)
{
    const struct fsdp_out *out = &op->out[o];

    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct fsdp_in *in = &op->in[i];
        bool over = (rule->over[o] >> i & 1u) != 0;
        bool same = in->p == out->p && in->bytes == out->bytes;

        if (overlap(in->p, in->bytes, out->p, out->bytes) && !(over && same)) {
            return false;
        }
        if (rule->in_place && over && !same) {
            return false;
        }
    }
    for (uint32_t other = 0; other < o; other++) {
        if (overlap(op->out[other].p, op->out[other].bytes, out->p,
                    out->bytes)) {
            return false;
        }
    }
    return true;
}

static bool well_formed(const struct fsdp_op *op,
                        const struct ref_operator *rule)
{
    uint32_t flags = op->kind == FSDP_OP_GEMM ? FSDP_OP_TRANSPOSE_B : 0;

    if ((op->flags & ~flags) != 0 || op->n_in != rule->n_in ||
        op->n_out != rule->n_out) {
        return false;
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (!op->in[i].p && op->in[i].bytes > 0) {
            return false;
        }
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (!op->out[o].p && op->out[o].bytes > 0) {
            return false;
        }
        if (!placed_well(op, rule, o)) {
            return false;
        }
    }
    return true;
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    const struct ref_operator *operators = chosen;
    const struct ref_operator *rule;

    (void)self;
    (void)stream;
    if (!op || op->size < sizeof(*op)) {
        return FSDP_ERR_INVALID;
    }
    if (op->kind >= FSDP_N_OPS || !operators[op->kind].run) {
        return FSDP_ERR_UNSUPPORTED;
    }
    rule = &operators[op->kind];
    if (!well_formed(op, rule)) {
        return FSDP_ERR_INVALID;
    }
    return rule->run(op);
}

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    (void)self;
    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    if (bytes > PTRDIFF_MAX - ALIGNMENT) {
        return FSDP_ERR_NOMEM;
    }
    /* aligned_alloc wants a multiple of the alignment, and 0 may give NULL. */
    *out = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    return *out ? FSDP_OK : FSDP_ERR_NOMEM;
}

static void device_free(void *self, void *p)
{
    (void)self;
    free(p);
}

static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    (void)self;
    (void)stream;
    (void)kind;
    (void)unit;
    (void)p;
    (void)bytes;
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)self;
    (void)stream;
    (void)p;
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    (void)self;
    (void)stream;
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (!to || !from) {
        return FSDP_ERR_INVALID;
    }
    memcpy(to, from, bytes);
    return FSDP_OK;
}

static int device_stream_open(void *self, const char *name,
                              struct fsdp_stream **out)
{
    (void)self;
    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = malloc(sizeof(**out));
    if (!*out) {
        return FSDP_ERR_NOMEM;
    }
    **out = (struct fsdp_stream){.name = name};
    return FSDP_OK;
}

static void device_stream_close(void *self, struct fsdp_stream *stream)
{
    (void)self;
    free(stream);
}

static int device_mark(void *self, struct fsdp_stream *stream,
                       uint64_t *out_ticket)
{
    (void)self;
    /* All that was given has finished; who follows the order tells tickets
     * from each other all the same. */
    *out_ticket = stream ? ++stream->tickets : 1;
    return FSDP_OK;
}

static int device_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    (void)self;
    (void)later;
    (void)earlier;
    (void)ticket;
    (void)edge;
    return FSDP_OK;
}

static int device_sync(void *self, struct fsdp_stream *stream)
{
    (void)self;
    (void)stream;
    return FSDP_OK;
}

/* All that was given has finished by now. */
static int device_stamp(void *self, struct fsdp_stream *stream, uint64_t *ns)
{
    struct timespec now;

    (void)self;
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return FSDP_OK;
}

/* The fastest that this processor has. */
static const struct ref_operator *choose(void)
{
#ifdef REF_HAVE_LEVEL_FMA
    const char *portable = getenv("FSDP_REF_PORTABLE");

    if ((!portable || portable[0] == '\0') && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma")) {
        return ref_operators_fma;
    }
#endif
    return ref_operators_plain;
}

int ref_device_open(struct fsdp_device *out)
{
    if (!out) {
        return FSDP_ERR_INVALID;
    }
    chosen = choose();
    *out = (struct fsdp_device){
        .size = sizeof(*out),
        .place = FSDP_PLACE_HOST,
        .self = NULL,
        .profile = "f32-fma",
        .alloc = device_alloc,
        .free = device_free,
        .live = device_live,
        .dead = device_dead,
        .copy = device_copy,
        .run = device_run,
        .stream_open = device_stream_open,
        .stream_close = device_stream_close,
        .mark = device_mark,
        .wait = device_wait,
        .sync = device_sync,
        .stamp = device_stamp,
    };
    return FSDP_OK;
}

void ref_device_close(struct fsdp_device *device)
{
    if (device) {
        *device = (struct fsdp_device){0};
    }
}
