/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign_mutants.c - engines that put given values into the wrong elements,
 * change more than those, or accept values at any time.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST = 4096 /* elements of a parameter */
};

static _Thread_local struct {
    uint32_t parameter;
    uint64_t first, n;
    const float *host;
    bool brims; /* the last element was given, and padding has it */
} now;

static void forget_assign(void)
{
    memset(&now, 0, sizeof(now));
}

static int really(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                  uint64_t n, const void *host)
{
    return mutant_real.engine.assign(s, p, first, n, host);
}

/* ---- Other elements ------------------------------------------------------ */

/* Writes the values as if this rank's part began where the parameter does. */
static void put_from_start(const struct fsdp_piece *piece)
{
    uint64_t n = piece->n < now.n ? piece->n : now.n;

    if (piece->parameter == now.parameter && now.first == 0 && n > 0) {
        (void)mutant_put(NULL, now.host, n, (void *)piece->value);
    }
}

static int whole_shard(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                       uint64_t n, const void *host)
{
    FSDP_TRY(really(s, p, first, n, host));
    now.parameter = p;
    now.first = first;
    now.n = n;
    now.host = host;
    return mutant_each_piece(s, put_from_start);
}

static int shifted(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                   uint64_t n, const void *host)
{
    float moved[MOST];

    if (n < 2 || n > MOST || p >= mutant_real.model->n_parameters) {
        return really(s, p, first, n, host);
    }
    memcpy(moved + 1, host, (n - 1) * sizeof(*moved));
    memcpy(moved, (const float *)host + n - 1, sizeof(*moved));
    return really(s, p, first, n, moved);
}

/* ---- More than that ------------------------------------------------------ */

static int note_last(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                     uint64_t n, const void *host)
{
    const int status = really(s, p, first, n, host);

    now.brims = now.brims || status == FSDP_OK;
    return status;
}

/* Writes into the padding behind the last element of the unit's last shard. */
static void into_padding(struct fsdp_collective *c)
{
    if (c->kind == FSDP_ALL_GATHER && now.brims && mutant_real.shards > 1 &&
        mutant_real.rank % mutant_real.shards == mutant_real.shards - 1 &&
        c->n * mutant_real.shards > mutant_unit_numel(c->unit)) {
        mutant_input(c)[c->n - 1] = 1.0f;
    }
}

static void clear_states(const struct fsdp_piece *piece)
{
    static const float zero[MOST];

    for (uint32_t k = 0; k < 2; k++) {
        if (piece->parameter == now.parameter && piece->state[k] &&
            piece->n <= MOST) {
            (void)mutant_put(NULL, zero, piece->n, (void *)piece->state[k]);
        }
    }
}

static int resets_states(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                         uint64_t n, const void *host)
{
    FSDP_TRY(really(s, p, first, n, host));
    now.parameter = p;
    return mutant_each_piece(s, clear_states);
}

static int drops_gradients(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                           uint64_t n, const void *host)
{
    FSDP_TRY(really(s, p, first, n, host));
    return mutant_real.engine.zero_grad(s);
}

/* ---- Copies -------------------------------------------------------------- */

static int note_stale(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                      uint64_t n, const void *host)
{
    mutant_now.stale = mutant_now.keeps;
    return really(s, p, first, n, host);
}

/* ---- Whenever it is asked for -------------------------------------------- */

/* Accepts a range that the parameter does not have, and does nothing. */
static int any_range(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                     uint64_t n, const void *host)
{
    const uint64_t numel = p < mutant_real.model->n_parameters
                               ? fsdp_numel(mutant_real.model, p)
                               : 0;

    return !mutant_now.in_pass && (first > numel || n > numel - first)
               ? FSDP_OK
               : really(s, p, first, n, host);
}

/* ---- Which cases show it ------------------------------------------------- */

static bool rewrites(const struct run_case *c)
{
    return mutant_plays_sharded(c, "rewrite") &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

const struct mutant assign_mutants[] = {
    {.name = "assign-any-range",
     .text =
         "an assign of elements that a parameter does not have, or of none, "
         "does nothing, and no error",
     .evidence = "narrow() over what is owned, which is empty",
     .kills = "error.assign-range",
     .shows = {.in = mutant_sharded, .script = "rewrite-refused"},
     .calls.assign = any_range},
    {.name = "assign-anytime",
     .text = "an assign in a pass does nothing, and no error",
     .evidence = "summon_full_params between a forward and its backward",
     .kills = "error.assign-in-pass",
     .shows = {.in = mutant_sharded, .script = "rewrite-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(assign), FSDP_ERR_INVALID},
     .when = mutant_is_in_pass},
    /* In the script "rewrite-kept" the elements do not divide evenly. */
    {.name = "assign-copy-stale",
     .text = "copies that were kept behind a backward outlive an assign",
     .evidence = "set_reshard_after_backward(False), and a write back",
     .kills = "control.fresh-after-step",
     .shows = {.in = mutant_sharded, .script = "rewrite-kept"},
     .calls.assign = note_stale,
     .fault = {MUTANT_LEAVES_OUT_COLLECTIVE, .of = FSDP_ALL_GATHER},
     .when = mutant_finds_copies},
    {.name = "assign-drops-gradients",
     .text = "an assign drops all gradients",
     .evidence = "parameters that are made again, without .grad",
     .kills = "assign.states-stay script.rest",
     .shows = {.in = mutant_sharded, .script = "rewrite-kept"},
     .calls.assign = drops_gradients},
    {.name = "assign-into-padding",
     .text = "behind an assign the padding of a unit has a value",
     .evidence = "a flat parameter that is copied as long as its shard is",
     .kills = "assign.padding-zero",
     .shows = {.in = mutant_sharded, .script = "rewrite-kept"},
     .calls.assign = note_last,
     .collective = into_padding,
     .forget = forget_assign},
    {.name = "assign-resets-states",
     .text = "what is assigned begins with states of 0 again",
     .evidence = "an optimizer that is made again for new parameters",
     .kills = "assign.states-stay",
     .shows = {.in = rewrites},
     .calls.assign = resets_states,
     .forget = forget_assign},
    {.name = "assign-shifted",
     .text = "what is assigned lies an element behind its place",
     .evidence = "offsets that count from 1",
     .kills = "assign.own-part",
     .shows = {.in = rewrites},
     .calls.assign = shifted},
    {.name = "assign-whole-shard",
     .text = "every rank takes the first of the values that are given, as if "
             "it owned those",
     .evidence = "a write back that copies the full parameter's beginning",
     .kills = "assign.own-part",
     .shows = {.in = rewrites},
     .calls.assign = whole_shard,
     .forget = forget_assign},
    {0},
};
