/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failed_run_test.c - a save or a load that fails ends the run, and so does a
 * script that goes beyond its case. The record can still be read, and what it
 * says of the memory until then agrees with itself, so that the failure is
 * judged and the record not refused.
 */
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <string.h>

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

/* The end of a run, as it was recorded. */
struct outcome {
    int32_t status;       /* of rank 0 */
    struct fsdp_error is; /* as rank 0's record says it */
    uint64_t peak;        /* what rank 0 held at the most */
    uint32_t n_losses;
};

/* Plays the case; the record must be readable, whatever the end of the run
 * was. */
static struct outcome play(const char *id, const char *script,
                           const struct fsdp_engine *engine)
{
    struct playing p;
    struct outcome out;
    struct record r;

    playing_open(&p, id, script, engine);
    playing_play(&p);
    playing_read(&p, &r);
    assert_true(r.rank[0].present);
    out = (struct outcome){p.ends[0].status, r.rank[0].error,
                           r.rank[0].memory.peak_engine, r.rank[0].n_losses};
    record_release(&r);
    playing_close(&p);
    return out;
}

static const char resumes[] =
    "mlp.odd.natural.full-shard.k2.flat.pair.rank.s.adamw.resume-local.rec4";

/* Either rank may fail first; the other one is then told. */
static void assert_fails(const struct fsdp_engine *engine, int failure,
                         uint64_t peak)
{
    const struct outcome o = play(resumes, NULL, engine);

    assert_true(o.status == failure || o.status == FSDP_ERR_ABORTED);
    assert_int_equal(o.peak, peak);
}

UNIT_TEST(test_checkpoints)
{
    const struct fsdp_engine *ref = fsdp_ref_engine();
    const struct outcome whole = play(resumes, NULL, ref);
    struct fsdp_engine engine = *ref;

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

/* The case has four steps of one microbatch. */
UNIT_TEST(test_scripts)
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

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
