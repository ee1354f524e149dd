/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h - which version of the suite this is.
 */
#ifndef FSDP_CTS_VERSION_H
#define FSDP_CTS_VERSION_H

const char *version_text(void);

/* The commit that was built, 40 hexadecimal digits; "unknown" outside of a
 * repository. */
const char *version_commit(void);

#endif
