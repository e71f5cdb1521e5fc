/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the core's changed state into a batch. */
#ifndef CV_BROKER_IMAGE_H
#define CV_BROKER_IMAGE_H

#include <stdint.h>

#include "common/base/buf.h"

struct cv_broker;
struct cv_broker_batch;
struct cv_broker_campaign;

enum {
  CV_FOLD_CHUNKS = 4,   /* chunks written per commit when the journal is long */
  CV_CHARGES_TODAY = 1, /* last byte of a campaign's row; rows of version 0.1.0 lack it */
};

/* Adds everything that changed since the last batch, and from then on treats it as stored. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_image_fill(struct cv_broker *broker, struct cv_broker_batch *batch);
/* Reads an arm from the image in its chunk. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_image_read_arm(struct cv_broker_campaign *campaign, uint32_t arm, struct cv_reader *in);

#endif
