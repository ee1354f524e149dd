/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_testing.h - what the tests of safetensors share: a directory for
 * each test, tensors in one line, and files compared.
 *
 * Include after cmocka.h.
 */
#ifndef FSDP_CTS_SAFETENSORS_TESTING_H
#define FSDP_CTS_SAFETENSORS_TESTING_H

#include "safetensors.h"

#include <fsdp/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A directory of each test's own, and the two files that tests write there. */
struct scratch {
    char directory[64];
    char path[128];
    char other[128];
    char partial[160];
};

static inline int make_scratch(void **state)
{
    struct scratch *const s = calloc(1, sizeof(*s));

    if (!s) {
        return -1;
    }
    (void)strcpy(s->directory, "/tmp/safetensors_test.XXXXXX");
    if (!mkdtemp(s->directory)) {
        free(s);
        return -1;
    }
    snprintf(s->path, sizeof(s->path), "%s/a", s->directory);
    snprintf(s->other, sizeof(s->other), "%s/b", s->directory);
    snprintf(s->partial, sizeof(s->partial), "%s.partial", s->path);
    *state = s;
    return 0;
}

/* Fails where a test left more than its two files, say a .partial. */
static inline int drop_scratch(void **state)
{
    struct scratch *const s = *state;
    int status;

    (void)unlink(s->path);
    (void)unlink(s->other);
    status = rmdir(s->directory);
    free(s);
    return status;
}

#define TEST(NAME) \
    cmocka_unit_test_setup_teardown(NAME, make_scratch, drop_scratch)

/* SHAPE is a list in braces. NOLINTBEGIN(bugprone-macro-parentheses) */
#define TENSOR(NAME, DTYPE, N_DIMS, SHAPE, DATA, BYTES)                       \
    {                                                                         \
        .name = (NAME), .dtype = (DTYPE), .n_dims = (N_DIMS), .shape = SHAPE, \
        .data = (DATA), .bytes = (BYTES)                                      \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
#define SHAPE(...)  \
    {               \
        __VA_ARGS__ \
    }

static inline void write_ok(const char *path,
                            const struct safetensors_tensor *t, size_t n,
                            const struct safetensors_meta *meta, size_t n_meta,
                            bool sync)
{
    char why[512] = "";
    const int status =
        safetensors_write(path, t, n, meta, n_meta, sync, why, sizeof(why));

    assert_string_equal(why, "");
    assert_int_equal(status, FSDP_OK);
}

static inline unsigned char *slurp(const char *path, size_t *bytes)
{
    FILE *const stream = fopen(path, "rb");
    unsigned char *const p = malloc(4096);

    assert_non_null(stream);
    assert_non_null(p);
    *bytes = fread(p, 1, 4096, stream);
    assert_true(*bytes < 4096);
    assert_int_equal(fclose(stream), 0);
    return p;
}

static inline void assert_same_files(const char *a, const char *b)
{
    size_t a_bytes = 0;
    size_t b_bytes = 0;
    unsigned char *const left = slurp(a, &a_bytes);
    unsigned char *const right = slurp(b, &b_bytes);

    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(left, right, a_bytes);
    free(left);
    free(right);
}

#endif
