/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_mutants.c - engines that freeze and thaw parameters wrongly: too late,
 * with old states, or at any time.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_PARAMETERS = 8, /* of the models here */
    MOST_ELEMENTS = 256, /* of one of them, in a rank's shard */
    MOST_SENT = 1024,    /* of a unit, on the wire */
};

static _Thread_local struct {
    bool waits[MOST_PARAMETERS]; /* waits until there are no gradients */
    uint32_t on[MOST_PARAMETERS];
    uint32_t asked; /* the parameter that set_requires_grad is about */
    bool decays[MOST_PARAMETERS];   /* decays though it should not */
    uint64_t kept[MOST_PARAMETERS]; /* elements of its kept states */
    float factor;                   /* of a step's decay */
    bool apart;                     /* all-reduce is off */
} now;

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

static int really(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    return mutant_real.engine.set_requires_grad(s, p, on);
}

static bool is_small(uint32_t p)
{
    return p < MOST_PARAMETERS && p < mutant_real.model->n_parameters;
}

/* ---- Too late ------------------------------------------------------------ */

/* Delays calls that thaw a parameter (`of` is 1), or that freeze one. */
static int set_late(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    if (on != mutant_of() || !is_small(p)) {
        return really(s, p, on);
    }
    now.waits[p] = true;
    now.on[p] = on;
    return FSDP_OK;
}

static int zero_turns(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.zero_grad(s));
    for (uint32_t p = 0; p < MOST_PARAMETERS; p++) {
        if (now.waits[p]) {
            now.waits[p] = false;
            FSDP_TRY(really(s, p, now.on[p]));
        }
    }
    return FSDP_OK;
}

/* Storage that is never read. */
static _Thread_local void *spare_room;

static int grad_of_late(struct fsdp_sharded *s, uint32_t p,
                        struct fsdp_tensor *out)
{
    if (!is_small(p) || !now.waits[p]) {
        return mutant_real.engine.grad(s, p, out);
    }
    FSDP_TRY(mutant_real.engine.param(s, p, out));
    out->data = mutant_room(&spare_room, MOST_SENT * sizeof(float));
    return out->data ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* ---- With other states --------------------------------------------------- */

static _Thread_local void *state_room;

static float *state_of(uint32_t p, uint32_t k)
{
    float *all = mutant_room(&state_room, sizeof(float) * MOST_PARAMETERS * 2 *
                                              MOST_ELEMENTS);

    return all ? all + ((size_t)p * 2 + k) * MOST_ELEMENTS : NULL;
}

static void keep_states(const struct fsdp_piece *piece)
{
    for (uint32_t k = 0; k < 2; k++) {
        float *to = state_of(now.asked, k);

        if (piece->parameter == now.asked && piece->state[k] && to &&
            piece->n <= MOST_ELEMENTS) {
            (void)mutant_get(NULL, piece->state[k], piece->n, to);
            now.kept[now.asked] = piece->n;
        }
    }
}

static void bring_states(const struct fsdp_piece *piece)
{
    for (uint32_t k = 0; k < 2; k++) {
        const float *from = state_of(now.asked, k);

        if (piece->parameter == now.asked && piece->state[k] && from &&
            piece->n == now.kept[now.asked]) {
            (void)mutant_put(NULL, from, piece->n, (void *)piece->state[k]);
        }
    }
}

static int thaw_stale(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    now.asked = is_small(p) ? p : 0;
    if (on == 0) {
        FSDP_TRY(mutant_each_piece(s, keep_states));
    }
    FSDP_TRY(really(s, p, on));
    return on == 1 ? mutant_each_piece(s, bring_states) : FSDP_OK;
}

static void clear_others(const struct fsdp_piece *piece)
{
    static const float zero[MOST_ELEMENTS];

    for (uint32_t k = 0; k < 2; k++) {
        if (piece->parameter != now.asked && piece->state[k] &&
            mutant_unit(piece->parameter) == mutant_unit(now.asked) &&
            piece->n <= MOST_ELEMENTS) {
            (void)mutant_put(NULL, zero, piece->n, (void *)piece->state[k]);
        }
    }
}

static int others_cleared(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    now.asked = p;
    FSDP_TRY(really(s, p, on));
    return mutant_each_piece(s, clear_others);
}

/* As many bytes as a frozen parameter's states had stay live until the end. */
static int states_left(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    const struct fsdp_device *d = mutant_real.device;
    void *left;

    now.asked = is_small(p) ? p : 0;
    if (on == 0) {
        FSDP_TRY(mutant_each_piece(s, keep_states));
    }
    FSDP_TRY(really(s, p, on));
    if (on == 0 && now.kept[now.asked] > 0) {
        const uint64_t bytes = now.kept[now.asked] * sizeof(float);

        FSDP_TRY(d->alloc(d->self, bytes, &left));
        d->live(d->self, NULL, FSDP_OPTIM, mutant_unit(p), left, bytes);
    }
    return FSDP_OK;
}

/* ---- Frozen, and moved --------------------------------------------------- */

static int note_frozen(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    FSDP_TRY(really(s, p, on));
    if (is_small(p)) {
        now.decays[p] = on == 0;
    }
    return FSDP_OK;
}

/* Notes thawed parameters that must not decay. */
static int note_thawed(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    FSDP_TRY(really(s, p, on));
    if (is_small(p)) {
        now.decays[p] = on == 1 && (mutant_real.model->parameter_flags[p] &
                                    FSDP_NO_DECAY) != 0;
    }
    return FSDP_OK;
}

static float decayed(float x)
{
    return x * now.factor;
}

static void decay(const struct fsdp_piece *piece)
{
    if (is_small(piece->parameter) && now.decays[piece->parameter]) {
        (void)mutant_each(NULL, (void *)piece->value, piece->n, decayed);
    }
}

static int step_decays(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    if (!how->weight_decay) {
        return FSDP_OK;
    }
    now.factor = 1.0f - how->lr[0] * how->weight_decay[0];
    return mutant_each_piece(s, decay);
}

/* ---- Whenever it is asked for ---------------------------------------------
 */

static int set_anytime(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    const int status = really(s, p, on);

    return is_small(p) && on <= 1 ? FSDP_OK : status;
}

/* ---- While there are partial sums ----------------------------------------
 */

static int note_apart(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                      float value)
{
    now.apart = knob == FSDP_KNOB_ALL_REDUCE ? value == 0.0f : now.apart;
    return mutant_real.engine.set(s, unit, knob, value);
}

static int set_apart(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    return now.apart && !mutant_now.in_pass ? FSDP_OK : really(s, p, on);
}

static int set_anything(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    return p < mutant_real.model->n_parameters ? really(s, p, on != 0)
                                               : FSDP_OK;
}

/* ---- Cases that show them -------------------------------------------------
 */

static bool thaws(const struct run_case *c)
{
    return mutant_plays_in_turn(c, "thaw") &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW &&
           c->strategy == CASE_FULL_SHARD;
}

/* A case that freezes a part of a unit. */
static bool freezes_parts(const struct run_case *c)
{
    return mutant_plays_in_turn(c, "freeze") &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW && c->wrap == CASE_WRAP_PAIR;
}

static bool thaws_what_decays_not(const struct run_case *c)
{
    return strcmp(c->script, "thaw-parts") == 0 && c->prefetch_forward == 0;
}

const struct mutant thaw_mutants[] = {
    {.name = "freeze-anything",
     .text = "a parameter that is none is frozen, any number thaws, and no "
             "error",
     .evidence = "a loop over parameters that finds none",
     .kills = "error.freeze-arguments",
     .shows = {.in = mutant_in_turn, .script = "thaw-refused"},
     .calls.set_requires_grad = set_anything},
    {.name = "freeze-anytime",
     .text = "what is frozen in a pass, or with gradients, is said to be, and "
             "is not",
     .evidence = "requires_grad_() between a forward and its backward",
     .kills = "error.freeze",
     .shows = {.in = mutant_in_turn, .script = "thaw-refused"},
     .calls.set_requires_grad = set_anytime},
    {.name = "freeze-clears-others",
     .text = "the states of a unit begin anew whenever a parameter of it is "
             "frozen or thawed",
     .evidence = "an optimizer that is made again for the new set",
     .kills = "thaw.others-stay",
     .shows = {.in = freezes_parts},
     .calls.set_requires_grad = others_cleared,
     .forget = forget},
    {.name = "freeze-decays",
     .text = "what is frozen later is decayed as before",
     .evidence = "weight decay that looks at groups, not at gradients",
     .kills = "thaw.frozen-keeps",
     .shows = {.in = freezes_parts},
     .calls = {.set_requires_grad = note_frozen, .step = step_decays},
     .forget = forget},
    {.name = "freeze-late",
     .text = "a parameter is frozen a step later than it is said to be",
     .evidence = "a flag that is read when gradients are dropped",
     .kills = "thaw.reduces thaw.states-rest",
     .shows = {.in = thaws},
     .calls = {.set_requires_grad = set_late, .zero_grad = zero_turns},
     .forget = forget},
    {.name = "freeze-leaves-states",
     .text = "the states of what is frozen stay where they are",
     .evidence = "torch.optim keeps states of what has no gradient any more",
     .kills = "run.leaves-nothing thaw.states-rest",
     .shows = {.in = freezes_parts},
     .calls.set_requires_grad = states_left,
     .forget = forget},
    {.name = "freeze-with-partials",
     .text = "while there is a partial sum what is frozen is said to be, and "
             "is not",
     .evidence = "a check of gradients that looks at those of all replicas",
     .kills = "error.freeze",
     .shows = {.in = mutant_in_turn, .script = "thaw-partial"},
     .calls = {.set = note_apart, .set_requires_grad = set_apart},
     .forget = forget},
    {.name = "thaw-decays",
     .text = "what must not decay does once it has been frozen and thawed",
     .evidence = "flags that are written anew when one of them changes",
     .kills = "script.norms thaw.stepped",
     .shows = {.in = thaws_what_decays_not},
     .calls = {.set_requires_grad = note_thawed, .step = step_decays},
     .forget = forget},
    {.name = "thaw-late",
     .text = "a parameter is thawed a step later than it is said to be",
     .evidence = "a plan of reductions that is made in the first pass",
     .kills = "thaw.reduces thaw.states-rest",
     .shows = {.in = thaws},
     .fault = {.of = 1},
     .calls = {.set_requires_grad = set_late,
               .zero_grad = zero_turns,
               .grad = grad_of_late},
     .forget = forget},
    {.name = "thaw-stale",
     .text = "what is thawed again goes on with the moments that it had",
     .evidence = "torch.optim keeps states of what has no gradient any more",
     .kills = "thaw.starts",
     .shows = {.in = thaws},
     .calls.set_requires_grad = thaw_stale,
     .forget = forget},
    {0},
};
