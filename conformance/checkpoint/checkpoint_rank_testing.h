/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_rank_testing.h - a world of one rank that saves, and what must be
 * in its checkpoints: every element of save n is n. For tests of durability,
 * which are linked with --wrap of the calls that write.
 */
#ifndef FSDP_CTS_CHECKPOINT_RANK_TESTING_H
#define FSDP_CTS_CHECKPOINT_RANK_TESTING_H

#include "checkpoint.h"
#include "checkpoint_faults.h"
#include "folder_erase.h"
#include "testing/unit_testing.h"

#include <dirent.h>
#include <stdlib.h>

enum {
    ELEMENTS = 3000,
    MANY_ELEMENTS = 400000, /* of which whole blocks go to the disk directly */
    MAX_SITES = 2000
};

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

struct rank {
    struct checkpoint_table table;
    struct checkpoint_slice slice[3];
    uint64_t elements;
    float value; /* of every element */
};

static int give(void *context, uint32_t i, uint64_t at, uint64_t n, float *to)
{
    const struct rank *r = context;

    (void)i;
    (void)at;
    for (uint64_t k = 0; k < n; k++) {
        to[k] = r->value;
    }
    return FSDP_OK;
}

static void make_rank(struct rank *r, uint64_t elements)
{
    static const char *const name[] = {"a", "b", "optim.state.a.exp_avg"};
    const uint64_t shape[] = {elements / 10, 10};

    memset(r, 0, sizeof(*r));
    r->elements = elements;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(
            checkpoint_table_add(&r->table, name[i], 2, shape, i == 2, NULL),
            FSDP_OK);
        r->slice[i] = (struct checkpoint_slice){i, 0, elements};
    }
}

static int save(struct rank *r, const char *directory, uint32_t form,
                float value, struct fsdp_error *error)
{
    const struct fsdp_env env = {
        .size = sizeof(env), .world = 1, .error = error, .exchange = exchange};
    const struct fsdp_save how = {
        .size = sizeof(how), .form = form, .directory = directory};
    const struct checkpoint_request request = {
        .env = &env,
        .save = &how,
        .world = 1,
        .shards = 1,
        .replicas = 1,
        .layout = "flat",
        .optimizer = "adamw",
        .table = &r->table,
        .source = {r->slice, 3, give, r},
        .state = {(uint64_t)value, {value, value}}};
    struct checkpoint_saving *s;

    r->value = value;
    memset(error, 0, sizeof(*error));
    FSDP_TRY(checkpoint_begin(&request, &s));
    checkpoint_write(s);
    return checkpoint_finish(&env, s);
}

/* The value that all elements of the newest checkpoint have; -1: none. */
static float load(const struct rank *r, const char *directory)
{
    static float data[MANY_ELEMENTS];
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c;
    float value;

    if (checkpoint_open(directory, &c, why) != FSDP_OK) {
        return -1.0f;
    }
    if (checkpoint_verify(c, 0, 1, why) != FSDP_OK ||
        checkpoint_expect(c, &r->table, false, why) != FSDP_OK) {
        fail_msg("%s", why);
    }
    value = (float)checkpoint_state_of(c).step;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(checkpoint_read(c, r->table.entry[i].name, 0,
                                         r->elements, data, why),
                         FSDP_OK);
        for (uint32_t k = 0; k < r->elements; k++) {
            assert_true(data[k] == value);
        }
    }
    checkpoint_close(c);
    return value;
}

static uint32_t count_partial(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *e;
    uint32_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        n += strncmp(e->d_name, ".partial", 8) == 0;
    }
    closedir(d);
    return n;
}

/* Checks that every directory with the name of a checkpoint has all of its
 * bytes. Returns how many there are. */
static uint32_t all_are_whole(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *e;
    uint32_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char why[CHECKPOINT_WHY_BYTES] = "";
        char path[512];
        struct checkpoint *c;

        if (strncmp(e->d_name, "checkpoint-", 11) != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
        if (checkpoint_open(path, &c, why) != FSDP_OK ||
            checkpoint_verify(c, 0, 1, why) != FSDP_OK) {
            fail_msg("%s: %s", e->d_name, why);
        }
        checkpoint_close(c);
        n++;
    }
    closedir(d);
    return n;
}

#endif
