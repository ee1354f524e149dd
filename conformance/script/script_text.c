/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_text.c - the canonical text of a script.
 */
#include "script/script.h"
#include "script/script_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_number(FILE *f, float x)
{
    char text[CASE_FLOAT_BYTES];

    if (isinf(x)) {
        fprintf(f, "inf");
    } else {
        case_float_text(x, text);
        fprintf(f, "%s", text);
    }
}

static void add_numbers(FILE *f, uint32_t n, const float *x)
{
    for (uint32_t i = 0; i < n; i++) {
        fprintf(f, "%s", i == 0 ? " " : ",");
        add_number(f, x[i]);
    }
}

static void add_place(FILE *f, struct script_place place)
{
    fprintf(f, place.b == 0 ? " %u" : " %u/%u", place.a, place.b);
}

static void add_batch(FILE *f, const struct script_batch *b)
{
    if (!b->counted) {
        fprintf(f, " %u.%u", b->step, b->microbatch);
    } else if (b->step == 0) {
        fprintf(f, " i.%u", b->microbatch);
    } else {
        fprintf(f, " i+%u.%u", b->step, b->microbatch);
    }
}

static void add_inside(FILE *f, const struct script_inside *in)
{
    fprintf(f, " at");
    add_place(f, in->place);
    if (in->by_hand != 0) {
        fprintf(f, " %s %u", script_verb_words[in->by_hand], in->unit);
    } else if (in->sync == SCRIPT_SYNC_UNSAID) {
        fprintf(f, " ! %s", script_calls[in->call].name);
    } else {
        fprintf(f, " sync %s", script_sync_words[in->sync]);
    }
}

static void add_where(FILE *f, const char *what, uint32_t which)
{
    if (which != SCRIPT_ALL) {
        fprintf(f, " %s %u", what, which);
    }
}

static void add_edit(FILE *f, const struct script_edit *e)
{
    fprintf(f, e->kind >= SCRIPT_EDIT_ZERO ? " set %s" : " %s",
            script_edit_words[e->kind]);
    if (e->kind == SCRIPT_EDIT_TIMES) {
        fprintf(f, " 2^%d", e->exponent);
    }
    add_where(f, "rank", e->rank);
    add_where(f, "param", e->parameter);
    add_where(f, "element", e->element);
}

static void add_pass(FILE *f, const struct script *s,
                     const struct script_action *a)
{
    static const char *const sync[] = {"", " s", " n"};

    add_batch(f, &a->batch);
    fprintf(f, "%s", sync[a->sync]);
    for (uint32_t i = 0; i < a->n_inside; i++) {
        add_inside(f, &s->inside[a->first_inside + i]);
    }
    for (uint32_t i = 0; i < a->n_edits; i++) {
        add_edit(f, &s->edit[a->first_edit + i]);
    }
    if (a->ending != SCRIPT_WHOLE) {
        fprintf(f, " %s", script_ending_words[a->ending]);
        add_place(f, a->until);
    }
}

static void add_step(FILE *f, const struct script_action *a)
{
    fprintf(f, " lr");
    add_numbers(f, a->n_lr, a->lr);
    if (a->n_decay > 0) {
        fprintf(f, " decay");
        add_numbers(f, a->n_decay, a->decay);
    }
    fprintf(f, a->finite ? " finite" : "");
}

static void add_clip(FILE *f, const struct script_action *a)
{
    add_numbers(f, 1, &a->max_norm);
    fprintf(f, " p");
    add_numbers(f, 1, &a->p);
    fprintf(f, a->strict ? " strict" : "");
}

static void add_slot(FILE *f, const struct script_action *a)
{
    fprintf(f, " %c", 'a' + (int)a->slot);
    if (a->verb == SCRIPT_SAVE) {
        fprintf(f, " %s", script_form_words[a->form]);
        fprintf(f, a->rank0_only ? "-rank0" : "");
        fprintf(f, a->what ? " of" : "");
        for (uint32_t i = 0; i < SCRIPT_N_PARTS; i++) {
            if ((a->what >> i & 1) != 0) {
                fprintf(f, " %s", script_part_words[i]);
            }
        }
        if (a->dtype) {
            fprintf(f, " in %s", a->dtype == FSDP_DTYPE_BF16 ? "bf16" : "fp16");
        }
    }
    if (a->verb == SCRIPT_WAIT && a->same) {
        fprintf(f, " same %c", 'a' + (int)a->same_slot);
    }
    fprintf(f, a->verb == SCRIPT_LOAD && a->lenient ? " lenient" : "");
}

static void add_world(FILE *f, const struct script_world *w)
{
    if (w->ranks == 0) {
        return;
    }
    fprintf(f, " k%u", w->ranks);
    if (w->replicas != (w->strategy == CASE_NO_SHARD ? w->ranks : 1)) {
        fprintf(f, "r%u", w->replicas);
    }
    fprintf(f, " %s", case_strategy_name(w->strategy));
    if (w->wrap != CASE_N_WRAPS) {
        fprintf(f, " %s", case_wrap_name(w->wrap));
    }
}

static void add_unit(FILE *f, uint32_t unit)
{
    if (unit == FSDP_NO_UNIT) {
        fprintf(f, " all");
    } else {
        fprintf(f, " %u", unit);
    }
}

/* Writes the unit that an action is about, and what it says of the unit. */
static void add_of_unit(FILE *f, const struct script_action *a)
{
    add_unit(f, a->unit);
    if (a->verb == SCRIPT_SET) {
        fprintf(f, " %s", script_knob_words[a->knob]);
        add_numbers(f, 1, &a->value);
    } else if (a->verb == SCRIPT_SUMMON_SOME && a->on_rank0) {
        fprintf(f, " rank0");
    }
}

static void add_source(FILE *f, const struct script_action *a)
{
    if (a->source == SCRIPT_OF_NUMBER) {
        fprintf(f, " %u", a->number);
    } else {
        fprintf(f, " %s", script_source_words[a->source]);
    }
    if (a->slice > 0) {
        fprintf(f, " by %u", a->slice);
    }
}

static void add_action(FILE *f, const struct script *s,
                       const struct script_action *a)
{
    fprintf(f, "%s", script_verb_words[a->verb]);
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        add_pass(f, s, a);
        break;
    case SCRIPT_STEP:
    case SCRIPT_BACKWARD_STEP:
        add_step(f, a);
        break;
    case SCRIPT_CLIP:
        add_clip(f, a);
        break;
    case SCRIPT_SYNC:
        fprintf(f, " %s", script_sync_words[a->sync]);
        break;
    case SCRIPT_SAVE:
    case SCRIPT_WAIT:
    case SCRIPT_LOAD:
        add_slot(f, a);
        break;
    case SCRIPT_AGAIN:
        if (a->renamed > 0) {
            fprintf(f, " renamed %u", a->renamed - 1);
        }
        break;
    case SCRIPT_ANEW:
        add_world(f, &a->world);
        break;
    case SCRIPT_SET:
    case SCRIPT_UNSHARD_UNIT:
    case SCRIPT_RESHARD_UNIT:
    case SCRIPT_SUMMON_SOME:
        add_of_unit(f, a);
        break;
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        add_unit(f, a->parameter); /* or all */
        break;
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
        add_unit(f, a->parameter);
        add_source(f, a);
        break;
    case SCRIPT_WRONG:
        fprintf(f, " %s", script_calls[a->call].name);
        break;
    case SCRIPT_REPEAT:
        fprintf(f, " %u {", a->count);
        break;
    default:
        break;
    }
}

static void add_said(FILE *f, const char *word, const struct script_list *x,
                     const struct script_list *second)
{
    if (x->n == 0) {
        return;
    }
    fprintf(f, "%s", word);
    add_numbers(f, x->n, x->x);
    if (second) {
        add_numbers(f, second->n, second->x);
    }
    fprintf(f, "\n");
}

static void add_settings(FILE *f, const struct script *s)
{
    const struct script_numbers *n = &s->numbers;
    char id[CASE_ID_BYTES];

    fprintf(f, "script %d\n", SCRIPT_VERSION);
    if (s->has_case) {
        case_id(&s->c, id);
        fprintf(f, "case %s\n", id);
    }
    add_said(f, "betas", &n->beta1, &n->beta2);
    add_said(f, "eps", &n->eps, NULL);
    add_said(f, "momentum", &n->momentum, NULL);
    if (s->groups > 1) {
        fprintf(f, "groups %u\n", s->groups);
    }
    if (s->scale.said) {
        fprintf(f, "scale 2^%d", s->scale.exponent);
        if (s->scale.every > 0) {
            fprintf(f, " every %u", s->scale.every);
        }
        fprintf(f, "\n");
    }
    if (s->deferred) {
        fprintf(f, "deferred\n");
    }
    if (s->rank0) {
        fprintf(f, "rank0\n");
    }
    for (uint32_t k = 0; k < SCRIPT_MAX_SLOTS; k++) {
        if ((s->given >> k & 1) != 0) {
            fprintf(f, "given %c\n", 'a' + (int)k);
        }
    }
    fprintf(f, "--\n");
}

char *script_text(const struct script *s)
{
    uint32_t end[SCRIPT_MAX_DEPTH];
    uint32_t depth = 0;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (!f) {
        return NULL;
    }
    add_settings(f, s);
    for (uint32_t i = 0; i < s->n_actions; i++) {
        add_action(f, s, &s->action[i]);
        fprintf(f, "\n");
        if (s->action[i].verb == SCRIPT_REPEAT) {
            end[depth++] = i + 1 + s->action[i].length;
        }
        while (depth > 0 && end[depth - 1] == i + 1) {
            fprintf(f, "}\n");
            depth--;
        }
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void script_action_text(const struct script *s, const struct script_action *a,
                        char *text, size_t bytes)
{
    FILE *f = fmemopen(text, bytes, "w");

    text[0] = '\0';
    if (f) {
        add_action(f, s, a);
        (void)fclose(f);
    }
    text[bytes - 1] = '\0';
}
