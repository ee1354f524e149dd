/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_check.c - a model of one's own: has Python play it (check_model.py),
 * sharded and unsharded, and judges what that recorded.
 */
#include "checkpoint/folder_erase.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "record/record_internal.h"
#include "tools/check/own_judge.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: fsdp-cts check FILE.py [OPTION ...]\n"
    "       fsdp-cts check FOLDER [--json]\n\n"
    "Says whether your own PyTorch model, sharded your way, is trained as it "
    "would be\nwithout sharding. FILE.py has five functions: model(), "
    "batch(step, microbatch,\nrank), loss(model, batch), shard(model) and "
    "optimizer(model). The model is\ntrained sharded, with a process for each "
    "rank, on the CPU, and unsharded; the\ntwo are compared bit for bit. "
    "FOLDER: what --records kept of such a run. See\ndocs/check.md.\n\n"
    "example:\n"
    "  fsdp-cts check my_model.py --ranks 2 --python ~/venv/bin/python\n"
    "\n";

static const char ending[] =
    "\n"
    "exit: 0 conformant; 1 not conformant; 2 no verdict; 64 usage error, or no "
    "torch;\n65 FILE.py or records are not as they have to be; 74 output could "
    "not be written\n";

struct options {
    const char *python, *records;
    uint32_t ranks, timeout;
    bool json, list, help;
};

#define AT(field) .at = offsetof(struct options, field)

static const struct option_row rows[] = {
    {"ranks", "K", 0, "how many ranks there are, 2 to 8 (2)", option_number,
     AT(ranks), .least = 2, .most = 8},
    {"python", "PYTHON", 0, "a Python that has torch (python3)", option_text,
     AT(python)},
    {"timeout", "SECONDS", 0, "for each run (600)", option_number, AT(timeout),
     .least = 1, .most = 1000000},
    {"records", "FOLDER", 0,
     "keep what was recorded there; it must be empty or new", option_text,
     AT(records)},
    {"list", NULL, 0, "print the requirements", option_flag, AT(list)},
    {"json", NULL, 0, "print JSON", option_flag, AT(json)},
    {"help", NULL, 0, "this text", option_flag, AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

/* ---- Python ---- */

/* check_model.py, beside the program where it is installed, or in the tree
 * that it was built in. */
static bool find_script(char path[PATH_MAX])
{
    static const char *const beside[] = {
        "../share/fsdp-cts/check/check_model.py",
        "../../conformance/tools/check/check_model.py"};
    char self[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    if (!slash) {
        return false;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        if (snprintf(path, PATH_MAX, "%s/%s", self, beside[i]) < PATH_MAX &&
            access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* The program's own output is no part of the report. */
static void become(const struct options *o, const char *script,
                   const char *file, const char *folder)
{
    char ranks[16];
    char timeout[16];
    const char *const words[] = {o->python, script,  file,   "--ranks",
                                 ranks,     "--out", folder, "--timeout",
                                 timeout,   NULL};

    snprintf(ranks, sizeof(ranks), "%u", o->ranks);
    snprintf(timeout, sizeof(timeout), "%u", o->timeout);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    execvp(o->python, (char *const *)words);
    fprintf(stderr,
            "fsdp-cts check: %.200s: %s; --python names one that has "
            "torch\n",
            o->python, strerror(errno));
    _exit(EXIT_USAGE);
}

static int play(const struct options *o, const char *file, const char *folder)
{
    char script[PATH_MAX];
    int status = 0;
    pid_t pid;

    if (!find_script(script)) {
        fprintf(stderr, "fsdp-cts check: check_model.py is neither in "
                        "../share/fsdp-cts/check beside this program nor in "
                        "its tree\n");
        return EXIT_USAGE;
    }
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        become(o, script, file, folder);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid > 0 && WIFEXITED(status)) {
        const int code = WEXITSTATUS(status);

        return code == 0 || code == EXIT_USAGE || code == EXIT_BAD_DATA
                   ? code
                   : EXIT_INCOMPLETE;
    }
    fprintf(stderr, "fsdp-cts check: Python was not started, or ended by a "
                    "signal\n");
    return EXIT_INCOMPLETE;
}

/* ---- Records ---- */

static int judge_folder(const struct options *o, const char *folder,
                        const char *name)
{
    struct fsdp_error error = {0};
    struct own_result result = {0};
    struct own_set s;
    int code = EXIT_BAD_DATA;
    int status = own_read(folder, &s, &error);

    if (status == FSDP_OK) {
        status = own_judge(&s, &result);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts check: %s\n",
                error.message[0] ? error.message : fsdp_status_text(status));
    } else if (!o->json) {
        own_print(&s, &result, name);
        code = (int)result.verdict;
    } else {
        code = own_print_json(&s, &result, name) ? (int)result.verdict
                                                 : EXIT_OUTPUT;
    }
    own_result_release(&result);
    own_release(&s);
    return code;
}

/* A folder for records: one that was named, or one that goes again. */
static int open_folder(const struct options *o, char folder[PATH_MAX])
{
    const char *tmp = getenv("TMPDIR");
    int n;

    if (!o->records) {
        n = snprintf(folder, PATH_MAX, "%s/fsdp-cts-check-XXXXXX",
                     tmp && tmp[0] ? tmp : "/tmp");
        if (n < PATH_MAX && mkdtemp(folder)) {
            return 0;
        }
        fprintf(stderr, "fsdp-cts check: %.200s: %s\n", folder,
                strerror(errno));
        return EXIT_OUTPUT;
    }
    n = snprintf(folder, PATH_MAX, "%s", o->records);
    if (n >= PATH_MAX ||
        (mkdir(folder, 0777) != 0 &&
         (errno != EEXIST || rmdir(folder) != 0 || mkdir(folder, 0777) != 0))) {
        return option_refuse("--records '%.200s': must be a new or an empty "
                             "folder",
                             o->records);
    }
    return 0;
}

static int check_file(const struct options *o, const char *file)
{
    char folder[PATH_MAX];
    int code;

    if (access(file, R_OK) != 0) {
        fprintf(stderr, "fsdp-cts check: %.200s: %s\n", file, strerror(errno));
        return EXIT_BAD_DATA;
    }
    code = open_folder(o, folder);
    if (code != 0) {
        return code;
    }
    code = play(o, file, folder);
    if (code == 0) {
        code = judge_folder(o, folder, file);
    }
    if (!o->records) {
        folder_erase(folder);
    }
    return code;
}

static int print_list(void)
{
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        printf("%-21s %s\n", own_requirements[i].id, own_requirements[i].text);
    }
    return 0;
}

int command_check(int argc, char **argv)
{
    struct options o = {.python = "python3", .ranks = 2, .timeout = 600};
    struct stat s;
    int rest;
    const int code = options_read(&table, argc, argv, &o, &rest);

    if (code != 0) {
        return code;
    }
    if (o.help) {
        fputs(usage, stdout);
        options_help(&table);
        fputs(ending, stdout);
        return 0;
    }
    if (o.list) {
        return print_list();
    }
    if (rest != argc - 1) {
        return option_refuse("needs one FILE.py, or a folder of records; see: "
                             "fsdp-cts check --help");
    }
    if (stat(argv[rest], &s) == 0 && S_ISDIR(s.st_mode)) {
        return judge_folder(&o, argv[rest], argv[rest]);
    }
    return check_file(&o, argv[rest]);
}
