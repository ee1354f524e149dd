/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_hostile_test.c - files that are cut off or damaged are refused or
 * read, and nothing else happens. The test shows most under a sanitizer.
 */
#include "record/record_testing.h"
#include "testing/unit_testing.h"

static const char *const files[] = {"case.json", "rank-0.json", "rank-1.json",
                                    "rank-0.safetensors", "rank-1.safetensors"};

enum {
    N_FILES = 5,
    N_DAMAGES = 4000
};

static void write_good(const char *folder)
{
    struct record r;

    make_record(&r);
    write_record(folder, &r);
    record_release(&r);
}

static void a_file_cut_off_anywhere_is_refused(void **state)
{
    struct fsdp_error error;
    struct record r;

    write_good(*state);
    for (size_t f = 0; f < N_FILES; f++) {
        struct bytes b = load(*state, files[f]);
        /* JSON is whole without its last newline. */
        const size_t whole = f < 3 ? b.n - 1 : b.n;

        for (size_t n = 0; n < whole; n++) {
            memset(&error, 0, sizeof(error));
            store(*state, files[f], b.p, n);
            if (record_read(*state, &r, &error) != FSDP_ERR_FORMAT) {
                fail_msg("%s of %zu bytes was taken", files[f], n);
            }
            assert_non_null(strstr(error.message, files[f]));
            record_release(&r);
        }
        store(*state, files[f], b.p, whole);
        assert_int_equal(record_read(*state, &r, NULL), FSDP_OK);
        record_release(&r);
        free(b.p);
    }
}

static uint32_t draw(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33) % n;
}

/* Damages a file with texts that tend to break readers, and that no right file
 * has. */
static void damage(struct bytes *b, uint64_t *random)
{
    static const char *const piece[] = {"-1",
                                        "1e999",
                                        "null",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "\"",
                                        "\\u0000",
                                        "\\ud8",
                                        "true",
                                        "4294967296",
                                        "18446744073709551616",
                                        ",",
                                        ":",
                                        "0x",
                                        "-0",
                                        "nan",
                                        "\xff",
                                        "#",
                                        "."};
    const uint32_t at = draw(random, (uint32_t)b->n);
    uint32_t to = draw(random, (uint32_t)b->n);
    uint32_t n;

    switch (draw(random, 5)) {
    case 0: /* a bit */
        b->p[at] = (char)(b->p[at] ^ (1 << draw(random, 8)));
        return;
    case 1: /* a byte */
        b->p[at] = (char)draw(random, 256);
        return;
    case 2: { /* a word of the format */
        const char *const s = piece[draw(random, 21)];

        n = (uint32_t)strlen(s);
        if (n <= b->n - at) {
            memcpy(b->p + at, s, n);
        }
        return;
    }
    case 3: /* a part of the file is copied over another */
        n = draw(random, 64);
        if (n <= b->n - at && n <= b->n - to) {
            memmove(b->p + at, b->p + to, n);
        }
        return;
    default: /* a stretch taken out */
        n = draw(random, 16);
        if (at + n < b->n) {
            memmove(b->p + at, b->p + at + n, b->n - at - n);
            b->n -= n;
        }
    }
}

/* Reads every value, so that a sanitizer notices those that are not there. */
static uint64_t walk(const struct record *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->n_ranks; i++) {
        const struct record_rank *const k = &r->rank[i];

        for (uint32_t t = 0; t < k->n_tensors; t++) {
            for (uint64_t e = 0; e < k->tensor[t].n; e++) {
                sum += k->tensor[t].data[e] > 0.0f;
            }
        }
        for (uint32_t s = 0; s < k->n_steps; s++) {
            const struct record_sequence *const q =
                &k->sequence[k->step_sequence[s]];

            sum += k->memory.allocations[s] + k->memory.launches[s];
            for (uint32_t c = 0; c < q->n; c++) {
                sum += q->c[c].n;
            }
        }
        for (uint32_t m = 0; m < k->memory.n_moments; m++) {
            sum += k->memory.moment[m].live[0];
        }
        for (uint32_t l = 0; l < k->n_losses; l++) {
            sum += k->loss[l] > 0.0f;
        }
    }
    return sum;
}

static void damaged_files_do_no_harm(void **state)
{
    struct fsdp_error error;
    struct bytes good[N_FILES];
    struct record r;
    uint64_t random = 1;
    uint64_t sum = 0;
    uint32_t refused = 0;
    int status;

    write_good(*state);
    for (size_t f = 0; f < N_FILES; f++) {
        good[f] = load(*state, files[f]);
    }
    for (uint32_t i = 0; i < N_DAMAGES; i++) {
        const uint32_t f = draw(&random, N_FILES);
        struct bytes b = {copy_of(good[f].p, good[f].n), good[f].n};

        for (uint32_t k = draw(&random, 3) + 1; k > 0; k--) {
            damage(&b, &random);
        }
        store(*state, files[f], b.p, b.n);
        free(b.p);
        memset(&error, 0, sizeof(error));
        status = record_read(*state, &r, &error);
        assert_true(status == FSDP_OK || status == FSDP_ERR_FORMAT);
        assert_int_equal(error.status, status);
        assert_true((status == FSDP_OK) == (error.message[0] == '\0'));
        refused += status != FSDP_OK;
        if (status == FSDP_OK) {
            sum += walk(&r);
            write_record(*state, &r);
        }
        record_release(&r);
        store(*state, files[f], good[f].p, good[f].n);
        if (status == FSDP_OK) {
            write_good(*state);
        }
    }
    print_message("%u of %d refused; %llu\n", refused, N_DAMAGES,
                  (unsigned long long)sum);
    /* Damage to a float or a name in a tensors' file goes unnoticed here. */
    assert_in_range(refused, N_DAMAGES / 2, N_DAMAGES - 1);
    for (size_t f = 0; f < N_FILES; f++) {
        free(good[f].p);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    struct fsdp_error error = {0};
    char path[256];
    struct record r;

    write_good(*state);
    for (size_t f = 0; f < N_FILES; f++) {
        const struct bytes b = load(*state, files[f]);

        discard(*state, files[f]);
        snprintf(path, sizeof(path), "%s/%s", (const char *)*state, files[f]);
        assert_int_equal(mkfifo(path, 0600), 0);
        memset(&error, 0, sizeof(error));
        assert_int_not_equal(record_read(*state, &r, &error), FSDP_OK);
        assert_non_null(strstr(error.message, files[f]));
        record_release(&r);
        discard(*state, files[f]);
        store(*state, files[f], b.p, b.n);
        free(b.p);
    }
    assert_int_equal(record_read(*state, &r, NULL), FSDP_OK);
    record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_cut_off_anywhere_is_refused),
        TEST(damaged_files_do_no_harm),
        TEST(what_is_no_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
