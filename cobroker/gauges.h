/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CV_COBROKER_GAUGES_H
#define CV_COBROKER_GAUGES_H

#include "common/base/buf.h"
#include "common/base/refusals.h"

struct cv_cobroker;

/* Appends the co-broker's metrics. `network` has the refusals of connections and frames. */
void cv_cobroker_gauges_put(const struct cv_cobroker *core, const struct cv_refusals *network, struct cv_buf *out);

#endif
