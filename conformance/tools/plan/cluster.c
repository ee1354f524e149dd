/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - reads clusters, and says how long a ring takes on their links.
 */
#include "tools/plan/cluster.h"

#include "record/record_internal.h"
#include "tools/plan/plan_bytes.h"
#include "tools/plan/presets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number from `least` on; not beyond what anything has. */
static bool read_number(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    double *const out = record_at(row, base);

    *out = json_number_value(v);
    if (!json_is_number(v) || !(*out <= 1e30) ||
        !(*out >= (double)row->least)) {
        return record_refuse(j, at, "a number from %u on was expected",
                             (unsigned)row->least);
    }
    return row->most == 0 || *out < (double)row->most ||
           record_refuse(j, at, "a number below %u was expected",
                         (unsigned)row->most);
}

static const struct record_type number = {read_number, NULL};

#define AT(member) RECORD_AT(struct cluster, member)
static const struct record_row rows[] = {
    {"version", &record_version, .most = CLUSTER_VERSION},
    {"name", &record_string, AT(name), .least = 1},
    {"source", &record_string, AT(source)},
    {"host_ranks", &record_u32, AT(host_ranks), .least = 1, .most = 65536},
    {"memory", &record_u64, AT(memory)},
    {"peak_flops", &number, AT(peak_flops), .least = 1},
    {"flops", &number, AT(flops), .least = 1},
    {"contention", &number, AT(contention), .most = 1},
    {"memory_bandwidth", &number, AT(memory_bandwidth), .least = 1},
    {"host_bandwidth", &number, AT(host_bandwidth), .least = 1},
    {"network_bandwidth", &number, AT(network_bandwidth), .least = 1},
    {"latency", &number, AT(latency)},
    {"host_step", &number, AT(host_step)},
    {"network_step", &number, AT(network_step)},
};
#undef AT
const struct record_table cluster_table = {RECORD_ROWS(rows), .prefix = ""};

int cluster_parse(const char *text, size_t bytes, const char *file,
                  struct cluster *out, struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    return record_parse(text, bytes, file, &cluster_table, NULL, out, error);
}

int cluster_open(const char *what, struct cluster *out,
                 struct fsdp_error *error)
{
    static const struct record_source from = {.where = "plan",
                                              .most = CLUSTER_MAX_BYTES};
    const char *const preset = preset_find(preset_clusters, what);
    char *text = NULL;
    size_t bytes = 0;
    int status;

    if (preset) {
        return cluster_parse(preset, strlen(preset), what, out, error);
    }
    status = record_read_file(what, &from, &text, &bytes, error);
    if (status == FSDP_OK) {
        status = cluster_parse(text, bytes, record_path_tail(what), out, error);
    }
    free(text);
    return status;
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t hosts_of(uint32_t ranks, uint32_t local)
{
    return local > 1 ? (ranks + local - 1) / local : ranks;
}

struct cluster_group cluster_shard_group(const struct cluster *c,
                                         uint32_t shards)
{
    const uint32_t local = at_most(shards, c->host_ranks);

    return (struct cluster_group){.ranks = shards,
                                  .hosts = hosts_of(shards, local),
                                  .sharing = c->host_ranks / local};
}

struct cluster_group cluster_replica_group(const struct cluster *c,
                                           uint32_t replicas, uint32_t shards)
{
    const uint32_t beside =
        shards >= c->host_ranks ? 1 : c->host_ranks / shards;
    const uint32_t local = at_most(replicas, beside);

    return (struct cluster_group){.ranks = replicas,
                                  .hosts = hosts_of(replicas, local),
                                  .sharing = at_most(shards, c->host_ranks)};
}

double cluster_seconds(const struct cluster *c, struct cluster_group group,
                       double bytes)
{
    const double n = group.ranks;
    const double hosts = group.hosts;
    double inside = 0.0;
    double between = 0.0;

    if (group.ranks <= 1) {
        return 0.0;
    }
    if (group.ranks > group.hosts) {
        inside = bytes * (n - 1.0) / n / c->host_bandwidth;
    }
    if (group.hosts > 1) {
        between = bytes * (hosts - 1.0) / hosts * group.sharing /
                  c->network_bandwidth;
    }
    return c->latency + (n - hosts) * c->host_step +
           (hosts - 1.0) * c->network_step + fmax(inside, between);
}
