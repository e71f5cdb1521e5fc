/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of privatizers, one a file. */
#ifndef CV_PRIVATIZER_CLASSES_H
#define CV_PRIVATIZER_CLASSES_H

#include "worker/privatizer/privatizer.h"

extern const struct cv_privatizer_class cv_privatizer_laplace;
extern const struct cv_privatizer_class cv_privatizer_none;
extern const struct cv_privatizer_class cv_privatizer_response;

#endif
