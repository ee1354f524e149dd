/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_store.c - a folder of records as the judge asks for them. Cases share
 * baselines and are compared with each other, so records stay in memory until
 * the judge has moved on and they have become too many.
 */
#include "judge/judge_store.h"

#include "record/record_spill.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STORE_PATH_BYTES = 4096,
    STORE_NAME_BYTES = CASE_ID_BYTES + 16
};

/* How many bytes of records may stay in memory between two cases. */
static const uint64_t keep_bytes = 256u << 20;

struct entry {
    struct entry *next; /* the most recently used comes first */
    char name[STORE_NAME_BYTES];
    struct record record;
    struct fsdp_error error; /* not OK: the record could not be read */
    uint64_t bytes;
};

/* The folders of a run, or of a part of one. */
struct place {
    struct place *next;
    char folder[STORE_PATH_BYTES - STORE_NAME_BYTES];
    char baselines[STORE_PATH_BYTES - STORE_NAME_BYTES];
};

struct judge_store {
    struct entry *entries;
    struct place *places; /* in the order in which they are searched */
};

int judge_store_add(struct judge_store *store, const char *folder,
                    const char *baselines)
{
    struct place **at = &store->places;
    struct place *place;

    baselines = baselines ? baselines : folder;
    if (strlen(folder) >= sizeof(place->folder) ||
        strlen(baselines) >= sizeof(place->baselines)) {
        return FSDP_ERR_INVALID;
    }
    place = calloc(1, sizeof(*place));
    if (!place) {
        return FSDP_ERR_NOMEM;
    }
    memcpy(place->folder, folder, strlen(folder) + 1);
    memcpy(place->baselines, baselines, strlen(baselines) + 1);
    while (*at) {
        at = &(*at)->next;
    }
    *at = place;
    return FSDP_OK;
}

int judge_store_open(const char *folder, const char *baselines,
                     struct judge_store **out)
{
    struct judge_store *store = calloc(1, sizeof(*store));
    int status = FSDP_ERR_NOMEM;

    *out = NULL;
    if (store) {
        status = judge_store_add(store, folder, baselines);
    }
    if (status != FSDP_OK) {
        free(store);
        return status;
    }
    *out = store;
    return FSDP_OK;
}

static void entry_release(struct entry *entry)
{
    record_release(&entry->record);
    free(entry);
}

void judge_store_close(struct judge_store *store)
{
    while (store && store->entries) {
        struct entry *next = store->entries->next;

        entry_release(store->entries);
        store->entries = next;
    }
    while (store && store->places) {
        struct place *next = store->places->next;

        free(store->places);
        store->places = next;
    }
    free(store);
}

static uint64_t size_of(const struct record *r)
{
    uint64_t bytes = sizeof(*r);

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        for (uint32_t i = 0; i < r->rank[k].n_tensors; i++) {
            bytes += sizeof(r->rank[k].tensor[i]) +
                     r->rank[k].tensor[i].n * sizeof(float);
        }
    }
    return bytes;
}

/* Takes an entry out of the list; NULL: the list does not have it. */
static struct entry *take_entry(struct judge_store *store, const char *name)
{
    for (struct entry **at = &store->entries; *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            struct entry *entry = *at;

            *at = entry->next;
            return entry;
        }
    }
    return NULL;
}

static bool is_there(const char *folder, const char *name)
{
    char path[STORE_PATH_BYTES + 16];

    snprintf(path, sizeof(path), "%s/%s/case.json", folder, name);
    return access(path, F_OK) == 0 || errno != ENOENT;
}

/* Reads a record into a new entry. NULL: there is none, which is not
 * remembered, because there may be one next time. */
static struct entry *load_entry(const char *folder, const char *name)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    char path[STORE_PATH_BYTES + 2];
    int status;

    if (!entry) {
        return NULL;
    }
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    status = record_read(path, &entry->record, &entry->error);
    if (status == FSDP_ERR_IO && !is_there(folder, name)) {
        entry_release(entry);
        return NULL;
    }
    if (status != FSDP_OK) {
        entry->error.status = status;
    } else {
        entry->bytes = size_of(&entry->record);
    }
    return entry;
}

/* Finds a record in the first place that has it. */
static const struct record *find(struct judge_store *store, bool baseline,
                                 const char *name, struct fsdp_error *error)
{
    struct entry *entry = take_entry(store, name);

    for (const struct place *p = store->places; !entry && p; p = p->next) {
        entry = load_entry(baseline ? p->baselines : p->folder, name);
    }
    if (!entry) {
        return NULL;
    }
    if (entry->error.status == FSDP_ERR_IO) { /* it may be read next time */
        *error = entry->error;
        entry_release(entry);
        return NULL;
    }
    entry->next = store->entries;
    store->entries = entry;
    if (entry->error.status != FSDP_OK) {
        *error = entry->error;
        return NULL;
    }
    return &entry->record;
}

const struct record *judge_store_record(void *context, const char *id,
                                        struct fsdp_error *error)
{
    return find(context, false, id, error);
}

const struct record *judge_store_baseline(void *context, const char *key,
                                          struct fsdp_error *error)
{
    char name[STORE_NAME_BYTES];

    snprintf(name, sizeof(name), "baseline/%s", key);
    return find(context, true, name, error);
}

void judge_store_next(void *context)
{
    struct judge_store *store = context;
    struct entry **at = &store->entries;
    uint64_t bytes = 0;

    while (*at && bytes + (*at)->bytes <= keep_bytes) {
        bytes += (*at)->bytes;
        if ((*at)->record.spill) {
            record_spill_drop((*at)->record.spill);
        }
        at = &(*at)->next;
    }
    while (*at) {
        struct entry *entry = *at;

        *at = entry->next;
        entry_release(entry);
    }
}
