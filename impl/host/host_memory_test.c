/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_memory_test.c - storage on the host: aligned, as much as was asked for,
 * in large pages and, where a limit leaves no more, no page larger than needed.
 * The kernel's numbers for the process are compared.
 */
#include "host_memory.h"

#include <fsdp/status.h>

#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

enum {
    N = 24,
/* A sanitizer is present, which cannot live under a limit of its process. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SANITIZED = 1
#else
    SANITIZED = 0
#endif
};

/* How much memory this process holds, in bytes. */
struct held {
    uint64_t data, size; /* private and writable; of any kind */
};

static uint64_t number(const char *line, const char *key, uint64_t kib)
{
    const size_t n = strlen(key);

    return strncmp(line, key, n) == 0 ? strtoull(line + n, NULL, 10) : kib;
}

static struct held held_now(void)
{
    struct held x = {0, 0};
    char line[256];
    FILE *const f = fopen("/proc/self/status", "re");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        x.data = number(line, "VmData:", x.data);
        x.size = number(line, "VmSize:", x.size);
    }
    (void)fclose(f);
    assert_true(x.data > 0 && x.size >= x.data);
    return (struct held){x.data * 1024, x.size * 1024};
}

/* The process has grown since `before` by `bytes`, and by what the C library
 * took. */
static void has_grown(struct held before, uint64_t bytes)
{
    const struct held now = held_now();

    assert_in_range(now.data, before.data + bytes, before.data + bytes + MIB);
    assert_in_range(now.size, before.size + bytes, before.size + bytes + MIB);
}

static void takes(struct host_memory *m, uint64_t bytes, unsigned char **out)
{
    void *p = NULL;

    assert_int_equal(host_memory_alloc(m, bytes, &p), FSDP_OK);
    assert_non_null(p);
    assert_int_equal(
        (uintptr_t)p % (bytes < HOST_LARGE_PAGE ? 64 : HOST_LARGE_PAGE), 0);
    *out = p;
}

/* Ranges of every size do not overlap, in whatever order they are given
 * back. */
UNIT_TEST(test_ranges)
{
    static const uint64_t sizes[] = {
        0,       1,           64,          65,          4096,       256 << 10,
        MIB + 1, 2 * MIB - 1, 2 * MIB,     2 * MIB + 1, 3 * MIB,    4 * MIB - 1,
        4 * MIB, 5 * MIB + 7, 2 * MIB + 9, 700,         6 * MIB + 5};
    enum {
        SIZES = sizeof(sizes) / sizeof(sizes[0])
    };
    struct host_memory m = {0};
    unsigned char *p[SIZES];

    for (size_t i = 0; i < SIZES; i++) {
        takes(&m, sizes[i], &p[i]);
        memset(p[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) { /* 17 is prime: all of them */
        const size_t k = i * 5 % SIZES;

        for (uint64_t at = 0; at < sizes[k]; at++) {
            if (p[k][at] != k + 1) {
                fail_msg("byte %llu of %zu", (unsigned long long)at, k);
            }
        }
        host_memory_free(&m, p[k]);
    }
    assert_null(m.mapped);
    host_memory_free(&m, NULL);
}

static void give_all(struct host_memory *m, unsigned char **p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        host_memory_free(m, p[i]);
    }
    assert_null(m->mapped);
}

/* Up to the next large page where nothing forbids it, and all is given back. */
UNIT_TEST(test_large_pages)
{
    const struct held before = held_now();
    struct host_memory m = {0};
    unsigned char *p[N];

    for (uint32_t i = 0; i < N; i++) {
        takes(&m, i % 2 ? 2 * HOST_LARGE_PAGE : HOST_LARGE_PAGE + 1, &p[i]);
    }
    has_grown(before, N * (uint64_t)(2 * HOST_LARGE_PAGE));
    give_all(&m, p, N);
    has_grown(before, 0);
}

/* Limits the process to `bytes` more of data and a MiB; returns the old
 * limit. */
static struct rlimit leave(struct held before, uint64_t bytes)
{
    struct rlimit old;
    struct rlimit limit;

    if (SANITIZED) {
        skip();
    }
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    limit = old;
    limit.rlim_cur = before.data + bytes + MIB;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    return old;
}

/* Memory can be had up to the last page of a limit. Values stay what they are,
 * and a refusal loses nothing. */
UNIT_TEST(test_limit)
{
    const struct held before = held_now();
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = HOST_LARGE_PAGE + page + 1;
    const uint64_t all = N * (HOST_LARGE_PAGE + 2 * page);
    const struct rlimit old = leave(before, all);
    struct host_memory m = {0};
    unsigned char *p[N];

    for (uint32_t i = 0; i < N; i++) {
        takes(&m, bytes, &p[i]);
        memset(p[i], (int)i + 1, bytes);
    }
    for (uint32_t i = 0; i < N; i++) {
        void *more = p;

        assert_int_equal(host_memory_alloc(&m, HOST_LARGE_PAGE, &more),
                         FSDP_ERR_NOMEM);
        assert_null(more);
        assert_true(p[i][0] == i + 1 && p[i][bytes - 1] == i + 1);
        assert_memory_equal(p[i], p[i] + 1, bytes - 1);
    }
    has_grown(before, all);
    host_memory_free(&m, p[0]);
    takes(&m, bytes, &p[0]);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    give_all(&m, p, N);
    has_grown(before, 0);
}

/* A small range gets the memory that others do not need. */
UNIT_TEST(test_limit_of_small)
{
    const struct held before = held_now();
    const struct rlimit old = leave(before, 2 * (uint64_t)HOST_LARGE_PAGE);
    struct host_memory m = {0};
    unsigned char *p[2];
    void *more = p;

    takes(&m, HOST_LARGE_PAGE + 1, &p[0]);
    takes(&m, HOST_LARGE_PAGE - MIB / 4, &p[1]);
    assert_int_equal(host_memory_alloc(&m, HOST_LARGE_PAGE - 1, &more),
                     FSDP_ERR_NOMEM);
    assert_null(more);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    give_all(&m, p, 2);
}

/* In a full address space a call fails, and says so. */
UNIT_TEST(test_wrong)
{
    struct host_memory m = {0};
    void *p = &m;

    assert_int_equal(host_memory_alloc(&m, 1, NULL), FSDP_ERR_INVALID);
    for (uint32_t shift = 47; shift < 64; shift++) {
        p = &m;
        assert_int_equal(host_memory_alloc(&m, (uint64_t)1 << shift, &p),
                         FSDP_ERR_NOMEM);
        assert_null(p);
    }
    assert_int_equal(host_memory_alloc(&m, UINT64_MAX, &p), FSDP_ERR_NOMEM);
    assert_int_equal(host_memory_alloc(&m, PTRDIFF_MAX, &p), FSDP_ERR_NOMEM);
    assert_null(m.mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_large_pages),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_of_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
