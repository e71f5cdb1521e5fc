/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a person may see it, too: on a terminal, or in a page. */
#ifndef CV_CONFIG_ESCAPE_H
#define CV_CONFIG_ESCAPE_H

#include <stddef.h>

/*
 * Writes a part of JSON text, of whole characters, to a stream: characters that turn the direction of a line, are
 * hidden or control a terminal (text.h) as escapes of JSON, so that a reader gets the same text. 0, or -1 if the stream
 * fails. A json_dump_callback_t of jansson.
 */
int cv_escape_json(const char *bytes, size_t n, void *stream);

#endif
