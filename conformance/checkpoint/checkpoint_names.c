/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_names.c - which names a checkpoint has, and a model lacks, or the
 * other way round: what a lenient load tells of.
 */
#include "checkpoint_opened.h"

#include <stdlib.h>
#include <string.h>

bool checkpoint_has(const struct checkpoint *c, const char *name)
{
    return checkpoint_entry_of(&c->manifest.table, name) >= 0;
}

static int compare_name(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

/* Those of a table, ascending; the array is the caller's to free. */
static const char **names_of(const struct checkpoint_table *table, uint32_t *n)
{
    const char **name = calloc(table->n + (size_t)1, sizeof(*name));

    *n = 0;
    for (uint32_t i = 0; name && i < table->n; i++) {
        if (table->entry[i].name) {
            name[(*n)++] = table->entry[i].name;
        }
    }
    if (name) {
        qsort(name, *n, sizeof(*name), compare_name);
    }
    return name;
}

/* Of the names of one table those that another lacks, a line each; NULL: no
 * memory. */
static char *lines(const char *const *name, uint32_t n,
                   const char *const *other, uint32_t n_other)
{
    size_t room = 1;
    size_t used = 0;
    char *text;

    for (uint32_t i = 0; i < n; i++) {
        room += strlen(name[i]) + 1;
    }
    text = malloc(room);
    for (uint32_t i = 0; text && i < n; i++) {
        const size_t bytes = strlen(name[i]);

        if (!bsearch(&name[i], other, n_other, sizeof(*other), compare_name)) {
            memcpy(text + used, name[i], bytes);
            text[used + bytes] = '\n';
            used += bytes + 1;
        }
    }
    if (text) {
        text[used] = '\0';
    }
    return text;
}

int checkpoint_find_names(struct checkpoint *c,
                          const struct checkpoint_table *table, char *why)
{
    uint32_t n_own;
    uint32_t n_saved;
    const char **own = names_of(table, &n_own);
    const char **saved = names_of(&c->manifest.table, &n_saved);

    if (own && saved) {
        c->missing = lines(own, n_own, saved, n_saved);
        c->unexpected = lines(saved, n_saved, own, n_own);
    }
    free(own);
    free(saved);
    return c->missing && c->unexpected ? FSDP_OK : checkpoint_no_memory(why);
}
