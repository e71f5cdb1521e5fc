/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a column of a data file by its name. */
#ifndef CV_WORKER_COLUMN_H
#define CV_WORKER_COLUMN_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_columns {
  uint32_t count;
  const char *(*name)(const void *data, uint32_t i);
  const void *data;
};

/* Sets *ret to the index of the column with this name. CV_ERR_INVALID if no column or several have it, with a message
 * that does not say where, such as: no column "score"; the columns are item, stars. */
CV_MUST_USE enum cv_err cv_column_find(const struct cv_columns *columns, const char *name, uint32_t *ret,
                                       struct cv_why *why);

#endif
