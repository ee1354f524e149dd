/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation_test.c - every allocation of a case fails once: on each rank the
 * first, the second, ... until a run ends without meeting the fault. Whatever
 * fails, the rank says so, the others are released, nothing is left behind, and
 * the next run gives the same bits.
 */
#include "run/play/fault_testing.h"
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <dirent.h>
#include <string.h>

enum {
    MAX_SITES = 20000
};

/* ---- A run ------------------------------------------------------------- */

/* A case, and the record of its first run. */
struct scene {
    struct playing p;
    struct fsdp_engine device_engine;
    struct record record; /* of the last run */
    struct record first;
};

/* Whether the case has a record: not if that of a rank could not be written. */
static bool has_record(const struct scene *s)
{
    for (uint32_t k = 0; k < s->p.c.ranks; k++) {
        if (drive_is_unwritten(&s->p.ends[k])) {
            return false;
        }
    }
    return true;
}

/* Plays the case, and reads its record as the judge would. */
static void run(struct scene *s)
{
    playing_play(&s->p);
    record_release(&s->record);
    if (has_record(s)) {
        playing_read(&s->p, &s->record);
        return;
    }
    assert_int_equal(record_init(&s->record, &s->p.c, s->p.c.ranks), FSDP_OK);
    for (uint32_t k = 0; k < s->p.c.ranks; k++) {
        s->record.rank[k].status = s->p.ends[k].status;
    }
}

/* ---- What must hold ---------------------------------------------------- */

static void assert_no_half_files(const struct scene *s)
{
    DIR *d = opendir(s->p.folder);
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
    for (uint32_t r = 0; r < s->p.c.ranks; r++) {
        const struct record_rank *x = &s->record.rank[r];
        assert_int_equal(s->p.ends[r].end, WORLD_RETURNED);
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
    for (uint32_t r = 0; r < s->p.c.ranks; r++) {
        const struct record_rank *x = &s->record.rank[r];
        const struct record_rank *y = &s->first.rank[r];
        assert_int_equal(s->p.ends[r].status, FSDP_OK);
        assert_true(x->present);
        assert_int_equal(x->n_losses, s->p.c.steps * s->p.c.microbatches);
        if (s->first.n_ranks) {
            assert_memory_equal(x->loss, y->loss,
                                x->n_losses * sizeof(*x->loss));
        }
    }
}

/* Whether all ranks are refused what one of them has no memory for. */
static bool is_refused_to_all(const struct scene *s,
                              const struct world_result *end)
{
    return end->status == FSDP_ERR_NOMEM &&
           strcmp(s->p.c.script, "send-fill") == 0;
}

/* Other ranks may have done all of their work before this one failed. */
static void assert_failed(const struct scene *s, uint32_t rank)
{
    bool shown = false; /* to a reader of the records */

    assert_clean(s);
    for (uint32_t r = 0; r < s->p.c.ranks; r++) {
        const struct world_result *end = &s->p.ends[r];
        bool finished = end->status == FSDP_OK &&
                        end->n_collectives == s->first.rank[r].n_collectives;
        if (r == rank || s->p.serial) {
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
    uint32_t threads = s->p.serial ? 1 : s->p.c.ranks;
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

static void open_scene(struct scene *s, const char *id,
                       const struct fsdp_engine *engine)
{
    memset(s, 0, sizeof(*s));
    playing_open(&s->p, id, NULL, engine);
    s->device_engine = *fsdp_ref_engine();
    fault_engine(&s->device_engine);
    s->p.drive.device_engine = &s->device_engine;
    if (engine->open) {
        fault_engine(&s->p.engine);
    }
    s->p.begin = fault_play;
    s->p.end = fault_play_nobody;
    fault_set(FAULT_NONE, 0, 0);
    run(s);
    assert_passed(s);
    s->first = s->record;
    memset(&s->record, 0, sizeof(s->record));
}

static void close_scene(struct scene *s)
{
    record_release(&s->record);
    record_release(&s->first);
    playing_close(&s->p);
}

static void fail_all(const char *id, const struct fsdp_engine *engine)
{
    struct scene s;
    uint64_t device;
    uint64_t memory;

    open_scene(&s, id, engine);
    device = fail_every(&s, FAULT_DEVICE);
    memory = fail_every(&s, FAULT_MEMORY);
    print_message("%s, %s: %llu device allocations and %llu of malloc failed\n",
                  engine->name, id, (unsigned long long)device,
                  (unsigned long long)memory);
    /* A case that allocates less than a shard and a model was not run. */
    assert_true(device > 10 && memory > 10);
    close_scene(&s);
}

static const char three_ranks[] =
    "mlp.odd.natural.full-shard.k3.flat.layer.rank.ns.momentum.steps2.rec1";

UNIT_TEST(full_shard)
{
    fail_all(three_ranks, fsdp_ref_engine());
}

UNIT_TEST(no_shard)
{
    fail_all("mlp.odd.natural.no-shard.k2.flat.layer.rank.ns.momentum.steps2."
             "rec1",
             fsdp_ref_engine());
}

/* The optimized engine runs ahead, with all that its streams and slots need. */
UNIT_TEST(optimized)
{
    fail_all("mlp.odd.natural.full-shard.k2.flat.layer.rank.ns.momentum.pf1."
             "pb1.rif1.steps2.rec1",
             fsdp_impl_engine());
}

UNIT_TEST(unsharded)
{
    fail_all(three_ranks, fsdp_unsharded_engine());
}

/* Plays cases in which the model has no values, or rank 0 alone has them or has
 * others, and fills them. */
static void filled(const struct fsdp_engine *engine)
{
    static const char *const id[] = {
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.deferred-fill",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.rank0-fill",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.send-fill"};

    for (uint32_t i = 0; i < 3; i++) {
        fail_all(id[i], engine);
    }
}

UNIT_TEST(filled_ref)
{
    filled(fsdp_ref_engine());
}

UNIT_TEST(filled_impl)
{
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
