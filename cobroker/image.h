/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the core's changed state into a batch, and reads arms back. */
#ifndef CV_COBROKER_IMAGE_H
#define CV_COBROKER_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"

struct cv_cobroker;
struct cv_cobroker_batch;
struct cv_cobroker_campaign;

enum { CV_COBROKER_FOLD_CHUNKS = 4 /* chunks written per commit, at least, when the journal is long */ };

/* Adds everything that changed since the last batch, and from then on treats it as stored. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_image_fill(struct cv_cobroker *core, struct cv_cobroker_batch *batch);
/* Reads an arm from its image. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_image_read_arm(struct cv_cobroker_campaign *campaign, uint32_t arm,
                                                   struct cv_reader *in);
/* Whether all places of the chunk belong to plans before the last one. */
bool cv_cobroker_places_are_past(const struct cv_cobroker_campaign *campaign, uint64_t chunk);
/* Drops the chunks of places that a new plan has made superfluous; stored ones are deleted in the course of time. */
void cv_cobroker_places_drop(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign);

#endif
