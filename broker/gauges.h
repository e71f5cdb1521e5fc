/* SPDX-License-Identifier: Apache-2.0 */
/* A broker's own metrics. Campaigns appear by number and requesters not at all: names are chosen by others, and a
 * monitoring system keeps every value of a label that it has ever seen. */
#ifndef CV_BROKER_GAUGES_H
#define CV_BROKER_GAUGES_H

#include "common/base/buf.h"
#include "common/base/refusals.h"

struct cv_broker;

/* The most open campaigns with metrics of their own, the oldest; crowdveil_campaigns_unlisted counts the others. */
enum { CV_BROKER_LISTED = 100 };

/* Appends the metrics; the network's refusals are added to the core's. */
void cv_broker_gauges_put(const struct cv_broker *broker, const struct cv_refusals *network, struct cv_buf *out);

#endif
