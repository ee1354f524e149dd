/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_mutants.c - engines that are sent a state dict by rank 0 and lose some
 * of it, change more than it has, or less, destroy it, hold a whole model for
 * it, or accept it at any time.
 */
#include "mutants/mutant_kit.h"

#include <string.h>
#include <time.h>

enum {
    MOST = 4096 /* elements of a parameter */
};

static _Thread_local struct {
    bool open;  /* everything is unsharded */
    bool sends; /* values are being sent */
    uint64_t n; /* elements that a rank has kept */
} now;
static _Thread_local void *was; /* float[MOST] */

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

static int really(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    return mutant_real.engine.send_values(s, from);
}

/* ---- Lost ---------------------------------------------------------------- */

static bool is_kept(const struct fsdp_piece *piece)
{
    return piece->parameter == 0 && mutant_real.rank == 1 && piece->n <= MOST;
}

static void note_old(const struct fsdp_piece *piece)
{
    float *const to = mutant_room(&was, MOST * sizeof(*to));

    if (to && is_kept(piece)) {
        now.n = piece->n;
        (void)mutant_get(NULL, piece->value, piece->n, to);
    }
}

static void put_old(const struct fsdp_piece *piece)
{
    if (is_kept(piece) && now.n == piece->n) {
        (void)mutant_put(NULL, was, piece->n, (void *)piece->value);
    }
}

/* Rank 1 keeps its old values of the first parameter. */
static int keeps_old(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    now.n = 0;
    FSDP_TRY(mutant_each_piece(s, note_old));
    FSDP_TRY(really(s, from));
    return mutant_each_piece(s, put_old);
}

/* ---- More than that ------------------------------------------------------ */

static void clear_states(const struct fsdp_piece *piece)
{
    static const float zero[MOST];

    for (uint32_t k = 0; k < 2; k++) {
        if (piece->state[k] && piece->n <= MOST) {
            (void)mutant_put(NULL, zero, piece->n, (void *)piece->state[k]);
        }
    }
}

static int resets_states(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    FSDP_TRY(really(s, from));
    return mutant_each_piece(s, clear_states);
}

static int drops_gradients(struct fsdp_sharded *s,
                           const struct fsdp_values *from)
{
    FSDP_TRY(really(s, from));
    return mutant_real.engine.zero_grad(s);
}

/* A parameter of which a lenient call has no values becomes zeros. */
static int zeros_for_missing(struct fsdp_sharded *s,
                             const struct fsdp_values *from)
{
    static const float zero[MOST];
    const void *value[MUTANT_MOST_PARAMETERS];
    struct fsdp_values all = *from;

    for (uint32_t p = 0; from->value && p < mutant_real.model->n_parameters;
         p++) {
        value[p] = from->value[p] ? from->value[p] : zero;
        all.value = value;
    }
    return really(s, from->lenient ? &all : from);
}

/* Parameters of one element are not sent, as if they were no tensors. */
static int leaves_scalars(struct fsdp_sharded *s,
                          const struct fsdp_values *from)
{
    const void *value[MUTANT_MOST_PARAMETERS];
    struct fsdp_values some = *from;

    some.lenient = 1;
    for (uint32_t p = 0; from->value && p < mutant_real.model->n_parameters;
         p++) {
        value[p] = fsdp_numel(mutant_real.model, p) > 1 ? from->value[p] : NULL;
        some.value = value;
    }
    return really(s, &some);
}

/* If a parameter has several names, the value under the last one is taken. */
static int takes_last_name(struct fsdp_sharded *s,
                           const struct fsdp_values *from)
{
    const struct fsdp_model *model = mutant_real.model;
    const void *value[MUTANT_MOST_PARAMETERS];
    struct fsdp_values named = *from;

    for (uint32_t p = 0; from->value && p < model->n_parameters; p++) {
        value[p] = from->value[p];
        value[fsdp_original(model, p)] = from->value[p];
        named.value = value;
    }
    return really(s, &named);
}

static int eats(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    FSDP_TRY(really(s, from));
    for (uint32_t p = 0; from->value && p < mutant_real.model->n_parameters;
         p++) {
        if (from->value[p]) {
            memset((void *)from->value[p], 0,
                   fsdp_numel(mutant_real.model, p) * sizeof(float));
        }
    }
    return FSDP_OK;
}

/* ---- Copies -------------------------------------------------------------- */

static int note_stale(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    mutant_now.stale = mutant_now.keeps;
    return really(s, from);
}

/* ---- Whenever it is asked for -------------------------------------------- */

static int note_open(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.unshard_all(s));
    now.open = true;
    return FSDP_OK;
}

static int note_closed(struct fsdp_sharded *s)
{
    now.open = false;
    return mutant_real.engine.reshard_all(s);
}

/* Whether the engine is at rest with everything sharded, where it leaves out
 * missing values though it was not asked to be lenient. */
static bool is_closed(void)
{
    return !mutant_now.in_pass && !now.open;
}

/* ---- Too early ----------------------------------------------------------- */

static int sends_at_once(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    int status;

    now.sends = true;
    status = really(s, from);
    now.sends = false;
    return status;
}

/* Does not wait for streams, but lets time pass until they are done: a race
 * with the right values, as values have their own requirements. */
static int no_sync(void *self, struct fsdp_stream *stream)
{
    const struct timespec while_streams_work = {.tv_nsec = 100000000};

    if (now.sends) {
        (void)nanosleep(&while_streams_work, NULL);
        return FSDP_OK;
    }
    return mutant_real.device->sync(self, stream);
}

static int takes_first(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    void *all;

    FSDP_TRY(mutant_take_whole(&all));
    mutant_drop_whole(all);
    return really(s, from);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_sent(const struct run_case *c)
{
    return mutant_plays_mlp(c, "send") && c->replicas == 1;
}

static bool has_ties(const struct run_case *c)
{
    return mutant_plays(c, "send") && strcmp(c->size, "tied") == 0;
}

static bool has_scalars(const struct run_case *c)
{
    return mutant_plays(c, "send") && strcmp(c->workload, "graph") == 0;
}

const struct mutant send_mutants[] = {
    {.name = "send-anytime",
     .text = "values are sent in a pass: nothing happens, and no error",
     .evidence = "load_state_dict() between a forward and its backward",
     .kills = "error.send",
     .shows = {.in = mutant_sharded, .script = "send-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(send_values), FSDP_ERR_INVALID},
     .when = mutant_is_in_pass},
    {.name = "send-at-once",
     .text = "what is to be sent is staged where streams are still at work",
     .evidence = "pytorch/pytorch#198020: copied before it was done",
     .kills = "stream.no-race",
     .shows = {.in = mutant_any_mlp,
               .script = "send-behind-summon",
               .engine = "impl"},
     .calls.send_values = sends_at_once,
     .device.sync = no_sync,
     .forget = forget},
    {.name = "send-copy-stale",
     .text = "copies that were kept behind a backward outlive values that rank "
             "0 has sent",
     .evidence = "set_reshard_after_backward(False), and a state dict",
     .kills = "control.fresh-after-step",
     .shows = {.in = mutant_sharded, .script = "send-kept"},
     .calls.send_values = note_stale,
     .fault = {MUTANT_LEAVES_OUT_COLLECTIVE, .of = FSDP_ALL_GATHER},
     .when = mutant_finds_copies},
    {.name = "send-disagree-unseen",
     .text = "ranks that do not agree on who has values to send, or on how "
             "lenient it is, are told that all is well",
     .evidence = "a check of rank 0 alone",
     .kills = "error.send-disagree",
     .shows = {.in = mutant_sharded, .script = "send-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(send_values), FSDP_ERR_MISMATCH}},
    {.name = "send-drops-gradients",
     .text = "values that rank 0 sends drop all gradients",
     .evidence = "load_state_dict(assign=True): parameters without .grad",
     .kills = "script.rest send.others-stay",
     .shows = {.in = is_sent},
     .calls.send_values = drops_gradients},
    {.name = "send-eats-input",
     .text = "what rank 0 has sent is zeros in its memory",
     .evidence = "set_model_state_dict with broadcast_from_rank0, which "
                 "replaces what is in the dict",
     .kills = "send.input-stays",
     .shows = {.in = mutant_sharded, .script = "send-fill"},
     .calls.send_values = eats},
    {.name = "send-keeps-old",
     .text = "rank 1 keeps the first parameter as it was when rank 0 sends it",
     .evidence = "a broadcast into a copy of the first parameter",
     .kills = "send.own-part",
     .shows = {.in = is_sent},
     .calls.send_values = keeps_old,
     .forget = forget},
    {.name = "send-lacking-unseen",
     .text = "a state dict that lacks a parameter is taken as a lenient one, "
             "and is left out",
     .evidence = "load_state_dict whose missing keys nobody reads",
     .kills = "error.send-lacking",
     .shows = {.in = mutant_sharded, .script = "send-refused"},
     .calls = {.unshard_all = note_open, .reshard_all = note_closed},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(send_values), FSDP_ERR_INVALID},
     .when = is_closed,
     .forget = forget},
    {.name = "send-leaves-scalars",
     .text = "values that rank 0 has of a parameter of one element are not "
             "sent",
     .evidence = "no report: a tensor without dimensions, which every rank is "
                 "said to have",
     .kills = "send.once send.own-part",
     .shows = {.in = has_scalars},
     .calls.send_values = leaves_scalars},
    {.name = "send-missing-zeros",
     .text = "what a lenient state dict has no values of becomes 0",
     .evidence = "to_empty() before a state dict with strict=False",
     .kills = "send.once send.own-part",
     .shows = {.in = mutant_sharded, .script = "send-fill"},
     .calls.send_values = zeros_for_missing},
    {.name = "send-not-received",
     .text = "what rank 0 sends of a state dict no other rank takes",
     .evidence = "broadcast_from_rank0 where other ranks' dicts are empty",
     .kills = "send.own-part",
     .shows = {.in = is_sent},
     .fault = {MUTANT_BRINGS_ZEROS, FSDP_BROADCAST},
     .when = mutant_is_not_rank_0},
    {.name = "send-resets-states",
     .text = "values that rank 0 sends set all states of the optimizer to 0",
     .evidence = "an optimizer that is made again for new parameters",
     .kills = "send.others-stay",
     .shows = {.in = is_sent},
     .calls.send_values = resets_states},
    {.name = "send-takes-first",
     .text = "what is to be sent has its memory before it is known whether it "
             "is refused",
     .evidence = "buffers that are made before arguments are checked",
     .kills = "script.peak",
     .shows = {.in = mutant_any_mlp, .script = "send-refused-at-rest"},
     .calls.send_values = takes_first},
    {.name = "send-takes-last-name",
     .text = "of what is tied the values of the last name are sent",
     .evidence = "a head of a state dict that is loaded over the embedding",
     .kills = "send.once send.own-part",
     .shows = {.in = has_ties},
     .calls.send_values = takes_last_name},
    {.name = "send-twice",
     .text = "a state dict of rank 0 is sent twice",
     .evidence = "a broadcast of each name of what is shared",
     .kills = "send.once",
     .shows = {.in = mutant_sharded, .script = "send-fill"},
     .fault = {MUTANT_REPEATS_COLLECTIVE, FSDP_BROADCAST}},
    {.name = "send-whole",
     .text = "the whole model is unsharded while rank 0 sends a state dict",
     .evidence = "a full state dict that is broadcast before it is cut",
     .kills = "send.peak",
     .shows = {.in = mutant_sharded, .script = "send-fill"},
     .comm.run = mutant_whole_beside_broadcast},
    {0},
};
