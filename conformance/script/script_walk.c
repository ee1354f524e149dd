/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_walk.c - walks over a script's actions in the order in which they are
 * played, each turn of a repeat by itself. Also says what a script wants of its
 * lives: options, numbers, groups.
 */
#include "script/script.h"

struct script_walk script_begin(const struct script *s)
{
    return (struct script_walk){.s = s};
}

/* At the end of a repeat's body, begins its next turn, or leaves it behind the
 * last one. */
static void turn(struct script_walk *w)
{
    while (w->depth > 0 && w->at == w->loop[w->depth - 1].end) {
        if (++w->loop[w->depth - 1].turn < w->loop[w->depth - 1].count) {
            w->at = w->loop[w->depth - 1].begin;
            return;
        }
        w->depth--;
    }
}

const struct script_action *script_next(struct script_walk *w)
{
    const struct script_action *a;

    turn(w);
    while (w->at < w->s->n_actions) {
        a = &w->s->action[w->at++];
        if (a->verb != SCRIPT_REPEAT) {
            return a;
        }
        w->loop[w->depth].begin = w->at;
        w->loop[w->depth].end = w->at + a->length;
        w->loop[w->depth].turn = 0;
        w->loop[w->depth++].count = a->count;
    }
    return NULL;
}

static bool drops_gradients(const struct script_action *a)
{
    return a->verb == SCRIPT_ZERO || a->verb == SCRIPT_LOAD ||
           a->verb == SCRIPT_AGAIN || a->verb == SCRIPT_ANEW;
}

bool script_step_is_used_again(const struct script *s, uint32_t i)
{
    struct script_walk w = script_begin(s);
    const struct script_action *a;
    bool there = false; /* gradients */
    bool used = false;

    while ((a = script_next(&w))) {
        if (used && (a->verb == SCRIPT_PASS || a->verb == SCRIPT_STEP)) {
            return true;
        }
        there = (there || a->verb == SCRIPT_PASS) && !drops_gradients(a);
        used =
            there && (used || (a == &s->action[i] && a->verb == SCRIPT_STEP));
    }
    return false;
}

uint32_t script_step(const struct script_walk *w, const struct script_action *a)
{
    uint32_t turns = w->depth > 0 ? w->loop[w->depth - 1].turn : 0;

    return a->batch.step + (a->batch.counted ? turns : 0);
}

uint32_t script_place_in(struct script_place place, uint32_t length)
{
    return place.b == 0 ? place.a
                        : (uint32_t)((uint64_t)place.a * length / place.b);
}

/* Groups cut through layers, and do not tell weights from biases: neighbours
 * are in different groups, and group 0 is larger than the others. */
uint32_t script_group_of(uint32_t n, uint32_t p)
{
    uint32_t k = n > 1 ? p % (2 * n - 1) : 0;

    return k % 2 == 1 ? (k + 1) / 2 : 0;
}

void script_options(const struct script *s, struct fsdp_options *options)
{
    const struct script_list *const list[] = {
        &s->numbers.beta1, &s->numbers.beta2, &s->numbers.eps,
        &s->numbers.momentum};
    float *const option[] = {&options->beta1, &options->beta2, &options->eps,
                             &options->momentum};

    for (uint32_t i = 0; i < 4; i++) {
        *option[i] = list[i]->n == 1 ? list[i]->x[0] : *option[i];
    }
}

bool script_sets_factor(const struct script_action *a)
{
    return a->verb == SCRIPT_SET && (a->knob == FSDP_KNOB_DIVIDE_FACTOR ||
                                     a->knob == FSDP_KNOB_PREDIVIDE_FACTOR);
}

bool script_has_own_numbers(const struct script *s)
{
    const struct script_numbers *n = &s->numbers;

    return n->beta1.n > 1 || n->beta2.n > 1 || n->eps.n > 1 ||
           n->momentum.n > 1;
}

void script_case_in(const struct run_case *c, const struct script_world *world,
                    struct run_case *out)
{
    *out = *c;
    if (world->ranks != 0) {
        out->ranks = world->ranks;
        out->replicas = world->replicas;
        out->strategy = world->strategy;
        out->wrap = world->wrap != CASE_N_WRAPS ? world->wrap : c->wrap;
        out->grains = case_grains(c->fold, world->ranks);
    }
}

bool script_is_offer(const struct script_action *a)
{
    return a->verb == SCRIPT_WRONG &&
           script_calls[a->call].when == SCRIPT_UNTRAINED;
}
