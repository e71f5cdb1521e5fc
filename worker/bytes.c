/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { CHUNK = 1 << 16, GZIP_ONLY = 15 + 16 };

static const char *const endings[] = {[CV_PACKING_NONE] = "", [CV_PACKING_GZIP] = ".gz", [CV_PACKING_ZSTD] = ".zst"};

struct cv_bytes_unpacker {
  enum cv_packing packing;
  int fd;
  bool has_gzip;
  z_stream gzip;
  gz_header header; /* of the current gzip member */
  ZSTD_DCtx *zstd;
  ZSTD_inBuffer packed; /* in `in` */
  uint64_t packed_end;  /* the place in the file of the end of `packed` */
  uint64_t begin;       /* the place in the file where the current part, a gzip member or zstd frame, begins */
  bool is_inside;       /* a part has begun and not ended */
  uint8_t in[CHUNK], out[CHUNK];
};

enum cv_packing cv_bytes_packing(const char *path) {
  size_t n = strlen(path);
  for (enum cv_packing packing = CV_PACKING_GZIP; packing <= CV_PACKING_ZSTD; packing++) {
    size_t ending = strlen(endings[packing]);
    if (n >= ending && strcmp(path + n - ending, endings[packing]) == 0) {
      return packing;
    }
  }
  return CV_PACKING_NONE;
}

/* ---- opening ---- */

static enum cv_err open_file(const char *path, int *ret_fd, struct cv_why *why) {
  struct stat about;
  /* Not to wait for a writer if it is a pipe. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  }
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    (void)close(fd);
    return cv_fail(why, CV_ERR_IO, "%s: not a regular file; expected a file with rows", path);
  }
  *ret_fd = fd;
  return CV_OK;
}

static void free_unpacker(struct cv_bytes_unpacker *unpacker) {
  if (unpacker == NULL) {
    return;
  }
  if (unpacker->has_gzip) {
    (void)inflateEnd(&unpacker->gzip);
  }
  (void)ZSTD_freeDCtx(unpacker->zstd);
  (void)close(unpacker->fd);
  free(unpacker);
}

static enum cv_err make_unpacker(enum cv_packing packing, int fd, struct cv_bytes_unpacker **ret) {
  struct cv_bytes_unpacker *unpacker = calloc(1, sizeof(*unpacker));
  if (unpacker == NULL) {
    (void)close(fd);
    return CV_ERR_NOMEM;
  }
  unpacker->packing = packing;
  unpacker->fd = fd;
  unpacker->packed.src = unpacker->in;
  if (packing == CV_PACKING_GZIP) {
    unpacker->has_gzip = inflateInit2(&unpacker->gzip, GZIP_ONLY) == Z_OK;
  } else if (packing == CV_PACKING_ZSTD) {
    unpacker->zstd = ZSTD_createDCtx();
  }
  if ((packing == CV_PACKING_GZIP && !unpacker->has_gzip) || (packing == CV_PACKING_ZSTD && unpacker->zstd == NULL)) {
    free_unpacker(unpacker);
    return CV_ERR_NOMEM;
  }
  *ret = unpacker;
  return CV_OK;
}

enum cv_err cv_bytes_open(const char *path, enum cv_packing packing, uint64_t most, struct cv_bytes *ret,
                          struct cv_why *why) {
  struct cv_bytes bytes = {.path = path, .most = most};
  int fd = -1;
  CV_TRY(open_file(path, &fd, why));
  if (make_unpacker(packing, fd, &bytes.unpacker) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  *ret = bytes;
  return CV_OK;
}

void cv_bytes_close(struct cv_bytes *bytes) {
  free_unpacker(bytes->unpacker);
  *bytes = (struct cv_bytes){0};
}

/* ---- chunks: each function writes to `out` and returns the number of bytes, 0 at the end or at an error ---- */

static size_t read_plain(struct cv_bytes *bytes, uint8_t *to) {
  ssize_t n;
  do {
    n = read(bytes->unpacker->fd, to, CHUNK);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    bytes->err = cv_fail(&bytes->why, CV_ERR_IO, "%s: cannot be read: %s", bytes->path, strerror(errno));
  }
  return n > 0 ? (size_t)n : 0;
}

static void set_damaged(struct cv_bytes *bytes, const char *reason) {
  bytes->err = cv_fail(&bytes->why, CV_ERR_DAMAGED, "%s: damaged after %llu unpacked bytes: %s", bytes->path,
                       (unsigned long long)bytes->before, reason);
}

static void set_short(struct cv_bytes *bytes) {
  bytes->err = cv_fail(&bytes->why, CV_ERR_DAMAGED,
                       "%s: the file ends in the middle, after %llu unpacked bytes; expected the whole file",
                       bytes->path, (unsigned long long)bytes->before);
}

static void set_strange(struct cv_bytes *bytes, const char *format) {
  bytes->err = cv_fail(&bytes->why, CV_ERR_DAMAGED, "%s: not a %s file; expected one, as its name ends in %s",
                       bytes->path, format, endings[bytes->unpacker->packing]);
}

/* No part begins where one would have to: the file is another one, or something follows its last part. */
static void set_no_part(struct cv_bytes *bytes, const char *format) {
  if (bytes->unpacker->begin == 0) {
    set_strange(bytes, format);
    return;
  }
  bytes->err =
      cv_fail(&bytes->why, CV_ERR_DAMAGED,
              "%s: damaged: at byte %llu, where a %s stream has ended, no whole other one begins; expected the end of "
              "the file there",
              bytes->path, (unsigned long long)bytes->unpacker->begin + 1, format);
}

/* Reads packed bytes if none are left, and notes where a part begins; false if there are none, at the end or at an
 * error. */
static bool read_packed(struct cv_bytes *bytes) {
  struct cv_bytes_unpacker *unpacker = bytes->unpacker;
  ZSTD_inBuffer *packed = &unpacker->packed;
  if (packed->pos == packed->size) {
    packed->size = read_plain(bytes, unpacker->in);
    packed->pos = 0;
    unpacker->packed_end += packed->size;
  }
  if (!unpacker->is_inside) {
    unpacker->begin = unpacker->packed_end - (packed->size - packed->pos);
  }
  return packed->size > 0;
}

/* ---- gzip ---- */

static void set_gzip_error(struct cv_bytes *bytes, int code) {
  const struct cv_bytes_unpacker *unpacker = bytes->unpacker;
  if (code == Z_MEM_ERROR) {
    bytes->err = cv_fail(&bytes->why, CV_ERR_NOMEM, "%s: out of memory", bytes->path);
  } else if (unpacker->header.done != 1 && (code != Z_BUF_ERROR || unpacker->begin > 0)) {
    set_no_part(bytes, "gzip");
  } else if (code == Z_BUF_ERROR) {
    set_short(bytes);
  } else {
    set_damaged(bytes, unpacker->gzip.msg == NULL ? "not as gzip packs" : unpacker->gzip.msg);
  }
}

/* Unpacks the packed bytes that are there; the code of inflate(). */
static int inflate_some(struct cv_bytes_unpacker *unpacker) {
  z_stream *gzip = &unpacker->gzip;
  if (!unpacker->is_inside) {
    unpacker->header = (gz_header){0};
    if (inflateReset(gzip) != Z_OK || inflateGetHeader(gzip, &unpacker->header) != Z_OK) {
      return Z_STREAM_ERROR;
    }
  }
  gzip->next_in = unpacker->in + unpacker->packed.pos;
  gzip->avail_in = (uInt)(unpacker->packed.size - unpacker->packed.pos);
  int code = inflate(gzip, Z_NO_FLUSH);
  unpacker->packed.pos = unpacker->packed.size - gzip->avail_in;
  unpacker->is_inside = code != Z_STREAM_END;
  return code;
}

static size_t unpack_gzip(struct cv_bytes *bytes) {
  struct cv_bytes_unpacker *unpacker = bytes->unpacker;
  z_stream *gzip = &unpacker->gzip;
  gzip->next_out = unpacker->out;
  gzip->avail_out = CHUNK;
  while (gzip->avail_out > 0) {
    /* At the end of the file the decoder may still hold unpacked bytes back. */
    bool has_input = read_packed(bytes);
    if (bytes->err != CV_OK || (!has_input && !unpacker->is_inside)) {
      break;
    }
    int code = inflate_some(unpacker);
    if (code != Z_OK && code != Z_STREAM_END) {
      set_gzip_error(bytes, code);
      break;
    }
  }
  if (bytes->err == CV_OK && unpacker->packed_end == 0) {
    set_strange(bytes, "gzip"); /* an empty file has no member */
  }
  return CHUNK - gzip->avail_out;
}

/* ---- zstd ---- */

static void set_zstd_error(struct cv_bytes *bytes, size_t code) {
  switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_prefix_unknown:
      set_no_part(bytes, "zstd");
      break;
    case ZSTD_error_memory_allocation:
      bytes->err = cv_fail(&bytes->why, CV_ERR_NOMEM, "%s: out of memory", bytes->path);
      break;
    case ZSTD_error_frameParameter_windowTooLarge:
      bytes->err = cv_fail(&bytes->why, CV_ERR_LIMIT,
                           "%s: needs a window of more than 128 MiB to unpack; expected a file packed without --long",
                           bytes->path);
      break;
    default:
      set_damaged(bytes, ZSTD_getErrorName(code));
      break;
  }
}

static size_t unpack_zstd(struct cv_bytes *bytes) {
  struct cv_bytes_unpacker *unpacker = bytes->unpacker;
  ZSTD_outBuffer out = {.dst = unpacker->out, .size = CHUNK};
  while (out.pos < out.size) {
    /* At the end of the file the decoder may still hold unpacked bytes back. */
    bool has_input = read_packed(bytes);
    if (bytes->err != CV_OK || (!has_input && !unpacker->is_inside)) {
      break;
    }
    size_t pos = out.pos, code = ZSTD_decompressStream(unpacker->zstd, &out, &unpacker->packed);
    if (ZSTD_isError(code)) {
      set_zstd_error(bytes, code);
      break;
    }
    unpacker->is_inside = code != 0;
    if (!has_input && unpacker->is_inside && out.pos == pos) {
      set_short(bytes);
      break;
    }
  }
  if (bytes->err == CV_OK && unpacker->packed_end == 0) {
    set_strange(bytes, "zstd"); /* an empty file has no frame */
  }
  return out.pos;
}

bool cv_bytes_fill(struct cv_bytes *bytes) {
  struct cv_bytes_unpacker *unpacker = bytes->unpacker;
  if (bytes->err != CV_OK) {
    return false;
  }
  size_t n = unpacker->packing == CV_PACKING_GZIP   ? unpack_gzip(bytes)
             : unpacker->packing == CV_PACKING_ZSTD ? unpack_zstd(bytes)
                                                    : read_plain(bytes, unpacker->out);
  if (unpacker->packing != CV_PACKING_NONE && n > bytes->most - bytes->before) {
    bytes->err = cv_fail(&bytes->why, CV_ERR_LIMIT, "%s: more than %llu MiB when unpacked; expected at most that",
                         bytes->path, (unsigned long long)(bytes->most >> 20));
    n = 0;
  }
  static const char mark[] = "\xef\xbb\xbf";
  bool is_marked = bytes->before == 0 && n >= 3 && memcmp(unpacker->out, mark, 3) == 0;
  bytes->before += n;
  bytes->at = unpacker->out + (is_marked ? 3 : 0);
  bytes->end = unpacker->out + n;
  return bytes->at < bytes->end;
}

enum cv_err cv_bytes_check(const struct cv_bytes *bytes, struct cv_why *why) {
  return bytes->err == CV_OK ? CV_OK : cv_fail(why, bytes->err, "%s", bytes->why.text);
}
