/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_refusal.c - checks the ranges of operators, copies and collectives, and
 * says what is wrong with those that are refused.
 */
#include "run/witness/meter_refusal.h"
#include "run/witness/meter.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static int refuse_call(const struct meter *m, const char *where,
                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Describes the refusal, unless an error was described before. */
static int refuse_call(const struct meter *m, const char *where,
                       const char *format, ...)
{
    struct fsdp_error *e = m->env ? m->env->error : NULL;
    va_list list;

    if (e && e->status == FSDP_OK) {
        e->status = FSDP_ERR_INVALID;
        e->rank = (int32_t)m->env->rank;
        snprintf(e->where, sizeof(e->where), "%s", where);
        va_start(list, format);
        vsnprintf(e->message, sizeof(e->message), format, list);
        va_end(list);
    }
    return FSDP_ERR_INVALID;
}

/* By how many bytes a range exceeds the allocation that it begins in, or at
 * whose end it begins; 0: not at all, or it begins in none. */
static uint64_t beyond(const struct meter *m, const void *p, uint64_t bytes)
{
    uintptr_t at = (uintptr_t)p;
    uint64_t over = 0;

    for (uint32_t i = 0; p && bytes > 0 && i < m->n_blocks; i++) {
        uintptr_t first = (uintptr_t)m->block[i].p;
        uint64_t room = m->block[i].bytes - (at - first);

        if (at < first || at - first > m->block[i].bytes) {
            continue;
        }
        if (bytes <= room) {
            return 0;
        }
        over = bytes - room;
    }
    return over;
}

/* "add of unit 2", "the model's gemm" */
static void operator_words(bool is_model, const struct fsdp_op *op,
                           char out[64])
{
    const char *name = race_what_name(RACE_OPERATOR + op->kind);

    if (op->unit == FSDP_NO_UNIT || is_model) {
        snprintf(out, 64, "%s%s", is_model ? "the model's " : "", name);
    } else {
        snprintf(out, 64, "%s of unit %" PRIu32, name, op->unit);
    }
}

int refusal_of_operator_ranges(const struct meter *m, bool is_model,
                               const struct fsdp_op *op)
{
    const char *side = "in";
    char words[64];
    uint64_t over = 0;
    uint64_t bytes = 0;
    uint32_t k = 0;

    for (uint32_t i = 0; i < op->n_in && i < FSDP_OP_MAX_IN && !over; i++) {
        k = i;
        bytes = op->in[i].bytes;
        over = beyond(m, op->in[i].p, bytes);
    }
    for (uint32_t i = 0; i < op->n_out && i < FSDP_OP_MAX_OUT && !over; i++) {
        k = i;
        side = "out";
        bytes = op->out[i].bytes;
        over = beyond(m, op->out[i].p, bytes);
    }
    if (!over) {
        return FSDP_OK;
    }
    operator_words(is_model, op, words);
    return refuse_call(m, "device",
                       "%s: %s[%" PRIu32 "], %" PRIu64 " bytes, ends %" PRIu64
                       " bytes beyond its allocation",
                       words, side, k, bytes, over);
}

int refusal_of_copy_ranges(const struct meter *m, bool is_model, const void *to,
                           const void *from, uint64_t bytes)
{
    uint64_t over = beyond(m, to, bytes);
    const char *side = "to";

    if (!over) {
        over = beyond(m, from, bytes);
        side = "from";
    }
    return over ? refuse_call(m, "device",
                              "%scopy of %" PRIu64 " bytes: '%s' ends %" PRIu64
                              " bytes beyond its allocation",
                              is_model ? "the model's " : "", bytes, side, over)
                : FSDP_OK;
}

/* Bytes that a collective reads and writes here, as comm.h has them; false:
 * n, dim or dtype is none, which the communicator refuses. */
static bool collective_bytes(const struct meter *m, uint32_t extent,
                             const struct fsdp_collective *c, uint64_t *in,
                             uint64_t *out)
{
    uint64_t element = fsdp_dtype_bytes(c->dtype);

    if (c->kind >= FSDP_BARRIER || !element || !extent ||
        (c->dim >= m->env->mesh->n_dims && c->dim != FSDP_DIM_WORLD) ||
        c->n > UINT64_MAX / 2 / element / extent) {
        return false;
    }
    *in = *out = c->n * element;
    *in *= c->kind == FSDP_REDUCE_SCATTER ? extent : 1;
    *out *= c->kind == FSDP_ALL_GATHER ? extent : 1;
    return true;
}

static const char *name_of(const struct fsdp_collective *c)
{
    return race_what_name(RACE_COLLECTIVE + c->kind);
}

int refusal_of_collective(const struct meter *m, uint32_t extent,
                          const struct fsdp_collective *c)
{
    uint64_t in;
    uint64_t out;
    uint64_t over;
    bool is_in;

    if (!collective_bytes(m, extent, c, &in, &out) || c->n == 0) {
        return FSDP_OK;
    }
    if (!c->out || (!c->in && c->kind != FSDP_BROADCAST)) {
        return refuse_call(
            m, "comm", "%s of unit %" PRId32 ", n %" PRIu64 ": '%s' is NULL",
            name_of(c), (int32_t)c->unit, c->n, c->out ? "in" : "out");
    }
    over = beyond(m, c->in, in);
    is_in = over > 0;
    over = over ? over : beyond(m, c->out, out);
    return over ? refuse_call(m, "comm",
                              "%s of unit %" PRId32 ", n %" PRIu64
                              ": '%s', %" PRIu64 " bytes, ends %" PRIu64
                              " bytes beyond its allocation",
                              name_of(c), (int32_t)c->unit, c->n,
                              is_in ? "in" : "out", is_in ? in : out, over)
                : FSDP_OK;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b,
                    uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;

    return a_bytes && b_bytes && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

/* Describes an argument that no operator may be given; false: there is none. */
static bool place_words(const struct fsdp_op *op, char *out, size_t room)
{
    for (uint32_t o = 0; o < op->n_out; o++) {
        const struct fsdp_out *y = &op->out[o];

        if (!y->p && y->bytes) {
            snprintf(out, room, "out[%" PRIu32 "] is NULL", o);
            return true;
        }
        for (uint32_t i = 0; i < op->n_in; i++) {
            const struct fsdp_in *x = &op->in[i];

            if (overlap(x->p, x->bytes, y->p, y->bytes)) {
                bool same = x->p == y->p && x->bytes == y->bytes;

                snprintf(out, room, "in[%" PRIu32 "] and out[%" PRIu32 "] %s",
                         i, o, same ? "are the same range" : "overlap in part");
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (!op->in[i].p && op->in[i].bytes) {
            snprintf(out, room, "in[%" PRIu32 "] is NULL", i);
            return true;
        }
    }
    return false;
}

/* "dim 3 4, in 12 bytes 8 bytes, out 4 bytes" */
static void shape_words(const struct fsdp_op *op, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "dim");
    uint32_t dims = 6;

    while (dims > 1 && op->dim[dims - 1] == 0) {
        dims--;
    }
    for (uint32_t i = 0; i < dims && n < room; i++) {
        n += (size_t)snprintf(out + n, room - n, " %" PRIu64, op->dim[i]);
    }
    for (uint32_t i = 0; i < op->n_in && n < room; i++) {
        n += (size_t)snprintf(out + n, room - n, "%s %" PRIu64,
                              i ? "" : "; bytes in", op->in[i].bytes);
    }
    for (uint32_t i = 0; i < op->n_out && n < room; i++) {
        n += (size_t)snprintf(out + n, room - n, "%s %" PRIu64,
                              i ? "" : "; out", op->out[i].bytes);
    }
}

void refusal_of_copy(const struct meter *m, bool is_model, const void *to,
                     const void *from, uint64_t bytes)
{
    (void)refuse_call(m, "device", "%scopy of %" PRIu64 " bytes%s%s",
                      is_model ? "the model's " : "", bytes,
                      to ? "" : ": 'to' is NULL",
                      from ? "" : ": 'from' is NULL");
}

void refusal_by_device(const struct meter *m, bool is_model,
                       const struct fsdp_op *op)
{
    char words[64];
    char place[64];
    char shape[128];

    operator_words(is_model, op, words);
    if (op->n_in > FSDP_OP_MAX_IN || op->n_out > FSDP_OP_MAX_OUT) {
        (void)refuse_call(m, "device", "%s: more ranges than an operator has",
                          words);
        return;
    }
    shape_words(op, shape, sizeof(shape));
    if (place_words(op, place, sizeof(place))) {
        (void)refuse_call(m, "device", "%s is not as op.h has it: %s (%s)",
                          words, place, shape);
    } else {
        (void)refuse_call(m, "device", "%s is not as op.h has it: %s", words,
                          shape);
    }
}
