/* SPDX-License-Identifier: Apache-2.0 */
/*
 * playing_testing.h - has an engine play a case in a test: its ranks are
 * threads, and its record goes into a folder of its own. Test only.
 */
#ifndef FSDP_CTS_PLAYING_TESTING_H
#define FSDP_CTS_PLAYING_TESTING_H

#include "run/play/drive.h"

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_unsharded_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);

/* Between opening and playing a test may change any of this: a function of the
 * engine, what the driver is told. */
struct playing {
    struct run_case c;
    struct case_model model;
    struct fsdp_engine engine; /* a copy */
    struct script script;
    struct drive drive;
    bool serial; /* one rank plays all */
    char folder[64];
    char checkpoints[80]; /* a folder in it */
    /* Called on a rank's thread before it plays, and after; NULL: not
     * called. */
    void (*begin)(uint32_t rank);
    void (*end)(void);
    /* How ranks ended; where one rank played all, each has that one's end. */
    struct world_result ends[CASE_MAX_RANKS];
};

/* Opens the case with this id, with its own script, or with `script` if it is
 * not NULL. Each of these functions fails the test if it cannot do its work. */
void playing_open(struct playing *p, const char *id, const char *script,
                  const struct fsdp_engine *engine);

/* May be called any number of times: the folder is emptied first. */
void playing_play(struct playing *p);

/* Reads the record, completed as a worker does it. The caller releases it. */
void playing_read(const struct playing *p, struct record *out);

/* Fails the test if more than the record and checkpoints is left. */
void playing_close(struct playing *p);

#endif
