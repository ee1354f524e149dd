/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation_test.c - every allocation of a case fails once: on each rank the
 * first, the second, ... until a run gets through without meeting the fault.
 * Whatever fails, the rank says so, the others are released, nothing is left
 * behind, and the next run gives the same bits.
 */
#include "run/play/drive.h"
#include "run/play/fault_testing.h"
#include "testing/unit_testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);

enum {
    MAX_SITES = 20000,
    TIMEOUT_MS = 20000
};

/* ---- A run ------------------------------------------------------------- */

/* A case, and what its first run showed. */
struct scene {
    struct run_case c;
    struct case_model model;
    struct fsdp_engine engine, device_engine;
    struct script script;
    struct drive drive;
    bool serial;
    char directory[64];
    struct world_result ends[CASE_MAX_RANKS];
    struct record record; /* of the last run */
    struct record first;
};

static int body(void *context, struct world_rank *rank)
{
    const struct scene *s = context;
    int status;

    fault_play(rank->rank);
    status = s->serial ? drive_serial((void *)&s->drive, rank)
                       : drive_rank((void *)&s->drive, rank);
    fault_play_nobody();
    return status;
}

/* A case of which a rank could not be written has no record. */
static bool has_record(const struct scene *s)
{
    for (uint32_t k = 0; k < s->c.ranks; k++) {
        if (drive_is_unwritten(&s->ends[k])) {
            return false;
        }
    }
    return true;
}

/* What was recorded, as the judge would read it. */
static void read_back(struct scene *s)
{
    struct record r;
    struct fsdp_error error = {0};

    if (!has_record(s)) {
        record_release(&s->record);
        assert_int_equal(record_init(&s->record, &s->c, s->c.ranks), FSDP_OK);
        for (uint32_t k = 0; k < s->c.ranks; k++) {
            s->record.rank[k].status = s->ends[k].status;
        }
        return;
    }
    assert_int_equal(record_init(&r, &s->c, s->c.ranks), FSDP_OK);
    for (uint32_t k = 0; k < s->c.ranks; k++) {
        r.rank[k].end = s->ends[k].end;
        r.rank[k].exit_status = s->ends[k].status;
        r.rank[k].n_collectives = s->ends[k].n_collectives;
    }
    snprintf(r.engine, sizeof(r.engine), "ref");
    snprintf(r.engine_version, sizeof(r.engine_version), "0");
    snprintf(r.world, sizeof(r.world), "threads");
    assert_int_equal(record_write_case(s->directory, &r, &error), FSDP_OK);
    record_release(&r);
    record_release(&s->record);
    if (record_read(s->directory, &s->record, &error) != FSDP_OK) {
        fail_msg("record: %s", error.message);
    }
}

static void run(struct scene *s)
{
    uint32_t extent[2] = {s->serial ? 1 : s->c.replicas,
                          s->serial ? 1 : case_shard_degree(&s->c)};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct fsdp_error error = {0};

    memset(s->ends, 0, sizeof(s->ends));
    assert_int_equal(record_clear(s->directory, &error), FSDP_OK);
    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, TIMEOUT_MS, body, s, s->ends, &error),
        FSDP_OK);
    for (uint32_t r = 1; s->serial && r < s->c.ranks; r++) {
        s->ends[r] = s->ends[0];
    }
    read_back(s);
}

/* ---- What must hold ---------------------------------------------------- */

static void assert_no_half_files(const struct scene *s)
{
    DIR *d = opendir(s->directory);
    const struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d))) {
        if (strstr(e->d_name, ".partial")) {
            fail_msg("%s was left behind", e->d_name);
        }
    }
    closedir(d);
}

static void assert_clean(const struct scene *s)
{
    assert_int_equal(fault_n_left(), 0);
    for (uint32_t r = 0; r < s->c.ranks; r++) {
        const struct record_rank *x = &s->record.rank[r];
        assert_int_equal(s->ends[r].end, WORLD_RETURNED);
        if (x->present) {
            assert_int_equal(x->memory.left_live, 0);
            assert_int_equal(x->memory.left_storage, 0);
            assert_int_equal(x->memory.bad_ranges, 0);
        }
    }
    assert_no_half_files(s);
}

static void assert_passed(const struct scene *s)
{
    assert_clean(s);
    for (uint32_t r = 0; r < s->c.ranks; r++) {
        const struct record_rank *x = &s->record.rank[r];
        const struct record_rank *y = &s->first.rank[r];
        assert_int_equal(s->ends[r].status, FSDP_OK);
        assert_true(x->present);
        assert_int_equal(x->n_losses, s->c.steps * s->c.microbatches);
        if (s->first.n_ranks) {
            assert_memory_equal(x->loss, y->loss,
                                x->n_losses * sizeof(*x->loss));
        }
    }
}

/* No rank has what one of them has no memory for. */
static bool is_refused_to_all(const struct scene *s,
                              const struct world_result *end)
{
    return end->status == FSDP_ERR_NOMEM &&
           strcmp(s->c.script, "send-fill") == 0;
}

/* Others may have done all of their work before the rank failed. */
static void assert_failed(const struct scene *s, uint32_t rank)
{
    bool shown = false; /* to who reads the records */

    assert_clean(s);
    for (uint32_t r = 0; r < s->c.ranks; r++) {
        const struct world_result *end = &s->ends[r];
        bool finished = end->status == FSDP_OK &&
                        end->n_collectives == s->first.rank[r].n_collectives;
        if (r == rank || s->serial) {
            assert_int_equal(end->status, FSDP_ERR_NOMEM);
        } else if (!finished && !is_refused_to_all(s, end)) {
            assert_int_equal(end->status, FSDP_ERR_ABORTED);
        }
        shown = shown || s->record.rank[r].status != FSDP_OK;
    }
    assert_true(shown);
}

/* Fails every site of `what`; returns how many there were. */
static uint64_t fail_every(struct scene *s, uint32_t what)
{
    uint32_t threads = s->serial ? 1 : s->c.ranks;
    uint64_t n = 0;

    for (uint32_t r = 0; r < threads; r++) {
        for (uint64_t nth = 1; nth < MAX_SITES; nth++) {
            fault_set(what, r, nth);
            run(s);
            if (!fault_happened()) {
                break;
            }
            assert_failed(s, r);
            if (n++ % 8 == 0) {
                fault_set(FAULT_NONE, 0, 0);
                run(s);
                assert_passed(s);
            }
        }
        assert_false(fault_happened());
        assert_passed(s);
    }
    return n;
}

/* ---- Cases ------------------------------------------------------------- */

static struct run_case odd(uint32_t strategy, uint32_t ranks)
{
    struct run_case c = {.data = WORKLOAD_NATURAL,
                         .scenario = CASE_TRAIN,
                         .seed = 1,
                         .strategy = strategy,
                         .ranks = ranks,
                         .replicas = strategy == CASE_NO_SHARD ? ranks : 1,
                         .wrap = CASE_WRAP_LAYER,
                         .microbatches = 2,
                         .sync = {0, 1},
                         .optimizer = FSDP_OPTIMIZER_MOMENTUM,
                         .lr = 0.02f,
                         .steps = 2,
                         .recorded_steps = 1};

    snprintf(c.workload, sizeof(c.workload), "mlp");
    snprintf(c.size, sizeof(c.size), "odd");
    assert_null(case_check(&c));
    return c;
}

static void open_scene(struct scene *s, const struct run_case *c,
                       const struct fsdp_engine *engine)
{
    struct fsdp_error error = {0};

    memset(s, 0, sizeof(*s));
    s->c = *c;
    s->engine = *engine;
    s->device_engine = *fsdp_ref_engine();
    fault_engine(&s->device_engine);
    if (engine->open) {
        fault_engine(&s->engine);
    }
    for (const char *const *x = engine->claims; *x; x++) {
        s->serial = s->serial || strcmp(*x, "serial") == 0;
    }
    snprintf(s->directory, sizeof(s->directory), "/tmp/allocation_test.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_int_equal(case_model_make(&s->c, NULL, 0, &s->model, &error),
                     FSDP_OK);
    assert_int_equal(script_make(&s->c, false, &s->script, &error), FSDP_OK);
    s->drive = (struct drive){.c = &s->c,
                              .model = &s->model,
                              .script = &s->script,
                              .engine = &s->engine,
                              .device_engine = &s->device_engine,
                              .directory = s->directory};
    fault_set(FAULT_NONE, 0, 0);
    run(s);
    assert_passed(s);
    s->first = s->record;
    memset(&s->record, 0, sizeof(s->record));
}

static void close_scene(struct scene *s)
{
    struct fsdp_error error = {0};
    char path[96];

    record_release(&s->record);
    record_release(&s->first);
    script_release(&s->script);
    case_model_release(&s->model);
    assert_int_equal(record_clear(s->directory, &error), FSDP_OK);
    snprintf(path, sizeof(path), "%s/case.json", s->directory);
    unlink(path);
    assert_int_equal(rmdir(s->directory), 0);
}

static void fail_all(struct run_case c, const struct fsdp_engine *engine,
                     const char *name)
{
    struct scene s;
    uint64_t device;
    uint64_t memory;

    open_scene(&s, &c, engine);
    device = fail_every(&s, FAULT_DEVICE);
    memory = fail_every(&s, FAULT_MEMORY);
    print_message("%s: %llu device allocations and %llu of malloc failed\n",
                  name, (unsigned long long)device, (unsigned long long)memory);
    /* A case that allocates less than a shard and a model does not run. */
    assert_true(device > 10 && memory > 10);
    close_scene(&s);
}

static void full_shard(void **state)
{
    (void)state;
    fail_all(odd(CASE_FULL_SHARD, 3), fsdp_ref_engine(), "full-shard, K = 3");
}

static void no_shard(void **state)
{
    (void)state;
    fail_all(odd(CASE_NO_SHARD, 2), fsdp_ref_engine(), "no-shard, K = 2");
}

/* Running ahead, everything that its streams and slots need is there. */
static void optimized(void **state)
{
    struct run_case c = odd(CASE_FULL_SHARD, 2);

    (void)state;
    c.prefetch_forward = c.prefetch_backward = 1;
    c.reduces_in_flight = 1;
    assert_null(case_check(&c));
    fail_all(c, fsdp_impl_engine(), "optimized, K = 2");
}

static void unsharded(void **state)
{
    (void)state;
    fail_all(odd(CASE_FULL_SHARD, 3), fsdp_unsharded_engine(), "unsharded");
}

/* A model that has no values, or rank 0 alone has them or others, and its
 * filling. */
static void filled(const struct fsdp_engine *engine)
{
    static const char *const id[] = {
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.deferred-fill",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.rank0-fill",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.send-fill"};

    for (uint32_t i = 0; i < 3; i++) {
        struct run_case c;

        assert_true(case_of_id(id[i], &c));
        fail_all(c, engine, strrchr(id[i], '.') + 1);
    }
}

static void filled_ref(void **state)
{
    (void)state;
    filled(fsdp_ref_engine());
}

static void filled_impl(void **state)
{
    (void)state;
    filled(fsdp_impl_engine());
}

static int is_wrapped(void **state)
{
    (void)state;
    if (!fault_is_wrapped()) {
        print_error("link with -Wl,--wrap=malloc,--wrap=calloc,"
                    "--wrap=realloc,--wrap=aligned_alloc,--wrap=free,"
                    "--wrap=pthread_create\n");
        return -1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_shard), cmocka_unit_test(no_shard),
        cmocka_unit_test(optimized),  cmocka_unit_test(unsharded),
        cmocka_unit_test(filled_ref), cmocka_unit_test(filled_impl),
    };

    return cmocka_run_group_tests(tests, is_wrapped, NULL) != 0;
}
