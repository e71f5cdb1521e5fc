/* SPDX-License-Identifier: Apache-2.0 */
/* Data files that are packed with gzip or zstd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/base/buf.h"
#include "tests/support/folder.h"
#include "tests/unit/worker/data.h"
#include "tests/unit/worker/table.h"
#include "worker/bytes.h"
#include "worker/duels.h"

static const struct cv_items_csv plain = {
    .item_column = "item", .score_column = "score", .delimiter = ',', .scale = {.low = 0, .high = 1}};

static const char *const names[] = {[CV_PACKING_GZIP] = "r.csv.gz", [CV_PACKING_ZSTD] = "r.csv.zst"};

/* The packed text; the caller frees it. */
static uint8_t *pack(enum cv_packing packing, const char *text, size_t n, size_t *ret_n) {
  size_t room = n + n / 100 + 1000;
  uint8_t *out = malloc(room);
  assert_non_null(out);
  if (packing == CV_PACKING_ZSTD) {
    ZSTD_CCtx *frame = ZSTD_createCCtx();
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(frame, ZSTD_c_checksumFlag, 1))); /* as the program zstd does */
    *ret_n = ZSTD_compress2(frame, out, room, text, n);
    assert_false(ZSTD_isError(*ret_n));
    (void)ZSTD_freeCCtx(frame);
    return out;
  }
  z_stream stream = {0};
  assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  union {
    const char *text;
    Bytef *bytes;
  } in = {.text = text};
  stream.next_in = in.bytes;
  stream.avail_in = (uInt)n;
  stream.next_out = out;
  stream.avail_out = (uInt)room;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  *ret_n = stream.total_out;
  assert_int_equal(deflateEnd(&stream), Z_OK);
  return out;
}

static void write_packed(const struct folder *folder, enum cv_packing packing, const char *text) {
  size_t n;
  uint8_t *bytes = pack(packing, text, strlen(text), &n);
  (void)write_bytes(folder, names[packing], (const char *)bytes, n);
  free(bytes);
}

#define EACH(packing) for (enum cv_packing packing = CV_PACKING_GZIP; packing <= CV_PACKING_ZSTD; packing++)

/* Rows beyond one chunk, which the reader must join. */
static char *many_rows(int rows) {
  size_t size = 32 * (size_t)rows + 100;
  char *text = malloc(size);
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, size, "item,score\n");
  for (int i = 0; i < rows; i++) {
    used += (size_t)snprintf(text + used, size - used, "item %d,0.%06d\n", i % 3, i);
  }
  return text;
}

static void test_the_rows_are_those_of_the_file_as_it_was(void **state) {
  char *text = many_rows(40000), path[320];
  EACH(packing) {
    struct folder folder;
    struct cv_data packed, flat;
    struct cv_items_csv ask = plain;
    folder_make(&folder);
    write_packed(&folder, packing, text);
    (void)snprintf(path, sizeof(path), "%s", write_text(&folder, "r.csv", text));
    ask.file = path;
    assert_int_equal(cv_data_read(&ask, false, &flat, NULL), CV_OK);
    (void)snprintf(path, sizeof(path), "%s", folder_file(&folder, names[packing]));
    assert_int_equal(cv_data_read(&ask, false, &packed, NULL), CV_OK);
    assert_int_equal(packed.items, 3);
    assert_memory_equal(packed.rows.start, flat.rows.start, 4 * sizeof(*flat.rows.start));
    assert_memory_equal(packed.rows.value, flat.rows.value, 40000 * sizeof(*flat.rows.value));
    cv_data_fini(&packed);
    cv_data_fini(&flat);
    folder_remove(&folder);
  }
  free(text);
}

static void test_a_byte_order_mark_and_several_parts(void **state) {
  EACH(packing) {
    struct folder folder;
    size_t n, m;
    folder_make(&folder);
    uint8_t *first = pack(packing, "\xef\xbb\xbfitem,score\na,", 16, &n), *second = pack(packing, "1\nb,0\n", 6, &m);
    uint8_t *both = malloc(n + m);
    assert_non_null(both);
    memcpy(both, first, n);
    memcpy(both + n, second, m);
    (void)write_bytes(&folder, names[packing], (const char *)both, n + m);
    assert_data(&folder, &plain, names[packing], "a:1000 b:0", NULL);
    free(first);
    free(second);
    free(both);
    folder_remove(&folder);
  }
}

/* A part of two rows, and what `tail` has behind it; the caller frees it. */
static uint8_t *follow(enum cv_packing packing, const uint8_t *tail, size_t tail_n, size_t *ret_n) {
  size_t n;
  uint8_t *first = pack(packing, "item,score\na,1\nb,0\n", 19, &n), *all = realloc(first, n + tail_n + 1);
  assert_non_null(all);
  memcpy(all + n, tail, tail_n);
  *ret_n = n + tail_n;
  return all;
}

/* The file is refused with a line that has these words, and no row of it is used. */
static void assert_tail_is_refused(enum cv_packing packing, const uint8_t *tail, size_t tail_n, const char *words) {
  struct folder folder;
  struct cv_data data;
  struct cv_why why = {.text = ""};
  struct cv_items_csv ask = plain;
  char path[320];
  size_t n;
  uint8_t *bytes = follow(packing, tail, tail_n, &n);
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s", write_bytes(&folder, names[packing], (const char *)bytes, n));
  ask.file = path;
  assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_ERR_DAMAGED);
  assert_memory_equal(why.text, path, strlen(path));
  assert_non_null(strstr(why.text, words));
  folder_remove(&folder);
  free(bytes);
}

static void test_nothing_follows_the_last_part(void **state) {
  static const char zeros[1024] = {0};
  EACH(packing) {
    char place[80];
    size_t at, n;
    free(follow(packing, (const uint8_t *)zeros, 0, &at));
    (void)snprintf(place, sizeof(place),
                   ": damaged: at byte %zu, where a %s stream has ended, no whole other one begins", at + 1,
                   packing == CV_PACKING_GZIP ? "gzip" : "zstd");
    assert_tail_is_refused(packing, (const uint8_t *)"c,1\nc,0\n", 8, place);
    assert_tail_is_refused(packing, (const uint8_t *)zeros, sizeof(zeros), place);
    uint8_t *second = pack(packing, "c,1\n", 4, &n);
    second[1] ^= 0x10; /* of the magic number */
    assert_tail_is_refused(packing, second, n, place);
    free(second);
  }
  /* less than a header */
  assert_tail_is_refused(CV_PACKING_GZIP, (const uint8_t *)"\x1f", 1, ", no whole other one begins");
  assert_tail_is_refused(CV_PACKING_GZIP, (const uint8_t *)"\n", 1, ", no whole other one begins");
  assert_tail_is_refused(CV_PACKING_GZIP, (const uint8_t *)"\0", 1, ", no whole other one begins");
  assert_tail_is_refused(CV_PACKING_ZSTD, (const uint8_t *)"\x28\xb5", 2, ": the file ends in the middle, after ");
}

/* However the second part is cut or damaged. */
static void test_a_damaged_second_part(void **state) {
  EACH(packing) {
    size_t n;
    uint8_t *second = pack(packing, "c,1\nc,0\nc,1\n", 12, &n);
    for (size_t cut = 1; cut < n; cut++) {
      assert_tail_is_refused(packing, second, cut, ": ");
    }
    /* The sum of the text is at the end; gzip's number of bytes follows it. */
    size_t sum = packing == CV_PACKING_GZIP ? n - 8 : n - 4;
    second[sum] ^= 1;
    assert_tail_is_refused(packing, second, n, packing == CV_PACKING_GZIP ? "incorrect data check" : "checksum");
    second[sum] ^= 1;
    free(second);
  }
}

/* bgzip ends a file with an empty part; zstd may have frames without text, to be skipped. */
static void test_many_parts_and_empty_ones(void **state) {
  static const uint8_t skipped[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
  EACH(packing) {
    struct folder folder;
    struct cv_buf all = {0};
    static const char *const parts[] = {"", "item,", "score\na,1", "", "\n", "b,0\n", "a,0\n", ""};
    folder_make(&folder);
    for (size_t i = 0; i < CV_COUNT(parts); i++) {
      size_t n;
      uint8_t *part = pack(packing, parts[i], strlen(parts[i]), &n);
      cv_buf_put(&all, part, n);
      cv_buf_put(&all, skipped, packing == CV_PACKING_ZSTD ? sizeof(skipped) : 0);
      free(part);
    }
    (void)write_bytes(&folder, names[packing], (const char *)all.data, all.len);
    assert_data(&folder, &plain, names[packing], "a:1000,0 b:0", NULL);
    cv_buf_fini(&all);
    folder_remove(&folder);
  }
}

static void test_json_lines_and_tabs_are_packed_too(void **state) {
  struct folder folder;
  struct cv_items_csv ask = plain;
  folder_make(&folder);
  ask.format = CV_FORMAT_JSONL;
  write_packed(&folder, CV_PACKING_GZIP, "{\"item\":\"a\",\"score\":1}\n{\"item\":\"a\",\"score\":0}\n");
  assert_data(&folder, &ask, names[CV_PACKING_GZIP], "a:1000,0", NULL);
  folder_remove(&folder);
}

static void test_an_empty_file_and_another_format(void **state) {
  static const char *const words[] = {[CV_PACKING_GZIP] = "gzip", [CV_PACKING_ZSTD] = "zstd"};
  EACH(packing) {
    struct folder folder;
    char line[200];
    (void)snprintf(line, sizeof(line), ": not a %s file; expected one, as its name ends in %s", words[packing],
                   packing == CV_PACKING_GZIP ? ".gz" : ".zst");
    folder_make(&folder);
    (void)write_text(&folder, names[packing], "item,score\na,1\n");
    assert_bad_data(&folder, &plain, names[packing], CV_ERR_DAMAGED, line);
    (void)write_text(&folder, names[packing], "");
    assert_bad_data(&folder, &plain, names[packing], CV_ERR_DAMAGED, line);
    write_packed(&folder, packing, "");
    assert_bad_data(&folder, &plain, names[packing], CV_ERR_INVALID,
                    ":1: the file is empty; expected a header line with columns item and score");
    folder_remove(&folder);
  }
}

/* However the file is cut, the message says so, and no row of a part is used. */
static void test_a_file_that_was_cut(void **state) {
  char *text = many_rows(20000);
  EACH(packing) {
    size_t n;
    uint8_t *bytes = pack(packing, text, strlen(text), &n);
    for (size_t cut = 20; cut < n; cut += n / 13) {
      struct folder folder;
      struct cv_data data;
      struct cv_why why;
      struct cv_items_csv ask = plain;
      char path[320];
      folder_make(&folder);
      (void)snprintf(path, sizeof(path), "%s", write_bytes(&folder, names[packing], (const char *)bytes, cut));
      ask.file = path;
      assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_ERR_DAMAGED);
      assert_non_null(strstr(why.text, ": the file ends in the middle, after "));
      assert_non_null(strstr(why.text, " unpacked bytes; expected the whole file"));
      folder_remove(&folder);
    }
    free(bytes);
  }
  free(text);
}

static void test_a_damaged_file(void **state) {
  char *text = many_rows(2000);
  EACH(packing) {
    size_t n, found = 0, tried = 0;
    uint8_t *bytes = pack(packing, text, strlen(text), &n);
    for (size_t at = n / 4; at < n; at += n / 57, tried++) {
      struct folder folder;
      struct cv_data data;
      struct cv_why why = {.text = ""};
      struct cv_items_csv ask = plain;
      char path[320];
      folder_make(&folder);
      bytes[at] ^= 0x10;
      (void)snprintf(path, sizeof(path), "%s", write_bytes(&folder, names[packing], (const char *)bytes, n));
      ask.file = path;
      if (cv_data_read(&ask, false, &data, &why) == CV_OK) {
        cv_data_fini(&data);
      } else {
        found++;
      }
      bytes[at] ^= 0x10;
      folder_remove(&folder);
    }
    assert_int_equal(found, tried);
    free(bytes);
  }
  free(text);
}

/* Few bytes that say a lot: a bound, and one line. */
static void test_unpacked_bytes_are_bounded(void **state) {
  enum { MIB = 3 };
  char *text = malloc(MIB << 20);
  assert_non_null(text);
  memset(text, '\n', MIB << 20);
  EACH(packing) {
    struct folder folder;
    struct cv_bytes bytes;
    struct cv_why why = {.text = ""};
    char path[320];
    size_t n, count = 0;
    uint8_t *packed = pack(packing, text, MIB << 20, &n);
    folder_make(&folder);
    (void)snprintf(path, sizeof(path), "%s", write_bytes(&folder, names[packing], (const char *)packed, n));
    assert_int_equal(cv_bytes_open(path, packing, 2 << 20, &bytes, &why), CV_OK);
    for (; cv_bytes_get(&bytes) != EOF; count++) {
    }
    assert_int_equal(count, 2 << 20);
    assert_int_equal(cv_bytes_check(&bytes, &why), CV_ERR_LIMIT);
    assert_says(&why, &folder, names[packing], ": more than 2 MiB when unpacked; expected at most that");
    cv_bytes_close(&bytes);
    assert_int_equal(cv_bytes_open(path, packing, MIB << 20, &bytes, &why), CV_OK);
    for (count = 0; cv_bytes_get(&bytes) != EOF; count++) {
    }
    assert_int_equal(count, MIB << 20);
    assert_int_equal(cv_bytes_check(&bytes, &why), CV_OK);
    cv_bytes_close(&bytes);
    free(packed);
    folder_remove(&folder);
  }
  free(text);
}

/* A frame can ask for more memory than its text has bytes. */
/* Few bytes say many rows, or many names; what they take is bounded, what they say is not. */
static void test_the_memory_of_rows_is_bounded(void **state) {
  char *text = many_rows(100000);
  struct cv_items_csv ask = plain;
  EACH(packing) {
    struct folder folder;
    folder_make(&folder);
    write_packed(&folder, packing, text);
    ask.memory = 1;
    assert_bad_data(&folder, &ask, names[packing], CV_ERR_LIMIT,
                    ":81922: the rows up to here take more than 1 MiB of memory; expected at most that, or a larger "
                    "items.memory");
    (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "score"); /* each row has a person of its own */
    assert_bad_data(&folder, &ask, names[packing], CV_ERR_LIMIT,
                    ":7417: the rows up to here take more than 1 MiB of memory; expected at most that, or a larger "
                    "items.memory");
    ask.worker_column[0] = '\0';
    struct cv_data data;
    char path[320];
    (void)snprintf(path, sizeof(path), "%s/%s", folder.path, names[packing]);
    ask.file = path;
    ask.memory = 2;
    assert_int_equal(cv_data_read(&ask, false, &data, NULL), CV_OK);
    assert_int_equal(data.rows.start[data.items], 100000);
    cv_data_fini(&data);
    folder_remove(&folder);
  }
  free(text);
}

static void test_the_memory_of_comparisons_is_bounded(void **state) {
  enum { ROWS = 40000, ROW_BYTES = 6 };
  const size_t size = 100 + ROWS * ROW_BYTES;
  char *text = malloc(size), path[320];
  struct folder folder;
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, size, "item,versus,score\n");
  for (int i = 0; i < ROWS; i++) {
    used += (size_t)snprintf(text + used, size - used, "a,b,%d\n", i % 2);
  }
  folder_make(&folder);
  write_packed(&folder, CV_PACKING_GZIP, text);
  (void)snprintf(path, sizeof(path), "%s/%s", folder.path, names[CV_PACKING_GZIP]);
  struct cv_duels_ask ask = {.path = path,
                             .item_column = "item",
                             .versus_column = "versus",
                             .score_column = "score",
                             .delimiter = ',',
                             .high = 1,
                             .memory = 1};
  struct cv_duels duels;
  struct cv_why why;
  assert_int_equal(cv_duels_read(&ask, &duels, &why), CV_ERR_LIMIT);
  assert_says(&why, &folder, names[CV_PACKING_GZIP],
              ":32770: the rows up to here take more than 1 MiB of memory; expected at most that, or a larger "
              "items.memory");
  ask.memory = 2;
  assert_int_equal(cv_duels_read(&ask, &duels, &why), CV_OK);
  cv_duels_fini(&duels);
  folder_remove(&folder);
  free(text);
}

static void test_the_window_is_bounded(void **state) {
  /* magic number; no size, a window of 2^31 bytes; an empty last block */
  static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
  struct folder folder;
  folder_make(&folder);
  (void)write_bytes(&folder, "r.csv.zst", (const char *)frame, sizeof(frame));
  assert_bad_data(&folder, &plain, "r.csv.zst", CV_ERR_LIMIT,
                  ": needs a window of more than 128 MiB to unpack; expected a file packed without --long");
  folder_remove(&folder);
}

static void test_names_say_how_a_file_is_packed(void **state) {
  assert_int_equal(cv_bytes_packing("/a/r.csv.gz"), CV_PACKING_GZIP);
  assert_int_equal(cv_bytes_packing("r.tsv.zst"), CV_PACKING_ZSTD);
  assert_int_equal(cv_bytes_packing("gz"), CV_PACKING_NONE);
  assert_int_equal(cv_bytes_packing("r.gz.csv"), CV_PACKING_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_rows_are_those_of_the_file_as_it_was),
      cmocka_unit_test(test_a_byte_order_mark_and_several_parts),
      cmocka_unit_test(test_nothing_follows_the_last_part),
      cmocka_unit_test(test_a_damaged_second_part),
      cmocka_unit_test(test_many_parts_and_empty_ones),
      cmocka_unit_test(test_json_lines_and_tabs_are_packed_too),
      cmocka_unit_test(test_an_empty_file_and_another_format),
      cmocka_unit_test(test_a_file_that_was_cut),
      cmocka_unit_test(test_a_damaged_file),
      cmocka_unit_test(test_unpacked_bytes_are_bounded),
      cmocka_unit_test(test_the_memory_of_rows_is_bounded),
      cmocka_unit_test(test_the_memory_of_comparisons_is_bounded),
      cmocka_unit_test(test_the_window_is_bounded),
      cmocka_unit_test(test_names_say_how_a_file_is_packed),
  };
  return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
