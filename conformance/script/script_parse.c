/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_parse.c - a script from its text: actions in lines, or behind each
 * other with semicolons between; comments from # to the end of a line.
 */
#include "script/script_parse.h"
#include "script/script_words.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

enum {
    MOST_PLAYED = 1 << 24, /* actions, with what is repeated */
};

/* ---- Other actions ---- */

static int take_step(struct reader *r, struct script_action *a)
{
    static const char wanted[] = "numbers, one for all groups or one each";

    if (!reader_accept(r, "lr")) {
        return reader_fail(r, "a step says `lr NUMBER`");
    }
    FSDP_TRY(reader_take_numbers(r, r->s->groups, wanted, &a->n_lr, a->lr));
    if (reader_accept(r, "decay")) {
        FSDP_TRY(reader_take_numbers(r, r->s->groups, wanted, &a->n_decay,
                                     a->decay));
    }
    a->finite = a->verb == SCRIPT_STEP && reader_accept(r, "finite");
    if ((a->n_lr != 1 && a->n_lr != r->s->groups) ||
        (a->n_decay > 1 && a->n_decay != r->s->groups)) {
        return reader_fail(r, wanted);
    }
    return FSDP_OK;
}

static int take_clip(struct reader *r, struct script_action *a)
{
    uint32_t n;

    FSDP_TRY(reader_take_numbers(r, 1, "the largest norm", &n, &a->max_norm));
    if (!reader_accept(r, "p")) {
        return reader_fail(r, "clip says `p 1`, `p 2` or `p inf`");
    }
    FSDP_TRY(reader_take_numbers(r, 1, "p is 1, 2 or inf", &n, &a->p));
    a->strict = reader_accept(r, "strict");
    return FSDP_OK;
}

static int take_form(struct reader *r, struct script_action *a)
{
    static const char rank0[] = "full-rank0";

    a->rank0_only = reader_is(r, rank0);
    a->form = a->rank0_only
                  ? FSDP_SAVE_FULL
                  : reader_which(r, script_form_words, N_OF(script_form_words));
    if (a->form == N_OF(script_form_words)) {
        return reader_fail(r, "a form is full, full-rank0, sharded or local");
    }
    reader_next(r);
    return FSDP_OK;
}

/* Each once, in their order. */
static int take_parts(struct reader *r, struct script_action *a)
{
    for (uint32_t i = 0; i < SCRIPT_N_PARTS; i++) {
        a->what |= (uint32_t)reader_accept(r, script_part_words[i]) << i;
    }
    return a->what ? FSDP_OK
                   : reader_fail(r, "parts are parameters, states, buffers, "
                                    "extra, in this order");
}

static int take_dtype(struct reader *r, struct script_action *a)
{
    a->dtype = reader_is(r, "bf16")   ? FSDP_DTYPE_BF16
               : reader_is(r, "fp16") ? FSDP_DTYPE_F16
                                      : FSDP_DTYPE_NONE;
    if (a->dtype == FSDP_DTYPE_NONE) {
        return reader_fail(r, "parameters are saved in bf16 or fp16");
    }
    reader_next(r);
    return FSDP_OK;
}

static int take_checkpoint(struct reader *r, struct script_action *a)
{
    FSDP_TRY(parse_slot(r, &a->slot));
    if (a->verb == SCRIPT_SAVE) {
        FSDP_TRY(take_form(r, a));
        if (reader_accept(r, "of")) {
            FSDP_TRY(take_parts(r, a));
        }
        return reader_accept(r, "in") ? take_dtype(r, a) : FSDP_OK;
    }
    if (a->verb == SCRIPT_WAIT && reader_accept(r, "same")) {
        a->same = true;
        return parse_slot(r, &a->same_slot);
    }
    a->lenient = a->verb == SCRIPT_LOAD && reader_accept(r, "lenient");
    return FSDP_OK;
}

static int take_renamed(struct reader *r, struct script_action *a)
{
    uint32_t p;

    if (!reader_accept(r, "renamed")) {
        return FSDP_OK;
    }
    FSDP_TRY(reader_take_count(r, 0, SCRIPT_MAX_UNITS - 1,
                               "a parameter is a number from 0 to 63", &p));
    a->renamed = p + 1;
    return FSDP_OK;
}

static int take_repeat(struct reader *r, struct script_action *a)
{
    if (r->depth == SCRIPT_MAX_DEPTH) {
        return reader_fail(r, "repeats lie in each other 4 deep at the most");
    }
    FSDP_TRY(reader_take_count(r, 1, SCRIPT_MAX_REPEATS,
                               "a repeat is played 1 to 1000000 times",
                               &a->count));
    reader_skip(r);
    if (r->word[0] || *r->at != '{') {
        return reader_fail(r, "behind `repeat N` is {");
    }
    r->at++;
    r->open[r->depth] = r->s->n_actions - 1;
    r->times[r->depth + 1] = r->times[r->depth] * a->count;
    if (r->times[++r->depth] > MOST_PLAYED) {
        return reader_fail(r, "so many repeats are more than 16777216 actions");
    }
    return FSDP_OK;
}

static int take_unit(struct reader *r, uint32_t *unit)
{
    if (reader_accept(r, "all")) {
        *unit = FSDP_NO_UNIT;
        return FSDP_OK;
    }
    return parse_unit(r, unit);
}

static int take_set(struct reader *r, struct script_action *a)
{
    static const char on_off[] = "such a knob is turned to 0 or 1";
    static const char factor[] = "a factor is a number from 2^-10 to 2^10";
    const char *wanted;
    uint32_t n;

    FSDP_TRY(take_unit(r, &a->unit));
    a->knob = reader_which(r, script_knob_words, SCRIPT_N_KNOBS);
    if (a->knob == SCRIPT_N_KNOBS) {
        return reader_fail(r, "a knob is sync, all-reduce, "
                              "reshard-after-forward, reshard-after-backward, "
                              "divide-factor or predivide-factor");
    }
    reader_next(r);
    wanted = script_sets_factor(a) ? factor : on_off;
    FSDP_TRY(reader_take_numbers(r, 1, wanted, &n, &a->value));
    if (script_sets_factor(a)) {
        return a->value >= 0x1p-10f && a->value <= 0x1p10f
                   ? FSDP_OK
                   : reader_fail(r, wanted);
    }
    return a->value != 0.0f && a->value != 1.0f ? reader_fail(r, wanted)
                                                : FSDP_OK;
}

static int take_parameter(struct reader *r, uint32_t *p)
{
    if (reader_accept(r, "all")) {
        *p = SCRIPT_ALL;
        return FSDP_OK;
    }
    return reader_take_count(r, 0, SCRIPT_MAX_UNITS - 1,
                             "a parameter is a number from 0 to 63, or all", p);
}

static int take_values(struct reader *r, struct script_action *a)
{
    FSDP_TRY(take_parameter(r, &a->parameter));
    if (reader_accept(r, script_source_words[SCRIPT_INITIAL])) {
        a->source = SCRIPT_INITIAL;
    } else if (reader_accept(r, script_source_words[SCRIPT_SUMMONED])) {
        a->source = SCRIPT_SUMMONED;
    } else {
        return reader_take_count(r, 0, SCRIPT_MOST_NUMBER,
                                 "values are initial, summoned, or those of a "
                                 "number from 0 to 9999",
                                 &a->number);
    }
    return FSDP_OK;
}

static int take_assign(struct reader *r, struct script_action *a)
{
    FSDP_TRY(take_values(r, a));
    return !reader_accept(r, "by")
               ? FSDP_OK
               : reader_take_count(r, 1, SCRIPT_MOST_NUMBER,
                                   "a slice has 1 to 9999 elements", &a->slice);
}

/* The action is about one unit if its number follows. */
static int take_one(struct reader *r, struct script_action *a)
{
    if (!r->word[0]) {
        return FSDP_OK;
    }
    a->verb =
        a->verb == SCRIPT_UNSHARD ? SCRIPT_UNSHARD_UNIT : SCRIPT_RESHARD_UNIT;
    return parse_unit(r, &a->unit);
}

/* A summon with more words behind it, of one unit or on rank 0, is another
 * action than one of all on every rank. */
static int take_summon(struct reader *r, struct script_action *a)
{
    if (!r->word[0]) {
        return FSDP_OK;
    }
    a->verb = SCRIPT_SUMMON_SOME;
    FSDP_TRY(take_unit(r, &a->unit));
    a->on_rank0 = reader_accept(r, "rank0");
    return a->on_rank0 || a->unit != FSDP_NO_UNIT
               ? FSDP_OK
               : reader_fail(r, "`summon` alone is of all, on every rank; here "
                                "it says a unit, or rank0, or both");
}

static int take_what_follows(struct reader *r, struct script_action *a)
{
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        return parse_pass(r, a);
    case SCRIPT_STEP:
    case SCRIPT_BACKWARD_STEP:
        return take_step(r, a);
    case SCRIPT_CLIP:
        return take_clip(r, a);
    case SCRIPT_SYNC:
        return parse_sync(r, &a->sync);
    case SCRIPT_SAVE:
    case SCRIPT_WAIT:
    case SCRIPT_LOAD:
        return take_checkpoint(r, a);
    case SCRIPT_AGAIN:
        return take_renamed(r, a);
    case SCRIPT_ANEW:
        return parse_world(r, &a->world);
    case SCRIPT_WRONG:
        return parse_call(r, &a->call);
    case SCRIPT_REPEAT:
        return take_repeat(r, a);
    case SCRIPT_SET:
        return take_set(r, a);
    case SCRIPT_UNSHARD:
    case SCRIPT_RESHARD:
        return take_one(r, a);
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        return take_parameter(r, &a->parameter);
    case SCRIPT_ASSIGN:
        return take_assign(r, a);
    case SCRIPT_SEND:
        return take_values(r, a);
    case SCRIPT_SUMMON:
        return take_summon(r, a);
    default:
        return FSDP_OK;
    }
}

static int take_action(struct reader *r)
{
    struct script *s = r->s;
    struct script_action *a;
    void *p = reader_grow(s->action, s->n_actions, &r->room_actions,
                          sizeof(*s->action));

    if (!p) {
        return FSDP_ERR_NOMEM;
    }
    s->action = p;
    a = &s->action[s->n_actions++];
    *a = (struct script_action){
        .verb = reader_which(r, script_verb_words, SCRIPT_N_VERBS)};
    r->played += r->times[r->depth];
    if (a->verb == SCRIPT_N_VERBS) {
        return reader_fail(
            r, "an action begins with pass, eval, step, zero, clip, "
               "look, summon, unshard, reshard, sync, set, freeze, thaw, save, "
               "wait, load, again, anew, backward-step, assign, send, repeat "
               "or !");
    }
    if (s->n_actions > SCRIPT_MAX_ACTIONS || r->played > MOST_PLAYED) {
        return reader_fail(
            r, "a script has 1048576 actions at the most, and plays "
               "16777216");
    }
    reader_next(r);
    FSDP_TRY(take_what_follows(r, a));
    return r->word[0] ? reader_fail(r, "nothing more belongs to the action")
                      : FSDP_OK;
}

static int close_repeat(struct reader *r)
{
    struct script_action *a;

    r->at++;
    strcpy(r->word, "}");
    if (r->depth == 0) {
        return reader_fail(r, "no repeat is open");
    }
    a = &r->s->action[r->open[--r->depth]];
    a->length = r->s->n_actions - 1 - r->open[r->depth];
    return a->length == 0 ? reader_fail(r, "an empty repeat") : FSDP_OK;
}

static int take_actions(struct reader *r)
{
    for (;;) {
        reader_skip(r);
        if (*r->at == '\0') {
            return FSDP_OK;
        }
        if (*r->at == '\n' || *r->at == ';') {
            r->line += *r->at++ == '\n';
        } else if (*r->at == '}') {
            FSDP_TRY(close_repeat(r));
        } else {
            reader_next(r); /* empty at a { alone: unknown */
            FSDP_TRY(take_action(r));
        }
    }
}

int script_parse(const char *text, struct script *out, struct fsdp_error *error)
{
    struct reader r = {
        .at = text, .line = 1, .s = out, .times = {1}, .error = error};

    *out = (struct script){.groups = 1};
    FSDP_TRY(parse_settings(&r));
    FSDP_TRY(take_actions(&r));
    r.word[0] = '\0';
    if (r.depth > 0) {
        return reader_fail(&r, "a repeat has no }");
    }
    return out->n_actions == 0
               ? reader_fail(&r, "a script has an action at least")
               : FSDP_OK;
}

void script_release(struct script *s)
{
    free(s->action);
    free(s->inside);
    free(s->edit);
    *s = (struct script){0};
}
