/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presets.h - descriptions that are built into the program: the files of
 * models/ and clusters/, by their names without ".json".
 */
#ifndef FSDP_CTS_PRESETS_H
#define FSDP_CTS_PRESETS_H

struct preset {
    const char *name;
    const char *text; /* JSON */
};

/* NULL-ended. */
extern const struct preset preset_models[];
extern const struct preset preset_clusters[];

/* NULL: there is none of this name. */
const char *preset_find(const struct preset *list, const char *name);

#endif
