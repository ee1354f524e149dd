/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_communicators.c - communicators have a number in a log, which is kept as
 * an attribute of theirs: so it dies with them, and none is mistaken for an
 * earlier one whose handle it was given.
 */
#include "tools/probes/preload/mpi_probe.h"

#include <stdint.h>
#include <stdlib.h>

static int key = MPI_KEYVAL_INVALID;

/* As runs [first, stride, count] of ranks of MPI_COMM_WORLD: a dimension of a
 * mesh is one run. Null if there are too many. */
static void add_members(struct probe_line *line, MPI_Comm comm, int size)
{
    int *mine = calloc((size_t)size + 1, 2 * sizeof(*mine));
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    struct probe_line runs = {.length = 0};
    bool known = false;
    if (mine && PMPI_Comm_group(comm, &group) == MPI_SUCCESS &&
        PMPI_Comm_group(MPI_COMM_WORLD, &all) == MPI_SUCCESS) {
        int *rank = mine + size;
        for (int i = 0; i < size; i++) {
            mine[i] = i;
        }
        known = PMPI_Group_translate_ranks(group, size, mine, all, rank) ==
                MPI_SUCCESS;
        for (int i = 0; known && i < size;) {
            int stride = i + 1 < size ? rank[i + 1] - rank[i] : 0;
            int n = stride > 0 ? 2 : 1;
            known = rank[i] >= 0; /* else of a world that was spawned */
            while (n > 1 && i + n < size &&
                   rank[i + n] - rank[i + n - 1] == stride) {
                n++;
            }
            probe_line_add(&runs, "%s[%d,%d,%d]", i > 0 ? "," : "", rank[i],
                           n > 1 ? stride : 0, n);
            i += n;
        }
    }
    if (known && !runs.cut && runs.length < PROBE_LINE_BYTES - 512) {
        probe_line_add(line, ",\"members\":[%.*s]", (int)runs.length,
                       runs.text);
    } else {
        probe_line_null(line, "members");
    }
    if (group != MPI_GROUP_NULL) {
        (void)PMPI_Group_free(&group);
    }
    if (all != MPI_GROUP_NULL) {
        (void)PMPI_Group_free(&all);
    }
    free(mine);
}

static void tell(struct call_log *c, uint32_t number, MPI_Comm comm,
                 int64_t parent)
{
    struct probe_line line;
    int size = 0;
    int me = 0;
    int is_inter = 0;
    (void)PMPI_Comm_size(comm, &size);
    (void)PMPI_Comm_rank(comm, &me);
    (void)PMPI_Comm_test_inter(comm, &is_inter);
    probe_line_begin(&line, "communicator");
    probe_line_u64(&line, "comm", number);
    if (parent < 0) {
        probe_line_null(&line, "parent");
    } else {
        probe_line_u64(&line, "parent", (uint64_t)parent);
    }
    probe_line_u64(&line, "size", (uint64_t)size);
    probe_line_u64(&line, "me", (uint64_t)me);
    add_members(&line, comm, size);
    probe_line_text(&line, "name", is_inter ? "intercommunicator" : "");
    probe_line_null(&line, "id");
    probe_log_write(&c->log, &line);
}

int64_t mpi_probe_comm(struct call_log *c, MPI_Comm comm, MPI_Comm parent)
{
    void *value = NULL;
    int has_it = 0;
    if (comm == MPI_COMM_NULL || c->log.state != PROBE_LOG_OPEN) {
        return -1;
    }
    if (key == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                                &key, NULL) != MPI_SUCCESS) {
        return -1;
    }
    (void)PMPI_Comm_get_attr(comm, key, &value, &has_it);
    if (!has_it) {
        int64_t above = mpi_probe_comm(c, parent, MPI_COMM_NULL);
        uint32_t number = c->comms++;
        value = (void *)((uintptr_t)number + 1);
        (void)PMPI_Comm_set_attr(comm, key, value);
        tell(c, number, comm, above);
    }
    return (int64_t)(uintptr_t)value - 1;
}

/* ---- Where communicators come from ---- */

#define EXPAND(...) __VA_ARGS__
#define MAKES(NAME, PARAMETERS, ARGUMENTS, PARENT)                \
    PROBE_EXPORT int MPI_##NAME(EXPAND PARAMETERS, MPI_Comm *out) \
    {                                                             \
        mpi_probe_depth++;                                        \
        int code = PMPI_##NAME(EXPAND ARGUMENTS, out);            \
        mpi_probe_depth--;                                        \
        return made(PARENT, code, out);                           \
    }

static int made(MPI_Comm parent, int code, const MPI_Comm *out)
{
    if (code == MPI_SUCCESS && mpi_probe_depth == 0) {
        (void)pthread_mutex_lock(&mpi_probe_log.log.lock);
        (void)mpi_probe_comm(&mpi_probe_log, *out, parent);
        (void)pthread_mutex_unlock(&mpi_probe_log.log.lock);
    }
    return code;
}

MAKES(Comm_split, (MPI_Comm comm, int color, int rank), (comm, color, rank),
      comm)
MAKES(Comm_split_type, (MPI_Comm comm, int type, int rank, MPI_Info info),
      (comm, type, rank, info), comm)
MAKES(Comm_dup, (MPI_Comm comm), (comm), comm)
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info), (comm, info), comm)
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group), (comm, group), comm)
MAKES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag),
      (comm, group, tag), comm)
MAKES(Cart_create,
      (MPI_Comm comm, int n, const int dims[], const int periods[],
       int reorder),
      (comm, n, dims, periods, reorder), comm)
MAKES(Cart_sub, (MPI_Comm comm, const int remain[]), (comm, remain), comm)
MAKES(Graph_create,
      (MPI_Comm comm, int n, const int index[], const int edges[], int reorder),
      (comm, n, index, edges, reorder), comm)
MAKES(Intercomm_create,
      (MPI_Comm local, int leader, MPI_Comm bridge, int remote, int tag),
      (local, leader, bridge, remote, tag), local)
MAKES(Intercomm_merge, (MPI_Comm comm, int high), (comm, high), comm)
