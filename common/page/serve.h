/* SPDX-License-Identifier: Apache-2.0 */
/* What every page answers alike: its link, and its static files. */
#ifndef CV_PAGE_SERVE_H
#define CV_PAGE_SERVE_H

#include <microhttpd.h>

#include "common/page/door.h"
#include "common/page/files.h"

/* What the door asks of a request. */
struct cv_door_visit cv_page_visit(struct MHD_Connection *connection, const char *method);
/* Answers the link: sets the cookie, and takes the token out of the address bar. */
enum MHD_Result cv_page_let_in(const struct cv_door *door, struct MHD_Connection *connection);
/* The file of that path ("/page.css"), or that there is none. */
enum MHD_Result cv_page_serve_file(const struct cv_page_files *files, struct MHD_Connection *connection,
                                   const char *path);

#endif
