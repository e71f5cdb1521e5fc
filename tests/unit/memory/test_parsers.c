/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every single allocation fails once in all code that reads input of people or peers: the error is one line, it is not
 * reported as bad input, no memory leaks and the result is unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/campaign/campaign.h"
#include "common/net/frame.h"
#include "deploy/launcher/compared.h"
#include "deploy/launcher/export.h"
#include "proto/codec/crowd.h"
#include "proto/codec/order.h"
#include "proto/codec/rank.h"
#include "proto/codec/share.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/folder.h"
#include "tests/support/mechanism.h"
#include "tests/support/settings.h"
#include "thirdparty/policy/policy.h"
#include "worker/data.h"
#include "worker/privatizer/privatizer.h"
#include "worker/source.h"
#include "worker/taxi.h"

enum { INPUT_BYTES = 16384, UNTOUCHED = 0x5a };

/* The kinds of readers: of bytes; of a file, with a line about it; of a file by libyaml, which may leak a stack of
 * its own. */
enum kind { BYTES, A_FILE, A_YAML_FILE };

/* libyaml's stack, for the leak sanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:yaml_parser_load";
}

/* Inputs: from the corpora of the fuzzing harnesses. */
struct input {
  char path[512];
  uint8_t bytes[INPUT_BYTES];
  size_t n;
};

static void input_read(const char *name, struct input *ret) {
  (void)snprintf(ret->path, sizeof(ret->path), "%s/%s", CV_SOURCE, name);
  int fd = open(ret->path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  ssize_t n = read(fd, ret->bytes, sizeof(ret->bytes));
  assert_in_range(n, 1, sizeof(ret->bytes) - 1);
  ret->n = (size_t)n;
  (void)close(fd);
}

/* Reads and, on success, frees the result again; `result` has sizeof(union result) bytes. */
union result {
  struct cv_campaign_file campaign;
  struct cv_data data;
  struct cv_taxis taxis;
  struct cv_score_source source;
  struct cv_spec spec;
  struct cv_export export;
  struct cv_compared compared;
  struct cv_mechanism *mechanism;
  struct cv_policy *policy;
  struct cv_privatizer *privatizer;
  uint8_t bytes[2048];
};
typedef enum cv_err read_fn(const struct input *input, union result *result, struct cv_why *why);

static bool is_untouched(const union result *result) {
  for (size_t i = 0; i < sizeof(*result); i++) {
    if (((const uint8_t *)result)[i] != UNTOUCHED) {
      return false;
    }
  }
  return true;
}

static enum cv_err once(read_fn *read, const struct input *input, enum kind kind) {
  union result result;
  struct cv_why why = {.text = ""};
  memset(&result, UNTOUCHED, sizeof(result));
  int64_t before = alloc_fault_live();
  alloc_fault_arm();
  enum cv_err err = read(input, &result, &why);
  alloc_fault_pause();
  int64_t left = alloc_fault_live() - before;
  assert_true(left == 0 || (left == 1 && kind == A_YAML_FILE && err != CV_OK));
  if (err != CV_OK) {
    assert_true(is_untouched(&result));
    if (kind != BYTES && (strstr(why.text, "memory") == NULL || strchr(why.text, '\n') != NULL)) {
      fail_msg("error %d: %s", err, why.text);
    }
  }
  return kind != BYTES && err == CV_ERR_IO ? CV_ERR_NOMEM
                                           : err; /* the system's words for a file that cannot be opened */
}

/* Until it succeeds. Without memory for its buffer stdio reads a file byte by byte, which is not an error. */
static void each_of(read_fn *read, const struct input *input, enum kind kind) {
  for (int all_after = 0; all_after < 2; all_after++) {
    ALLOC_FAULT_EACH(fault, .rest = all_after != 0) {
      enum cv_err err = once(read, input, kind);
      if (!alloc_fault_hit()) {
        assert_int_equal(err, CV_OK);
      } else if (err != CV_ERR_NOMEM && !(err == CV_OK && kind != BYTES)) {
        fail_msg("allocation %llu of %s: error %d (%s)", (unsigned long long)fault.nth,
                 input->path[0] != '\0' ? input->path : "it", err, cv_err_text(err));
      }
    }
  }
}

static void each(read_fn *read, const char *name, enum kind kind) {
  struct input input = {.n = 0};
  if (name != NULL) {
    input_read(name, &input);
  }
  each_of(read, &input, kind);
}

/* ---- files ---- */

static enum cv_err read_config(const struct input *input, union result *result, struct cv_why *why) {
  struct settings settings = {0};
  enum cv_err err = cv_config_load(&settings_table, input->path, &settings, why);
  if (err == CV_OK) {
    cv_config_fini(&settings_table, &settings);
  } else {
    assert_true(settings.listen == NULL && settings.state == NULL && settings.key == NULL);
  }
  return err;
}

static enum cv_err read_campaign(const struct input *input, union result *result, struct cv_why *why) {
  CV_TRY(cv_campaign_load(input->path, &result->campaign, why));
  cv_campaign_fini(&result->campaign);
  return CV_OK;
}

static enum cv_err read_data(const struct input *input, union result *result, struct cv_why *why) {
  static char query[] = "SELECT item, score, note FROM rating";
  char path[sizeof(input->path)];
  memcpy(path, input->path, sizeof(path));
  struct cv_items_csv ask = {.file = path, .item_column = "item", .score_column = "score", .delimiter = ','};
  ask.format = strstr(path, ".jsonl") != NULL ? CV_FORMAT_JSONL
               : strstr(path, ".db") != NULL  ? CV_FORMAT_SQLITE
                                              : CV_FORMAT_CSV;
  ask.query = ask.format == CV_FORMAT_SQLITE ? query : NULL;
  CV_TRY(cv_data_read(&ask, false, &result->data, why));
  cv_data_fini(&result->data);
  return CV_OK;
}

/* Files of the folder, whose formats are no text that could lie in the tree. */
static void write_data(const struct folder *folder) {
  static const char rows[] = "item,score\nroma,4\ncasa,1\n";
  char packed[200];
  size_t n = ZSTD_compress(packed, sizeof(packed), rows, sizeof(rows) - 1, 1);
  assert_false(ZSTD_isError(n));
  FILE *file = fopen(folder_file(folder, "r.csv.zst"), "w");
  assert_non_null(file);
  assert_int_equal(fwrite(packed, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
  gzFile gzip = gzopen(folder_file(folder, "r.csv.gz"), "wb");
  assert_non_null(gzip);
  assert_int_equal(gzwrite(gzip, rows, sizeof(rows) - 1), sizeof(rows) - 1);
  assert_int_equal(gzclose(gzip), Z_OK);
  folder_write(folder, "r.jsonl",
               "{\"item\":\"roma\",\"score\":4,\"note\":[1,{}]}\n{\"score\":1,\"item\":7,\"other\":null}\n");
  sqlite3 *db;
  assert_int_equal(sqlite3_open(folder_file(folder, "r.db"), &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db,
                                "CREATE TABLE rating (item, score, note);"
                                "INSERT INTO rating VALUES ('roma', 4, 1), ('casa', '1', NULL);",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_data_files(void **state) {
  static const char *const names[] = {"r.csv.zst", "r.csv.gz", "r.jsonl", "r.db"};
  struct folder folder;
  folder_make(&folder);
  write_data(&folder); /* which also makes SQLite take the memory that it keeps */
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    struct input input = {.n = 0};
    (void)snprintf(input.path, sizeof(input.path), "%s/%s", folder.path, names[i]);
    each_of(read_data, &input, A_FILE);
  }
  folder_remove(&folder);
}

static enum cv_err read_taxis(const struct input *input, union result *result, struct cv_why *why) {
  char path[sizeof(input->path)];
  memcpy(path, input->path, sizeof(path));
  const struct cv_items_taxi items = {.file = path, .area = 8, .cost_per_mile = 1};
  CV_TRY(cv_taxis_read(&items, &result->taxis, why));
  cv_taxis_fini(&result->taxis);
  return CV_OK;
}

static enum cv_err read_source(const struct input *input, union result *result, struct cv_why *why) {
  struct cv_campaign_file campaign;
  alloc_fault_pause();
  assert_int_equal(cv_campaign_load(input->path, &campaign, why), CV_OK);
  alloc_fault_arm();
  enum cv_err err = cv_score_source_init(&result->source, &campaign, 5, why);
  if (err == CV_OK) {
    cv_score_source_fini(&result->source);
  }
  cv_campaign_fini(&campaign);
  return err;
}

static enum cv_err read_export(const struct input *input, union result *result, struct cv_why *why) {
  CV_TRY(cv_export_read_json(input->path, &result->export, why));
  cv_export_fini(&result->export);
  return CV_OK;
}

static enum cv_err read_compared(const struct input *input, union result *result, struct cv_why *why) {
  CV_TRY(cv_compared_read(input->path, &result->compared, why));
  cv_compared_fini(&result->compared);
  return CV_OK;
}

/* A written file is complete, or the error is reported. */
static enum cv_err write_export(const struct input *input, union result *result, struct cv_why *why) {
  struct cv_export export, back;
  char path[64];
  alloc_fault_pause();
  assert_int_equal(cv_export_read_json(input->path, &export, why), CV_OK);
  FILE *file = tmpfile();
  assert_non_null(file);
  (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
  alloc_fault_arm();
  enum cv_err err = cv_export_write_json(&export, file);
  alloc_fault_pause();
  if (err == CV_OK) {
    assert_int_equal(fflush(file), 0);
    assert_int_equal(cv_export_read_json(path, &back, why), CV_OK);
    assert_true(back.plans == export.plans && back.releases == export.releases && back.standings == export.standings);
    cv_export_fini(&back);
  } else {
    (void)cv_fail(why, err, "out of memory");
  }
  (void)fclose(file);
  cv_export_fini(&export);
  return err;
}

static void test_files(void **state) {
  each(read_config, "tests/fuzz/corpus/config/seed-all", A_YAML_FILE);
  each(read_campaign, "tests/fuzz/corpus/campaign/seed-demo", A_YAML_FILE);
  each(read_data, "tests/unit/memory/scores.csv", A_FILE);
  each(read_taxis, "deploy/campaigns/taxi.csv", A_FILE);
  each(read_source, "tests/fuzz/corpus/campaign/seed-first", A_FILE);
  each(read_export, "tests/fuzz/corpus/export/seed-one", A_FILE);
  each(read_compared, "tests/fuzz/corpus/compared/seed-truth", A_FILE);
  each(write_export, "tests/fuzz/corpus/export/seed-one", A_FILE);
}

/* ---- what is stored ---- */

/* Made here: no spec of the corpus has names. */
static void spec_input(struct input *ret) {
  static const char *names[3] = {"a", "b", "c"};
  const struct cv_spec spec = {.name = "test", .arms = 3, .names = names, .policy.name = "ppar", .tokens = 5};
  struct cv_buf bytes = {0};
  cv_spec_encode(&spec, &bytes);
  assert_in_range(bytes.len, 1, sizeof(ret->bytes));
  memcpy(ret->bytes, bytes.data, bytes.len);
  ret->n = bytes.len;
  cv_buf_fini(&bytes);
}

static enum cv_err read_spec(const struct input *unused, union result *result, struct cv_why *why) {
  struct input made, *input = &made;
  alloc_fault_pause();
  spec_input(input);
  alloc_fault_arm();
  struct cv_reader in = cv_reader_over(input->bytes, input->n);
  struct cv_buf out = {0};
  CV_TRY(cv_spec_decode(&in, &result->spec));
  struct cv_spec copy;
  enum cv_err err = cv_spec_copy(&result->spec, &copy);
  if (err == CV_OK) {
    cv_spec_encode(&copy, &out);
    err = cv_buf_ok(&out) ? CV_OK : CV_ERR_NOMEM;
    assert_true(err != CV_OK || (out.len == input->n && memcmp(out.data, input->bytes, out.len) == 0));
    cv_spec_fini(&copy);
  }
  cv_spec_fini(&result->spec);
  cv_buf_fini(&out);
  memset(result, UNTOUCHED, sizeof(*result));
  return err;
}

static enum cv_err read_mechanism(const struct input *input, union result *result, struct cv_why *why) {
  enum cv_err err = CV_OK;
  for (size_t i = 0; cv_mechanism_at(i) != NULL && err == CV_OK; i++) {
    const struct cv_mechanism_law law = mechanism_law(cv_mechanism_at(i)->traits->name, 250000, 100);
    struct cv_mechanism *made, *loaded;
    struct cv_buf image = {0};
    err = cv_mechanism_new(&law, &made);
    if (err != CV_OK) {
      break;
    }
    cv_mechanism_save(made, &image);
    struct cv_reader in = cv_reader_over(image.data, image.len);
    err = cv_buf_ok(&image) ? cv_mechanism_load(&law, &in, &loaded) : CV_ERR_NOMEM;
    if (err == CV_OK) {
      cv_mechanism_free(loaded);
    }
    cv_mechanism_free(made);
    cv_buf_fini(&image);
  }
  return err;
}

static enum cv_err use_policy(struct cv_policy *policy) {
  struct cv_policy_step step = {0};
  struct cv_buf image = {0};
  enum cv_err err = cv_policy_step(policy, 1, &step);
  if (err == CV_OK) {
    cv_policy_save(policy, &image);
    struct cv_reader in = cv_reader_over(image.data, image.len);
    err = cv_buf_ok(&image) ? cv_policy_load(policy, &in) : CV_ERR_NOMEM;
  }
  cv_policy_step_fini(&step);
  cv_buf_fini(&image);
  return err;
}

static enum cv_err read_policy(const struct input *input, union result *result, struct cv_why *why) {
  struct cv_spec spec = {.name = "test",
                         .arms = 4,
                         .epsilon_micro = 250000,
                         .tokens_per_worker = 1,
                         .tokens = 1 << 30,
                         .policy = {.name = "ppar"},
                         .mechanism = {.name = "hybrid"},
                         .privatizer = {.name = "none"}};
  const struct cv_param *bad;
  assert_int_equal(cv_params_set_number(&spec.policy.params, "tokens_per_round", 1000), CV_OK);
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_policy_check(&spec.policy, &bad, why), CV_OK);
  struct cv_policy *policy;
  CV_TRY(cv_policy_new(&spec, 1, &policy));
  enum cv_err err = use_policy(policy);
  cv_policy_free(policy);
  return err;
}

static enum cv_err read_privatizer(const struct input *input, union result *result, struct cv_why *why) {
  for (size_t i = 0; cv_privatizer_at(i) != NULL; i++) {
    struct cv_choice choice = {0};
    struct cv_privatizer *privatizer;
    (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_local_name(cv_privatizer_at(i)->kind));
    enum cv_err err = cv_privatizer_new(&choice, 4, &privatizer, why);
    if (err == CV_ERR_NOMEM) {
      return err;
    }
    if (err == CV_OK) { /* otherwise it has parameters that it requires */
      cv_privatizer_free(privatizer);
    }
  }
  return CV_OK;
}

static void test_what_is_stored(void **state) {
  each(read_spec, NULL, BYTES);
  each(read_mechanism, NULL, BYTES);
  each(read_policy, NULL, BYTES);
  each(read_privatizer, NULL, BYTES);
}

/* ---- what comes over the wire ---- */

#define READ_FRAME(schema)                                                                                \
  static enum cv_err read_##schema(const struct input *input, union result *result, struct cv_why *why) { \
    struct cv_arena arena, scratch;                                                                       \
    struct cv_##schema##_frame frame;                                                                     \
    struct cv_buf out = {0};                                                                              \
    CV_TRY(cv_arena_init(&arena, CV_ARENA_BYTES));                                                        \
    enum cv_err err = cv_arena_init(&scratch, CV_ARENA_BYTES);                                            \
    if (err == CV_OK) {                                                                                   \
      err = cv_##schema##_decode(input->bytes, input->n, &arena, &frame);                                 \
      err = err == CV_OK ? cv_##schema##_encode(&frame, &scratch, &out) : err;                            \
      cv_arena_fini(&scratch);                                                                            \
    }                                                                                                     \
    assert_true(err != CV_OK || (out.len == input->n && memcmp(out.data, input->bytes, out.len) == 0));   \
    cv_arena_fini(&arena);                                                                                \
    cv_buf_fini(&out);                                                                                    \
    return err;                                                                                           \
  }

READ_FRAME(crowd)
READ_FRAME(rank)
READ_FRAME(order)
READ_FRAME(share)

/* In pieces, so that they must be stored. */
static enum cv_err read_frames(const struct input *input, union result *result, struct cv_why *why) {
  struct cv_splitter splitter;
  enum cv_err err = CV_ERR_NOT_FOUND;
  cv_splitter_init(&splitter, 64);
  for (size_t at = 1; at < input->n && (err == CV_OK || err == CV_ERR_NOT_FOUND); at++) {
    const uint8_t *frame;
    size_t n;
    cv_splitter_give(&splitter, input->bytes + at, 1);
    do {
      err = cv_splitter_next(&splitter, &frame, &n, why);
    } while (err == CV_OK);
    enum cv_err kept = cv_splitter_keep(&splitter);
    err = kept != CV_OK ? kept : err;
  }
  cv_splitter_fini(&splitter);
  return err == CV_ERR_NOT_FOUND ? CV_OK : err;
}

static void test_what_comes_over_the_wire(void **state) {
  each(read_crowd, "tests/fuzz/corpus/crowd/seed-up", BYTES);
  each(read_crowd, "tests/fuzz/corpus/crowd/seed-down", BYTES);
  each(read_crowd, "tests/fuzz/corpus/crowd/seed-two-brokers", BYTES);
  each(read_rank, "tests/fuzz/corpus/rank/seed-down", BYTES);
  each(read_order, "tests/fuzz/corpus/order/seed-0", BYTES);
  each(read_share, "tests/fuzz/corpus/share/seed-workers", BYTES);
  each(read_share, "tests/fuzz/corpus/share/seed-down", BYTES);
  each(read_share, "tests/fuzz/corpus/share/seed-up", BYTES);
  each(read_frames, "tests/fuzz/corpus/frame/seed-two", BYTES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_data_files),
      cmocka_unit_test(test_what_is_stored),
      cmocka_unit_test(test_what_comes_over_the_wire),
  };
  return cmocka_run_group_tests_name("parsers", tests, NULL, NULL);
}
