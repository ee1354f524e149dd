/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - what the suite lists: cases and scripts, read from texts that
 * are part of the program, so that no path has to be found at run time.
 *
 * cases.txt is the manifest, other_worlds.txt has the cases of a world size
 * that the manifest lacks, large_worlds.txt those of a large one, and
 * golden.txt those of the golden data. Such a text has an id a line. Empty
 * lines, and those that begin with #, are for people. Each id is read strictly:
 * one that is malformed, or is there twice, is a fault of the program, since
 * the text was built into it.
 *
 * scripts.txt has the scripts that cases know by name: a line "== NAME
 * ACTIONS", then the text.
 */
#include "cases/case.h"
#include "cases/case_script.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint32_t manifest_count = 1154;
const char manifest_sha256[] =
    "c0c7013818bdc45c0d27006e9dcd181f4b1e7e4818b0654152b9284ae58d803c";

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
    snprintf(lines->error->message, sizeof(lines->error->message),
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

/* ---- Scripts ------------------------------------------------------------- */

__asm__(".section .rodata\n"
        ".global fsdp_cts_scripts\n"
        "fsdp_cts_scripts:\n"
        ".incbin \"" FSDP_CASES "/scripts.txt\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char fsdp_cts_scripts[];

/* A list of scripts. Callers keep pointers to them, so that each stays where it
 * is. */
struct node {
    struct node *next;
    struct case_script script;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *first, **last = &first;
static uint32_t n_listed;
static bool listed; /* scripts.txt has been read */

/* Appends a script to the list; the text is copied. */
static struct node *append(const char *name, uint32_t actions, const char *text,
                           size_t n)
{
    struct node *node = calloc(1, sizeof(*node));
    char *copy = node ? strndup(text, n) : NULL;

    if (!copy) {
        free(node);
        return NULL;
    }
    snprintf(node->script.name, sizeof(node->script.name), "%s", name);
    node->script.actions = actions;
    node->script.text = copy;
    *last = node;
    last = &node->next;
    return node;
}

/* Reads scripts.txt once; a script for which there is no memory is left out. */
static void list(void)
{
    const char *at = fsdp_cts_scripts;

    if (listed) {
        return;
    }
    listed = true;
    while ((at = strstr(at, "== "))) {
        const size_t n = strcspn(at + 3, " \n");
        char name[CASE_SCRIPT_NAME_BYTES] = "";
        unsigned long actions = 0;
        const char *end;

        if (n < sizeof(name)) {
            memcpy(name, at + 3, n);
            actions = strtoul(at + 3 + n, NULL, 10);
        }
        if (actions > 0 && actions <= CASE_MAX_STEPS) {
            at = strchrnul(at, '\n');
            at += *at == '\n';
            end = strstr(at, "\n== ");
            end = end ? end + 1 : strchr(at, '\0');
            while (end > at + 1 && end[-2] == '\n') {
                end--; /* the text ends in one end of a line */
            }
            n_listed +=
                append(name, (uint32_t)actions, at, (size_t)(end - at)) != NULL;
        } else {
            at++;
        }
    }
}

const struct case_script *case_script_find(const char *name)
{
    /* The judge asks for the script of one case again and again, so the latest
     * answer is kept. */
    static const struct case_script *latest;
    const struct case_script *found;

    (void)pthread_mutex_lock(&lock);
    list();
    found = latest && strcmp(latest->name, name) == 0 ? latest : NULL;
    for (const struct node *n = first; n && !found; n = n->next) {
        found = strcmp(n->script.name, name) == 0 ? &n->script : NULL;
    }
    latest = found ? found : latest;
    (void)pthread_mutex_unlock(&lock);
    return found;
}

const struct case_script *case_script_of(const struct run_case *c)
{
    return case_is_script(c) ? case_script_find(c->script) : NULL;
}

const struct case_script *case_script_listed(uint32_t i)
{
    const struct node *n;

    (void)pthread_mutex_lock(&lock);
    list();
    n = i < n_listed ? first : NULL;
    for (; n && i > 0; i--) {
        n = n->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return n ? &n->script : NULL;
}

int case_script_add(const char *text, uint32_t actions,
                    const struct case_script **out)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char name[CASE_SCRIPT_NAME_BYTES] = "text-";
    struct node *made = NULL;

    (void)SHA256((const unsigned char *)text, strlen(text), hash);
    for (size_t i = 0; i < 6; i++) {
        snprintf(name + 5 + 2 * i, 3, "%02x", hash[i]);
    }
    *out = case_script_find(name);
    if (*out) {
        /* Only a part of the hash is in the name. */
        return strcmp((*out)->text, text) == 0 ? FSDP_OK : FSDP_ERR_INVALID;
    }
    (void)pthread_mutex_lock(&lock);
    made = append(name, actions, text, strlen(text));
    if (made) {
        made->script.given = true;
    }
    (void)pthread_mutex_unlock(&lock);
    *out = made ? &made->script : NULL;
    return made ? FSDP_OK : FSDP_ERR_NOMEM;
}

void case_play_script(struct run_case *c, const struct case_script *s)
{
    c->scenario = CASE_SCRIPT;
    c->steps = c->recorded_steps = s->actions;
    memset(c->script, 0, sizeof(c->script));
    snprintf(c->script, sizeof(c->script), "%s", s->name);
}
