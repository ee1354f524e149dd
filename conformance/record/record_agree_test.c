/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_agree_test.c - a record of which one number contradicts another is
 * refused, by the name of the field; each edit alone makes it so.
 */
#include "record/record_testing.h"
#include "testing/unit_testing.h"

static const struct {
    const char *file, *was, *now, *complaint;
} edits[] = {
    {"case.json", "\"world\": \"local\"", "\"world\": \"locam\"",
     "world: there is no such world"},
    {"case.json", "\"signal\": 0", "\"signal\": 9",
     "ranks[0]: returned with signal 9"},
    {"case.json", "\"signal\": 11", "\"signal\": 0",
     "ranks[1]: signalled with signal 0"},
    {"case.json", "\"in_collective\": false", "\"in_collective\": true",
     "ranks[0]: in a collective, where there can be none"},
    {"case.json", "\"collectives\": 17", "\"collectives\": 0",
     "ranks[1]: in a collective, where there can be none"},
    {"rank-1.json", "{\"status\": -7", "{\"status\": 0", "no error has it"},
    {"rank-0.json", "\"status\": 0", "\"status\": -3",
     "error: null, and the status is -3"},
    {"rank-0.json", "\"peak_parameters\": 1010", "\"peak_parameters\": 1006",
     "memory.peak_parameters: the peaks of its kinds say otherwise"},
    {"rank-0.json", "\"peak_parameters\": 1010", "\"peak_parameters\": 1015",
     "memory.peak_parameters: the peaks of its kinds say otherwise"},
    {"rank-0.json", "\"peak\": [7,", "\"peak\": [7007,",
     "memory.peak_parameters: the peaks of its kinds say otherwise"},
    {"rank-0.json", "\"peak_engine\": \"9007199254741012\"",
     "\"peak_engine\": 2",
     "memory.peak_engine: the peaks of its kinds say otherwise"},
    {"rank-0.json", "\"after_shard\": [0, 1, 2,",
     "\"after_shard\": [0, 1, 2008,",
     "memory.after_shard: more grad-shard than the peak"},
    {"rank-0.json", "\"9007199254740993\", 0, 0]",
     "\"9007199254740994\", 0, 0]",
     "memory.after_step[2]: more optim than the peak"},
    {"rank-0.json", "[1, 2, 3, 4, 5,", "[8, 2, 3, 4, 5,",
     "memory.timeline[0]: more param-shard than the peak"},
    {"rank-0.json", "[1, 2, 3, 4, 5,", "[7, 1004, 3, 4, 5,",
     "memory.timeline[0]: more than the peak"},
    {"rank-0.json", "[1, 2, 3, 4, 5,", "[1, 2, 3, 40, \"9007199254740993\",",
     "memory.timeline[0]: more than the peak"},
    {"rank-1.json", "\"timeline\": [",
     "\"timeline\": [[\"end\", 0, [1, 0, 0, 0, 0, 0, 0]],",
     "memory.timeline[0]: more param-shard than the peak"},
    {"rank-0.json", "[\"barrier\", 1, 8, 9, 8", "[\"barrier\", 1, 6, 7, 6",
     "flights[2]: given out before the one before it"},
    {"rank-0.json", "[\"barrier\", 1, 8, 9, 8", "[\"barrier\", 1, 8, 10, 8",
     "flights[2]: given out at 8, behind 10, awaited at 8"},
    {"rank-0.json", "[\"barrier\", 1, 8, 9, 8", "[\"barrier\", 1, 8, 9, 7",
     "flights[2]: given out at 8, behind 9, awaited at 7"},
    {"rank-0.json", "[\"barrier\", 1, 8, 9, 8", "[\"barrier\", 1, 8, 9, 9",
     "flights[2]: on no stream, and awaited later"},
    /* case.json against rank-0.json: the sentence names the latter. */
    {"case.json", "\"exit_status\": 0", "\"exit_status\": -3",
     "rank-0.json: status: 0, where case.json says -3"},
    {"case.json", "\"collectives\": 8", "\"collectives\": 7",
     "rank-0.json: sequences: 8 collectives, where case.json says 7"},
};

static void contradictions_are_refused_by_name(void **state)
{
    struct fsdp_error error;
    struct record r;
    struct record back;

    make_record(&r);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        write_record(*state, &r);
        replace(*state, edits[i].file, edits[i].was, edits[i].now);
        memset(&error, 0, sizeof(error));
        if (record_read(*state, &back, &error) != FSDP_ERR_FORMAT ||
            !strstr(error.message, edits[i].complaint)) {
            fail_msg("edit %zu (%s): %s", i, edits[i].now, error.message);
        }
        record_release(&back);
    }
    record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(contradictions_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
