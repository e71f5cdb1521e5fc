/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's column of the boundary view as JSON, for its admin socket. */
#ifndef CV_BROKER_SHOWING_H
#define CV_BROKER_SHOWING_H

#include "common/page/page.h"

struct cv_broker;

/* As `boundary` of struct cv_page_ops; `id` is the broker's number of the campaign. */
enum cv_page_found cv_broker_showing(struct cv_broker *broker, uint64_t id, uint64_t arm, struct cv_buf *out);

#endif
