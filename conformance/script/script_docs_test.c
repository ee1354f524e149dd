/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_docs_test.c - docs/scripts.md: the parser reads each of its examples,
 * and each is legal, or not as it says; its tables of what may follow what are
 * those of the state machine and of script_calls; its ids are of what it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "script/script_mask.h"
#include "script/script_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    MOST_BYTES = 1 << 16
};

static char page[MOST_BYTES];

static int read_page(void **state)
{
    FILE *f = fopen(FIXTURES_DIR "/../docs/scripts.md", "r");
    size_t n;

    (void)state;
    assert_non_null(f);
    n = fread(page, 1, sizeof(page) - 1, f);
    page[n] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_true(n > 0 && n < sizeof(page) - 1);
    return 0;
}

/* ---- Examples ---- */

/* What the example says of itself, up to the end of the line; or NULL. */
static bool told(const char *text, char why[256])
{
    static const char word[] = "# not legal: ";
    const char *at = strstr(text, word);

    if (at) {
        at += sizeof(word) - 1;
        snprintf(why, 256, "%.*s", (int)strcspn(at, "\n"), at);
    }
    return at != NULL;
}

static void check_example(const char *block, uint32_t verbs[SCRIPT_N_VERBS])
{
    struct fsdp_error error = {0};
    struct script s;
    char text[4200];
    char why[256] = "";
    bool wrong = told(block, why);
    int status;

    snprintf(text, sizeof(text), "%s%s",
             strncmp(block, "script", 6) == 0 ? "" : "script 1\n--\n", block);
    if (script_parse(text, &s, &error) != FSDP_OK) {
        fail_msg("%s\n%s", error.message, text);
    }
    status = script_legal(&s, NULL, &error);
    if (wrong ? status != FSDP_ERR_INVALID || !strstr(error.message, why)
              : status != FSDP_OK) {
        fail_msg("says: %s\nnot: %s\n%s", error.message, why, text);
    }
    for (uint32_t i = 0; i < s.n_actions; i++) {
        verbs[s.action[i].verb]++;
    }
    script_release(&s);
}

/* The lines of a block, without what they are indented by; returns behind it.
 */
static const char *take_block(const char *at, char *block, size_t bytes)
{
    size_t n = 0;

    while (strncmp(at, "    ", 4) == 0) {
        size_t line = strcspn(at, "\n") + 1;

        assert_true(n + line < bytes);
        memcpy(block + n, at + 4, line - 4);
        n += line - 4;
        at += line;
    }
    block[n] = '\0';
    return at;
}

static void test_examples(void **state)
{
    uint32_t verbs[SCRIPT_N_VERBS] = {0};
    uint32_t n = 0;
    const char *at = page;
    bool fenced = false;

    (void)state;
    while (*at) {
        char block[4096];

        fenced ^= strncmp(at, "```", 3) == 0;
        if (fenced || strncmp(at, "    ", 4) != 0) {
            at += strcspn(at, "\n");
            at += *at == '\n';
            continue;
        }
        at = take_block(at, block, sizeof(block));
        if (block[0] != '$') {
            check_example(block, verbs);
            n++;
        }
    }
    assert_true(n >= 20);
    for (uint32_t i = 0; i < SCRIPT_N_VERBS; i++) {
        assert_true(verbs[i] > 0);
    }
}

/* ---- Ids ---- */

/* Every id in the text is one; of an example, if it has one in its first line,
 * it is the example. */
static void check_id(const char *at)
{
    static const char before[] = "\n    script 1 # ";
    struct fsdp_error error = {0};
    struct script s;
    char id[SCRIPT_ID_BYTES];
    size_t n = strspn(at, "script.0123456789abcdef-");

    assert_true(n < sizeof(id));
    memcpy(id, at, n);
    id[n] = '\0';
    if (script_of_id(id, &s, NULL, NULL, &error) != FSDP_OK) {
        fail_msg("docs/scripts.md: %s", error.message);
    }
    at -= sizeof(before) - 1;
    if (strncmp(at, before, sizeof(before) - 1) == 0) {
        struct script example;
        char block[4096];
        char *text = script_text(&s);
        char *other;

        (void)take_block(at + 1, block, sizeof(block));
        assert_int_equal(script_parse(block, &example, &error), FSDP_OK);
        other = script_text(&example);
        assert_string_equal(text, other);
        free(text);
        free(other);
        script_release(&example);
    }
    script_release(&s);
}

static void test_ids(void **state)
{
    const char *at = page;
    uint32_t n = 0;

    (void)state;
    while ((at = strstr(at, "script."))) {
        if (at[7] >= '0' && at[7] <= '9') {
            check_id(at);
            n++;
        }
        at++;
    }
    assert_int_equal(n, 4);
}

/* ---- What may follow what ---- */

static const struct {
    const char *before; /* what brings this state about */
} columns[] = {{"zero"},        {"pass 0.0 n"}, {"pass 0.0 s"},
               {"save b full"}, {"unshard"},    {"pass 0.0 left-open 1"}};

static const char *const examples[SCRIPT_N_VERBS] = {
    [SCRIPT_PASS] = "pass 1.0 s",
    [SCRIPT_EVAL] = "eval 0.0",
    [SCRIPT_STEP] = "step lr 1",
    [SCRIPT_ZERO] = "zero",
    [SCRIPT_CLIP] = "clip 1 p 2",
    [SCRIPT_LOOK] = "look",
    [SCRIPT_SUMMON] = "summon",
    [SCRIPT_UNSHARD] = "unshard",
    [SCRIPT_RESHARD] = "reshard",
    [SCRIPT_SYNC] = "sync on",
    [SCRIPT_SAVE] = "save a sharded",
    [SCRIPT_WAIT] = "wait b",
    [SCRIPT_LOAD] = "load c",
    [SCRIPT_AGAIN] = "again",
    [SCRIPT_ANEW] = "anew",
    [SCRIPT_SET] = "set 0 sync 0",
    [SCRIPT_UNSHARD_UNIT] = "unshard 0",
    [SCRIPT_RESHARD_UNIT] = "reshard 0",
    [SCRIPT_FREEZE] = "freeze 0",
    [SCRIPT_THAW] = "thaw 0",
    [SCRIPT_BACKWARD_STEP] = "backward-step lr 1",
    [SCRIPT_ASSIGN] = "assign 0 1",
    [SCRIPT_SUMMON_SOME] = "summon 0",
    [SCRIPT_SEND] = "send 0 1"};

static bool may_follow(const char *before, const char *action)
{
    static const char *const behind[] = {"", "wait b", "wait a"};
    bool legal = false;

    for (size_t i = 0; i < N_OF(behind); i++) {
        struct fsdp_error error = {0};
        struct script s;
        char text[256];

        snprintf(text, sizeof(text), "script 1\ngiven c\n--\n%s;%s;%s", before,
                 action, behind[i]);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        legal |= script_legal(&s, NULL, &error) == FSDP_OK;
        script_release(&s);
    }
    return legal;
}

static void test_follows(void **state)
{
    (void)state;
    for (uint32_t verb = 0; verb < SCRIPT_N_VERBS; verb++) {
        char row[256];
        int n;

        if (!examples[verb]) { /* of what it repeats, or is refused */
            continue;
        }
        n = snprintf(row, sizeof(row), "\n| `%s%s` |", script_verb_words[verb],
                     (verb > SCRIPT_SET && verb < SCRIPT_BACKWARD_STEP) ||
                             verb == SCRIPT_SUMMON_SOME
                         ? " N"
                         : "");
        for (size_t i = 0; i < N_OF(columns); i++) {
            n += snprintf(row + n, sizeof(row) - (size_t)n, " %s |",
                          may_follow(columns[i].before, examples[verb]) ? "yes"
                                                                        : "no");
        }
        if (!strstr(page, row)) {
            fail_msg("docs/scripts.md lacks the row:%s", row);
        }
    }
}

/* ---- Calls ---- */

static const struct {
    uint32_t when;
    const char *where;
} places[] = {
    {SCRIPT_UNTRAINED, "before the first life"},
    {SCRIPT_AT_REST, "at rest"},
    {SCRIPT_AT_REST | SCRIPT_IN_PASS, "at rest or in a pass"},
    {SCRIPT_PENDING, "pending"},
    {SCRIPT_PARTIAL, "partial sums"},
    {SCRIPT_GRADIENTS, "pending or reduced"},
    {SCRIPT_NOT_FINITE, "reduced, not finite"},
    {SCRIPT_SCALED_UP, "reduced, scaled by 2^16 or more"},
    {SCRIPT_SAVING, "saving"},
    {SCRIPT_IDLE, "not saving"},
    {SCRIPT_FREE, "no gradients, not saving"},
    {SCRIPT_SAVED, "checkpoint a is whole"},
    {SCRIPT_STATELESS, "thawed since checkpoint a"},
    {SCRIPT_RENAMED, "renamed since checkpoint a"},
    {SCRIPT_PARTS, "checkpoint a has no parameters"},
    {SCRIPT_ROUNDED, "checkpoint a is rounded"},
    {SCRIPT_EMPTY, "without values"},
    {SCRIPT_STEP_SET, "a step is set"},
    {SCRIPT_PREDIVIDED, "predivided by 256 or more"},
    {SCRIPT_OPEN_ALL, "unsharded"},
    {SCRIPT_IN_PASS, "in a pass"},
    {SCRIPT_AT_START, "at its start"},
    {SCRIPT_IN_FORWARD, "at its first point"},
    {SCRIPT_EARLY, "before its end"},
    {SCRIPT_AT_LAST, "at the end of a training pass"},
    {SCRIPT_HOLDS, "half way, where all units stay"},
};

/* In the order of script_calls. */
static void test_calls(void **state)
{
    uint32_t told_of = 0;

    (void)state;
    for (size_t i = 0; i < N_OF(places); i++) {
        char row[2048];
        int n = snprintf(row, sizeof(row), "\n| %s |", places[i].where);
        const char *comma = "";

        for (uint32_t k = 0; k < SCRIPT_N_CALLS; k++) {
            if (script_calls[k].when == places[i].when) {
                n += snprintf(row + n, sizeof(row) - (size_t)n, "%s `%s`",
                              comma, script_calls[k].name);
                comma = ",";
                told_of++;
            }
        }
        snprintf(row + n, sizeof(row) - (size_t)n, " |\n");
        if (!strstr(page, row)) {
            fail_msg("docs/scripts.md lacks the row:%s", row);
        }
    }
    assert_int_equal(told_of, SCRIPT_N_CALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_calls),
    };

    return cmocka_run_group_tests(tests, read_page, NULL) != 0;
}
