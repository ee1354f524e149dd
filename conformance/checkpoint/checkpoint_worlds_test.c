/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_worlds_test.c - other ranks load what some ranks saved: other
 * worlds, meshes, wraps, engines and forms, to the last bit of every parameter
 * and moment.
 */
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "testing/unit_testing.h"

static const struct fsdp_engine *engine(uint32_t i)
{
    return i == 0 ? fsdp_ref_engine() : fsdp_impl_engine();
}

/* `from` saves in a form, and `to` loads; both engines play both roles. */
static void move(struct arrangement from, struct arrangement to,
                 const char *size, uint32_t form, uint32_t rank0_only,
                 uint64_t file_bytes)
{
    testing.form = form;
    testing.rank0_only = rank0_only;
    testing.file_bytes = file_bytes;
    for (uint32_t i = 0; i < 4; i++) {
        char directory[] = "/tmp/checkpoint_worlds_test.XXXXXX";
        struct shown saved;
        struct shown loaded;
        struct fsdp_error why;
        int status;

        assert_non_null(mkdtemp(directory));
        from.engine = engine(i / 2);
        to.engine = engine(i % 2);
        testing_write(&from, size, directory, &saved);
        status = testing_read(&to, size, FSDP_OPTIMIZER_ADAMW, directory,
                              &loaded, &why);
        if (status != FSDP_OK) {
            fail_msg("form %u, %u -> %u ranks, %s -> %s: %s", form, from.ranks,
                     to.ranks, from.engine->name, to.engine->name, why.message);
        }
        assert_true(shown_equal(&saved, &loaded));
        assert_true(saved.x[2][0] != 0.0f); /* the model has trained */
        shown_release(&saved);
        shown_release(&loaded);
        folder_erase(directory);
    }
}

#define ONE                                 \
    {                                       \
        .ranks = 1, .wrap = CASE_WRAP_WHOLE \
    }
#define FULL_SHARD(K, WRAP)          \
    {                                \
        .ranks = (K), .wrap = (WRAP) \
    }
#define ROWS(K, WRAP)                              \
    {                                              \
        .ranks = (K), .wrap = (WRAP), .rows = true \
    }
#define ROWS_HYBRID(K, R, WRAP)                                     \
    {                                                               \
        .ranks = (K), .replicas = (R), .wrap = (WRAP), .rows = true \
    }
#define HYBRID(K, R, WRAP)                            \
    {                                                 \
        .ranks = (K), .replicas = (R), .wrap = (WRAP) \
    }
#define NO_SHARD(K, WRAP)                           \
    {                                               \
        .ranks = (K), .wrap = (WRAP), .whole = true \
    }

static const struct {
    struct arrangement from, to;
    const char *size;
} moves[] = {
    {FULL_SHARD(2, CASE_WRAP_LAYER), FULL_SHARD(2, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(4, CASE_WRAP_LAYER), FULL_SHARD(2, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(2, CASE_WRAP_LAYER), FULL_SHARD(4, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(3, CASE_WRAP_PAIR), FULL_SHARD(7, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(7, CASE_WRAP_LAYER), FULL_SHARD(3, CASE_WRAP_WHOLE), "odd"},
    /* To shards of which some are empty, and back. */
    {FULL_SHARD(2, CASE_WRAP_LAYER), FULL_SHARD(8, CASE_WRAP_LAYER), "empty"},
    {FULL_SHARD(8, CASE_WRAP_LAYER), FULL_SHARD(2, CASE_WRAP_LAYER), "empty"},
    {ONE, FULL_SHARD(5, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(5, CASE_WRAP_LAYER), ONE, "odd"},
    {HYBRID(4, 2, CASE_WRAP_LAYER), FULL_SHARD(4, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(3, CASE_WRAP_LAYER), HYBRID(6, 2, CASE_WRAP_HEAD), "odd"},
    {NO_SHARD(3, CASE_WRAP_WHOLE), HYBRID(4, 2, CASE_WRAP_PAIR), "seed"},
    {FULL_SHARD(4, CASE_WRAP_SIZE), NO_SHARD(2, CASE_WRAP_LAYER), "seed"},
    /* From one layout to the other: the same ranks, others, empty shards. */
    {FULL_SHARD(3, CASE_WRAP_LAYER), ROWS(3, CASE_WRAP_LAYER), "odd"},
    {ROWS(3, CASE_WRAP_LAYER), FULL_SHARD(3, CASE_WRAP_LAYER), "odd"},
    {FULL_SHARD(3, CASE_WRAP_PAIR), ROWS(7, CASE_WRAP_WHOLE), "odd"},
    {ROWS(7, CASE_WRAP_PAIR), FULL_SHARD(4, CASE_WRAP_LAYER), "odd"},
    {HYBRID(4, 2, CASE_WRAP_PAIR), ROWS(2, CASE_WRAP_LAYER), "seed"},
    {ROWS_HYBRID(6, 2, CASE_WRAP_LAYER), FULL_SHARD(5, CASE_WRAP_PAIR), "odd"},
    {FULL_SHARD(2, CASE_WRAP_LAYER), ROWS(8, CASE_WRAP_LAYER), "empty"},
    {ROWS(8, CASE_WRAP_LAYER), ONE, "empty"},
    {ROWS(2, CASE_WRAP_LAYER), ROWS(5, CASE_WRAP_WHOLE), "odd"},
};
enum {
    N_MOVES = sizeof(moves) / sizeof(moves[0])
};

UNIT_TEST(sharded)
{
    for (uint32_t i = 0; i < N_MOVES; i++) {
        move(moves[i].from, moves[i].to, moves[i].size, FSDP_SAVE_SHARDED, 0,
             0);
    }
}

UNIT_TEST(full_by_one)
{
    for (uint32_t i = 0; i < N_MOVES; i += 2) {
        move(moves[i].from, moves[i].to, moves[i].size, FSDP_SAVE_FULL, 1, 0);
    }
}

/* In several files, each of which has tensors of all ranks. */
UNIT_TEST(full_by_all)
{
    for (uint32_t i = 1; i < N_MOVES; i += 2) {
        move(moves[i].from, moves[i].to, moves[i].size, FSDP_SAVE_FULL, 0,
             2000);
    }
}

UNIT_TEST(local)
{
    const struct arrangement three = FULL_SHARD(3, CASE_WRAP_LAYER);
    const struct arrangement six = HYBRID(6, 2, CASE_WRAP_LAYER);

    move(three, three, "odd", FSDP_SAVE_LOCAL, 0, 0);
    move(three, six, "odd", FSDP_SAVE_LOCAL, 0, 0);
}

/* Flat shards of other units are refused. */
UNIT_TEST(local_of_others)
{
    char directory[] = "/tmp/checkpoint_worlds_test.XXXXXX";
    struct arrangement from = FULL_SHARD(3, CASE_WRAP_LAYER);
    const struct arrangement others[] = {FULL_SHARD(3, CASE_WRAP_WHOLE),
                                         FULL_SHARD(4, CASE_WRAP_LAYER),
                                         ROWS(3, CASE_WRAP_LAYER)};
    struct shown saved;

    assert_non_null(mkdtemp(directory));
    testing.form = FSDP_SAVE_LOCAL;
    from.engine = fsdp_ref_engine();
    testing_write(&from, "odd", directory, &saved);
    for (uint32_t i = 0; i < 6; i++) {
        struct arrangement to = others[i / 2];
        struct shown loaded;
        struct fsdp_error why;

        to.engine = engine(i % 2);
        assert_int_equal(testing_read(&to, "odd", FSDP_OPTIMIZER_ADAMW,
                                      directory, &loaded, &why),
                         FSDP_ERR_FORMAT);
        assert_non_null(strstr(why.message, "manifest.json"));
        shown_release(&loaded);
    }
    shown_release(&saved);
    folder_erase(directory);
}

/* Both engines write the same bytes, twice. */
UNIT_TEST(engines_write_the_same)
{
    const struct {
        uint32_t form, alone;
    } forms[] = {{FSDP_SAVE_SHARDED, 0},
                 {FSDP_SAVE_LOCAL, 0},
                 {FSDP_SAVE_FULL, 0},
                 {FSDP_SAVE_FULL, 1}};
    struct arrangement a = FULL_SHARD(3, CASE_WRAP_PAIR);

    for (uint32_t i = 0; i < 4; i++) {
        char x[] = "/tmp/checkpoint_worlds_test.XXXXXX";
        char y[] = "/tmp/checkpoint_worlds_test.XXXXXX";
        struct shown shown;

        assert_non_null(mkdtemp(x));
        assert_non_null(mkdtemp(y));
        testing.form = forms[i].form;
        testing.rank0_only = forms[i].alone;
        testing.file_bytes = 3000;
        a.engine = fsdp_ref_engine();
        testing_write(&a, "odd", x, &shown);
        shown_release(&shown);
        a.engine = fsdp_impl_engine();
        testing_write(&a, "odd", y, &shown);
        shown_release(&shown);
        assert_int_equal(checkpoint_files_equal(x, y), FSDP_OK);
        folder_erase(x);
        folder_erase(y);
    }
}

/* The samples of fixtures/checkpoints, as they are written today. */
static void write_sample(uint32_t i, const char *directory, struct shown *out)
{
    static const struct {
        uint32_t form, alone;
        uint64_t file_bytes;
    } how[] = {{FSDP_SAVE_SHARDED, 0, 0}, {FSDP_SAVE_FULL, 1, 200}};
    struct arrangement a = FULL_SHARD(3, CASE_WRAP_PAIR);

    testing.form = how[i].form;
    testing.rank0_only = how[i].alone;
    testing.file_bytes = how[i].file_bytes;
    a.engine = engine(i);
    testing_write(&a, "odd", directory, out);
}

static const char *const samples[] = {"sharded", "full"};

/* Stored checkpoints can still be loaded, and are saved again as the same
 * bytes. */
UNIT_TEST(stored_samples)
{
    for (uint32_t i = 0; i < 2; i++) {
        char directory[] = "/tmp/checkpoint_worlds_test.XXXXXX";
        char stored[256];
        struct arrangement to = FULL_SHARD(4, CASE_WRAP_LAYER);
        struct shown saved;
        struct shown loaded;
        struct fsdp_error why;

        snprintf(stored, sizeof(stored), "%s/checkpoints/%s", FIXTURES_DIR,
                 samples[i]);
        assert_non_null(mkdtemp(directory));
        write_sample(i, directory, &saved);
        if (checkpoint_files_equal(directory, stored) != FSDP_OK) {
            fail_msg("%s is not what is written today", stored);
        }
        to.engine = engine(1 - i);
        assert_int_equal(testing_read(&to, "odd", FSDP_OPTIMIZER_ADAMW, stored,
                                      &loaded, &why),
                         FSDP_OK);
        assert_true(shown_equal(&saved, &loaded));
        shown_release(&saved);
        shown_release(&loaded);
        folder_erase(directory);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded),
        cmocka_unit_test(full_by_one),
        cmocka_unit_test(full_by_all),
        cmocka_unit_test(local),
        cmocka_unit_test(local_of_others),
        cmocka_unit_test(engines_write_the_same),
        cmocka_unit_test(stored_samples),
    };

    if (argc == 2) { /* a folder: the samples are written there */
        for (uint32_t i = 0; i < 2; i++) {
            char path[1024];
            struct shown shown;
            snprintf(path, sizeof(path), "%s/%s", argv[1], samples[i]);
            write_sample(i, path, &shown);
            shown_release(&shown);
        }
        return 0;
    }

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
