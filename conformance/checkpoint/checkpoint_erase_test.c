/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_erase_test.c - a saver that erases older checkpoints: killed at
 * any moment, each call of the system failing in turn, and while another one
 * loads. A complete checkpoint is always found, and every directory with the
 * name of one is whole.
 *
 * usage: checkpoint_erase_test [KILLS]
 *
 * The test is linked with --wrap of the calls that write.
 */
#include "checkpoint_rank_testing.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    KILLS = 120,
    TIMED = 6 /* one in so many at some time, the others at some call */
};

enum phase { /* phases of a saver that keeps one checkpoint, or two */
    SAVING,
    ERASING,
    PHASES
};

static uint32_t kills = KILLS;

/* Saves 1, 2, 3, ..., reports each one that is done, and erases older ones. */
static void save_for_ever(struct rank *r, const char *directory, float from,
                          int tell, volatile enum phase *phase)
{
    char why[CHECKPOINT_WHY_BYTES];
    struct fsdp_error error;

    for (uint32_t i = 0;; i++) {
        float value = from + (float)i;
        uint32_t form =
            (uint32_t)value % 2 ? FSDP_SAVE_SHARDED : FSDP_SAVE_FULL;
        *phase = SAVING;
        if (save(r, directory, form, value, &error) != FSDP_OK ||
            __real_write(tell, &value, sizeof(value)) != sizeof(value)) {
            _exit(1);
        }
        *phase = ERASING;
        if (checkpoint_erase(directory, 1 + (uint32_t)value / 2 % 2, why) !=
            FSDP_OK) {
            _exit(1);
        }
    }
}

/* Runs a saver and kills it. Returns in which phase; *told: its last word. */
static enum phase kill_saver(struct rank *r, const char *directory,
                             uint32_t random, bool timed, float *told)
{
    volatile enum phase *phase =
        mmap(NULL, sizeof(*phase), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    enum phase was;
    int ends[2];
    float value;
    pid_t child;

    assert_true(phase != MAP_FAILED);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* It is enough to kill at calls that write: between two of them nothing
         * changes on the disk. */
        fault.kill_at = timed ? 0 : 1 + random % 150;
        save_for_ever(r, directory, *told + 1.0f, ends[1], phase);
    }
    (void)close(ends[1]);
    if (timed) {
        (void)usleep((useconds_t)random % 30000);
        assert_int_equal(kill(child, SIGKILL), 0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(ends[0], &value, sizeof(value)) == sizeof(value)) {
        *told = value;
    }
    (void)close(ends[0]);
    was = *phase;
    assert_int_equal(munmap((void *)phase, sizeof(*phase)), 0);
    return was;
}

/* The last save that was reported is there, or a later one. */
UNIT_TEST(killed)
{
    char directory[] = "/tmp/checkpoint_erase_test.XXXXXX";
    struct rank r;
    float told = 0.0f;
    uint64_t random = 0x9e3779b97f4a7c15u;
    uint32_t in[PHASES] = {0};
    uint32_t half[PHASES] = {0};
    uint32_t published = 0; /* saves that were done, but no longer reported */

    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint32_t i = 0; i < kills; i++) {
        enum phase phase;
        float now;

        random = random * 6364136223846793005u + 1442695040888963407u;
        phase = kill_saver(&r, directory, (uint32_t)(random >> 33),
                           i % TIMED == 0, &told);
        in[phase]++;
        half[phase] += count_partial(directory);
        now = load(&r, directory);
        if (!(told == 0.0f && now == -1.0f) && now != told &&
            now != told + 1.0f) {
            fail_msg("kill %u: %g was saved, %g is there", i, (double)told,
                     (double)now);
        }
        (void)all_are_whole(directory);
        published += now > told;
        told = now > 0.0f ? now : told;
    }
    print_message("%u kills: %u of %u while it saved left a half one, %u a "
                  "published one; %u of %u while it erased left a half one; "
                  "%g saves\n",
                  kills, half[SAVING], in[SAVING], published, half[ERASING],
                  in[ERASING], (double)told);
    assert_true(half[SAVING] > 10 && half[ERASING] > 5 && told > 10.0f);
    checkpoint_table_release(&r.table);
    folder_erase(directory);
}

/* Each system call of an erase fails in turn: the erase says so, or is done;
 * the next one does what is left. */
UNIT_TEST(erasing_fails)
{
    char directory[] = "/tmp/checkpoint_erase_test.XXXXXX";
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct fsdp_error error;
    struct rank r;
    uint32_t failures = 0;

    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint64_t nth = 1; nth < MAX_SITES; nth++) {
        int status;

        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(save(&r, directory, FSDP_SAVE_SHARDED,
                                  (float)(2 * nth + i), &error),
                             FSDP_OK);
        }
        fault.nth = nth;
        fault.n = 0;
        fault.error = EROFS;
        fault.partly = fault.hit = false;
        status = checkpoint_erase(directory, 1, why);
        fault.nth = 0;
        assert_true(load(&r, directory) == (float)(2 * nth + 1));
        assert_true(all_are_whole(directory) >= 1);
        if (!fault.hit) {
            assert_int_equal(status, FSDP_OK);
            break;
        }
        failures += status != FSDP_OK;
        if (status != FSDP_OK) {
            assert_non_null(strstr(why, strerror(EROFS)));
        }
        assert_int_equal(save(&r, directory, FSDP_SAVE_SHARDED,
                              (float)(2 * nth + 1), &error),
                         FSDP_OK);
        assert_int_equal(checkpoint_erase(directory, 1, why), FSDP_OK);
        assert_int_equal(all_are_whole(directory), 1);
        assert_int_equal(count_partial(directory), 0);
    }
    print_message("%u calls failed with %s\n", failures, strerror(EROFS));
    assert_true(failures > 4);
    checkpoint_table_release(&r.table);
    folder_erase(directory);
}

/* Everything older than the newest complete checkpoints is erased, complete or
 * not; newer ones that are not complete stay, for people to look at. */
UNIT_TEST(erases_older_ones)
{
    char directory[] = "/tmp/checkpoint_erase_test.XXXXXX";
    char path[128];
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct fsdp_error error;
    struct rank r;

    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint32_t i = 1; i < 7; i++) {
        assert_int_equal(
            save(&r, directory, FSDP_SAVE_SHARDED, (float)i, &error), FSDP_OK);
    }
    for (uint32_t i = 2; i < 7; i += 2) { /* 2, 4 and 6 are not complete */
        snprintf(path, sizeof(path),
                 "%s/checkpoint-%06u/state-00001.safetensors", directory, i);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(checkpoint_erase(directory, 0, why), FSDP_ERR_INVALID);
    assert_int_equal(checkpoint_erase(directory, 2, why), FSDP_OK);
    for (uint32_t i = 1; i < 7; i++) {
        snprintf(path, sizeof(path), "%s/checkpoint-%06u", directory, i);
        assert_int_equal(access(path, F_OK), i > 2 ? 0 : -1);
    }
    assert_true(load(&r, directory) == 5.0f);
    assert_int_equal(checkpoint_erase(directory, 9, why), FSDP_OK);
    assert_true(load(&r, directory) == 5.0f);
    assert_int_equal(checkpoint_erase("/tmp/not/there", 1, why), FSDP_ERR_IO);
    checkpoint_table_release(&r.table);
    folder_erase(directory);
}

static struct {
    struct rank rank;
    char directory[40];
} other_saver;

static void saves_and_erases(void)
{
    char why[CHECKPOINT_WHY_BYTES];
    struct fsdp_error error;

    assert_int_equal(save(&other_saver.rank, other_saver.directory,
                          FSDP_SAVE_SHARDED, 2.0f, &error),
                     FSDP_OK);
    assert_int_equal(checkpoint_erase(other_saver.directory, 1, why), FSDP_OK);
}

/* A reader has found the newest checkpoint, but before it opens that, the saver
 * publishes another one and erases the first: the reader opens the other. */
UNIT_TEST(erased_while_it_is_opened)
{
    char directory[] = "/tmp/checkpoint_erase_test.XXXXXX";
    struct fsdp_error error;
    struct rank *r = &other_saver.rank;

    assert_non_null(mkdtemp(directory));
    make_rank(r, ELEMENTS);
    snprintf(other_saver.directory, sizeof(other_saver.directory), "%s",
             directory);
    assert_int_equal(save(r, directory, FSDP_SAVE_SHARDED, 1.0f, &error),
                     FSDP_OK);
    fault.meanwhile = saves_and_erases;
    assert_true(load(r, directory) == 2.0f);
    assert_null(fault.meanwhile);
    checkpoint_table_release(&r->table);
    folder_erase(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(erasing_fails),
        cmocka_unit_test(erases_older_ones),
        cmocka_unit_test(erased_while_it_is_opened),
    };

    kills = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : KILLS;
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
