/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_interrupted_test.c - a signal also ends the clearing of folders,
 * which takes seconds on a busy disk; the caller then knows that records of an
 * earlier run may still be there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/folder_erase.h"
#include "run/supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void leave_record(const char *records, const struct run_case *c,
                         char file[512])
{
    char id[CASE_ID_BYTES];
    FILE *f;

    case_id(c, id);
    snprintf(file, 512, "%s/%s", records, id);
    (void)mkdir(file, 0777);
    snprintf(file, 512, "%s/%s/case.json", records, id);
    f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
}

static void clearing_ends_with_the_signal(void **state)
{
    struct fsdp_error error = {0};
    struct run_case c;
    char records[] = "/tmp/supervise-XXXXXX";
    char file[512];

    (void)state;
    assert_true(case_of_id(
        "mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40", &c));
    assert_non_null(mkdtemp(records));
    leave_record(records, &c, file);
    assert_int_equal(supervise_clear(records, &c, 1, false, &error), FSDP_OK);
    assert_int_not_equal(access(file, F_OK), 0);

    leave_record(records, &c, file);
    supervise_catch_signals();
    raise(SIGTERM);
    assert_int_equal(supervise_clear(records, &c, 1, false, &error),
                     FSDP_ERR_ABORTED);
    assert_string_equal(error.message, "interrupted");
    assert_int_equal(access(file, F_OK), 0);
    folder_erase(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clearing_ends_with_the_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
