/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_scripts_test.c - the unsharded run follows what a script asks of
 * any engine: behind it, all weights are those of the sharded engines,
 * whatever was done between the passes.
 */
#include "run/play/drive.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);

enum {
    RANKS = 2,
    MOST_ELEMENTS = 4096,
    TIMEOUT_MS = 20000
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

/* What is left behind counts, of the last life. */
static void destroy(struct fsdp_sharded *s)
{
    if (s) {
        (void)real->pieces(s, note, NULL);
    }
    real->destroy(s);
}

static int body(void *context, struct world_rank *rank)
{
    struct drive *d = context;
    bool serial = strcmp(real->name, "unsharded") == 0;

    return serial ? drive_serial(d, rank) : drive_rank(d, rank);
}

/* Plays `text` behind a header; the weights are in `weights`. */
static void play(const struct fsdp_engine *engine, const char *text)
{
    const bool serial = strcmp(engine->name, "unsharded") == 0;
    uint32_t extent[2] = {1, serial ? 1 : RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[RANKS];
    struct fsdp_error error = {0};
    struct run_case c;
    struct case_model made = {0};
    struct script script = {0};
    struct fsdp_engine changed = *engine;
    char folder[] = "/tmp/baseline_scripts_test.XXXXXX";
    char checkpoints[64];
    char whole[1024];
    struct drive d = {.c = &c,
                      .model = &made,
                      .script = &script,
                      .engine = &changed,
                      .device_engine = fsdp_ref_engine(),
                      .checkpoints = checkpoints};

    assert_non_null(mkdtemp(folder));
    snprintf(checkpoints, sizeof(checkpoints), "%s/c", folder);
    snprintf(whole, sizeof(whole), "script 1\n--\n%s\n", text);
    assert_true(case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.nnns."
                           "adamw.steps24",
                           &c));
    assert_int_equal(script_parse(whole, &script, &error), FSDP_OK);
    assert_int_equal(case_model_make(&c, NULL, 0, &made, &error), FSDP_OK);
    real = engine;
    model = &made.model->model;
    changed.destroy = destroy;
    memset(weights, 0, sizeof(weights));
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, &d, ends, &error),
        FSDP_OK);
    for (uint32_t r = 0; r < (serial ? 1 : RANKS); r++) {
        print_message("%s", ends[r].status ? ends[r].error.message : "");
        assert_int_equal(ends[r].status, FSDP_OK);
    }
    drive_clear_checkpoints(checkpoints);
    assert_int_equal(rmdir(folder), 0);
    script_release(&script);
    case_model_release(&made);
}

/* What is played, and the same without the call that it is about: weights
 * depend on that. */
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
/* Closed at the evaluation, it would be folded apart from the next pass. */
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
