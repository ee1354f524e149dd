/* SPDX-License-Identifier: Apache-2.0 */
/*
 * empty_step_test.c - a step for which there is no gradient is no step: the
 * products of AdamW's betas are over the steps that a parameter took. Each
 * engine trains with such a step behind every zero_grad, and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/drive.h"

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

static int zero_grad_and_step(struct fsdp_sharded *s)
{
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = lr};

    FSDP_TRY(real->zero_grad(s));
    return real->step(s, &step);
}

/* A run, and the losses of rank 0. */
struct scene {
    struct run_case c;
    struct case_model model;
    struct fsdp_engine engine;
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

static void read_losses(struct scene *s)
{
    struct record r;
    struct fsdp_error error = {0};
    char path[96];

    assert_int_equal(record_init(&r, &s->c, RANKS), FSDP_OK);
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

static void run(struct scene *s, bool empty_steps)
{
    uint32_t extent[2] = {1, s->serial ? 1 : RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[RANKS];
    struct fsdp_error error = {0};

    s->engine = *real;
    if (empty_steps) {
        s->engine.zero_grad = zero_grad_and_step;
    }
    snprintf(s->directory, sizeof(s->directory), "/tmp/empty_step_test.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_int_equal(case_model_make(&s->c, NULL, 0, &s->model, &error),
                     FSDP_OK);
    s->drive = (struct drive){.c = &s->c,
                              .model = &s->model,
                              .engine = &s->engine,
                              .device_engine = fsdp_ref_engine(),
                              .directory = s->directory};
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, s, ends, &error),
        FSDP_OK);
    assert_int_equal(ends[0].status, FSDP_OK);
    read_losses(s);
    case_model_release(&s->model);
}

static void same_losses(const struct fsdp_engine *engine, bool serial)
{
    struct scene with = {.serial = serial};
    struct scene without = {.serial = serial};

    assert_true(case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.s."
                           "adamw",
                           &with.c));
    assert_int_equal(with.c.steps, STEPS);
    without.c = with.c;
    real = engine;
    run(&with, true);
    run(&without, false);
    assert_memory_equal(with.loss, without.loss, sizeof(with.loss));
    assert_true(with.loss[STEPS - 1] != with.loss[0]);
}

static void reference(void **state)
{
    (void)state;
    same_losses(fsdp_ref_engine(), false);
}

static void optimized(void **state)
{
    (void)state;
    same_losses(fsdp_impl_engine(), false);
}

static void baseline(void **state)
{
    (void)state;
    same_losses(fsdp_unsharded_engine(), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference),
        cmocka_unit_test(optimized),
        cmocka_unit_test(baseline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
