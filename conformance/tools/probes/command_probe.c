/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_probe.c - reads the logs of probes (docs/probes.md), and judges the
 * counts and bytes of a program that uses nothing of ours.
 */
#include "cases/case.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "tools/probes/probe_launch.h"
#include "tools/probes/probe_show.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: fsdp-cts probe LOG ... [OPTION ...]\n"
    "       fsdp-cts probe --torch FOLDER PROGRAM [ARGUMENT ...]\n\n"
    "LOG: a log that a probe wrote, or a folder of them. Prints the "
    "collectives of\neach rank by kind, type and size, and the peaks of its "
    "memory. With --units the\nprogram is judged: each rank must have made the "
    "collectives of such a model, no\nmore. --torch starts a program of "
    "PyTorch as it is, whose ranks write logs into\nFOLDER. See "
    "docs/probes.md.\n\n"
    "example:\n"
    "  fsdp-cts probe --torch logs torchrun --nproc-per-node 2 train.py\n"
    "  fsdp-cts probe logs/ --units 4160x2 --steps 3 --in-steps\n"
    "\n"
    "  --units N,...        elements of each unit, in the order of the "
    "forward;\n"
    "                       NxTIMES for equal ones\n"
    "  --steps N            training steps of the run (with --units)\n"
    "  --strategy S         full-shard (default), shard-grad-op, no-shard,\n"
    "                       hybrid-shard or hybrid-shard-zero2\n"
    "  --replicas R         of the two hybrid ones\n"
    "  --keep-root          the first unit is not resharded after its forward\n"
    "  --sync LETTERS       a letter a microbatch: s reduced, n not (s)\n"
    "  --dtype D            of parameters, as f32 (default), bf16, u8\n"
    "  --reduce-dtype D     of gradients (that of parameters)\n"
    "  --also KIND:N:CALLS[:D]\n"
    "                       what else each rank does in the whole run, over "
    "all\n"
    "                       ranks, as all-reduce:1:10 for ten losses\n"
    "  --in-steps           look only at what is between a mark 'step N' and "
    "its\n"
    "                       'after step N', or the next step\n"
    "  --messages-ok        there may be messages beside the collectives\n"
    "  --peak-at-most BYTES of each log of memory\n"
    "  --json               print JSON\n"
    "  --help               this text\n\n"
    "exit: 0 as expected, or nothing was; 1 not as expected; 2 a rank has no "
    "log, or\na log no end; 64 usage error; 65 bad data\n";

struct options {
    struct probe_expect expect;
    uint64_t peak;
    bool judges, json;
};

static int refuse(const char *what, const char *value, const char *right)
{
    fprintf(stderr, "fsdp-cts probe: %s '%.80s': %s\n", what, value, right);
    return EXIT_USAGE;
}

/* The number that text begins with, up to one of the characters in `stop`. */
static bool number(const char **text, const char *stop, uint64_t most,
                   uint64_t *out)
{
    char *end = NULL;

    if (**text < '0' || **text > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *out <= most && strchr(stop, *end);
}

static bool whole_number(const char *text, uint64_t least, uint64_t most,
                         uint64_t *out)
{
    return number(&text, "", most, out) && *out >= least;
}

static int parse_units(const char *value, struct probe_expect *e)
{
    static const char right[] =
        "elements of at most 4096 units were expected, as 4096,1024x8";
    const uint64_t most = (uint64_t)1 << 48;
    const char *at = value;

    e->n_units = 0;
    for (;;) {
        uint64_t n = 0;
        uint64_t times = 1;
        if (!number(&at, "x,", most, &n) ||
            (*at == 'x' &&
             (at++, !number(&at, ",", PROBE_MAX_UNITS, &times))) ||
            times == 0 || times > PROBE_MAX_UNITS - e->n_units) {
            return refuse("--units", value, right);
        }
        while (times-- > 0) {
            e->unit[e->n_units++] = n;
        }
        if (*at == '\0') {
            return 0;
        }
        at++;
    }
}

static bool find_name(const char *(*name)(uint32_t), uint32_t n,
                      const char *text, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strlen(name(i)) == length && strncmp(name(i), text, length) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static int parse_dtype(const char *what, const char *value, uint32_t *out)
{
    return find_name(probe_dtype_name, PROBE_N_DTYPES, value, strlen(value),
                     out)
               ? 0
               : refuse(what, value, "a type as f32, bf16 or u8 was expected");
}

static int parse_also(const char *value, struct probe_expect *e)
{
    static const char right[] = "KIND:N:CALLS[:TYPE] was expected, as "
                                "all-reduce:1:10 or broadcast:64:1:i32";
    const char *at = strchr(value, ':');
    struct probe_count *c = &e->also[e->n_also];

    if (e->n_also == PROBE_MAX_ALSO || !at ||
        !find_name(probe_kind_name, PROBE_N_KINDS, value, (size_t)(at - value),
                   &c->kind) ||
        (at++, !number(&at, ":", (uint64_t)1 << 48, &c->n)) || *at != ':' ||
        (at++, !number(&at, ":", UINT32_MAX, &c->calls))) {
        return refuse("--also", value, right);
    }
    c->dtype = c->kind == PROBE_BARRIER ? PROBE_NONE : PROBE_F32;
    if (*at == ':' && !find_name(probe_dtype_name, PROBE_N_DTYPES, at + 1,
                                 strlen(at + 1), &c->dtype)) {
        return refuse("--also", value, right);
    }
    e->n_also++;
    return 0;
}

static int parse_strategy(const char *value, struct probe_expect *e)
{
    uint32_t strategy = 0;

    if (!case_value(case_strategy_name, value, &strategy)) {
        return refuse("--strategy", value,
                      "full-shard, shard-grad-op, no-shard, hybrid-shard or "
                      "hybrid-shard-zero2 was expected");
    }
    e->reshard =
        strstr(value, "full-shard") || strcmp(value, "hybrid-shard") == 0;
    e->shards = strcmp(value, "no-shard") != 0;
    return 0;
}

enum option_code {
    OPTION_UNITS = 256,
    OPTION_STEPS,
    OPTION_STRATEGY,
    OPTION_REPLICAS,
    OPTION_KEEP_ROOT,
    OPTION_SYNC,
    OPTION_DTYPE,
    OPTION_REDUCE_DTYPE,
    OPTION_ALSO,
    OPTION_MESSAGES_OK,
    OPTION_IN_STEPS,
    OPTION_PEAK,
    OPTION_JSON,
};

static int parse_option(int code, const char *value, struct options *o)
{
    struct probe_expect *e = &o->expect;
    uint64_t n = 0;

    switch (code) {
    case OPTION_UNITS:
        return parse_units(value, e);
    case OPTION_STEPS:
        return whole_number(value, 1, UINT32_MAX, &e->steps)
                   ? 0
                   : refuse("--steps", value, "a number from 1 was expected");
    case OPTION_STRATEGY:
        return parse_strategy(value, e);
    case OPTION_REPLICAS:
        if (!whole_number(value, 1, INT32_MAX, &n)) {
            return refuse("--replicas", value, "a number from 1 was expected");
        }
        e->replicas = (uint32_t)n;
        return 0;
    case OPTION_KEEP_ROOT:
        e->keep_root = true;
        return 0;
    case OPTION_SYNC:
        e->sync = value;
        return strspn(value, "sn") == strlen(value) && strlen(value) <= 64 &&
                       value[0] != '\0' && value[strlen(value) - 1] == 's'
                   ? 0
                   : refuse("--sync", value,
                            "letters s and n were expected, s the last");
    case OPTION_DTYPE:
        return parse_dtype("--dtype", value, &e->dtype);
    case OPTION_REDUCE_DTYPE:
        return parse_dtype("--reduce-dtype", value, &e->reduce_dtype);
    case OPTION_ALSO:
        return parse_also(value, e);
    case OPTION_MESSAGES_OK:
        e->messages_ok = true;
        return 0;
    case OPTION_IN_STEPS:
        e->in_steps = true;
        return 0;
    case OPTION_PEAK:
        return whole_number(value, 0, INT64_MAX, &o->peak)
                   ? 0
                   : refuse("--peak-at-most", value,
                            "a number of bytes was expected");
    default:
        o->json = true;
        return 0;
    }
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option rows[] = {
        {"units", required_argument, NULL, OPTION_UNITS},
        {"steps", required_argument, NULL, OPTION_STEPS},
        {"strategy", required_argument, NULL, OPTION_STRATEGY},
        {"replicas", required_argument, NULL, OPTION_REPLICAS},
        {"keep-root", no_argument, NULL, OPTION_KEEP_ROOT},
        {"sync", required_argument, NULL, OPTION_SYNC},
        {"dtype", required_argument, NULL, OPTION_DTYPE},
        {"reduce-dtype", required_argument, NULL, OPTION_REDUCE_DTYPE},
        {"also", required_argument, NULL, OPTION_ALSO},
        {"messages-ok", no_argument, NULL, OPTION_MESSAGES_OK},
        {"in-steps", no_argument, NULL, OPTION_IN_STEPS},
        {"peak-at-most", required_argument, NULL, OPTION_PEAK},
        {"json", no_argument, NULL, OPTION_JSON},
        {NULL, 0, NULL, 0}};
    struct probe_expect *e = &o->expect;
    int code;

    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, "", rows, NULL)) != -1) {
        if (code == '?') {
            return refuse("option", argv[optind - 1],
                          "unknown, or its value is missing or too much; see "
                          "--help");
        }
        int status = parse_option(code, optarg, o);
        if (status != 0) {
            return status;
        }
    }
    if (e->reduce_dtype == PROBE_NONE) {
        e->reduce_dtype = e->dtype;
    }
    o->judges = e->n_units > 0;
    if (o->judges != (e->steps > 0)) {
        return refuse("options", o->judges ? "--units" : "--steps",
                      "--units and --steps go together");
    }
    if (optind < argc) {
        return 0;
    }
    fprintf(stderr, "fsdp-cts probe: needs a LOG, or a folder of them; see: "
                    "fsdp-cts probe --help\n");
    return EXIT_USAGE;
}

static int say(const struct options *o, const struct probe_verdict *v)
{
    bool judged = o->judges || o->peak != PROBE_UNKNOWN;
    int code = v->differs      ? EXIT_NOT_CONFORMANT
               : v->incomplete ? EXIT_INCOMPLETE
                               : EXIT_CONFORMANT;

    for (uint32_t i = 0; i < v->n && i < PROBE_MAX_FINDINGS; i++) {
        printf("%s\n", v->finding[i]);
    }
    if (v->n > PROBE_MAX_FINDINGS) {
        printf("and %u more\n", v->n - PROBE_MAX_FINDINGS);
    }
    if (judged) {
        printf("%s\n", code == EXIT_CONFORMANT       ? "AS EXPECTED"
                       : code == EXIT_NOT_CONFORMANT ? "NOT AS EXPECTED"
                                                     : "INCOMPLETE");
    }
    return code;
}

static int say_json(const struct options *o, const struct probe_logs *logs,
                    const struct probe_verdict *v)
{
    json_t *findings = json_array();
    const char *verdict = v->differs      ? "not-as-expected"
                          : v->incomplete ? "incomplete"
                                          : "as-expected";
    int code = v->differs ? 1 : v->incomplete ? 2 : 0;

    for (uint32_t i = 0; i < v->n && i < PROBE_MAX_FINDINGS; i++) {
        (void)json_array_append_new(findings, json_string(v->finding[i]));
    }
    json_t *root =
        json_pack("{s:o, s:o, s:o}", "logs", probe_show_json(logs), "findings",
                  findings, "verdict",
                  o->judges || o->peak != PROBE_UNKNOWN ? json_string(verdict)
                                                        : json_null());
    if (!root || json_dumpf(root, stdout, JSON_INDENT(1)) != 0) {
        fprintf(stderr, "fsdp-cts probe: out of memory, or standard output "
                        "is closed\n");
        code = EXIT_BAD_DATA;
    }
    printf("\n");
    json_decref(root);
    return code;
}

static int probe(const struct options *o, const char *const *path, uint32_t n)
{
    struct fsdp_error error = {0};
    struct probe_logs logs;
    struct probe_verdict *verdict = calloc(1, sizeof(*verdict));
    int code = EXIT_BAD_DATA;
    int status =
        !verdict ? FSDP_ERR_NOMEM : probe_logs_read(path, n, &logs, &error);

    if (status == FSDP_OK) {
        status =
            probe_judge(&logs, o->judges ? &o->expect : NULL, o->peak, verdict);
    }
    if (status == FSDP_ERR_INVALID) {
        code = refuse("--replicas", "",
                      "the world's ranks are no multiple of them");
    } else if (status == FSDP_OK && o->json) {
        code = say_json(o, &logs, verdict);
    } else if (status == FSDP_OK) {
        status = probe_show_text(&logs);
        code = status == FSDP_OK ? say(o, verdict) : code;
    }
    if (status != FSDP_OK && status != FSDP_ERR_INVALID) {
        fprintf(stderr, "fsdp-cts: %s\n",
                error.message[0] ? error.message : fsdp_status_text(status));
    }
    if (verdict) {
        probe_logs_release(&logs);
    }
    free(verdict);
    return code;
}

int command_probe(int argc, char **argv)
{
    int code;
    struct options *o = calloc(1, sizeof(*o));

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        free(o);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--torch") == 0) {
        free(o);
        return probe_launch(argv + 2);
    }
    if (!o) {
        fprintf(stderr, "fsdp-cts: out of memory\n");
        return EXIT_BAD_DATA;
    }
    o->peak = PROBE_UNKNOWN;
    o->expect.sync = "s";
    o->expect.dtype = PROBE_F32;
    o->expect.replicas = 1;
    o->expect.reshard = true;
    o->expect.shards = true;
    code = parse(argc, argv, o);
    if (code == 0) {
        code = probe(o, (const char *const *)argv + optind,
                     (uint32_t)(argc - optind));
    }
    free(o);
    return code;
}
