/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the certificates that a CA has issued. */
#ifndef CV_LAUNCHER_PKI_LIST_H
#define CV_LAUNCHER_PKI_LIST_H

#include <stdbool.h>

#include "common/base/err.h"

/* Prints a table, oldest first, or one JSON object per line. Needs no key. CV_ERR_NOT_FOUND if there is no CA. */
CV_MUST_USE enum cv_err cv_pki_list_print(const char *ca_folder, bool json, struct cv_why *why);

#endif
