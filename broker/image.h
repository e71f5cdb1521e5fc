/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the core's changed state into a batch. */
#ifndef CV_BROKER_IMAGE_H
#define CV_BROKER_IMAGE_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/digest.h"

struct cv_arm;
struct cv_broker;
struct cv_broker_batch;
struct cv_broker_campaign;
struct cv_entry;

enum { CV_FOLD_CHUNKS = 4 }; /* chunks written per commit, at least, when the journal is long */

/* The number of an accepted place's arm, 26 bits, and of the arms that its token covers, less one, in the 6 bits above
 * them: as a journal row has them. */
uint32_t cv_entry_pack(const struct cv_entry *entry);
uint32_t cv_entry_arm(uint32_t packed);
uint32_t cv_entry_shown(uint32_t packed);
/* Whether the journal has the question of an accepted place: an arm does not say which pair was asked about. */
bool cv_entry_has_question(const struct cv_broker_campaign *campaign);

/* Adds everything that changed since the last batch, and from then on treats it as stored. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_image_fill(struct cv_broker *broker, struct cv_broker_batch *batch);
/* An arm's sum, and what is stored with it. */
struct cv_arm_sum {
  int64_t sum;
  struct cv_digest chain; /* with two brokers */
  int64_t neutral;        /* with gold items */
};
/* Reads and checks it. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_image_read_sum(const struct cv_broker_campaign *campaign, struct cv_reader *in,
                                          struct cv_arm_sum *ret);
void cv_image_set_sum(struct cv_broker_campaign *campaign, uint32_t arm, const struct cv_arm_sum *sum);
/* Reads an arm from the image in its chunk. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_image_read_arm(struct cv_broker_campaign *campaign, uint32_t arm, struct cv_reader *in);

/* In a stored standing's reason for being held: its limits contradict each other. */
enum { CV_STANDING_CONTRADICTS = 0x80 };

#endif
