/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_cover.h - as few cases as still have each part of the ids.
 */
#ifndef FSDP_CTS_SELECTION_COVER_H
#define FSDP_CTS_SELECTION_COVER_H

#include "cases/case.h"

/* Of a list that has cases keeps, in their order, some whose ids have all
 * parts, between the points, that the ids of the list have; each that is kept
 * has one that those chosen before it lack. FSDP_OK, or FSDP_ERR_NOMEM: the
 * list is as before. */
int selection_cover(struct case_list *list);

#endif
