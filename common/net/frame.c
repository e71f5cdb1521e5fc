/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/frame.h"

/* An empty buffer larger than this is freed, so that one large frame does not keep its memory. */
enum { KEEP_BYTES = 64 * 1024 };

void cv_splitter_init(struct cv_splitter *splitter, size_t limit) {
  *splitter = (struct cv_splitter){.limit = limit};
}

void cv_splitter_fini(struct cv_splitter *splitter) {
  if (splitter != NULL) {
    cv_buf_fini(&splitter->kept);
  }
}

void cv_splitter_give(struct cv_splitter *splitter, const void *bytes, size_t n) {
  CV_REQUIRE(splitter->left == 0);
  splitter->at = bytes;
  splitter->left = n;
}

size_t cv_splitter_kept(const struct cv_splitter *splitter) {
  return splitter->kept.len - splitter->kept_at;
}

bool cv_splitter_holds(const struct cv_splitter *splitter) {
  return cv_splitter_kept(splitter) > 0;
}

static void forget_taken(struct cv_splitter *splitter) {
  /* A frame that was handed out lies in this buffer, and is read until the next call. */
  if (splitter->kept_at == 0 || cv_splitter_kept(splitter) > 0) {
    return;
  }
  splitter->kept_at = 0;
  if (splitter->kept.cap > KEEP_BYTES) {
    cv_buf_fini(&splitter->kept);
  } else {
    cv_buf_clear(&splitter->kept);
  }
}

/* Moves borrowed bytes to the kept ones until `want` are kept; false if there are fewer (then all are moved). */
static enum cv_err top_up(struct cv_splitter *splitter, size_t want) {
  size_t have = cv_splitter_kept(splitter);
  if (have >= want) {
    return CV_OK;
  }
  size_t n = want - have < splitter->left ? want - have : splitter->left;
  cv_buf_put(&splitter->kept, splitter->at, n);
  if (!cv_buf_ok(&splitter->kept)) {
    return CV_ERR_NOMEM;
  }
  splitter->at += n;
  splitter->left -= n;
  return have + n == want ? CV_OK : CV_ERR_NOT_FOUND;
}

static enum cv_err read_length(const struct cv_splitter *splitter, const uint8_t *header, size_t *ret_n,
                               struct cv_why *why) {
  size_t n = (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
  if (n == 0) {
    return cv_fail(why, CV_ERR_FORMAT, "frame of 0 bytes, expected at least 1");
  }
  /* Before any memory is reserved: the length is what the peer claims. */
  if (n > splitter->limit) {
    return cv_fail(why, CV_ERR_LIMIT, "frame of %zu bytes is over the limit of %zu", n, splitter->limit);
  }
  *ret_n = n;
  return CV_OK;
}

static enum cv_err next_kept(struct cv_splitter *splitter, const uint8_t **ret_bytes, size_t *ret_n,
                             struct cv_why *why) {
  size_t n;
  CV_TRY(top_up(splitter, CV_FRAME_HEADER));
  CV_TRY(read_length(splitter, splitter->kept.data + splitter->kept_at, &n, why));
  CV_TRY(top_up(splitter, CV_FRAME_HEADER + n));
  *ret_bytes = splitter->kept.data + splitter->kept_at + CV_FRAME_HEADER;
  *ret_n = n;
  splitter->kept_at += CV_FRAME_HEADER + n;
  return CV_OK;
}

enum cv_err cv_splitter_next(struct cv_splitter *splitter, const uint8_t **ret_bytes, size_t *ret_n,
                             struct cv_why *why) {
  forget_taken(splitter);
  enum cv_err err;
  /* A frame that is complete in the received bytes is handed out without being copied. */
  if (cv_splitter_kept(splitter) > 0) {
    err = next_kept(splitter, ret_bytes, ret_n, why);
  } else if (splitter->left < CV_FRAME_HEADER) {
    err = CV_ERR_NOT_FOUND;
  } else {
    size_t n = 0;
    err = read_length(splitter, splitter->at, &n, why);
    if (err == CV_OK && splitter->left - CV_FRAME_HEADER < n) {
      err = CV_ERR_NOT_FOUND;
    }
    if (err == CV_OK) {
      *ret_bytes = splitter->at + CV_FRAME_HEADER;
      *ret_n = n;
      splitter->at += CV_FRAME_HEADER + n;
      splitter->left -= CV_FRAME_HEADER + n;
    }
  }
  return err == CV_ERR_NOMEM ? cv_fail(why, err, "no memory for a frame") : err;
}

enum cv_err cv_splitter_keep(struct cv_splitter *splitter) {
  forget_taken(splitter);
  cv_buf_put(&splitter->kept, splitter->at, splitter->left);
  splitter->at = NULL;
  splitter->left = 0;
  return cv_buf_ok(&splitter->kept) ? CV_OK : CV_ERR_NOMEM;
}

void cv_frame_header(uint8_t header[CV_FRAME_HEADER], size_t n) {
  CV_REQUIRE(n > 0 && n <= UINT32_MAX);
  header[0] = (uint8_t)(n >> 24);
  header[1] = (uint8_t)(n >> 16);
  header[2] = (uint8_t)(n >> 8);
  header[3] = (uint8_t)n;
}
