/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_spill_test.c - a record with many values: each is read as it was
 * written; what is written into a copy stays in it and does not reach the
 * original; and however many values are read, few are in memory at once.
 */
#include "record/record.h"
#include "record/record_spill.h"
#include "record/record_testing.h"
#include "testing/unit_testing.h"

enum {
    PARAMETERS = 160,
    ELEMENTS = 50001, /* no whole number of pages */
    STAGES = 2
};

/* Exact in 16 bits, too. */
static float value_of(uint32_t stage, uint32_t parameter, uint64_t i)
{
    return (float)((stage * 7 + parameter * 3 + i) % 128);
}

static void make_tensor(uint32_t stage, uint32_t parameter,
                        struct record_tensor *t)
{
    *t = (struct record_tensor){
        .stage = stage,
        .step = 1,
        .parameter = parameter,
        .n = ELEMENTS,
        .data = calloc(ELEMENTS, sizeof(float)),
        .dtype = stage == RECORD_UNSHARDED ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F32};
    assert_non_null(t->data);
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        t->data[i] = value_of(stage, parameter, i);
    }
}

/* Some 48 MB in files, and 64 MB when it is read. */
static void make_large(struct record *r)
{
    struct record_rank *rank;

    make_record(r);
    rank = &r->rank[0];
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        free(rank->tensor[i].data);
    }
    free(rank->tensor);
    rank->n_tensors = STAGES * PARAMETERS;
    rank->tensor = calloc(rank->n_tensors, sizeof(*rank->tensor));
    assert_non_null(rank->tensor);
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        make_tensor(i < PARAMETERS ? RECORD_UNSHARDED : RECORD_REDUCED,
                    i % PARAMETERS, &rank->tensor[i]);
    }
}

/* Pages of files that this process has in memory, in bytes. */
static uint64_t resident(void)
{
    unsigned long all = 0;
    unsigned long here = 0;
    unsigned long shared = 0;
    FILE *const f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu %lu", &all, &here, &shared), 3);
    (void)fclose(f);
    return shared * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Reads all values. Each must be right, and the first of this tensor must be
 * `first`. Returns the most memory that this took. */
static uint64_t look_at_all(const struct record *r, uint32_t stage,
                            uint32_t parameter, float first)
{
    const uint64_t before = resident();
    uint64_t most = 0;

    for (uint32_t t = 0; t < STAGES * PARAMETERS; t++) {
        const uint32_t s = t < PARAMETERS ? RECORD_UNSHARDED : RECORD_REDUCED;
        const uint32_t p = t % PARAMETERS;
        const struct record_tensor *const x =
            record_find(&r->rank[0], s, 1, 0, p, 0);
        uint64_t now;

        assert_non_null(x);
        assert_int_equal(x->n, ELEMENTS);
        for (uint64_t i = 0; i < ELEMENTS; i++) {
            const float want = s == stage && p == parameter && i == 0
                                   ? first
                                   : value_of(s, p, i);
            if (x->data[i] < want || x->data[i] > want) {
                fail_msg("stage %u, parameter %u, element %llu", s, p,
                         (unsigned long long)i);
            }
        }
        now = resident();
        most = now > before + most ? now - before : most;
    }
    return most;
}

static void read_large(const char *folder, struct record *back)
{
    struct fsdp_error error = {0};
    struct record r;

    make_large(&r);
    write_record(folder, &r);
    record_release(&r);
    assert_int_equal(record_read(folder, back, &error), FSDP_OK);
    assert_non_null(back->spill);
}

static void is_read_as_it_was_written(void **state)
{
    struct record back;
    uint64_t most;

    read_large(*state, &back);
    for (int again = 0; again < 2; again++) {
        most = look_at_all(&back, RECORD_N_STAGES, 0, 0.0f);
        assert_in_range(most, 1, 2 * RECORD_SPILL_WINDOW);
    }
    record_release(&back);
}

/* Changes the first tensor, one in the middle and the last one, so that pages
 * before and behind a changed one are given back, and it is not. */
static void a_copy_keeps_what_was_done_to_it(void **state)
{
    static const uint32_t which[] = {0, PARAMETERS + 7,
                                     STAGES * PARAMETERS - 1};
    struct record back;
    struct record copy;

    read_large(*state, &back);
    for (size_t k = 0; k < sizeof(which) / sizeof(which[0]); k++) {
        struct record_tensor *t;

        assert_int_equal(record_copy(&back, &copy), FSDP_OK);
        assert_non_null(copy.spill);
        t = &copy.rank[0].tensor[which[k]];
        t->data[0] = -1.5f;
        assert_int_equal(record_spill_settle(&back, &copy), FSDP_OK);
        assert_in_range(look_at_all(&copy, t->stage, t->parameter, -1.5f), 1,
                        2 * RECORD_SPILL_WINDOW);
        look_at_all(&back, RECORD_N_STAGES, 0, 0.0f);
        record_release(&copy);
    }
    /* Before it is settled, a copy that was changed must keep its pages,
     * too. */
    assert_int_equal(record_copy(&back, &copy), FSDP_OK);
    copy.rank[0].tensor[3].data[0] = -1.5f;
    look_at_all(&copy, RECORD_UNSHARDED, 3, -1.5f);
    record_spill_drop(copy.spill);
    look_at_all(&copy, RECORD_UNSHARDED, 3, -1.5f);
    record_release(&copy);
    record_release(&back);
}

static void a_small_one_is_not_spilled(void **state)
{
    struct record r;
    struct record back;

    make_record(&r);
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    assert_null(back.spill);
    record_release(&back);
    record_release(&r);
}

/* Where no file can be made, values are read into memory. */
static void without_a_folder_for_it_all_is_read(void **state)
{
    char before[256];
    const char *tmp = getenv("TMPDIR");
    struct record r;
    struct record back;

    snprintf(before, sizeof(before), "%s", tmp ? tmp : "");
    make_large(&r);
    write_record(*state, &r);
    record_release(&r);
    assert_int_equal(setenv("TMPDIR", "/proc/self/no-such-folder", 1), 0);
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    assert_null(back.spill);
    look_at_all(&back, RECORD_N_STAGES, 0, 0.0f);
    record_release(&back);
    assert_int_equal(tmp ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(is_read_as_it_was_written),
        TEST(a_copy_keeps_what_was_done_to_it),
        TEST(a_small_one_is_not_spilled),
        TEST(without_a_folder_for_it_all_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
