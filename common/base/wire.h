/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a message schema to a connection: converts between bytes and frames. Each codec defines one such
 * table; connections need nothing else to handle a schema.
 */
#ifndef CV_BASE_WIRE_H
#define CV_BASE_WIRE_H

#include <stdbool.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

/* The reason in the goodbye of a party from which another process with the same name takes over: its peers connect
 * again, as after a lost connection, and repeat what was not answered. */
#define CV_GOODBYE_MOVED "moved"
static inline bool cv_goodbye_is_moved(const char *why) {
  return strcmp(why, CV_GOODBYE_MOVED) == 0;
}

/* A frame is a schema-specific struct of `frame_bytes` bytes. */
struct cv_wire {
  size_t frame_bytes;
  size_t arena_bytes; /* largest memory for decoding or encoding one envelope */
  /* Decodes one envelope. Resets the arena; the frame and its pointers are valid until the next reset.
   * CV_ERR_FORMAT, CV_ERR_LIMIT. */
  enum cv_err (*decode)(const void *bytes, size_t n, struct cv_arena *arena, void *ret_frame);
  /* Appends one envelope. CV_ERR_LIMIT if it would be too long, CV_ERR_NOMEM. */
  enum cv_err (*encode)(const void *frame, struct cv_arena *scratch, struct cv_buf *out);
  /* Makes a goodbye frame: the reason why the sender closes the connection, with a Hello of the program if this is its
   * first frame, else NULL. Both are borrowed. */
  void (*goodbye)(const char *why, const char *program, void *ret_frame);
  /*
   * Moves the content of one envelope from `rest`, a frame of any size, to `ret_part`, in sending order. Returns true
   * if `rest` is not empty afterwards. NULL: every frame fits into one envelope.
   */
  bool (*cut)(void *rest, void *ret_part);
};

#endif
