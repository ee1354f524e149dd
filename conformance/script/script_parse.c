/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_parse.c - a script from its text: actions in lines, or behind each
 * other with semicolons between; comments from # to the end of a line.
 */
#include "script/script.h"
#include "script/script_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

enum {
    MOST_PLAYED = 1 << 24, /* actions, with what is repeated */
};

struct reader {
    const char *at;
    uint32_t line;
    char word[4 * SCRIPT_WORD_BYTES]; /* empty: the action has ended */
    struct script *s;
    uint32_t room_actions, room_inside;
    /* The repeats that are open: their actions, and how often all in them is
     * played. */
    uint32_t open[SCRIPT_MAX_DEPTH];
    uint64_t times[SCRIPT_MAX_DEPTH + 1];
    uint32_t depth;
    uint64_t played;
    struct fsdp_error *error;
};

/* ---- Words ---- */

static int fail(struct reader *r, const char *wanted)
{
    struct fsdp_error *e = r->error;

    e->status = FSDP_ERR_FORMAT;
    (void)snprintf(e->where, sizeof(e->where), "script");
    if (r->word[0]) {
        (void)snprintf(e->message, sizeof(e->message),
                       "line %u, action %u: '%.60s': %s", r->line,
                       r->s->n_actions, r->word, wanted);
    } else {
        (void)snprintf(e->message, sizeof(e->message),
                       "line %u, action %u ends too early: %s", r->line,
                       r->s->n_actions, wanted);
    }
    return FSDP_ERR_FORMAT;
}

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
        r->at++;
    }
    if (*r->at == '#') {
        r->at += strcspn(r->at, "\n");
    }
}

static void next_word(struct reader *r)
{
    size_t n;

    skip_spaces(r);
    n = strcspn(r->at, " \t\r\n;{}#");
    if (n >= sizeof(r->word)) {
        n = sizeof(r->word) - 1; /* no word is as long: it will be unknown */
    }
    memcpy(r->word, r->at, n);
    r->word[n] = '\0';
    r->at += n;
}

static bool is_word(const struct reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

/* If the next word is this one, takes it. */
static bool accept(struct reader *r, const char *word)
{
    bool found = is_word(r, word);

    if (found) {
        next_word(r);
    }
    return found;
}

/* Which of `n` words this is, or n. */
static uint32_t which(const struct reader *r, const char *const *words,
                      uint32_t n)
{
    uint32_t i = 0;

    while (i < n && (words[i][0] == '\0' || !is_word(r, words[i]))) {
        i++;
    }
    return i;
}

/* Digits at *at, at most `most`. */
static bool read_count(const char **at, uint32_t most, uint32_t *out)
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

static int take_count(struct reader *r, uint32_t least, uint32_t most,
                      const char *wanted, uint32_t *out)
{
    const char *p = r->word;

    if (!read_count(&p, most, out) || *p != '\0' || *out < least) {
        return fail(r, wanted);
    }
    next_word(r);
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

/* Numbers with commas between, up to `most`. */
static int take_numbers(struct reader *r, uint32_t most, const char *wanted,
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
        return fail(r, wanted);
    }
    next_word(r);
    return FSDP_OK;
}

static int take_slot(struct reader *r, uint32_t *slot)
{
    if (r->word[0] < 'a' || r->word[0] >= 'a' + SCRIPT_MAX_SLOTS ||
        r->word[1] != '\0') {
        return fail(r, "a checkpoint is a, b, c or d");
    }
    *slot = (uint32_t)(r->word[0] - 'a');
    next_word(r);
    return FSDP_OK;
}

/* ---- Inside a pass ---- */

static int take_batch(struct reader *r, struct script_batch *b)
{
    const char *p = r->word;
    bool fine;

    b->counted = *p == 'i';
    p += b->counted;
    fine = true;
    if (!b->counted || *p == '+') {
        p += b->counted;
        fine = read_count(&p, SCRIPT_MAX_REPEATS, &b->step);
    }
    if (!fine || *p++ != '.' ||
        !read_count(&p, CASE_MAX_MICROBATCHES - 1, &b->microbatch) ||
        *p != '\0') {
        return fail(r, "a batch is STEP.MICROBATCH, with i or i+N for what a "
                       "repeat counts, and microbatches from 0 to 3");
    }
    next_word(r);
    return FSDP_OK;
}

static int take_place(struct reader *r, struct script_place *out)
{
    const char *p = r->word;
    bool fine = read_count(&p, SCRIPT_MAX_REPEATS, &out->a);

    out->b = 0;
    if (fine && *p == '/') {
        p++;
        fine = read_count(&p, SCRIPT_MAX_REPEATS, &out->b) && out->b > 0 &&
               out->a <= out->b;
    }
    if (!fine || *p != '\0') {
        return fail(r, "a place is a number of points, or A/B of them");
    }
    next_word(r);
    return FSDP_OK;
}

static int take_call(struct reader *r, uint32_t *out)
{
    uint32_t i = 0;

    while (i < SCRIPT_N_CALLS && !is_word(r, script_calls[i].name)) {
        i++;
    }
    if (i == SCRIPT_N_CALLS) {
        return fail(r, "no call of that name must be refused");
    }
    *out = i;
    next_word(r);
    return FSDP_OK;
}

static int take_sync(struct reader *r, uint32_t *out)
{
    *out = which(r, script_sync_words, N_OF(script_sync_words));
    if (*out == N_OF(script_sync_words)) {
        return fail(r, "sync is on or off");
    }
    next_word(r);
    return FSDP_OK;
}

static void *grown(void *array, uint32_t n, uint32_t *room, size_t bytes)
{
    uint32_t more = *room == 0 ? 16 : 2 * *room;
    void *p = n < *room ? array : realloc(array, more * bytes);

    if (p && n >= *room) {
        *room = more;
    }
    return p;
}

static int take_inside(struct reader *r, struct script_action *a)
{
    struct script *s = r->s;
    struct script_inside in = {.sync = SCRIPT_SYNC_UNSAID};
    void *p =
        grown(s->inside, s->n_inside, &r->room_inside, sizeof(*s->inside));

    if (!p) {
        return FSDP_ERR_NOMEM;
    }
    s->inside = p;
    FSDP_TRY(take_place(r, &in.place));
    if (accept(r, "sync")) {
        FSDP_TRY(take_sync(r, &in.sync));
    } else if (accept(r, "!")) {
        FSDP_TRY(take_call(r, &in.call));
    } else {
        return fail(r,
                    "behind `at PLACE` is `sync on`, `sync off` or `! CALL`");
    }
    s->inside[s->n_inside++] = in;
    a->n_inside++;
    return FSDP_OK;
}

static int take_pass(struct reader *r, struct script_action *a)
{
    FSDP_TRY(take_batch(r, &a->batch));
    if (a->verb == SCRIPT_PASS) {
        a->sync = accept(r, "s")   ? SCRIPT_SYNC_ON
                  : accept(r, "n") ? SCRIPT_SYNC_OFF
                                   : SCRIPT_SYNC_UNSAID;
    }
    a->first_inside = r->s->n_inside;
    while (accept(r, "at")) {
        FSDP_TRY(take_inside(r, a));
    }
    a->ending = which(r, script_ending_words, N_OF(script_ending_words));
    if (a->ending == N_OF(script_ending_words)) {
        a->ending = SCRIPT_WHOLE;
        return FSDP_OK;
    }
    next_word(r);
    return take_place(r, &a->until);
}

/* ---- Other actions ---- */

static int take_step(struct reader *r, struct script_action *a)
{
    static const char wanted[] = "numbers, one for all groups or one each";

    if (!accept(r, "lr")) {
        return fail(r, "a step says `lr NUMBER`");
    }
    FSDP_TRY(take_numbers(r, r->s->groups, wanted, &a->n_lr, a->lr));
    if (accept(r, "decay")) {
        FSDP_TRY(take_numbers(r, r->s->groups, wanted, &a->n_decay, a->decay));
    }
    a->finite = accept(r, "finite");
    if ((a->n_lr != 1 && a->n_lr != r->s->groups) ||
        (a->n_decay > 1 && a->n_decay != r->s->groups)) {
        return fail(r, wanted);
    }
    return FSDP_OK;
}

static int take_clip(struct reader *r, struct script_action *a)
{
    uint32_t n;

    FSDP_TRY(take_numbers(r, 1, "the largest norm", &n, &a->max_norm));
    if (!accept(r, "p")) {
        return fail(r, "clip says `p 1`, `p 2` or `p inf`");
    }
    FSDP_TRY(take_numbers(r, 1, "p is 1, 2 or inf", &n, &a->p));
    a->strict = accept(r, "strict");
    return FSDP_OK;
}

static int take_form(struct reader *r, struct script_action *a)
{
    static const char rank0[] = "full-rank0";

    a->rank0_only = is_word(r, rank0);
    a->form = a->rank0_only
                  ? FSDP_SAVE_FULL
                  : which(r, script_form_words, N_OF(script_form_words));
    if (a->form == N_OF(script_form_words)) {
        return fail(r, "a form is full, full-rank0, sharded or local");
    }
    next_word(r);
    return FSDP_OK;
}

static int take_checkpoint(struct reader *r, struct script_action *a)
{
    FSDP_TRY(take_slot(r, &a->slot));
    if (a->verb == SCRIPT_SAVE) {
        return take_form(r, a);
    }
    if (a->verb == SCRIPT_WAIT && accept(r, "same")) {
        a->same = true;
        return take_slot(r, &a->same_slot);
    }
    return FSDP_OK;
}

static int take_repeat(struct reader *r, struct script_action *a)
{
    if (r->depth == SCRIPT_MAX_DEPTH) {
        return fail(r, "repeats lie in each other 4 deep at the most");
    }
    FSDP_TRY(take_count(r, 1, SCRIPT_MAX_REPEATS,
                        "a repeat is played 1 to 1000000 times", &a->count));
    skip_spaces(r);
    if (r->word[0] || *r->at != '{') {
        return fail(r, "behind `repeat N` is {");
    }
    r->at++;
    r->open[r->depth] = r->s->n_actions - 1;
    r->times[r->depth + 1] = r->times[r->depth] * a->count;
    if (r->times[++r->depth] > MOST_PLAYED) {
        return fail(r, "so many repeats are more than 16777216 actions");
    }
    return FSDP_OK;
}

static int take_what_follows(struct reader *r, struct script_action *a)
{
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        return take_pass(r, a);
    case SCRIPT_STEP:
        return take_step(r, a);
    case SCRIPT_CLIP:
        return take_clip(r, a);
    case SCRIPT_SYNC:
        return take_sync(r, &a->sync);
    case SCRIPT_SAVE:
    case SCRIPT_WAIT:
    case SCRIPT_LOAD:
        return take_checkpoint(r, a);
    case SCRIPT_WRONG:
        return take_call(r, &a->call);
    case SCRIPT_REPEAT:
        return take_repeat(r, a);
    default:
        return FSDP_OK;
    }
}

static int take_action(struct reader *r)
{
    struct script *s = r->s;
    struct script_action *a;
    void *p =
        grown(s->action, s->n_actions, &r->room_actions, sizeof(*s->action));

    if (!p) {
        return FSDP_ERR_NOMEM;
    }
    s->action = p;
    a = &s->action[s->n_actions++];
    *a = (struct script_action){
        .verb = which(r, script_verb_words, SCRIPT_N_VERBS)};
    r->played += r->times[r->depth];
    if (a->verb == SCRIPT_N_VERBS) {
        return fail(r, "an action begins with pass, eval, step, zero, clip, "
                       "look, summon, sync, save, wait, load, again, repeat "
                       "or !");
    }
    if (s->n_actions > SCRIPT_MAX_ACTIONS || r->played > MOST_PLAYED) {
        return fail(r, "a script has 1048576 actions at the most, and plays "
                       "16777216");
    }
    next_word(r);
    FSDP_TRY(take_what_follows(r, a));
    return r->word[0] ? fail(r, "nothing more belongs to the action") : FSDP_OK;
}

static int close_repeat(struct reader *r)
{
    struct script_action *a;

    r->at++;
    strcpy(r->word, "}");
    if (r->depth == 0) {
        return fail(r, "no repeat is open");
    }
    a = &r->s->action[r->open[--r->depth]];
    a->length = r->s->n_actions - 1 - r->open[r->depth];
    return a->length == 0 ? fail(r, "an empty repeat") : FSDP_OK;
}

static int take_actions(struct reader *r)
{
    for (;;) {
        skip_spaces(r);
        if (*r->at == '\0') {
            return FSDP_OK;
        }
        if (*r->at == '\n' || *r->at == ';') {
            r->line += *r->at++ == '\n';
        } else if (*r->at == '}') {
            FSDP_TRY(close_repeat(r));
        } else {
            next_word(r); /* empty at a { alone: unknown */
            FSDP_TRY(take_action(r));
        }
    }
}

/* ---- Settings ---- */

static int take_version(struct reader *r)
{
    uint32_t version;

    if (!accept(r, "script")) {
        return fail(r, "a script begins with `script 1`");
    }
    return take_count(r, SCRIPT_VERSION, SCRIPT_VERSION,
                      "only version 1 is known here", &version);
}

static int take_setting(struct reader *r)
{
    uint32_t slot = 0;

    if (accept(r, "groups")) {
        return take_count(r, 1, SCRIPT_MAX_GROUPS, "groups are 1 to 8",
                          &r->s->groups);
    }
    if (accept(r, "given")) {
        FSDP_TRY(take_slot(r, &slot));
        r->s->given |= 1u << slot;
        return FSDP_OK;
    }
    return fail(r, "settings are groups and given; then comes --");
}

/* Lines up to "--". */
static int take_settings(struct reader *r)
{
    bool first = true;

    for (;;) {
        next_word(r);
        if (r->word[0]) {
            if (!first && accept(r, "--")) {
                return r->word[0] ? fail(r, "-- stands alone") : FSDP_OK;
            }
            FSDP_TRY(first ? take_version(r) : take_setting(r));
            first = false;
        }
        if (r->word[0] || (*r->at != '\n' && *r->at != ';')) {
            return fail(r, first ? "a script begins with `script 1`"
                                 : "settings are a line each, and end "
                                   "with --");
        }
        r->line += *r->at++ == '\n';
    }
}

int script_parse(const char *text, struct script *out, struct fsdp_error *error)
{
    struct reader r = {
        .at = text, .line = 1, .s = out, .times = {1}, .error = error};

    *out = (struct script){.groups = 1};
    FSDP_TRY(take_settings(&r));
    FSDP_TRY(take_actions(&r));
    r.word[0] = '\0';
    if (r.depth > 0) {
        return fail(&r, "a repeat has no }");
    }
    return out->n_actions == 0 ? fail(&r, "a script has an action at least")
                               : FSDP_OK;
}

void script_release(struct script *s)
{
    free(s->action);
    free(s->inside);
    *s = (struct script){0};
}
