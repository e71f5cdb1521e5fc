/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin endpoint's /log-level:
 *   GET         the present level: "info"
 *   PUT, POST   the body is the new level; 200 and the level, or 400 and one line for anything else
 */
#ifndef CV_ADMIN_LEVEL_H
#define CV_ADMIN_LEVEL_H

#include <microhttpd.h>

/* The arguments are those of libmicrohttpd's handler. */
enum MHD_Result cv_admin_level(struct MHD_Connection *connection, const char *method, const char *upload,
                               size_t *upload_n, void **request);

#endif
