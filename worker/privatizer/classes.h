/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of the rows of common/base/local.h, one a file. */
#ifndef CV_PRIVATIZER_CLASSES_H
#define CV_PRIVATIZER_CLASSES_H

#include "worker/privatizer/privatizer.h"

/* cv_privatizer_none, ... */
#define CV_PRIVATIZER_DECLARED(file, ...) extern const struct cv_privatizer_class cv_privatizer_##file;
CV_LOCALS(CV_PRIVATIZER_DECLARED)
#undef CV_PRIVATIZER_DECLARED

#endif
