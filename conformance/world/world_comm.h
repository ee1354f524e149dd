/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_comm.h - the collectives of all worlds, written once over a carrier.
 *
 * A carrier moves bounded messages between the ranks of a group, in turns:
 * each member puts its part into its `place`, then all take the turn, then
 * each may read what it was sent. Shared memory and MPI are two carriers, so
 * both deliver the same bits by construction. A carrier between processes of
 * one machine can also read a member's memory, which spares a copy.
 */
#ifndef FSDP_CTS_WORLD_COMM_H
#define FSDP_CTS_WORLD_COMM_H

#include "world.h"

#include <stdatomic.h>

enum {
    WORLD_MAX_DIMS = 4,
    WORLD_MAX_GROUPS = WORLD_MAX_DIMS + 1, /* groups of one rank: one for each
                                              dimension, and the world */
    WORLD_PLACE_BYTES = 256 * 1024,
    WORLD_EXCHANGE_BYTES = 4096,
};

/* The ranks that differ from this one in one coordinate only. */
struct world_group {
    uint32_t extent;
    uint32_t me;     /* this rank's coordinate */
    uint32_t first;  /* the rank with coordinate 0 */
    uint32_t stride; /* from one member's rank to the next one's */
};

/* Where a rank stands; written by the rank, read by its supervisor. */
struct world_progress {
    _Atomic uint64_t n_collectives;
    _Atomic uint64_t beats; /* grows with all that counts as progress */
    _Atomic uint32_t in_collective;
    _Atomic uint32_t last_kind;
    _Atomic uint32_t last_unit;
};

/* The values that all members of a group must give alike. They are compared as
 * bytes, so there is no padding. `turn` counts the turns of a collective. */
struct world_header {
    uint32_t kind;
    uint32_t dtype;
    uint32_t fold;
    uint32_t root;
    uint32_t sum_dtype; /* of a reduction */
    uint32_t unused;    /* 0: headers are compared as bytes */
    uint64_t n;
    uint64_t sequence;
    uint64_t turn;
};

/* Which bytes a member gets to read, and from whose place. */
enum world_pattern {
    WORLD_ALL = 0,  /* the bytes of every member */
    WORLD_EACH = 1, /* part `me` of every place; a place has extent parts */
    WORLD_ROOT = 2, /* the bytes of the root; the other parts are unset */
};

struct world_turn {
    struct world_header header;
    uint32_t pattern;
    uint64_t bytes; /* of a part */
};

struct world_comm;

/* `group` is a dimension of the mesh, or n_dims for the world. */
struct world_carrier {
    /* WORLD_PLACE_BYTES to fill for the next turn of this group. */
    void *(*place)(struct world_comm *comm, uint32_t group);
    /* Sets parts[0 .. extent), valid until the group's next turn. MISMATCH,
     * on every member, when headers differ; ABORTED. */
    int (*turn)(struct world_comm *comm, uint32_t group,
                const struct world_turn *turn, const unsigned char **parts);
    void (*abort)(struct world_comm *comm, int32_t status);
    /* FSDP_OK, or what a call that has not yet begun must return. */
    int (*check)(struct world_comm *comm);
    /* Copies `bytes` from an address in the memory of a member, who has shown
     * it in a turn and waits in a later one. Any failure leaves `to` undefined
     * and nothing else. NULL: the carrier cannot. */
    int (*fetch)(struct world_comm *comm, uint32_t group, uint32_t member,
                 uint64_t theirs, void *to, uint64_t bytes);
    /* world_stack_to. NULL: no rank is asked where it stands. */
    void (*stack_to)(struct world_comm *comm, const char *file);
};

/* Whether all members of a group reach each other's memory, as far as it is
 * known. */
enum {
    WORLD_UNTRIED = 0,
    WORLD_STRAIGHT = 1,
    WORLD_NOT_STRAIGHT = 2,
};

/* One rank's communicator; a carrier embeds it as its first member. */
struct world_comm {
    const struct world_carrier *carrier;
    uint32_t n_dims;
    struct world_group group[WORLD_MAX_GROUPS];
    uint64_t sequence[WORLD_MAX_GROUPS];
    uint8_t straight[WORLD_MAX_GROUPS]; /* WORLD_UNTRIED, ... */
    struct world_progress *progress;
    struct world_rank *rank; /* the rank whose comm this is */
};

/* The groups of a rank. The mesh has been checked. */
void world_comm_groups(const struct fsdp_mesh *mesh, uint32_t rank,
                       struct world_group group[WORLD_MAX_GROUPS]);
/* Fills comm and rank. */
void world_comm_init(struct world_comm *comm,
                     const struct world_carrier *carrier,
                     const struct fsdp_mesh *mesh, uint32_t rank,
                     struct world_progress *progress, struct fsdp_error *error,
                     struct world_rank *out);

/* Compares the members' headers; `header[i]` is that of coordinate i. */
int world_comm_agree(struct world_comm *comm, uint32_t group,
                     const struct world_header *const *header);

/* FSDP_ERR_MISMATCH: a member has left without this turn. */
int world_comm_deserted(struct world_comm *comm, uint32_t left);

/* Fills `error` if that is not NULL and empty; returns status. */
__attribute__((format(printf, 6, 7))) int
world_fail(struct fsdp_error *error, int32_t status, uint32_t rank,
           int32_t native, const char *where, const char *format, ...);

/* Copies what `progress` says into a result. */
void world_progress_read(struct world_progress *progress,
                         struct world_result *result);

#endif
