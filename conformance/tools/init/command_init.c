/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_init.c - a folder with an engine to start from: engine.c (.cpp,
 * .cu), which lacks four things, and the CMakeLists.txt that builds and tests
 * it. Nothing is ever overwritten.
 */
#include "cli/commands.h"
#include "cli/line/on_path.h"
#include "tools/init/engine_name.h"
#include "tools/init/skeleton.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__asm__(".section .rodata\n"
        ".global fsdp_cts_first_engine\n"
        "fsdp_cts_first_engine:\n"
        ".incbin \"" FSDP_FIRST_ENGINE "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char fsdp_cts_first_engine[];

struct language {
    const char *name, *file, *cmake; /* cmake: as project() calls it */
    const char *compiler; /* that has to be there; NULL: any machine has it */
    const char *variable; /* names another one */
};

static const struct language languages[] = {
    {"c", "engine.c", "C", NULL, NULL},
    {"c++", "engine.cpp", "CXX", NULL, NULL},
    {"cuda", "engine.cu", "CUDA", "nvcc", "CUDACXX"},
};

static void help(void)
{
    printf("usage: fsdp-cts init c|c++|cuda DIR\n\n"
           "Writes an engine to start from to DIR, which is made, or is empty, "
           "and after which\nit is named: a source that builds and lacks four "
           "things, each asked for by one "
           "level (fsdp-cts run --level),\nand a CMakeLists.txt with the "
           "suite's tests of it.\n\n"
           "example:\n"
           "  fsdp-cts init c mine\n"
           "  cmake -S mine -B mine/build && cmake --build mine/build\n"
           "  fsdp-cts run --engine mine/build/mine.so --level layout\n"
           "\nexit: 0 written, 64 usage error, 74 could not be written\n");
}

static int refuse(int code, const char *what, const char *why)
{
    fprintf(stderr, "fsdp-cts init: %s%s%s\n", what, why[0] ? ": " : "", why);
    return code;
}

static const struct language *find_language(const char *name)
{
    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (strcmp(languages[i].name, name) == 0) {
            return &languages[i];
        }
    }
    return NULL;
}

/* Made, or there and empty. */
static int check_folder(const char *path)
{
    DIR *folder;
    const struct dirent *entry;
    bool empty = true;

    if (mkdir(path, 0777) == 0) {
        return 0;
    }
    if (errno != EEXIST) {
        return refuse(EXIT_OUTPUT, path, strerror(errno));
    }
    folder = opendir(path);
    if (!folder) {
        return refuse(EXIT_USAGE, path, strerror(errno));
    }
    while (empty && (entry = readdir(folder))) {
        empty =
            strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    (void)closedir(folder);
    return empty ? 0
                 : refuse(EXIT_USAGE, path,
                          "there are files in it, and none is overwritten");
}

static FILE *create(const char *folder, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >=
        (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "wxe");
}

/* The engine's own head, then the text behind the head that it has here. */
static int write_engine(const struct language *l, const char *engine, FILE *f)
{
    const char *text = strstr(fsdp_cts_first_engine, "#include");
    char *skeleton = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&skeleton, &bytes);

    if (!memory) {
        return -1;
    }
    (void)skeleton_write(text, 0, memory);
    if (fclose(memory) != 0) {
        free(skeleton);
        return -1;
    }
    fprintf(
        f,
        "/*\n"
        " * %s - an FSDP engine, as `fsdp-cts init %s` wrote it. It builds, "
        "and lacks\n"
        " * four things, which are marked TO DO and named after the level "
        "that asks for\n"
        " * them. Fill in one after the other. What an engine must do: "
        "<fsdp/engine.h>.\n"
        " */\n",
        l->file, l->name);
    engine_name_write(skeleton, "first", engine, f);
    free(skeleton);
    return 0;
}

static int write_project(const struct language *l, const char *engine, FILE *f)
{
    fprintf(f,
            "# Builds the engine, and tests it:\n"
            "#   cmake -S . -B build -DCMAKE_PREFIX_PATH=<where fsdp-cts is "
            "installed>\n"
            "#   cmake --build build && ctest --test-dir build\n"
            "cmake_minimum_required(VERSION 3.25)\n"
            "project(%s LANGUAGES %s)\n"
            "find_package(fsdp-cts REQUIRED)\n"
            "enable_testing()\n\n"
            "add_library(%s MODULE %s)\n"
            "target_link_libraries(%s PRIVATE fsdp::api)\n"
            "target_compile_options(%s PRIVATE -O2 %s)\n"
            "set_target_properties(%s PROPERTIES PREFIX \"\")\n"
            "fsdp_cts_discover_tests(%s)\n",
            engine, l->cmake, engine, l->file, engine, engine,
            strcmp(l->cmake, "CUDA") == 0
                ? "--fmad=false\n    -Xcompiler=-ffp-contract=off"
                : "-ffp-contract=off",
            engine, engine);
    return 0;
}

static int write_files(const struct language *l, const char *folder,
                       const char *engine)
{
    int (*const write[])(const struct language *, const char *,
                         FILE *) = {write_engine, write_project};
    const char *const name[] = {l->file, "CMakeLists.txt"};

    for (int i = 0; i < 2; i++) {
        FILE *f = create(folder, name[i]);
        bool failed;

        if (!f) {
            return refuse(EXIT_OUTPUT, folder, strerror(errno));
        }
        failed = write[i](l, engine, f) != 0;
        if (fclose(f) != 0 || failed) {
            return refuse(EXIT_OUTPUT, folder, strerror(errno));
        }
    }
    return 0;
}

/* The prefix that this program is installed in; false: in none. */
static bool find_prefix(char prefix[PATH_MAX])
{
    char config[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", prefix, PATH_MAX - 1);
    char *end;

    prefix[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) { /* the program's name, and bin */
        end = strrchr(prefix, '/');
        if (!end) {
            return false;
        }
        *end = '\0';
    }
    snprintf(config, sizeof(config), "%s/include/fsdp/engine.h", prefix);
    return access(config, R_OK) == 0;
}

static void print_next(const struct language *l, const char *folder,
                       const char *engine)
{
    char prefix[PATH_MAX];
    char name[SKELETON_NAME_BYTES];
    const bool installed = find_prefix(prefix);

    printf("wrote %s/%s and %s/CMakeLists.txt\n\n", folder, l->file, folder);
    if (!installed) {
        printf("  cmake --install BUILD --prefix PREFIX    (the suite's own "
               "build folder)\n");
    }
    printf("  cmake -S %s -B %s/build -DCMAKE_PREFIX_PATH=%s\n"
           "  cmake --build %s/build\n"
           "  fsdp-cts run --engine %s/build/%s.so --level layout\n\n"
           "What is TO DO in %s, and the level that asks for it:\n",
           folder, folder, installed ? prefix : "PREFIX", folder, folder,
           engine, l->file);
    for (uint32_t i = 0; skeleton_name(fsdp_cts_first_engine, i, name); i++) {
        printf("  %u. %-10s --level %s\n", i + 1, name, name);
    }
    printf("Behind them, without --level, is CONFORMANT.\n");
}

int command_init(int argc, char **argv)
{
    const struct language *l;
    char engine[ENGINE_NAME_BYTES];
    int code;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        help();
        return 0;
    }
    if (argc != 3) {
        return refuse(EXIT_USAGE,
                      "needs a language and a folder; see: fsdp-cts init "
                      "--help",
                      "");
    }
    l = find_language(argv[1]);
    if (!l) {
        return refuse(EXIT_USAGE, argv[1],
                      "no language that there is an engine in; there are c, "
                      "c++ and cuda");
    }
    if (l->compiler && !getenv(l->variable) && !is_on_path(l->compiler)) {
        fprintf(stderr,
                "fsdp-cts init: %s needs %s, which is not in PATH; %s names "
                "another one\n",
                l->name, l->compiler, l->variable);
        return EXIT_USAGE;
    }
    code = check_folder(argv[2]);
    if (code != 0) {
        return code;
    }
    engine_name(argv[2], engine);
    code = write_files(l, argv[2], engine);
    if (code == 0) {
        print_next(l, argv[2], engine);
    }
    return code;
}
