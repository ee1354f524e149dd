/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_script.c - the scripts that cases know by name. scripts.txt has those of
 * the suite: a line "== NAME ACTIONS", then the text.
 */
#include "cases/case_script.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__asm__(".section .rodata\n"
        ".global fsdp_cts_scripts\n"
        "fsdp_cts_scripts:\n"
        ".incbin \"" FSDP_CASES "/scripts.txt\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char fsdp_cts_scripts[];

/* Pointers into it are given out: each script stays where it is. */
struct node {
    struct node *next;
    struct case_script script;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *first, **last = &first;
static uint32_t n_listed;
static bool listed; /* scripts.txt has been read */

/* The text is copied. */
static struct node *append(const char *name, uint32_t actions, const char *text,
                           size_t n)
{
    struct node *node = calloc(1, sizeof(*node));
    char *copy = node ? strndup(text, n) : NULL;

    if (!copy) {
        free(node);
        return NULL;
    }
    (void)snprintf(node->script.name, sizeof(node->script.name), "%s", name);
    node->script.actions = actions;
    node->script.text = copy;
    *last = node;
    last = &node->next;
    return node;
}

/* Reads scripts.txt once; what there is no memory for is not there. */
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
    /* Who judges a case asks for its script again and again. */
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
        (void)snprintf(name + 5 + 2 * i, 3, "%02x", hash[i]);
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
    (void)snprintf(c->script, sizeof(c->script), "%s", s->name);
}
