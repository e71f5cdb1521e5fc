/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with the headers of the page: what a browser may do with them, and that it must not keep them. */
#ifndef CV_PAGE_REPLY_H
#define CV_PAGE_REPLY_H

#include <microhttpd.h>
#include <stddef.h>

#define CV_PAGE_JSON "application/json"

/* Takes `response`, which may be NULL. */
enum MHD_Result cv_page_reply(struct MHD_Connection *connection, unsigned status, const char *type,
                              struct MHD_Response *response);
/* The same for a page with a form, which may be sent to the page's own address. */
enum MHD_Result cv_page_reply_form(struct MHD_Connection *connection, unsigned status, const char *type,
                                   struct MHD_Response *response);
/* With a copy of the bytes. */
enum MHD_Result cv_page_reply_bytes(struct MHD_Connection *connection, unsigned status, const char *type,
                                    const void *bytes, size_t n);
/* With one line of text. */
enum MHD_Result cv_page_reply_line(struct MHD_Connection *connection, unsigned status, const char *line);

#endif
