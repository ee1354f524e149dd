/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_durability_test.c - whatever happens to a save, the checkpoint
 * before it is there: each call of the system failing in turn, a full disk.
 * (checkpoint_erase_test.c kills savers.)
 *
 * The test is linked with --wrap of the calls that write.
 */
#include "checkpoint_rank_testing.h"

#include <errno.h>
#include <sys/mount.h>

static void fail_each(uint32_t form, uint64_t elements, int error, bool partly)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    struct fsdp_error why;
    struct rank r;
    uint64_t sites = 0;
    float good = 1.0f;

    assert_non_null(mkdtemp(directory));
    make_rank(&r, elements);
    assert_int_equal(save(&r, directory, form, good, &why), FSDP_OK);
    for (uint64_t nth = 1; nth < MAX_SITES; nth++) {
        int status;

        fault.nth = nth;
        fault.n = 0;
        fault.error = error;
        fault.partly = partly;
        fault.hit = false;
        status = save(&r, directory, form, good + 1.0f, &why);
        fault.nth = 0;
        if (!fault.hit) {
            assert_int_equal(status, FSDP_OK);
            break;
        }
        sites++;
        if (status == FSDP_OK) { /* a close after all was done, a short write */
            good += 1.0f;
        } else {
            assert_true(why.message[0] != '\0');
        }
        /* Only if the flush behind the rename fails may either checkpoint be
         * the newest. */
        if (load(&r, directory) == good + 1.0f && status != FSDP_OK) {
            good += 1.0f;
        }
        assert_true(load(&r, directory) == good);
        assert_true(count_partial(directory) <= 1);
        (void)all_are_whole(directory);
    }
    print_message("%llu calls failed with %s\n", (unsigned long long)sites,
                  strerror(error));
    assert_true(sites > 15 && sites < MAX_SITES - 1);
    checkpoint_table_release(&r.table);
    folder_erase(directory);
}

UNIT_TEST(each_call_fails)
{
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_FULL, ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, ENOSPC, true);
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, EINTR, false);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, ENOSPC, true);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, EINVAL, false);
}

/* A separate disk, which grows full. */
UNIT_TEST(full_disk)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    struct fsdp_error why;
    struct rank r;
    float good = 0.0f;
    int status;

    assert_non_null(mkdtemp(directory));
    if (mount("none", directory, "tmpfs", 0, "size=256k") != 0) {
        (void)rmdir(directory);
        print_message("no tmpfs is to be had here: not shown\n");
        skip();
    }
    make_rank(&r, ELEMENTS);
    while (
        (status = save(&r, directory,
                       (uint32_t)good % 2 ? FSDP_SAVE_FULL : FSDP_SAVE_SHARDED,
                       good + 1.0f, &why)) == FSDP_OK) {
        good += 1.0f;
    }
    assert_int_equal(status, FSDP_ERR_IO);
    assert_non_null(strstr(why.message, strerror(ENOSPC)));
    assert_true(good >= 1.0f);
    assert_true(load(&r, directory) == good);
    assert_int_equal(count_partial(directory), 0);
    assert_int_equal(umount(directory), 0);
    checkpoint_table_release(&r.table);
    assert_int_equal(rmdir(directory), 0);
}

/* The newest whole checkpoint is chosen, and the reason names those that were
 * passed over. */
UNIT_TEST(incomplete_is_passed_over)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    char path[128];
    char why[CHECKPOINT_WHY_BYTES];
    struct fsdp_error error;
    struct checkpoint *c;
    struct rank r;

    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(
            save(&r, directory, FSDP_SAVE_SHARDED, (float)i, &error), FSDP_OK);
    }
    snprintf(path, sizeof(path), "%s/checkpoint-000003/manifest.json",
             directory);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/checkpoint-000002/state-00001.safetensors",
             directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(checkpoint_open(directory, &c, why), FSDP_OK);
    assert_int_equal(checkpoint_state_of(c).step, 1);
    assert_non_null(strstr(checkpoint_reason(c), "checkpoint-000003"));
    assert_non_null(strstr(checkpoint_reason(c), "state-00001"));
    assert_non_null(
        strstr(checkpoint_reason(c), "checkpoint-000001 is the newest"));
    checkpoint_close(c);
    checkpoint_table_release(&r.table);
    folder_erase(directory);
}

UNIT_TEST(refused_places)
{
    char file[] = "/tmp/checkpoint_durability_test.XXXXXX";
    char below[80];
    struct fsdp_error why;
    struct rank r;
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    (void)close(fd);
    make_rank(&r, ELEMENTS);
    snprintf(below, sizeof(below), "%s/below", file);
    assert_int_equal(save(&r, file, FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_IO);
    assert_non_null(strstr(why.message, "directory"));
    assert_int_equal(save(&r, below, FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_IO);
    assert_int_equal(save(&r, "", FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_INVALID);
    assert_int_equal(save(&r, file, 99, 1.0f, &why), FSDP_ERR_INVALID);
    checkpoint_table_release(&r.table);
    assert_int_equal(unlink(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(incomplete_is_passed_over),
        cmocka_unit_test(refused_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
