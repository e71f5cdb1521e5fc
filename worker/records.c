/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/records.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/array.h"
#include "common/base/text.h"

static enum cv_err fail_at(const struct cv_records *records, uint64_t line, struct cv_why *why, const char *text) {
  return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s", records->path, (unsigned long long)line, text);
}

enum cv_err cv_records_rewind(struct cv_records *records, struct cv_why *why) {
  static const char mark[] = "\xef\xbb\xbf";
  char head[3];
  if (fseek(records->file, 0, SEEK_SET) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot seek to the start: %s", records->path, strerror(errno));
  }
  /* Skip a UTF-8 byte order mark. */
  size_t n = fread(head, 1, sizeof(head), records->file);
  long skip = n == sizeof(head) && memcmp(head, mark, sizeof(head)) == 0 ? 3 : 0;
  if (ferror(records->file) || fseek(records->file, skip, SEEK_SET) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", records->path, strerror(errno));
  }
  records->line = 1;
  return CV_OK;
}

enum cv_err cv_records_open(const char *path, char delimiter, struct cv_records *ret, struct cv_why *why) {
  struct cv_records records = {.path = path, .delimiter = delimiter, .file = fopen(path, "re")};
  struct stat about;
  if (records.file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  }
  enum cv_err err = CV_OK;
  /* Read twice (csv.c): a pipe has nothing to give the second time. */
  if (fstat(fileno(records.file), &about) != 0 || !S_ISREG(about.st_mode)) {
    err = cv_fail(why, CV_ERR_IO, "%s: not a regular file; expected a file with rows", path);
  }
  records.at = calloc(CV_RECORDS_COLUMNS_MAX, sizeof(*records.at));
  if (err == CV_OK && records.at == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  if (err == CV_OK) {
    err = cv_records_rewind(&records, why);
  }
  if (err != CV_OK) {
    cv_records_close(&records);
    return err;
  }
  *ret = records;
  return CV_OK;
}

void cv_records_close(struct cv_records *records) {
  if (records->file != NULL) {
    (void)fclose(records->file);
  }
  free(records->at);
  free(records->text);
  *records = (struct cv_records){0};
}

const char *cv_records_field(const struct cv_records *records, uint32_t i) {
  CV_REQUIRE(i < records->fields);
  return records->text + records->at[i];
}

static enum cv_err put(struct cv_records *records, int c, struct cv_why *why) {
  /* Fields are C strings: what follows a zero byte would be lost without a message. */
  if (c == '\0') {
    return fail_at(records, records->line, why, "the line contains a zero byte; expected text");
  }
  if (records->used - records->at[records->fields - 1] >= CV_RECORDS_FIELD_BYTES) {
    (void)cv_fail(why, CV_ERR_LIMIT, "%s:%llu: field %u is longer than %d bytes", records->path,
                  (unsigned long long)records->start, records->fields, CV_RECORDS_FIELD_BYTES);
    return CV_ERR_LIMIT;
  }
  records->text[records->used++] = (char)c;
  return CV_OK;
}

/* Reserves room for the longest field, so that put() never allocates. */
static enum cv_err begin_field(struct cv_records *records, struct cv_why *why) {
  if (records->fields == CV_RECORDS_COLUMNS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s:%llu: too many fields; expected at most %d", records->path,
                   (unsigned long long)records->start, CV_RECORDS_COLUMNS_MAX);
  }
  if (CV_ARRAY_ROOM(records->text, records->used + CV_RECORDS_FIELD_BYTES + 1, records->cap) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", records->path);
  }
  records->at[records->fields++] = (uint32_t)records->used;
  return CV_OK;
}

/* Reads a quoted field after its opening quote; *ret_next is the character after the closing quote. */
static enum cv_err read_quoted(struct cv_records *records, int *ret_next, struct cv_why *why) {
  /* A missing closing quote swallows the rest of the file: the message names where the field began. */
  uint64_t opened = records->line;
  for (;;) {
    int c = getc_unlocked(records->file);
    if (c == EOF) {
      return fail_at(records, opened, why, "unterminated quoted field; expected a closing double quote");
    }
    if (c == '"') {
      c = getc_unlocked(records->file);
      if (c != '"') {
        *ret_next = c;
        return CV_OK;
      }
    }
    records->line += c == '\n';
    CV_TRY(put(records, c, why));
  }
}

/* Reads one field; *ret_next is the character that ended it: the delimiter, '\n' or EOF. */
static enum cv_err read_field(struct cv_records *records, int *ret_next, struct cv_why *why) {
  CV_TRY(begin_field(records, why));
  int c = getc_unlocked(records->file);
  bool quoted = c == '"';
  if (quoted) {
    CV_TRY(read_quoted(records, &c, why));
  }
  while (c != records->delimiter && c != '\n' && c != EOF) {
    /* CR LF ends a line; a lone CR would merge two lines of an old file into one field. */
    if (c == '\r') {
      c = getc_unlocked(records->file);
      if (c == '\n' || c == EOF) {
        break;
      }
      return fail_at(records, records->line, why, "a carriage return inside a line; expected LF or CR LF at its end");
    }
    if (quoted) {
      return fail_at(records, records->line, why, "text after a closing double quote; expected the end of the field");
    }
    if (c == '"') {
      return fail_at(records, records->line, why,
                     "a double quote inside an unquoted field; expected a quoted field with this quote doubled");
    }
    CV_TRY(put(records, c, why));
    c = getc_unlocked(records->file);
  }
  records->text[records->used++] = '\0';
  *ret_next = c;
  return CV_OK;
}

enum cv_err cv_records_next(struct cv_records *records, bool *ret_end, struct cv_why *why) {
  int next = '\n';
  bool is_empty = true;
  while (is_empty && next == '\n') {
    records->fields = 0;
    records->used = 0;
    records->start = records->line;
    do {
      CV_TRY(read_field(records, &next, why));
    } while (next == records->delimiter);
    records->line += next == '\n';
    /* An empty line has one field of a terminator only. Such lines are skipped, at the end of the file, too. */
    is_empty = records->fields == 1 && records->used == 1;
  }
  if (ferror(records->file)) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", records->path, strerror(errno));
  }
  *ret_end = is_empty;
  return CV_OK;
}

enum cv_err cv_records_row(struct cv_records *records, uint32_t fields, bool *ret_end, struct cv_why *why) {
  CV_TRY(cv_records_next(records, ret_end, why));
  return *ret_end || records->fields == fields
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s:%llu: %u fields; expected %u as in the header", records->path,
                       (unsigned long long)records->start, records->fields, fields);
}

static enum cv_err missing_column(const struct cv_records *records, const char *name, struct cv_why *why) {
  char list[240] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < records->fields && used < sizeof(list); i++) {
    used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : ", ",
                             cv_text_piece(cv_records_field(records, i)).text);
  }
  /* A file may have thousands of columns; the message says that it names only some. */
  if (used >= sizeof(list)) {
    (void)snprintf(list + sizeof(list) - 5, 5, " ...");
  }
  return cv_fail(why, CV_ERR_INVALID, "%s:%llu: no column \"%s\"; the columns are %s", records->path,
                 (unsigned long long)records->start, name, list);
}

enum cv_err cv_records_column(const struct cv_records *records, const char *name, uint32_t *ret, struct cv_why *why) {
  uint32_t found = records->fields;
  for (uint32_t i = 0; i < records->fields; i++) {
    if (strcmp(cv_records_field(records, i), name) != 0) {
      continue;
    }
    if (found != records->fields) {
      return cv_fail(why, CV_ERR_INVALID, "%s:%llu: two columns are called \"%s\"; expected one", records->path,
                     (unsigned long long)records->start, name);
    }
    found = i;
  }
  if (found == records->fields) {
    return missing_column(records, name, why);
  }
  *ret = found;
  return CV_OK;
}

/* strtod() alone would also accept "nan", "inf" and hexadecimal numbers. */
bool cv_records_number(const char *text, double *ret) {
  text += strspn(text, " \t");
  size_t n = strspn(text, "+-.0123456789eE");
  if (n == 0 || text[n + strspn(text + n, " \t")] != '\0') {
    return false;
  }
  char *end;
  double number = strtod(text, &end);
  if (end != text + n || !isfinite(number)) {
    return false;
  }
  *ret = number;
  return true;
}
