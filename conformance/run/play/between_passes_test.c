/* SPDX-License-Identifier: Apache-2.0 */
/*
 * between_passes_test.c - what calls between passes do that no case makes. A
 * step for which there is no gradient is no step: the products of AdamW's betas
 * are over the steps that a parameter took. Gradients outlive a step. Between
 * unshard_all and reshard_all parameters are read, and nothing else is done.
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
    STEPS = 4,
    RANKS = 2,
    TIMEOUT_MS = 20000
};

static const struct fsdp_engine *real;
static const float lr[1] = {0.01f};

static int step_without_gradients(struct fsdp_sharded *s)
{
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = lr};

    FSDP_TRY(real->zero_grad(s));
    return real->step(s, &step);
}

static int step_twice(struct fsdp_sharded *s, struct fsdp_step *step)
{
    FSDP_TRY(real->step(s, step));
    return real->step(s, step);
}

static void ignore(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)piece;
}

/* INTERNAL: something was not refused that should be, or the reverse. */
static int ask_while_unsharded(struct fsdp_sharded *s)
{
    const struct fsdp_save save = {.size = sizeof(save), .directory = "/"};
    const struct fsdp_clip clip = {
        .size = sizeof(clip), .max_norm = 1.0f, .p = 2.0f};
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = lr};
    struct fsdp_tensor t;
    float norm;
    bool good;

    FSDP_TRY(real->zero_grad(s));
    good = real->reshard_all(s) == FSDP_ERR_INVALID;
    FSDP_TRY(real->unshard_all(s));
    good = good && real->param(s, 0, &t) == FSDP_OK &&
           real->grad(s, 0, &t) == FSDP_ERR_INVALID &&
           real->at(s, FSDP_BEGIN, 0) == FSDP_ERR_INVALID &&
           real->step(s, &step) == FSDP_ERR_INVALID &&
           real->zero_grad(s) == FSDP_ERR_INVALID &&
           real->clip_grad_norm(s, &clip, &norm) == FSDP_ERR_INVALID &&
           real->pieces(s, ignore, NULL) == FSDP_ERR_INVALID &&
           real->unshard_all(s) == FSDP_ERR_INVALID &&
           real->save_begin(s, &save) == FSDP_ERR_INVALID &&
           real->load(s, "/") == FSDP_ERR_INVALID;
    FSDP_TRY(real->reshard_all(s));
    return good && real->reshard_all(s) == FSDP_ERR_INVALID ? FSDP_OK
                                                            : FSDP_ERR_INTERNAL;
}

/* A run, and the losses of rank 0. */
struct scene {
    struct run_case c;
    struct case_model model;
    struct fsdp_engine engine;
    struct script script;
    struct drive drive;
    bool serial;
    char directory[64];
    float loss[STEPS];
};

static int body(void *context, struct world_rank *rank)
{
    struct scene *s = context;

    return s->serial ? drive_serial(&s->drive, rank)
                     : drive_rank(&s->drive, rank);
}

static void read_losses(struct scene *s, const struct world_result *ends)
{
    struct record r;
    struct fsdp_error error = {0};
    char path[96];

    assert_int_equal(record_init(&r, &s->c, RANKS), FSDP_OK);
    for (uint32_t k = 0; k < RANKS; k++) {
        r.rank[k].n_collectives = ends[s->serial ? 0 : k].n_collectives;
    }
    snprintf(r.engine, sizeof(r.engine), "any");
    snprintf(r.engine_version, sizeof(r.engine_version), "0");
    snprintf(r.world, sizeof(r.world), "threads");
    assert_int_equal(record_write_case(s->directory, &r, &error), FSDP_OK);
    record_release(&r);
    assert_int_equal(record_read(s->directory, &r, &error), FSDP_OK);
    assert_int_equal(r.rank[0].n_losses, STEPS);
    memcpy(s->loss, r.rank[0].loss, sizeof(s->loss));
    record_release(&r);
    assert_int_equal(record_clear(s->directory, &error), FSDP_OK);
    snprintf(path, sizeof(path), "%s/case.json", s->directory);
    (void)unlink(path);
    assert_int_equal(rmdir(s->directory), 0);
}

/* With these functions in the place of the engine's own, where not NULL. */
struct changed {
    int (*zero_grad)(struct fsdp_sharded *s);
    int (*step)(struct fsdp_sharded *s, struct fsdp_step *step);
};

static void run(struct scene *s, const struct changed *changed)
{
    uint32_t extent[2] = {1, s->serial ? 1 : RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[RANKS];
    struct fsdp_error error = {0};

    s->engine = *real;
    if (changed->zero_grad) {
        s->engine.zero_grad = changed->zero_grad;
    }
    if (changed->step) {
        s->engine.step = changed->step;
    }
    snprintf(s->directory, sizeof(s->directory),
             "/tmp/between_passes_test.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_int_equal(case_model_make(&s->c, NULL, 0, &s->model, &error),
                     FSDP_OK);
    assert_int_equal(script_make(&s->c, false, &s->script, &error), FSDP_OK);
    s->drive = (struct drive){.c = &s->c,
                              .model = &s->model,
                              .script = &s->script,
                              .engine = &s->engine,
                              .device_engine = fsdp_ref_engine(),
                              .directory = s->directory};
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, s, ends, &error),
        FSDP_OK);
    assert_int_equal(ends[0].status, FSDP_OK);
    read_losses(s, ends);
    script_release(&s->script);
    case_model_release(&s->model);
}

/* The losses of an engine that is changed like that. */
static struct scene train(const struct fsdp_engine *engine,
                          struct changed changed)
{
    struct scene s = {.serial = strcmp(engine->name, "unsharded") == 0};

    assert_true(case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.s."
                           "adamw",
                           &s.c));
    assert_int_equal(s.c.steps, STEPS);
    real = engine;
    run(&s, &changed);
    return s;
}

static void assert_same(const struct scene *a, const struct scene *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
}

static void a_step_without_gradients_is_none(void **state)
{
    const struct fsdp_engine *const engine[] = {
        fsdp_ref_engine(), fsdp_impl_engine(), fsdp_unsharded_engine()};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct scene with = train(
            engine[i], (struct changed){.zero_grad = step_without_gradients});
        struct scene without = train(engine[i], (struct changed){0});

        assert_same(&with, &without);
        assert_true(with.loss[STEPS - 1] != with.loss[0]);
    }
}

static void gradients_outlive_a_step(void **state)
{
    const struct changed twice = {.step = step_twice};
    struct scene once = train(fsdp_ref_engine(), (struct changed){0});
    struct scene ref = train(fsdp_ref_engine(), twice);
    struct scene impl = train(fsdp_impl_engine(), twice);
    struct scene unsharded = train(fsdp_unsharded_engine(), twice);

    (void)state;
    assert_same(&ref, &unsharded);
    assert_same(&impl, &unsharded);
    assert_true(ref.loss[1] != once.loss[1]);
}

static void only_reading_while_all_is_unsharded(void **state)
{
    const struct changed asks = {.zero_grad = ask_while_unsharded};
    struct scene plain = train(fsdp_ref_engine(), (struct changed){0});
    struct scene ref = train(fsdp_ref_engine(), asks);
    struct scene impl = train(fsdp_impl_engine(), asks);

    (void)state;
    assert_same(&ref, &plain);
    assert_same(&impl, &plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_gradients_is_none),
        cmocka_unit_test(gradients_outlive_a_step),
        cmocka_unit_test(only_reading_while_all_is_unsharded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
