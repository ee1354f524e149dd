/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_fuzz.c - the entry of a fuzzer to the judge: a golden record in which
 * numbers are others, as far as readers let them through, must be judged
 * without harm, whatever it comes to. An input is a case, what is claimed, and
 * edits of eight bytes each.
 */
#include "checkpoint/fuzzing.h"
#include "judge/report/report.h"
#include "record/record.h"
#include "tools/submit/judge_scene_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "fixtures/golden/records"

static const char *const ids[] = {
    "linear.tiny.exact.full-shard.k2.flat.layer.rank.ns.sgd",
    "linear.tiny.exact.full-shard.k3.per-parameter.layer.rank.s.sgd.div4",
    "mlp.odd.natural.full-shard.k2.per-parameter.layer.rank.ns.sgd",
    "mlp.odd.natural.full-shard.k3.flat.layer.rank.s.momentum",
    "mlp.odd.natural.hybrid-shard-zero2.k4r2.flat.layer.rank.ns.sgd",
    "mlp.odd.natural.no-shard.k2.flat.layer.rank.ns.sgd",
    "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.clip.rec4",
};
enum {
    N_CASES = sizeof(ids) / sizeof(ids[0]),
    EDIT_BYTES = 8,
    MAX_EDITS = 24
};

static struct judge_scene scene[N_CASES];

static void load_all(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct fsdp_error error = {0};

        require(judge_scene_load(GOLDEN, ids[i], &scene[i], &error) == FSDP_OK);
    }
}

/* A number as hostile as may be: small, huge, or what was drawn. */
static uint64_t number(uint32_t x)
{
    switch (x % 4) {
    case 0:
        return x >> 2;
    case 1:
        return UINT64_MAX - (x >> 2);
    case 2:
        return (uint64_t)1 << (x >> 2) % 64;
    default:
        return (uint64_t)x << 32 | x;
    }
}

static float floating(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Removes something: a tensor, its end, a sequence's end, a rank. */
static void take_away(struct record *r, struct record_rank *k, uint32_t what,
                      uint32_t at, uint32_t value)
{
    const uint32_t i = k->n_tensors > 0 ? at % k->n_tensors : 0;
    const uint32_t q = k->n_sequences > 0 ? at % k->n_sequences : 0;

    if (what == 0 && k->n_tensors > 0) {
        free(k->tensor[i].data);
        k->tensor[i] = k->tensor[--k->n_tensors];
        record_sort(k);
    } else if (what == 1 && k->n_tensors > 0) {
        k->tensor[i].n = value % (k->tensor[i].n + 1);
    } else if (what == 2 && k->n_sequences > 0) {
        k->sequence[q].n = value % (k->sequence[q].n + 1);
    } else if (what == 3 && k->present) {
        /* A rank that is not there shows nothing. */
        record_rank_release(k);
        memset(k, 0, sizeof(*k));
        k->status = FSDP_ERR_INTERNAL;
    } else if (what == 4) {
        /* Only of a run that failed may losses be missing. */
        k->status = -1 - (int32_t)(value % 11);
        k->n_losses = at % (k->n_losses + 1);
        k->n_other_losses = value % (k->n_other_losses + 1);
    } else if (what == 5) {
        k->n_answers = value % (k->n_answers + 1);
        k->flights.n = at % (k->flights.n + 1);
        k->n_edges = value % (k->n_edges + 1);
    } else if (what == 6) {
        r->n_claims = value % (r->n_claims + 1);
    }
}

static void edit_tensor(const struct run_case *c, struct record_rank *k,
                        uint32_t what, uint32_t at, uint32_t value)
{
    struct record_tensor *t;

    if (k->n_tensors == 0) {
        return;
    }
    t = &k->tensor[at % k->n_tensors];
    switch (what) {
    case 0:
        t->stage = value % RECORD_N_STAGES;
        break;
    case 1:
        t->step = value % (c->steps + 1);
        break;
    case 2:
        t->microbatch = value % c->microbatches;
        break;
    case 3:
        t->parameter = value % (1u << 20);
        break;
    case 4:
        t->first = number(value);
        break;
    default:
        if (t->n > 0) {
            t->data[(at >> 8) % t->n] = floating(value);
        }
        return;
    }
    record_sort(k);
}

static void edit_collective(struct record_rank *k, uint32_t what, uint32_t at,
                            uint32_t value)
{
    struct record_sequence *s;
    struct record_collective *c;

    if (k->n_sequences == 0) {
        return;
    }
    s = &k->sequence[at % k->n_sequences];
    if (what == 7) {
        k->shard_sequence = value % k->n_sequences;
        k->end_sequence = (value >> 8) % k->n_sequences;
        for (uint32_t i = 0; i < k->n_steps; i++) {
            k->step_sequence[i] = (value >> (i % 24)) % k->n_sequences;
        }
        return;
    }
    if (s->n == 0) {
        return;
    }
    c = &s->c[(at >> 4) % s->n];
    switch (what) {
    case 0:
        c->kind = value;
        break;
    case 1:
        c->dim = value;
        break;
    case 2:
        c->dtype = value;
        break;
    case 3:
        c->fold = value;
        break;
    case 4:
        c->root = value;
        break;
    case 5:
        c->unit = value;
        break;
    default:
        c->n = number(value);
    }
}

static void edit_memory(struct record_rank *k, uint32_t what, uint32_t at,
                        uint32_t value)
{
    struct record_memory *m = &k->memory;
    const uint64_t x = number(value);
    uint64_t *const field[] = {&m->peak_parameters, &m->peak_engine,
                               &m->peak_storage,    &m->peak_live_over_storage,
                               &m->dirty_padding,   &m->dirty_frozen,
                               &m->misplaced,       &m->bad_ranges,
                               &m->left_live,       &m->left_storage,
                               &m->process_growth,  &k->races.count,
                               &k->n_collectives};

    if (what == 0) {
        m->peak[at % FSDP_N_KINDS] = x;
    } else if (what == 1) {
        m->after_shard.live[at % FSDP_N_KINDS] = x;
    } else if (what == 2 && k->n_steps > 0) {
        m->after_step[at % k->n_steps].live[(at >> 8) % FSDP_N_KINDS] = x;
        m->allocations[at % k->n_steps] = x;
        m->launches[at % k->n_steps] = x;
    } else if (what == 3 && m->n_moments > 0) {
        m->moment[at % m->n_moments].live[(at >> 8) % FSDP_N_KINDS] = x;
    } else {
        *field[at % (sizeof(field) / sizeof(field[0]))] = x;
    }
}

static void edit_run(struct record_rank *k, uint32_t what, uint32_t at,
                     uint32_t value)
{
    if (what == 0 && k->n_losses > 0) {
        k->loss[at % k->n_losses] = floating(value);
    } else if (what == 1 && k->n_other_losses > 0) {
        k->other_loss[at % k->n_other_losses] = floating(value);
    } else if (what == 2) {
        k->end = value % 4;
        k->signal = at % 256;
        k->exit_status = (int32_t)value;
        k->last_kind = value;
        k->last_unit = at;
        k->in_collective = value & 1;
    } else if (what == 3 && k->n_answers > 0) {
        k->answer[at % k->n_answers].status = (int32_t)value;
    } else if (what == 4 && k->flights.n > 0) {
        struct record_flight *f = &k->flights.flight[at % k->flights.n];

        f->kind = value % 8;
        f->unit = value >> 3;
        f->issued = at;
        f->behind = value;
        f->awaited = ~value;
    }
}

static void edit(struct record *r, const uint8_t *p)
{
    struct record_rank *k = &r->rank[p[1] % r->n_ranks];
    uint32_t value;
    uint16_t at;

    memcpy(&at, p + 2, sizeof(at));
    memcpy(&value, p + 4, sizeof(value));
    switch (p[0] >> 4) {
    case 0:
        take_away(r, k, p[0] & 7, at, value);
        break;
    case 1:
        edit_collective(k, p[0] & 7, at, value);
        break;
    case 2:
        edit_memory(k, p[0] & 7, at, value);
        break;
    case 3:
        edit_run(k, p[0] & 7, at, value);
        break;
    default:
        edit_tensor(&r->c, k, p[0] & 7, at, value);
    }
}

/* An adapter's records, of its own arithmetic and in any order, or not. */
static void claim(struct record *r, uint8_t how)
{
    static const char *const extra[] = {
        "fold-any",   "live-bytes", "streams",      "wire",
        "process",    "answers",    "workload-mlp", "workload-linear",
        "wrap-layer", "prefetch",   "ahead-2",      "late-states"};
    const uint32_t n = sizeof(extra) / sizeof(extra[0]);
    char(*more)[32];

    if ((how & 1) == 0) {
        return;
    }
    snprintf(r->world, sizeof(r->world), "adapter");
    more = realloc(r->claim, (r->n_claims + n) * sizeof(*more));
    require(more != NULL);
    r->claim = more;
    for (uint32_t i = 0; i < r->n_claims; i++) {
        if ((how & 2) != 0 && strcmp(r->claim[i], "f32-fma") == 0) {
            memcpy(r->claim[i], "own-arith", 10);
        }
        if ((how & 4) != 0 && strcmp(r->claim[i], "fold-rank") == 0) {
            memcpy(r->claim[i], "own-order", 10);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        memset(r->claim[r->n_claims], 0, sizeof(*r->claim));
        memcpy(r->claim[r->n_claims++], extra[i], strlen(extra[i]));
    }
}

static void judge_one(const struct judge_scene *s, const struct record *r,
                      FILE *out)
{
    const struct report_meta meta = {.suite_version = "0", .rerun = "x "};
    struct judge_result result;

    require(judge_scene_judge(s, r, 2, &result) == FSDP_OK);
    require(result.verdict != JUDGE_CONFORMANT); /* of one case of two */
    /* A record may be so odd that a check proves nothing on it: then that is
     * open, and said. */
    for (uint32_t q = 0; q < result.n_requirements; q++) {
        const struct judge_item *item = judge_item_at(&result, 0, q);

        require(item->outcome != JUDGE_INCOMPLETE || !item->detail ||
                item->detail->finding.note[0] != '\0');
    }
    require(report_text(&result, &meta, out) == FSDP_OK);
    judge_release(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *out;
    const struct judge_scene *s;
    struct record r;

    if (!out) {
        load_all();
        out = fopen("/dev/null", "we");
        require(out != NULL);
    }
    if (bytes < 2 + EDIT_BYTES) {
        return 0;
    }
    s = &scene[data[0] % N_CASES];
    require(record_copy(&s->record, &r) == FSDP_OK);
    claim(&r, data[1]);
    for (size_t i = 0; i < MAX_EDITS && 2 + (i + 1) * EDIT_BYTES <= bytes;
         i++) {
        edit(&r, data + 2 + i * EDIT_BYTES);
    }
    judge_one(s, &r, out);
    record_release(&r);
    return 0;
}
