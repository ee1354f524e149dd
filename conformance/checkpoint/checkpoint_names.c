/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_names.c - the names that a checkpoint has and a model lacks, and
 * the other way round, which a lenient load tells.
 */
#include "checkpoint_opened.h"

#include <stdlib.h>
#include <string.h>

bool checkpoint_has(const struct checkpoint *c, const char *name)
{
    return checkpoint_entry_of(&c->manifest.table, name) >= 0;
}

/* The names of one table that another lacks, a line each; NULL: no memory. */
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

        if (!bsearch(&name[i], other, n_other, sizeof(*other),
                     checkpoint_compare_names)) {
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
    const char **own = checkpoint_sorted_names(table, &n_own);
    const char **saved = checkpoint_sorted_names(&c->manifest.table, &n_saved);

    if (own && saved) {
        c->missing = lines(own, n_own, saved, n_saved);
        c->unexpected = lines(saved, n_saved, own, n_own);
    }
    free(own);
    free(saved);
    return c->missing && c->unexpected ? FSDP_OK : checkpoint_no_memory(why);
}
