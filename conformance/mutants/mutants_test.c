/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutants_test.c - the table of all mutants: sorted, whole, with evidence that
 * a reader can follow; and README.md tells how many there are.
 */
#include "mutants/mutant.h"

#include <ctype.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "testing/unit_testing.h"

UNIT_TEST(rows_are_sorted_and_whole)
{
    assert_non_null(mutants[0]);
    for (const struct mutant *const *m = mutants; *m; m++) {
        print_message("%s\n", (*m)->name);
        assert_non_null((*m)->text);
        assert_non_null((*m)->evidence);
        assert_non_null((*m)->kills);
        assert_true((*m)->shows.in || (*m)->shows.script);
        assert_true(!m[1] || strcmp((*m)->name, m[1]->name) < 0);
    }
}

/* Both ways: each id is behind the one before it. */
UNIT_TEST(kills_are_sorted)
{
    for (const struct mutant *const *m = mutants; *m; m++) {
        char kills[1024];
        const char *last = "";
        char *rest = kills;
        char *id;

        assert_true(snprintf(kills, sizeof(kills), "%s", (*m)->kills) <
                    (int)sizeof(kills));
        while ((id = strtok_r(rest, " ", &rest))) {
            assert_true(strcmp(last, id) < 0);
            last = id;
        }
        assert_true(*last != '\0');
    }
}

/* An index of some list, such as "X15: ...", says nothing to a reader, and an
 * issue is of "owner/repository#number". */
UNIT_TEST(evidence_can_be_followed)
{
    for (const struct mutant *const *m = mutants; *m; m++) {
        const char *e = (*m)->evidence;
        size_t capitals = strspn(e, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        print_message("%s: %s\n", (*m)->name, e);
        capitals += e[capitals] == '-';
        assert_false(capitals > 0 && isdigit((unsigned char)e[capitals]));
        for (const char *at = strchr(e, '#'); at; at = strchr(at + 1, '#')) {
            const char *word = at;

            while (word > e && word[-1] != ' ') {
                word--;
            }
            assert_non_null(memchr(word, '/', (size_t)(at - word)));
        }
    }
}

UNIT_TEST(readme_tells_how_many)
{
    FILE *f = fopen("README.md", "r");
    char expected[64];
    char line[256];
    unsigned n = 0;
    bool found = false;

    assert_non_null(f);
    while (mutants[n]) {
        n++;
    }
    snprintf(expected, sizeof(expected), "- %u engines that are wrong", n);
    while (fgets(line, sizeof(line), f)) {
        found = found || strncmp(line, expected, strlen(expected)) == 0;
    }
    fclose(f);
    if (!found) {
        fail_msg("no line of README.md begins with \"%s\"", expected);
    }
}

/* Counts the thread-local bytes of the program, which is listed first, and not
 * those of loaded libraries. */
static int take_thread_bytes(struct dl_phdr_info *info, size_t size, void *to)
{
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            *(size_t *)to = info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

/* Each thread that an engine starts, such as a stream of impl, has the state of
 * all mutants, cleared. So that state must be small; mutant_room is for what is
 * large. */
UNIT_TEST(threads_begin_with_little)
{
    size_t bytes = 0;

    (void)dl_iterate_phdr(take_thread_bytes, &bytes);
    print_message("%zu bytes\n", bytes);
    assert_in_range(bytes, 1, 64 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted_and_whole),
        cmocka_unit_test(kills_are_sorted),
        cmocka_unit_test(evidence_can_be_followed),
        cmocka_unit_test(readme_tells_how_many),
        cmocka_unit_test(threads_begin_with_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
