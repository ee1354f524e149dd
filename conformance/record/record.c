/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - a record in memory: made, released, searched, copied; and what
 * the things in it are called.
 */
#include "record/record_internal.h"
#include "record/record_spill.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

const char *record_stage_name(uint32_t stage)
{
    static const char *const name[] = {
        "initial",     "unsharded",   "local-gradient", "reduced", "before",
        "after",       "state0",      "state1",         "final",   "summoned",
        "loaded",      "loaded0",     "loaded1",        "clipped", "buffer",
        "buffer-seen", "buffer-left", "buffer-loaded",  "peer",    "peer0",
        "peer1"};

    return stage < N_OF(name) ? name[stage] : NULL;
}

const char *record_collective_name(uint32_t kind)
{
    static const char *const name[] = {"all-gather", "reduce-scatter",
                                       "all-reduce", "broadcast", "barrier"};

    return kind < N_OF(name) ? name[kind] : NULL;
}

const char *record_dim_name(uint32_t dim)
{
    switch (dim) {
    case FSDP_DIM_REPLICATE:
        return "replicate";
    case FSDP_DIM_SHARD:
        return "shard";
    case FSDP_DIM_WORLD:
        return "world";
    default:
        return NULL;
    }
}

const char *record_dtype_name(uint32_t dtype)
{
    static const char *const name[] = {"none", "f32", "bf16", "f16",
                                       "i32",  "i64", "u8"};

    return dtype < N_OF(name) ? name[dtype] : NULL;
}

const char *record_kind_name(uint32_t kind)
{
    static const char *const name[] = {
        "param-shard", "param-full", "grad-shard", "grad-full",
        "optim",       "staging",    "activation", "buffer"};

    return kind < N_OF(name) ? name[kind] : NULL;
}

const char *record_point_name(uint32_t point)
{
    static const char *const name[] = {
        "begin",         "pre-forward",   "post-forward",   "pre-backward",
        "post-backward", "pre-recompute", "post-recompute", "end",
        "cancel",        "step",          "zero-grad"};

    return point < N_OF(name) ? name[point] : NULL;
}

const char *record_end_name(uint32_t end)
{
    static const char *const name[] = {"returned", "signalled", "exited",
                                       "timed-out"};

    return end < N_OF(name) ? name[end] : NULL;
}

const char *record_side_name(uint32_t side)
{
    static const char *const name[] = {"input", "output"};

    return side < N_OF(name) ? name[side] : NULL;
}

const char *record_unit_name(uint32_t unit)
{
    return unit == FSDP_NO_UNIT ? "none" : NULL;
}

int record_fail(struct fsdp_error *error, int status, const char *where,
                const char *format, ...)
{
    if (error && error->status == FSDP_OK) {
        va_list arguments;

        error->status = status;
        snprintf(error->where, sizeof(error->where), "%s", where);
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
        for (char *c = error->message; *c != '\0'; c++) {
            if ((unsigned char)*c < 0x20 || *c == 0x7f) {
                *c = '?'; /* on one line, whatever characters the file had */
            }
        }
    }
    return status;
}

int record_init(struct record *r, const struct run_case *c, uint32_t n_ranks)
{
    memset(r, 0, sizeof(*r));
    r->c = *c;
    case_id(c, r->id);
    r->rank = calloc((size_t)n_ranks + (n_ranks == 0), sizeof(*r->rank));
    if (!r->rank) {
        return FSDP_ERR_NOMEM;
    }
    r->n_ranks = n_ranks;
    return FSDP_OK;
}

void record_rank_release(struct record_rank *rank)
{
    free(rank->loss);
    free(rank->other_loss);
    for (uint32_t i = 0; rank->sequence && i < rank->n_sequences; i++) {
        free(rank->sequence[i].c);
    }
    free(rank->sequence);
    free(rank->step_sequence);
    free(rank->memory.after_step);
    free(rank->memory.allocations);
    free(rank->memory.launches);
    free(rank->memory.hosted);
    free(rank->memory.moment);
    free(rank->answer);
    free(rank->edge);
    free(rank->pass);
    free(rank->account.payload);
    free(rank->account.digest);
    free(rank->flights.flight);
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        if (!rank->spill ||
            !record_spill_has(rank->spill, rank->tensor[i].data)) {
            free(rank->tensor[i].data);
        }
    }
    free(rank->tensor);
    memset(rank, 0, sizeof(*rank));
}

void record_release(struct record *r)
{
    for (uint32_t i = 0; r->rank && i < r->n_ranks; i++) {
        record_rank_release(&r->rank[i]);
    }
    free(r->rank);
    free(r->claim);
    if (r->spill) {
        record_spill_close(r->spill);
    }
    memset(r, 0, sizeof(*r));
}

bool record_world_is_adapter(const char *world)
{
    return strcmp(world, RECORD_ADAPTER_WORLD) == 0;
}

bool record_claims(const struct record *r, const char *claim)
{
    for (uint32_t i = 0; i < r->n_claims; i++) {
        if (strncmp(r->claim[i], claim, sizeof(r->claim[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int record_tensor_order(const void *a, const void *b)
{
    const struct record_tensor *const x = a;
    const struct record_tensor *const y = b;
    int order = compare_numbers(x->stage, y->stage);

    order = order != 0 ? order : compare_numbers(x->step, y->step);
    order = order != 0 ? order : compare_numbers(x->microbatch, y->microbatch);
    order = order != 0 ? order : compare_numbers(x->parameter, y->parameter);
    return order != 0 ? order : compare_numbers(x->first, y->first);
}

void record_sort(struct record_rank *rank)
{
    if (rank->n_tensors > 1) {
        qsort(rank->tensor, rank->n_tensors, sizeof(*rank->tensor),
              record_tensor_order);
    }
}

/* Index of the first tensor that is not before `key`. */
static uint32_t not_before(const struct record_rank *rank,
                           const struct record_tensor *key)
{
    uint32_t low = 0;
    uint32_t high = rank->n_tensors;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (record_tensor_order(&rank->tensor[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct record_tensor *record_find(const struct record_rank *rank,
                                        uint32_t stage, uint32_t step,
                                        uint32_t microbatch, uint32_t parameter,
                                        uint64_t first)
{
    const struct record_tensor key = {.stage = stage,
                                      .step = step,
                                      .microbatch = microbatch,
                                      .parameter = parameter,
                                      .first = first};
    const uint32_t i = not_before(rank, &key);

    if (i == rank->n_tensors ||
        record_tensor_order(&rank->tensor[i], &key) != 0) {
        return NULL;
    }
    if (rank->spill) {
        record_spill_look(rank->spill, &rank->tensor[i]);
    }
    return &rank->tensor[i];
}

uint32_t record_parts(const struct record_rank *rank, uint32_t stage,
                      uint32_t step, uint32_t microbatch, uint32_t parameter,
                      uint32_t *out_index)
{
    struct record_tensor key = {.stage = stage,
                                .step = step,
                                .microbatch = microbatch,
                                .parameter = parameter};
    const uint32_t begin = not_before(rank, &key);
    uint32_t end = begin;

    while (end < rank->n_tensors && rank->tensor[end].stage == stage &&
           rank->tensor[end].step == step &&
           rank->tensor[end].microbatch == microbatch &&
           rank->tensor[end].parameter == parameter) {
        end++;
    }
    *out_index = begin;
    return end - begin;
}

void record_tensor_name(const struct record_tensor *t,
                        char name[RECORD_TENSOR_NAME_BYTES])
{
    const char *const stage = record_stage_name(t->stage);

    snprintf(name, RECORD_TENSOR_NAME_BYTES, "%s.%u.%u.%u#%llu",
             stage ? stage : "unknown", t->step, t->microbatch, t->parameter,
             (unsigned long long)t->first);
}

/* Reads the digits at *s, which `end` must follow. */
static bool parse_number(const char **s, char end, uint64_t most, uint64_t *out)
{
    uint64_t x = 0;
    const char *p = *s;

    while (*p >= '0' && *p <= '9') {
        const uint64_t digit = (uint64_t)(*p - '0');

        if (x > (most - digit) / 10) {
            return false;
        }
        x = x * 10 + digit;
        p++;
    }
    if (p == *s || *p != end || (**s == '0' && p != *s + 1)) {
        return false;
    }
    *s = end == '\0' ? p : p + 1;
    *out = x;
    return true;
}

bool record_tensor_parse(const char *name, struct record_tensor *t)
{
    const char *const dot = strchr(name, '.');
    uint64_t number[3];
    const char *s;

    memset(t, 0, sizeof(*t));
    if (!dot) {
        return false;
    }
    while (t->stage < RECORD_N_STAGES) {
        const char *const stage = record_stage_name(t->stage);

        if (strlen(stage) == (size_t)(dot - name) &&
            strncmp(stage, name, (size_t)(dot - name)) == 0) {
            break;
        }
        t->stage++;
    }
    s = dot + 1;
    if (t->stage == RECORD_N_STAGES ||
        !parse_number(&s, '.', UINT32_MAX, &number[0]) ||
        !parse_number(&s, '.', UINT32_MAX, &number[1]) ||
        !parse_number(&s, '#', UINT32_MAX, &number[2]) ||
        !parse_number(&s, '\0', RECORD_MAX_EXACT, &t->first)) {
        return false;
    }
    t->step = (uint32_t)number[0];
    t->microbatch = (uint32_t)number[1];
    t->parameter = (uint32_t)number[2];
    return true;
}

/* ---- A copy -------------------------------------------------------------- */

/* NULL is no failure if there is nothing to copy: *status tells. */
static void *copy_of(const void *from, size_t n, size_t size, int *status)
{
    void *to = NULL;

    if (!from || *status != FSDP_OK) {
        return NULL;
    }
    to = calloc(n > 0 ? n : 1, size);
    if (!to) {
        *status = FSDP_ERR_NOMEM;
        return NULL;
    }
    memcpy(to, from, n * size);
    return to;
}

static void copy_tensors(const struct record_rank *from, struct record_rank *to,
                         int *status)
{
    uint32_t n = from->n_tensors;

    to->tensor = copy_of(from->tensor, n, sizeof(*to->tensor), status);
    if (!to->tensor) {
        return;
    }
    to->n_tensors = n;
    for (uint32_t i = 0; i < n; i++) {
        to->tensor[i].data = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        float *const data = from->tensor[i].data;

        to->tensor[i].data =
            to->spill && record_spill_has(from->spill, data)
                ? record_spill_same(from->spill, to->spill, data)
                : copy_of(data, (size_t)from->tensor[i].n, sizeof(*data),
                          status);
    }
}

static void copy_sequences(const struct record_rank *from,
                           struct record_rank *to, int *status)
{
    uint32_t n = from->n_sequences;

    to->sequence = copy_of(from->sequence, n, sizeof(*to->sequence), status);
    if (!to->sequence) {
        return;
    }
    to->n_sequences = n;
    for (uint32_t i = 0; i < n; i++) {
        to->sequence[i].c = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        to->sequence[i].c = copy_of(from->sequence[i].c, from->sequence[i].n,
                                    sizeof(*to->sequence[i].c), status);
    }
}

int record_account_copy(const struct record_account *from,
                        struct record_account *out)
{
    int status = FSDP_OK;

    *out = *from;
    out->payload = copy_of(from->payload, from->n_payloads,
                           sizeof(*out->payload), &status);
    out->digest =
        copy_of(from->digest, from->n_digests, sizeof(*out->digest), &status);
    if (status != FSDP_OK) {
        free(out->payload);
        free(out->digest);
        memset(out, 0, sizeof(*out));
    }
    return status;
}

static int copy_rank(const struct record_rank *from, struct record_spill *spill,
                     struct record_rank *to)
{
    int status = FSDP_OK;

    *to = *from;
    to->spill = spill;
    to->n_sequences = to->n_tensors = 0;
    to->sequence = NULL;
    to->tensor = NULL;
    to->loss = copy_of(from->loss, from->n_losses, sizeof(*to->loss), &status);
    to->other_loss = copy_of(from->other_loss, from->n_other_losses,
                             sizeof(*to->other_loss), &status);
    to->step_sequence = copy_of(from->step_sequence, from->n_steps,
                                sizeof(*to->step_sequence), &status);
    to->memory.after_step = copy_of(from->memory.after_step, from->n_steps,
                                    sizeof(*to->memory.after_step), &status);
    to->memory.allocations = copy_of(from->memory.allocations, from->n_steps,
                                     sizeof(*to->memory.allocations), &status);
    to->memory.launches = copy_of(from->memory.launches, from->n_steps,
                                  sizeof(*to->memory.launches), &status);
    if (from->memory.hosted) {
        to->memory.hosted = copy_of(from->memory.hosted, from->n_steps,
                                    sizeof(*to->memory.hosted), &status);
    }
    to->memory.moment = copy_of(from->memory.moment, from->memory.n_moments,
                                sizeof(*to->memory.moment), &status);
    to->answer =
        copy_of(from->answer, from->n_answers, sizeof(*to->answer), &status);
    to->edge = copy_of(from->edge, from->n_edges, sizeof(*to->edge), &status);
    to->pass = copy_of(from->pass, from->n_passes, sizeof(*to->pass), &status);
    to->flights.flight = copy_of(from->flights.flight, from->flights.n,
                                 sizeof(*to->flights.flight), &status);
    if (record_account_copy(&from->account, &to->account) != FSDP_OK) {
        status = FSDP_ERR_NOMEM;
    }
    copy_sequences(from, to, &status);
    copy_tensors(from, to, &status);
    return status;
}

int record_copy(const struct record *from, struct record *out)
{
    int status = FSDP_OK;

    *out = *from;
    out->spill = from->spill ? record_spill_again(from->spill) : NULL;
    out->claim =
        copy_of(from->claim, from->n_claims, sizeof(*out->claim), &status);
    out->rank = NULL;
    out->n_ranks = 0;
    if (status == FSDP_OK) {
        out->rank = calloc((size_t)from->n_ranks + 1, sizeof(*out->rank));
        status = out->rank ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < from->n_ranks && status == FSDP_OK; i++) {
        out->n_ranks = i + 1;
        status = copy_rank(&from->rank[i], out->spill, &out->rank[i]);
    }
    if (status != FSDP_OK) {
        record_release(out);
    }
    return status;
}
