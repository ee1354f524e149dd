/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_fsdp.c - a program that shards its parameters with MPI alone, and
 * knows nothing of this suite: what the probes are tried on. It trains
 * nothing; it moves what such a program moves, and checks what it gets.
 *
 *     mpirun -n K plain_fsdp UNITS STEPS [WHAT ...]
 *
 * UNITS are elements, with commas. Without WHAT a step is: gather each unit,
 * gather each again from the last on and reduce its gradient, add up the loss.
 */
#include <mpi.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#    include <mpi-ext.h>
#endif

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_MAJOR_VERSION < 5
#    define HAVE_PERSISTENT 1
#    define GATHER_INIT     MPIX_Allgather_init
#elif MPI_VERSION >= 4
#    define HAVE_PERSISTENT 1
#    define GATHER_INIT     MPI_Allgather_init
#endif

enum {
    MOST_UNITS = 64
};

static struct {
    int n_units, steps, rank, world, shards, me;
    int unit[MOST_UNITS];
    float *shard[MOST_UNITS], *reduced[MOST_UNITS];
    MPI_Comm shard_comm, replica_comm;
    int argc;
    char **argv;
} run;

static int asked(const char *what)
{
    for (int i = 3; i < run.argc; i++) {
        if (strcmp(run.argv[i], what) == 0) {
            return 1;
        }
    }
    return 0;
}

static void must(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "plain_fsdp: rank %d: %s\n", run.rank, what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void *room(size_t n)
{
    float *p = malloc(n * sizeof(*p));
    must(p != NULL, "out of memory");
    memset(p, 0, n * sizeof(*p));
    return p;
}

static int chunk(int u)
{
    return (run.unit[u] + run.shards - 1) / run.shards;
}

static void wait_for(MPI_Request *request)
{
    must(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI_Wait");
}

/* The unit's full parameters: element i of shard s is s + u. */
static float *gather(int u)
{
    int n = chunk(u);
    float *full = room((size_t)n * (size_t)run.shards);
    MPI_Request request = MPI_REQUEST_NULL;
    if (asked("in-place")) {
        memcpy(full + (size_t)run.me * (size_t)n, run.shard[u],
               (size_t)n * sizeof(*full));
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, full, n, MPI_FLOAT,
                      run.shard_comm);
    } else if (asked("nonblocking")) {
        MPI_Iallgather(run.shard[u], n, MPI_FLOAT, full, n, MPI_FLOAT,
                       run.shard_comm, &request);
        wait_for(&request);
    } else if (asked("vector")) {
        int counts[256];
        int at[256];
        for (int i = 0; i < run.shards; i++) {
            counts[i] = n;
            at[i] = i * n;
        }
        MPI_Allgatherv(run.shard[u], n, MPI_FLOAT, full, counts, at, MPI_FLOAT,
                       run.shard_comm);
#ifdef HAVE_PERSISTENT
    } else if (asked("persistent")) {
        GATHER_INIT(run.shard[u], n, MPI_FLOAT, full, n, MPI_FLOAT,
                    run.shard_comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        wait_for(&request);
        MPI_Request_free(&request);
#endif
    } else {
        MPI_Allgather(run.shard[u], n, MPI_FLOAT, full, n, MPI_FLOAT,
                      run.shard_comm);
    }
    must(full[(size_t)n * (size_t)run.shards - 1] ==
             (float)(run.shards - 1 + u),
         "a gathered element is wrong");
    return full;
}

static void reduce(int u, float *gradient)
{
    int n = chunk(u);
    MPI_Request request = MPI_REQUEST_NULL;
    if (asked("nonblocking")) {
        MPI_Ireduce_scatter_block(gradient, run.reduced[u], n, MPI_FLOAT,
                                  MPI_SUM, run.shard_comm, &request);
        wait_for(&request);
    } else if (asked("vector")) {
        int counts[256];
        for (int i = 0; i < run.shards; i++) {
            counts[i] = n;
        }
        MPI_Reduce_scatter(gradient, run.reduced[u], counts, MPI_FLOAT, MPI_SUM,
                           run.shard_comm);
    } else {
        MPI_Reduce_scatter_block(gradient, run.reduced[u], n, MPI_FLOAT,
                                 MPI_SUM, run.shard_comm);
    }
    if (run.shards < run.world) {
        MPI_Allreduce(MPI_IN_PLACE, run.reduced[u], n, MPI_FLOAT, MPI_SUM,
                      run.replica_comm);
    }
}

static void step(int s)
{
    float loss = 1.0f;
    for (int u = 0; u < run.n_units; u++) {
        free(gather(u));
    }
    if (s == 1 && asked("die") && run.rank == 1) {
        (void)kill(getpid(), SIGKILL);
    }
    for (int u = run.n_units; u-- > 0;) {
        float *gradient = gather(u);
        reduce(u, gradient);
        free(gradient);
    }
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    must(loss == (float)run.world, "the loss is wrong");
}

/* Each on a communicator of its own, at the same time. */
static void *many(void *argument)
{
    const MPI_Comm *comm = argument;
    for (int i = 0; i < 100; i++) {
        int sum = 1;
        int *all = malloc((size_t)run.world * sizeof(*all));
        MPI_Allgather(&sum, 1, MPI_INT, all, 1, MPI_INT, *comm);
        free(all);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    MPI_Comm comm[4];
    for (int i = 0; i < 4; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        must(pthread_create(&thread[i], NULL, many, &comm[i]) == 0, "a thread");
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(thread[i], NULL);
        MPI_Comm_free(&comm[i]);
    }
}

static void messages(void)
{
    int got = -1;
    int to = (run.rank + 1) % run.world;
    MPI_Sendrecv(&run.rank, 1, MPI_INT, to, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(got >= 0, "no message");
}

/* One of each of the others. */
static void others(void)
{
    int n = run.world;
    int one[3] = {1, 2, 3};
    int *all = room((size_t)n * 4);
    int *counts = room((size_t)n);
    int *at = room((size_t)n);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype triple;
    for (int i = 0; i < n; i++) {
        counts[i] = i == 0 ? 2 : 1;
        at[i] = i == 0 ? 0 : i + 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
    MPI_Bcast(one, 3, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Reduce(one, all, 3, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(one, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 1, MPI_INT, one, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(one, run.rank == 0 ? 2 : 1, MPI_INT, all, counts, at,
                   MPI_INT, MPI_COMM_WORLD);
    MPI_Gatherv(one, run.rank == 0 ? 2 : 1, MPI_INT, all, counts, at, MPI_INT,
                0, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT,
                 MPI_COMM_WORLD);
    MPI_Scan(one, all, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(one, all, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Allgather(one, 1, triple, all, 1, triple, MPI_COMM_WORLD);
    MPI_Type_free(&triple);
    free(all);
    free(counts);
    free(at);
}

static void have_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        void *p = malloc(3 << 20);
        _exit(!p);
    }
    int status = 0;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
         "the child failed");
}

static void refused(void)
{
    float x = 0.0f;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    must(MPI_Bcast(&x, 1, MPI_FLOAT, 4711, MPI_COMM_WORLD) != MPI_SUCCESS,
         "a wrong root was taken");
}

static void begin(void)
{
    int provided = 0;
    if (asked("threads")) {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(NULL, NULL);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.world);
    run.shards = run.world;
    run.shard_comm = MPI_COMM_WORLD;
    run.replica_comm = MPI_COMM_SELF;
    if (asked("threads") && provided < MPI_THREAD_MULTIPLE) {
        puts("no MPI_THREAD_MULTIPLE");
    }
    if (asked("hybrid")) {
        MPI_Comm all;
        run.shards = run.world / 2;
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
        MPI_Comm_split(all, run.rank / run.shards, run.rank, &run.shard_comm);
        MPI_Comm_split(all, run.rank % run.shards, run.rank, &run.replica_comm);
    }
    MPI_Comm_rank(run.shard_comm, &run.me);
    for (int u = 0; u < run.n_units; u++) {
        run.shard[u] = room((size_t)chunk(u));
        run.reduced[u] = room((size_t)chunk(u));
        for (int i = 0; i < chunk(u); i++) {
            run.shard[u][i] = (float)(run.me + u);
        }
    }
}

int main(int argc, char **argv)
{
    run.argc = argc;
    run.argv = argv;
    if (argc < 3) {
        fputs("usage: plain_fsdp UNITS STEPS [WHAT ...]\n", stderr);
        return 64;
    }
    for (char *word = strtok(argv[1], ","); word && run.n_units < MOST_UNITS;
         word = strtok(NULL, ",")) {
        run.unit[run.n_units++] = atoi(word);
    }
    run.steps = atoi(argv[2]);
    begin();
    for (int s = 0; s < run.steps; s++) {
        if (asked("marks")) {
            MPI_Pcontrol(s);
        }
        step(s);
    }
    if (asked("threads")) {
        threads();
    }
    if (asked("messages")) {
        messages();
    }
    if (asked("others")) {
        others();
    }
    if (asked("child")) {
        have_child();
    }
    if (asked("refused")) {
        refused();
    }
    if (asked("leave")) {
        MPI_Barrier(MPI_COMM_WORLD);
        exit(0); /* without MPI_Finalize */
    }
    for (int u = 0; u < run.n_units; u++) {
        free(run.shard[u]);
        free(run.reduced[u]);
    }
    MPI_Finalize();
    return 0;
}
