/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_scripts_test.c - the unsharded run does all that a script asks of
 * any engine: at its end all weights are those of the sharded engines, whatever
 * was done between the passes.
 */
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_ELEMENTS = 4096
};

static const struct fsdp_engine *real;
static const struct fsdp_model *model;
static float weights[MOST_ELEMENTS]; /* each rank writes its own parts */

static void note(void *context, const struct fsdp_piece *piece)
{
    uint64_t start = piece->first;

    (void)context;
    for (uint32_t p = 0; p < piece->parameter; p++) {
        start += fsdp_numel(model, p);
    }
    assert_true(start + piece->n <= MOST_ELEMENTS);
    memcpy(weights + start, piece->value, piece->n * sizeof(*weights));
}

/* Keeps the weights at the end of a life; those of the last one count. */
static void destroy(struct fsdp_sharded *s)
{
    if (s) {
        (void)real->pieces(s, note, NULL);
    }
    real->destroy(s);
}

/* Plays `text` behind a header; the weights are in `weights`. */
static void play(const struct fsdp_engine *engine, const char *text)
{
    struct playing p;
    char whole[1024];

    snprintf(whole, sizeof(whole), "script 1\n--\n%s\n", text);
    playing_open(&p,
                 "mlp.odd.natural.full-shard.k2.flat.layer.rank.nnns."
                 "adamw.steps24",
                 whole, engine);
    p.drive.directory = NULL;
    real = engine;
    model = &p.model.model->model;
    p.engine.destroy = destroy;
    memset(weights, 0, sizeof(weights));
    playing_play(&p);
    for (uint32_t r = 0; r < p.c.ranks; r++) {
        print_message("%s", p.ends[r].status ? p.ends[r].error.message : "");
        assert_int_equal(p.ends[r].status, FSDP_OK);
    }
    playing_close(&p);
}

/* A script, and the same without the call that it is about: the weights must
 * depend on that call. */
struct played {
    const char *text, *without;
};

static void the_baseline_follows(void **state)
{
    const struct played *p = *state;
    float unsharded[MOST_ELEMENTS];

    play(fsdp_unsharded_engine(), p->text);
    memcpy(unsharded, weights, sizeof(weights));
    play(fsdp_ref_engine(), p->text);
    assert_memory_equal(unsharded, weights, sizeof(weights));
    play(fsdp_impl_engine(), p->text);
    assert_memory_equal(unsharded, weights, sizeof(weights));
    play(fsdp_unsharded_engine(), p->without);
    assert_memory_not_equal(unsharded, weights, sizeof(weights));
}

#define STEP "step lr 0.05; "

static struct played folds_again_behind_a_clip = {
    "pass 0.0 s; clip 0.25 p 2; pass 0.1 s; " STEP,
    "pass 0.0 s; pass 0.1 s; " STEP};
static struct played folds_again_behind_a_look = {
    "pass 0.0 s; look; pass 0.1 s; " STEP, "pass 0.0 s; " STEP};
static struct played reduces_seventeen_times = {
    "repeat 17 {; pass i.0 s; }; pass 0.3 s; " STEP,
    "repeat 16 {; pass i.0 s; }; pass 0.3 s; " STEP};
static struct played steps_twice_on_what_it_has = {
    "pass 0.0 s; " STEP "pass 0.1 s; " STEP, "pass 0.1 s; " STEP STEP};
static struct played looks_at_what_is_pending = {
    "pass 0.0 n; look; pass 0.1 s; " STEP,
    "pass 0.0 n; zero; pass 0.1 s; " STEP};
/* If the evaluation closed the pending pass, it would be folded apart from the
 * next one. */
static struct played evaluates_what_is_pending = {
    "pass 0.0 n; sync on; eval 5.0; pass 0.1; " STEP,
    "pass 0.0 s; sync on; eval 5.0; pass 0.1; " STEP};
static struct played syncs_from_the_next_pass_on = {
    "pass 0.0 at 1 sync off; pass 0.1; pass 0.2 s; " STEP,
    "pass 0.0 n at 1 sync off; pass 0.1; pass 0.2 s; " STEP};
static struct played cancels_and_goes_on = {
    "pass 0.0 s; pass 0.1 s until 5/8; pass 0.2 s; " STEP,
    "pass 0.0 s; pass 0.2 s; " STEP};
static struct played is_left_open = {
    "pass 0.0 s; " STEP
    "zero; pass 1.0 left-open 5/8; again; pass 0.0 s; " STEP STEP,
    "pass 0.0 s; " STEP};
static struct played loads_in_its_life = {
    "pass 0.0 s; " STEP "zero; save a sharded; pass 0.1 s; " STEP
    "wait a; pass 0.2 n; load a; pass 0.3 s; " STEP,
    "pass 0.0 s; " STEP "zero; save a sharded; pass 0.1 s; " STEP
    "wait a; pass 0.2 s; zero; pass 0.3 s; " STEP};
static struct played loads_the_newest_in_another_life = {
    "pass 0.0 s; " STEP "zero; save a sharded; wait a; pass 1.0 s; " STEP
    "zero; save a sharded; wait a; again; load a; pass 0.3 s; " STEP,
    "pass 0.0 s; " STEP "zero; save a sharded; wait a; pass 1.0 s; " STEP
    "zero; again; load a; pass 0.3 s; " STEP};

#define PLAYS(what)                                      \
    {                                                    \
#        what, the_baseline_follows, NULL, NULL, &(what) \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYS(folds_again_behind_a_clip),
        PLAYS(folds_again_behind_a_look),
        PLAYS(reduces_seventeen_times),
        PLAYS(steps_twice_on_what_it_has),
        PLAYS(looks_at_what_is_pending),
        PLAYS(evaluates_what_is_pending),
        PLAYS(syncs_from_the_next_pass_on),
        PLAYS(cancels_and_goes_on),
        PLAYS(is_left_open),
        PLAYS(loads_in_its_life),
        PLAYS(loads_the_newest_in_another_life),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
