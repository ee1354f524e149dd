/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failed_checkpoint_test.c - a save or a load that fails ends the run, and the
 * record of it is still one: what it says of the memory until then agrees with
 * itself, so that the failure is judged and not the record refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/checkpoint_files.h"
#include "run/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);

enum {
    RANKS = 2,
    TIMEOUT_MS = 20000
};

static int load_not_at_all(struct fsdp_sharded *s, const char *directory)
{
    (void)s;
    (void)directory;
    return FSDP_ERR_MISMATCH;
}

static int load_then_fail(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(fsdp_ref_engine()->load(s, directory));
    return FSDP_ERR_MISMATCH;
}

static int save_not_at_all(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    (void)s;
    (void)save;
    return FSDP_ERR_IO;
}

struct scene {
    struct run_case c;
    struct case_model model;
    struct script script;
    struct drive drive;
    char directory[64], checkpoints[96];
};

static int body(void *context, struct world_rank *rank)
{
    struct scene *s = context;

    return drive_rank(&s->drive, rank);
}

static int make_scene(struct scene *s, const struct fsdp_engine *engine)
{
    struct fsdp_error error = {0};

    if (!case_of_id("mlp.odd.natural.full-shard.k2.flat.pair.rank.s.adamw."
                    "resume-local.rec4",
                    &s->c)) {
        return FSDP_ERR_INVALID;
    }
    snprintf(s->directory, sizeof(s->directory), "/tmp/failed_load.XXXXXX");
    if (!mkdtemp(s->directory)) {
        return FSDP_ERR_IO;
    }
    snprintf(s->checkpoints, sizeof(s->checkpoints), "%s/checkpoints",
             s->directory);
    FSDP_TRY(case_model_make(&s->c, NULL, 0, &s->model, &error));
    FSDP_TRY(script_make(&s->c, false, &s->script, &error));
    s->drive = (struct drive){.c = &s->c,
                              .model = &s->model,
                              .script = &s->script,
                              .engine = engine,
                              .device_engine = fsdp_ref_engine(),
                              .directory = s->directory,
                              .checkpoints = s->checkpoints};
    return FSDP_OK;
}

static void remove_scene(struct scene *s)
{
    struct fsdp_error error = {0};
    char path[96];

    script_release(&s->script);
    case_model_release(&s->model);
    drive_clear_checkpoints(s->checkpoints);
    assert_int_equal(record_clear(s->directory, &error), FSDP_OK);
    snprintf(path, sizeof(path), "%s/case.json", s->directory);
    (void)unlink(path);
    assert_int_equal(rmdir(s->directory), 0);
}

/* What the run left, completed as a worker does and read again. */
static int read_again(const struct scene *s, const struct world_result *ends,
                      struct record *out, struct fsdp_error *error)
{
    FSDP_TRY(record_init(out, &s->c, RANKS));
    for (uint32_t k = 0; k < RANKS; k++) {
        out->rank[k].exit_status = ends[k].status;
        out->rank[k].n_collectives = ends[k].n_collectives;
    }
    snprintf(out->engine, sizeof(out->engine), "any");
    snprintf(out->engine_version, sizeof(out->engine_version), "0");
    snprintf(out->world, sizeof(out->world), "threads");
    FSDP_TRY(record_write_case(s->directory, out, error));
    record_release(out);
    return record_read(s->directory, out, error);
}

/* The failure is what both ranks end with, and the record is readable; *peak is
 * what rank 0 held at the most. */
static void assert_recorded(const struct fsdp_engine *engine, int failure,
                            uint64_t *peak)
{
    static const uint32_t extent[2] = {1, RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[RANKS] = {0};
    struct fsdp_error error = {0};
    struct scene s = {0};
    struct record r;

    assert_int_equal(make_scene(&s, engine), FSDP_OK);
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, &s, ends, &error),
        FSDP_OK);
    assert_true(ends[0].status == failure || ends[1].status == failure);
    if (read_again(&s, ends, &r, &error) != FSDP_OK) {
        fail_msg("the record is refused: %s", error.message);
    }
    assert_true(r.rank[0].present);
    *peak = r.rank[0].memory.peak_engine;
    record_release(&r);
    remove_scene(&s);
}

static void test_failures(void **state)
{
    struct fsdp_engine engine = *fsdp_ref_engine();
    uint64_t whole;
    uint64_t peak;

    (void)state;
    assert_recorded(&engine, FSDP_OK, &whole);
    engine.load = load_not_at_all;
    assert_recorded(&engine, FSDP_ERR_MISMATCH, &peak);
    assert_int_equal(peak, whole);
    engine.load = load_then_fail;
    assert_recorded(&engine, FSDP_ERR_MISMATCH, &peak);
    assert_int_equal(peak, whole);
    engine.load = fsdp_ref_engine()->load;
    engine.save_begin = save_not_at_all;
    assert_recorded(&engine, FSDP_ERR_IO, &peak);
    assert_int_equal(peak, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failures)};

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
