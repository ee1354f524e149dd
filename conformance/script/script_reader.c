/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_reader.c - reads a script's text word by word; and its header: the
 * version, and what holds for all of its actions. Also the words for
 * checkpoints and worlds, which several actions share.
 */
#include "script/script_reader.h"

#include "script/script_parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words --------------------------------------------------------------- */

int reader_fail(struct reader *r, const char *wanted)
{
    struct fsdp_error *e = r->error;

    e->status = FSDP_ERR_FORMAT;
    snprintf(e->where, sizeof(e->where), "script");
    if (r->word[0]) {
        snprintf(e->message, sizeof(e->message),
                 "line %u, action %u: '%.60s': %s", r->line, r->s->n_actions,
                 r->word, wanted);
    } else {
        snprintf(e->message, sizeof(e->message),
                 "line %u, action %u ends too early: %s", r->line,
                 r->s->n_actions, wanted);
    }
    return FSDP_ERR_FORMAT;
}

void reader_skip(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
        r->at++;
    }
    if (*r->at == '#') {
        r->at += strcspn(r->at, "\n");
    }
}

void reader_next(struct reader *r)
{
    size_t n;

    reader_skip(r);
    n = strcspn(r->at, " \t\r\n;{}#");
    if (n >= sizeof(r->word)) {
        n = sizeof(r->word) - 1; /* no word that is known is as long */
    }
    memcpy(r->word, r->at, n);
    r->word[n] = '\0';
    r->at += n;
}

bool reader_is(const struct reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

bool reader_accept(struct reader *r, const char *word)
{
    bool found = reader_is(r, word);

    if (found) {
        reader_next(r);
    }
    return found;
}

uint32_t reader_which(const struct reader *r, const char *const *words,
                      uint32_t n)
{
    uint32_t i = 0;

    while (i < n && (words[i][0] == '\0' || !reader_is(r, words[i]))) {
        i++;
    }
    return i;
}

bool reader_count(const char **at, uint32_t most, uint32_t *out)
{
    uint64_t n = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9' && n <= most; p++) {
        n = 10 * n + (uint64_t)(*p - '0');
    }
    if (p == *at || n > most) {
        return false;
    }
    *at = p;
    *out = (uint32_t)n;
    return true;
}

int reader_take_count(struct reader *r, uint32_t least, uint32_t most,
                      const char *wanted, uint32_t *out)
{
    const char *p = r->word;

    if (!reader_count(&p, most, out) || *p != '\0' || *out < least) {
        return reader_fail(r, wanted);
    }
    reader_next(r);
    return FSDP_OK;
}

/* A float32 as case_float_text writes it, or "inf". */
static bool read_number(const char **at, float *out)
{
    char text[CASE_FLOAT_BYTES + 8];
    size_t n = strspn(*at, "0123456789.e-");
    char *end;

    if (strncmp(*at, "inf", 3) == 0) {
        *at += 3;
        *out = INFINITY;
        return true;
    }
    if (n == 0 || n >= sizeof(text)) {
        return false;
    }
    memcpy(text, *at, n);
    text[n] = '\0';
    *out = strtof(text, &end);
    *at += n;
    return *end == '\0' && isfinite(*out);
}

int reader_take_numbers(struct reader *r, uint32_t most, const char *wanted,
                        uint32_t *n, float *out)
{
    const char *p = r->word;

    for (*n = 0; *n < most && read_number(&p, &out[*n]);) {
        ++*n;
        if (*p != ',') {
            break;
        }
        p++;
    }
    if (*n == 0 || *p != '\0' || p[-1] == ',') {
        return reader_fail(r, wanted);
    }
    reader_next(r);
    return FSDP_OK;
}

void *reader_grow(void *array, uint32_t n, uint32_t *room, size_t bytes)
{
    uint32_t more = *room == 0 ? 16 : 2 * *room;
    void *p = n < *room ? array : realloc(array, more * bytes);

    if (p && n >= *room) {
        *room = more;
    }
    return p;
}

/* ---- Checkpoints ------------------------------------------------------- */

int parse_slot(struct reader *r, uint32_t *slot)
{
    if (r->word[0] < 'a' || r->word[0] >= 'a' + SCRIPT_MAX_SLOTS ||
        r->word[1] != '\0') {
        return reader_fail(r, "a checkpoint is a, b, c or d");
    }
    *slot = (uint32_t)(r->word[0] - 'a');
    reader_next(r);
    return FSDP_OK;
}

/* ---- Settings ---------------------------------------------------------- */

static int take_version(struct reader *r)
{
    uint32_t version;

    if (!reader_accept(r, "script")) {
        return reader_fail(r, "a script begins with `script 1`");
    }
    return reader_take_count(r, SCRIPT_VERSION, SCRIPT_VERSION,
                             "only version 1 is known here", &version);
}

static int take_case(struct reader *r)
{
    struct script *s = r->s;

    s->has_case = true;
    if (!case_of_id(r->word, &s->c) || s->c.scenario != CASE_TRAIN) {
        return reader_fail(r, "a case is an id of one that trains, without a "
                              "scenario");
    }
    reader_next(r);
    return FSDP_OK;
}

/* Numbers of the optimizer, all below 1: one for all groups, or one for each.
 * None is negative, nor 0 unless that is allowed. */
static int take_list(struct reader *r, bool zero, struct script_list *out,
                     const char *wanted)
{
    FSDP_TRY(
        reader_take_numbers(r, SCRIPT_MAX_GROUPS, wanted, &out->n, out->x));
    for (uint32_t i = 0; i < out->n; i++) {
        if (signbit(out->x[i]) || !(out->x[i] < 1.0f) ||
            (!zero && out->x[i] == 0.0f)) {
            r->word[0] = '\0';
            return reader_fail(r, wanted);
        }
    }
    return FSDP_OK;
}

static int take_number(struct reader *r, bool *taken)
{
    struct script_numbers *n = &r->s->numbers;

    *taken = true;
    if (reader_accept(r, "betas")) {
        static const char betas[] = "betas are two, from 0 to below 1";

        FSDP_TRY(take_list(r, true, &n->beta1, betas));
        return take_list(r, true, &n->beta2, betas);
    }
    if (reader_accept(r, "eps")) {
        return take_list(r, false, &n->eps, "eps is above 0 and below 1");
    }
    if (reader_accept(r, "momentum")) {
        return take_list(r, true, &n->momentum,
                         "momentum is from 0 to below 1");
    }
    *taken = false;
    return FSDP_OK;
}

/* Checked behind the header, because `groups` may stand behind the numbers. */
static bool numbers_fit(const struct script *s)
{
    const struct script_list *const list[] = {
        &s->numbers.beta1, &s->numbers.beta2, &s->numbers.eps,
        &s->numbers.momentum};
    bool fit = true;

    for (uint32_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        fit = fit && (list[i]->n <= 1 || list[i]->n == s->groups);
    }
    return fit;
}

static int end_settings(struct reader *r)
{
    if (r->word[0]) {
        return reader_fail(r, "-- stands alone");
    }
    if (!numbers_fit(r->s)) {
        snprintf(r->word, sizeof(r->word), "--");
        return reader_fail(r, "betas, eps and momentum are numbers, one for "
                              "all groups, or one each: `groups N` says how "
                              "many there are");
    }
    if (r->s->deferred && r->s->rank0) {
        snprintf(r->word, sizeof(r->word), "--");
        return reader_fail(r, "values are on no rank (`deferred`), or on rank "
                              "0 (`rank0`)");
    }
    return FSDP_OK;
}

/* 2^E [every N] */
static int take_scale(struct reader *r)
{
    struct script_scale *scale = &r->s->scale;

    scale->said = true;
    FSDP_TRY(parse_power(r, &scale->exponent));
    if (scale->exponent < -SCRIPT_MOST_SCALE ||
        scale->exponent > SCRIPT_MOST_SCALE) {
        r->word[0] = '\0';
        return reader_fail(r, "a loss is scaled by 2^-126 to 2^126");
    }
    return reader_accept(r, "every")
               ? reader_take_count(r, 1, SCRIPT_MAX_REPEATS,
                                   "`every N` steps, 1 to 1000000, double it",
                                   &scale->every)
               : FSDP_OK;
}

static int take_setting(struct reader *r)
{
    uint32_t slot = 0;
    bool taken;

    FSDP_TRY(take_number(r, &taken));
    if (taken) {
        return FSDP_OK;
    }
    if (reader_accept(r, "case")) {
        return take_case(r);
    }
    if (reader_accept(r, "groups")) {
        return reader_take_count(r, 1, SCRIPT_MAX_GROUPS, "groups are 1 to 8",
                                 &r->s->groups);
    }
    if (reader_accept(r, "given")) {
        FSDP_TRY(parse_slot(r, &slot));
        r->s->given |= 1u << slot;
        return FSDP_OK;
    }
    if (reader_accept(r, "scale")) {
        return take_scale(r);
    }
    if (reader_accept(r, "deferred")) {
        r->s->deferred = true;
        return FSDP_OK;
    }
    if (reader_accept(r, "rank0")) {
        r->s->rank0 = true;
        return FSDP_OK;
    }
    return reader_fail(r, "settings are case, betas, eps, momentum, groups, "
                          "scale, deferred, rank0 and given; then comes --");
}

int parse_settings(struct reader *r)
{
    bool first = true;

    for (;;) {
        reader_next(r);
        if (r->word[0]) {
            if (!first && reader_accept(r, "--")) {
                return end_settings(r);
            }
            FSDP_TRY(first ? take_version(r) : take_setting(r));
            first = false;
        }
        if (r->word[0] || (*r->at != '\n' && *r->at != ';')) {
            return reader_fail(r, first ? "a script begins with `script 1`"
                                        : "settings are a line each, and end "
                                          "with --");
        }
        r->line += *r->at++ == '\n';
    }
}

/* ---- Worlds ---- */

/* k8, k8r2 */
static int take_ranks(struct reader *r, struct script_world *out)
{
    const char *p = r->word + 1;
    bool fine = reader_count(&p, CASE_MAX_RANKS, &out->ranks) && out->ranks > 0;

    out->replicas = 0;
    if (fine && *p == 'r') {
        p++;
        fine = reader_count(&p, CASE_MAX_RANKS, &out->replicas) &&
               out->replicas > 0;
    }
    if (!fine || *p != '\0') {
        return reader_fail(r, "a world is kK or kKrR: K ranks, R replicas");
    }
    reader_next(r);
    return FSDP_OK;
}

int parse_world(struct reader *r, struct script_world *out)
{
    *out = (struct script_world){.wrap = CASE_N_WRAPS};
    if (r->word[0] != 'k') {
        return FSDP_OK;
    }
    FSDP_TRY(take_ranks(r, out));
    if (!case_value(case_strategy_name, r->word, &out->strategy)) {
        return reader_fail(r, "behind a world is its strategy");
    }
    reader_next(r);
    if (out->replicas == 0) {
        out->replicas = out->strategy == CASE_NO_SHARD ? out->ranks : 1;
    }
    if (case_value(case_wrap_name, r->word, &out->wrap)) {
        reader_next(r);
    } else {
        out->wrap = CASE_N_WRAPS;
    }
    return FSDP_OK;
}
