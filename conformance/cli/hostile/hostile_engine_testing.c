/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_engine_testing.c - the reference engine as a plug-in that does more
 * than it should in the middle of its first pass. FSDP_HOSTILE says what, or is
 * a file of lines "CASE WAY" (then cases that are not in it are played as they
 * should be). It computes right results. For supervision_test.sh and
 * hostile_test.sh.
 */
#include "cli/hostile/hostile_ways_testing.h"

#include <fsdp/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_engine_v1(void);

static const struct fsdp_engine *real;

/* Looks up the case that is being played, whose folder is beside the folder of
 * temporary files. */
static void look_up(const char *list, char name[64])
{
    const char *tmp = getenv("TMPDIR");
    FILE *f = fopen(list, "re");
    char id[200];
    char way[64];
    char path[4400];

    while (f && tmp && fscanf(f, "%199s %63s", id, way) == 2) {
        snprintf(path, sizeof(path), "%s/../%s", tmp, id);
        if (access(path, F_OK) == 0) {
            snprintf(name, 64, "%s", way);
        }
    }
    if (f) {
        fclose(f);
    }
}

static void misbehave(void)
{
    const char *how = getenv("FSDP_HOSTILE");
    char name[64] = "";

    if (how && how[0] == '/') {
        look_up(how, name);
        how = name;
    }
    for (const struct hostile_way *w = hostile_ways; how && w->name; w++) {
        if (strcmp(w->name, how) == 0) {
            w->does(w->with);
        }
    }
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    static _Thread_local uint32_t n;

    if (++n == 5) {
        misbehave();
    }
    return real->at(s, point, index);
}

const struct fsdp_engine *fsdp_engine_v1(void)
{
    static struct fsdp_engine engine;

    real = fsdp_ref_engine();
    engine = *real;
    engine.name = "hostile";
    engine.at = at;
    return &engine;
}
