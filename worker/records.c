/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "worker/column.h"

static enum cv_err fail_at(const struct cv_records *records, uint64_t line, struct cv_why *why, const char *text) {
  return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s", records->path, (unsigned long long)line, text);
}

enum cv_err cv_records_open(const char *path, char delimiter, struct cv_records *ret, struct cv_why *why) {
  struct cv_records records = {.path = path, .delimiter = delimiter, .line = 1};
  CV_TRY(cv_bytes_open(path, cv_bytes_packing(path), CV_BYTES_MAX, &records.bytes, why));
  records.at = calloc(CV_RECORDS_COLUMNS_MAX, sizeof(*records.at));
  if (records.at == NULL) {
    cv_records_close(&records);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  *ret = records;
  return CV_OK;
}

void cv_records_close(struct cv_records *records) {
  cv_bytes_close(&records->bytes);
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
    int c = cv_bytes_get(&records->bytes);
    if (c == EOF) {
      return fail_at(records, opened, why, "unterminated quoted field; expected a closing double quote");
    }
    if (c == '"') {
      c = cv_bytes_get(&records->bytes);
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
  int c = cv_bytes_get(&records->bytes);
  bool quoted = c == '"';
  if (quoted) {
    CV_TRY(read_quoted(records, &c, why));
  }
  while (c != records->delimiter && c != '\n' && c != EOF) {
    /* CR LF ends a line; a lone CR would merge two lines of an old file into one field. */
    if (c == '\r') {
      c = cv_bytes_get(&records->bytes);
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
    c = cv_bytes_get(&records->bytes);
  }
  records->text[records->used++] = '\0';
  *ret_next = c;
  return CV_OK;
}

static enum cv_err read_record(struct cv_records *records, bool *ret_end, struct cv_why *why) {
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
  *ret_end = is_empty;
  return CV_OK;
}

enum cv_err cv_records_next(struct cv_records *records, bool *ret_end, struct cv_why *why) {
  enum cv_err err = read_record(records, ret_end, why);
  /* First: where the bytes end early, the record is not to blame. */
  CV_TRY(cv_bytes_check(&records->bytes, why));
  return err;
}

enum cv_err cv_records_row(struct cv_records *records, uint32_t fields, bool *ret_end, struct cv_why *why) {
  CV_TRY(cv_records_next(records, ret_end, why));
  return *ret_end || records->fields == fields
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s:%llu: %u fields; expected %u as in the header", records->path,
                       (unsigned long long)records->start, records->fields, fields);
}

static const char *column_at(const void *data, uint32_t i) {
  return cv_records_field(data, i);
}

enum cv_err cv_records_column(const struct cv_records *records, const char *name, uint32_t *ret, struct cv_why *why) {
  const struct cv_columns columns = {.count = records->fields, .name = column_at, .data = records};
  enum cv_err err = cv_column_find(&columns, name, ret, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%llu", records->path, (unsigned long long)records->start);
  }
  return err;
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
