/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failed_run_test.c - a save or a load that fails ends the run, and so does a
 * script that goes beyond its case; and the record is still one: what it says
 * of the memory until then agrees with itself, so that the failure is judged
 * and not the record refused.
 */
#include "run/play/checkpoint_files.h"
#include "run/play/drive.h"
#include "testing/unit_testing.h"

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

/* The case's own script, or this one. */
static int make_script(struct scene *s, const char *text,
                       struct fsdp_error *error)
{
    return text ? script_parse(text, &s->script, error)
                : script_make(&s->c, false, &s->script, error);
}

static int make_scene(struct scene *s, const char *id, const char *script,
                      const struct fsdp_engine *engine)
{
    struct fsdp_error error = {0};

    if (!case_of_id(id, &s->c)) {
        return FSDP_ERR_INVALID;
    }
    snprintf(s->directory, sizeof(s->directory), "/tmp/failed_run.XXXXXX");
    if (!mkdtemp(s->directory)) {
        return FSDP_ERR_IO;
    }
    snprintf(s->checkpoints, sizeof(s->checkpoints), "%s/checkpoints",
             s->directory);
    FSDP_TRY(case_model_make(&s->c, NULL, 0, &s->model, &error));
    FSDP_TRY(make_script(s, script, &error));
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

/* How a run ended that was recorded. */
struct outcome {
    int32_t status;       /* of rank 0 */
    struct fsdp_error is; /* as rank 0's record says it */
    uint64_t peak;        /* what rank 0 held at the most */
    uint32_t n_losses;
};

/* Plays it; the record must be readable, whatever it ended with. */
static struct outcome play(const char *id, const char *script,
                           const struct fsdp_engine *engine)
{
    static const uint32_t extent[2] = {1, RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[RANKS] = {0};
    struct fsdp_error error = {0};
    struct scene s = {0};
    struct outcome out;
    struct record r;

    assert_int_equal(make_scene(&s, id, script, engine), FSDP_OK);
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, &s, ends, &error),
        FSDP_OK);
    if (read_again(&s, ends, &r, &error) != FSDP_OK) {
        fail_msg("the record is refused: %s", error.message);
    }
    assert_true(r.rank[0].present);
    out = (struct outcome){ends[0].status, r.rank[0].error,
                           r.rank[0].memory.peak_engine, r.rank[0].n_losses};
    record_release(&r);
    remove_scene(&s);
    return out;
}

static const char resumes[] =
    "mlp.odd.natural.full-shard.k2.flat.pair.rank.s.adamw.resume-local.rec4";

/* Whoever comes first: the other one was told. */
static void assert_fails(const struct fsdp_engine *engine, int failure,
                         uint64_t peak)
{
    const struct outcome o = play(resumes, NULL, engine);

    assert_true(o.status == failure || o.status == FSDP_ERR_ABORTED);
    assert_int_equal(o.peak, peak);
}

static void test_checkpoints(void **state)
{
    const struct fsdp_engine *ref = fsdp_ref_engine();
    const struct outcome whole = play(resumes, NULL, ref);
    struct fsdp_engine engine = *ref;

    (void)state;
    assert_int_equal(whole.status, FSDP_OK);
    engine.load = load_not_at_all;
    assert_fails(&engine, FSDP_ERR_MISMATCH, whole.peak);
    engine.load = load_then_fail;
    assert_fails(&engine, FSDP_ERR_MISMATCH, whole.peak);
    engine.load = ref->load;
    engine.save_begin = save_not_at_all;
    assert_fails(&engine, FSDP_ERR_IO, whole.peak);
}

#define SCRIPT(steps, pass) \
    "script 1\n--\nrepeat " steps " {\n" pass "step lr 0.1\nzero\n}\n"

/* Of four steps, one microbatch each. */
static void test_scripts(void **state)
{
    static const char id[] =
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.adamw";
    static const struct {
        const char *script, *message; /* NULL: it is played */
        uint32_t n_losses;
    } row[] = {
        {SCRIPT("4", "pass i.0 s\n"), NULL, 4},
        {SCRIPT("5", "pass i.0 s\n"),
         "step 4, microbatch 0: the case has 4 of 1, from 0", 4},
        {SCRIPT("1000000", "pass i.0 s\n"),
         "step 4, microbatch 0: the case has 4 of 1, from 0", 4},
        {SCRIPT("4", "pass i+3.0 s\n"),
         "step 4, microbatch 0: the case has 4 of 1, from 0", 4},
        {SCRIPT("4", "pass i.0 n\npass i.1 s\n"),
         "step 0, microbatch 1: the case has 4 of 1, from 0", 1},
        {SCRIPT("5", "pass i.0 s until 1/2\n"),
         "step 4, microbatch 0: the case has 4 of 1, from 0", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const struct outcome o = play(id, row[i].script, fsdp_ref_engine());

        assert_int_equal(o.n_losses, row[i].n_losses);
        assert_int_equal(o.status, row[i].message ? o.is.status : FSDP_OK);
        if (row[i].message && o.status != FSDP_ERR_ABORTED) {
            assert_int_equal(o.status, FSDP_ERR_INVALID);
            assert_memory_equal(o.is.message, row[i].message,
                                strlen(row[i].message));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checkpoints),
                                       cmocka_unit_test(test_scripts)};

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
