/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_id_parse.c - from an id back to its case, for cases that are in no list.
 * The case that is read must have exactly this id, so that no two texts name
 * one case.
 */
#include "cases/case_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The id that is being read; `at` is behind a dot. */
struct reading {
    const char *at;
    bool good;
};

/* The next word, without its dot. */
static void next(struct reading *r, char word[CASE_ID_BYTES])
{
    const size_t n = strcspn(r->at, ".");

    memset(word, 0, CASE_ID_BYTES);
    if (n == 0 || n >= CASE_ID_BYTES) {
        r->good = false;
        return;
    }
    memcpy(word, r->at, n);
    word[n] = '\0';
    r->at += n + (r->at[n] == '.');
}

static void read_word(struct reading *r, char to[16])
{
    char word[CASE_ID_BYTES];

    next(r, word);
    if (strlen(word) > 15) {
        r->good = false;
    } else {
        memcpy(to, word, strlen(word) + 1);
    }
}

static void read_name(struct reading *r, const char *(*name)(uint32_t),
                      uint32_t *out)
{
    char word[CASE_ID_BYTES];

    next(r, word);
    r->good = r->good && case_value(name, word, out);
}

static bool read_number(const char *text, uint64_t *out, char **end)
{
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(text, end, 10);
    return errno == 0;
}

/* "k8" or "k8r2"; without a number of replicas the strategy says how many. */
static void read_world(struct reading *r, struct run_case *c)
{
    char word[CASE_ID_BYTES];
    uint64_t ranks = 0;
    uint64_t replicas = 0;
    char *end = NULL;

    next(r, word);
    if (word[0] != 'k' || !read_number(word + 1, &ranks, &end)) {
        r->good = false;
        return;
    }
    if (*end == 'r' && !read_number(end + 1, &replicas, &end)) {
        r->good = false;
    }
    r->good = r->good && *end == '\0' && ranks <= CASE_MAX_RANKS &&
              replicas <= CASE_MAX_RANKS;
    c->ranks = (uint32_t)ranks;
    c->replicas = replicas != 0                  ? (uint32_t)replicas
                  : c->strategy == CASE_NO_SHARD ? c->ranks
                                                 : 1;
}

static void read_sync(struct reading *r, struct run_case *c)
{
    char word[CASE_ID_BYTES];

    next(r, word);
    if (strlen(word) > CASE_MAX_MICROBATCHES) {
        r->good = false;
        return;
    }
    for (; word[c->microbatches] != '\0'; c->microbatches++) {
        c->sync[c->microbatches] = word[c->microbatches] == 's';
    }
}

/* "lr0.05": here the dot belongs to the number, and does not end the word. */
static bool read_float(struct reading *r, const char *what, float *out)
{
    const size_t n = strlen(what);
    char *end;

    if (strncmp(r->at, what, n) != 0 || r->at[n] < '0' || r->at[n] > '9') {
        return false;
    }
    *out = strtof(r->at + n, &end);
    if (end > r->at && end[-1] == '.') {
        end--; /* it ends the word */
    }
    r->good = r->good && (*end == '.' || *end == '\0');
    r->at = end + (*end == '.');
    return true;
}

/* The scenario's name, or a script's. */
static bool read_scenario(const char *word, struct run_case *c)
{
    const struct case_script *s = case_script_find(word);

    if (s) {
        case_play_script(c, s);
        return true;
    }
    return case_value(case_scenario_name, word, &c->scenario);
}

static bool read_count(struct reading *r, struct run_case *c)
{
    const struct {
        const char *what;
        uint32_t *out;
    } counts[] = {{"grains", &c->grains},        {"pf", &c->prefetch_forward},
                  {"pb", &c->prefetch_backward}, {"rif", &c->reduces_in_flight},
                  {"steps", &c->steps},          {"rec", &c->recorded_steps}};
    char word[CASE_ID_BYTES];
    uint64_t value;
    char *end;

    next(r, word);
    if (strncmp(word, "seed", 4) == 0) {
        return read_number(word + 4, &c->seed, &end) && *end == '\0';
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const size_t n = strlen(counts[i].what);

        if (strncmp(word, counts[i].what, n) == 0 &&
            read_number(word + n, &value, &end)) {
            *counts[i].out = (uint32_t)value;
            return *end == '\0' && value <= UINT32_MAX;
        }
    }
    if (strcmp(word, "keep-root") == 0) {
        c->keep_root = 1;
        return true;
    }
    if (strncmp(word, "recompute-", strlen("recompute-")) == 0) {
        return case_value(case_recompute_name, word, &c->recompute);
    }
    if (strncmp(word, "frozen-", strlen("frozen-")) == 0) {
        return case_value(case_frozen_name, word, &c->frozen);
    }
    return case_value(case_precision_name, word, &c->precision) ||
           case_value(case_factors_name, word, &c->factors) ||
           case_value(case_offload_name, word, &c->offload) ||
           read_scenario(word, c);
}

static void read_rest(struct reading *r, struct run_case *c)
{
    bool recorded = false;

    c->seed = CASE_DEFAULT_SEED;
    c->steps = CASE_DEFAULT_STEPS;
    c->lr = case_default_lr(c);
    c->grains = case_grains(c->fold, c->ranks);
    while (r->good && *r->at != '\0') {
        if (read_float(r, "lr", &c->lr) ||
            read_float(r, "wd", &c->weight_decay) ||
            read_float(r, "div", &c->divide_factor)) {
            continue;
        }
        recorded = recorded || (strncmp(r->at, "rec", 3) == 0 &&
                                r->at[3] >= '0' && r->at[3] <= '9');
        r->good = read_count(r, c);
    }
    if (!recorded && !case_is_script(c)) {
        c->recorded_steps = c->steps < CASE_DEFAULT_RECORDED_STEPS
                                ? c->steps
                                : CASE_DEFAULT_RECORDED_STEPS;
    }
}

bool case_of_id(const char *id, struct run_case *out)
{
    struct reading r = {.at = id, .good = true};
    char again[CASE_ID_BYTES];

    memset(out, 0, sizeof(*out));
    read_word(&r, out->workload);
    read_word(&r, out->size);
    read_name(&r, case_data_name, &out->data);
    read_name(&r, case_strategy_name, &out->strategy);
    read_world(&r, out);
    read_name(&r, case_layout_name, &out->layout);
    read_name(&r, case_wrap_name, &out->wrap);
    read_name(&r, case_fold_name, &out->fold);
    read_sync(&r, out);
    read_name(&r, case_optimizer_name, &out->optimizer);
    if (r.good) {
        read_rest(&r, out);
    }
    if (!r.good || case_check(out)) {
        return false;
    }
    case_id(out, again);
    return strcmp(again, id) == 0;
}
