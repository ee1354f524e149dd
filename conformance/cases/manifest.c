/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - lists of cases, read from texts that are part of the program,
 * so that no path has to be found at run time: cases.txt is the manifest,
 * other_worlds.txt has the cases of a world size that the manifest lacks,
 * large_worlds.txt those of a large one, and golden.txt those of the golden
 * data.
 *
 * A text has an id a line. Empty lines, and those that begin with #, are for
 * people. Each id is read strictly: one that is malformed, or is there twice,
 * is a fault of the program, since the text was built into it.
 */
#include "cases/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint32_t manifest_count = 1134;
const char manifest_sha256[] =
    "ced0517f504519e7197e03fe51565e634b0df7e3ae0096479de263dde822d43e";

__asm__(".section .rodata\n"
        ".global fsdp_cts_cases\n"
        "fsdp_cts_cases:\n"
        ".incbin \"" FSDP_CASES "/cases.txt\"\n"
        ".byte 0\n"
        ".global fsdp_cts_other_worlds\n"
        "fsdp_cts_other_worlds:\n"
        ".incbin \"" FSDP_CASES "/other_worlds.txt\"\n"
        ".byte 0\n"
        ".global fsdp_cts_large_worlds\n"
        "fsdp_cts_large_worlds:\n"
        ".incbin \"" FSDP_CASES "/large_worlds.txt\"\n"
        ".byte 0\n"
        ".global fsdp_cts_golden\n"
        "fsdp_cts_golden:\n"
        ".incbin \"" FSDP_CASES "/golden.txt\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char fsdp_cts_cases[];
extern const char fsdp_cts_other_worlds[];
extern const char fsdp_cts_large_worlds[];
extern const char fsdp_cts_golden[];

/* A text that is being read. */
struct case_lines {
    const char *name;
    const char *at;
    uint32_t line; /* number of the last one taken */
    struct fsdp_error *error;
};

/* The next line that is for the program; false at the end of the text. A line
 * that is longer than any id comes out empty. */
static bool take_line(struct case_lines *lines, char line[CASE_ID_BYTES])
{
    while (*lines->at != '\0') {
        const char *const begin = lines->at;
        const size_t n = strcspn(begin, "\n");

        lines->at += n + (begin[n] == '\n');
        lines->line++;
        if (n > 0 && begin[0] != '#') {
            const size_t kept = n < CASE_ID_BYTES ? n : 0;

            memcpy(line, begin, kept);
            line[kept] = '\0';
            return true;
        }
    }
    return false;
}

static int refuse_line(const struct case_lines *lines, int status,
                       const char *id, const char *why)
{
    lines->error->status = status;
    (void)snprintf(lines->error->message, sizeof(lines->error->message),
                   "%s:%u: '%.150s' %s", lines->name, lines->line, id, why);
    return status;
}

static int add_id(const struct case_lines *lines, const char *id,
                  struct case_list *list)
{
    const uint32_t n_before = list->n;
    struct run_case c;

    if (!case_of_id(id, &c)) {
        return refuse_line(lines, FSDP_ERR_INTERNAL, id, "is no case");
    }
    if (case_list_add(list, &c) != FSDP_OK) {
        return refuse_line(lines, FSDP_ERR_NOMEM, id, "needs more memory");
    }
    if (list->n == n_before) {
        return refuse_line(lines, FSDP_ERR_INTERNAL, id, "is there twice");
    }
    return FSDP_OK;
}

bool case_list_has(const struct case_list *list, const struct run_case *c)
{
    for (uint32_t i = 0; i < list->n; i++) {
        /* Cases are zeroed before they are filled, and have no padding.
         * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
        if (memcmp(&list->c[i], c, sizeof(*c)) == 0) {
            return true;
        }
    }
    return false;
}

int case_list_add(struct case_list *list, const struct run_case *c)
{
    if (case_list_has(list, c)) {
        return FSDP_OK;
    }
    if ((list->n & (list->n - 1)) == 0) { /* full at every power of two */
        const size_t room = list->n == 0 ? 1 : (size_t)list->n * 2;
        struct run_case *const more = realloc(list->c, room * sizeof(*more));

        if (!more) {
            return FSDP_ERR_NOMEM;
        }
        list->c = more;
    }
    list->c[list->n++] = *c;
    return FSDP_OK;
}

int case_list_read(const char *name, const char *text, struct case_list *out,
                   struct fsdp_error *error)
{
    struct case_lines lines = {.name = name, .at = text, .error = error};
    char id[CASE_ID_BYTES];
    int status = FSDP_OK;

    memset(out, 0, sizeof(*out));
    while (status == FSDP_OK && take_line(&lines, id)) {
        status = add_id(&lines, id, out);
    }
    if (status != FSDP_OK) {
        manifest_release(out);
    }
    return status;
}

int manifest_make(struct case_list *out, struct fsdp_error *error)
{
    return case_list_read("cases.txt", fsdp_cts_cases, out, error);
}

int manifest_golden(struct case_list *out, struct fsdp_error *error)
{
    return case_list_read("golden.txt", fsdp_cts_golden, out, error);
}

/* The id that a line of other_worlds.txt stands for in a world: its letters K,
 * R and P are explained there. */
static void fill_in(const char *line, uint32_t ranks, uint32_t replicas,
                    char id[CASE_ID_BYTES])
{
    const size_t digits = 10;
    uint32_t divisor = 1;
    size_t n = 0;

    while (divisor < ranks) {
        divisor *= 2;
    }
    for (; *line != '\0' && n + digits < CASE_ID_BYTES; line++) {
        if (*line == 'P' && divisor == ranks && n >= strlen(".div")) {
            n -= strlen(".div");
        } else if (*line == 'K' || *line == 'R' || *line == 'P') {
            const uint32_t number = *line == 'K'   ? ranks
                                    : *line == 'R' ? replicas
                                                   : divisor;

            n += (size_t)snprintf(id + n, CASE_ID_BYTES - n, "%u", number);
        } else {
            id[n++] = *line;
        }
    }
    id[n] = '\0';
}

/* Whether the list shows that world by more than a single case. */
static bool has_world_size(const struct case_list *list, uint32_t ranks)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        n += list->c[i].ranks == ranks;
    }
    return n > 1;
}

int manifest_add_world(uint32_t ranks, struct case_list *list,
                       struct fsdp_error *error)
{
    const bool large = ranks > CASE_USUAL_RANKS;
    struct case_lines lines = {
        .name = large ? "large_worlds.txt" : "other_worlds.txt",
        .at = large ? fsdp_cts_large_worlds : fsdp_cts_other_worlds,
        .error = error};
    char line[CASE_ID_BYTES];
    char id[CASE_ID_BYTES];

    if (has_world_size(list, ranks)) {
        return FSDP_OK;
    }
    while (take_line(&lines, line)) {
        const bool one_dimension = !strchr(line, 'R');
        const bool has_grains =
            !strstr(line, ".tree.") || case_grains(FSDP_FOLD_TREE, ranks) > 0;
        const uint32_t last = !has_grains ? 0 : one_dimension ? 1 : ranks - 1;
        bool enough = false;

        for (uint32_t r = one_dimension ? 1 : 2; r <= last && !enough; r++) {
            if (ranks % r == 0) {
                fill_in(line, ranks, r, id);
                FSDP_TRY(add_id(&lines, id, list));
                enough = large;
            }
        }
    }
    return FSDP_OK;
}

void manifest_release(struct case_list *list)
{
    free(list->c);
    memset(list, 0, sizeof(*list));
}
