/* SPDX-License-Identifier: Apache-2.0 */
/*
 * playing_testing.h - a case that an engine plays in a test: its ranks are
 * threads, and its record goes into a folder of its own. Test only.
 */
#ifndef FSDP_CTS_PLAYING_TESTING_H
#define FSDP_CTS_PLAYING_TESTING_H

#include "run/play/drive.h"

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);

/* Between opening and playing a test changes what it wants otherwise: a
 * function of the engine, what the driver is told. */
struct playing {
    struct run_case c;
    struct case_model model;
    struct fsdp_engine engine; /* a copy */
    struct script script;
    struct drive drive;
    bool serial; /* one rank plays all */
    char folder[64];
    char checkpoints[80]; /* a folder in it */
    /* What a rank's thread calls before it plays, and after; NULL: nothing. */
    void (*begin)(uint32_t rank);
    void (*end)(void);
    /* How ranks ended; where one played all, each as that one did. */
    struct world_result ends[CASE_MAX_RANKS];
};

/* Of the case with this id, with its own script, or with `script` if it is not
 * NULL. All of this fails the test if it cannot be done. */
void playing_open(struct playing *p, const char *id, const char *script,
                  const struct fsdp_engine *engine);

/* As often as one likes: the folder is emptied first. */
void playing_play(struct playing *p);

/* What was recorded: completed as a worker does, and read again. The caller
 * releases it. */
void playing_read(const struct playing *p, struct record *out);

/* Fails the test where more than the record and checkpoints is left. */
void playing_close(struct playing *p);

#endif
