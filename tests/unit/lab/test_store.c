/* SPDX-License-Identifier: Apache-2.0 */
/* Results on disk belong to one experiment, survive the process, and are read back unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/experiment/read.h"
#include "lab/result/results.h"
#include "lab/result/store.h"
#include "lab/run/pool.h"
#include "lab/run/work.h"
#include "tests/support/folder.h"
#include "tests/unit/lab/good.h"

static const char text[] =
    "campaign: small\n"
    "items: {synthetic: {count: 3}}\n"
    "policy: {name: ppar, alpha: 0.1, tokens_per_round: 50}\n"
    "privacy: {mechanism: hybrid, epsilon: 1}\n"
    "limits: {tokens: 3000}\n"
    "experiment:\n"
    "  replicates: 5\n"
    "  x: {vary: policy.alpha, values: [.1, .2, .4]}\n"
    "  series: [{name: sound}, {name: printed, policy.radius: printed}]\n"
    "  metrics: [accuracy, pulls]\n";

enum { SETTINGS = 3, REPLICATES = 5, NUMBERS = 4 };

static struct folder folder;
static char path[320];
static struct cv_lab_experiment experiment;

static int set_up(void **state) {
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s", folder_file(&folder, "a.db"));
  return cv_lab_experiment_parse("small.yaml", text, strlen(text), NULL, &experiment, &why) == CV_OK ? 0 : -1;
}

static int tear_down(void **state) {
  cv_lab_experiment_fini(&experiment);
  folder_remove(&folder);
  return 0;
}

static enum cv_err open_seed(uint64_t seed, bool resume, struct cv_lab_store **ret) {
  const struct cv_lab_identity identity = {.experiment = &experiment, .seed = seed};
  return cv_lab_store_open(path, &identity, resume, ret, &why);
}

static struct cv_lab_store *opened(bool resume) {
  struct cv_lab_store *store = NULL;
  assert_good(open_seed(7, resume, &store));
  return store;
}

static void fill_numbers(size_t setting, uint64_t replicate, double *numbers) {
  for (size_t i = 0; i < NUMBERS; i++) {
    numbers[i] = i == 3 ? (double)NAN : (double)(setting * 1000 + replicate * 10 + i) / 7;
  }
}

static enum cv_err put(struct cv_lab_store *store, size_t setting, uint64_t replicate) {
  double numbers[NUMBERS];
  fill_numbers(setting, replicate, numbers);
  return cv_lab_store_put(store, setting, replicate, numbers, &why);
}

/* ---- pieces ---- */

static void test_what_was_put_comes_back_in_its_place(void **state) {
  struct cv_lab_store *store = opened(false);
  struct cv_lab_dataset dataset;
  assert_int_equal(cv_lab_piece_values(&experiment), NUMBERS);
  assert_good(put(store, 2, 1));
  assert_good(put(store, 0, 4));
  assert_good(cv_lab_store_close(store, &why));
  store = opened(true);
  for (size_t setting = 0; setting < SETTINGS; setting++) {
    for (uint64_t replicate = 0; replicate < REPLICATES; replicate++) {
      assert_int_equal(cv_lab_store_has(store, setting, replicate),
                       (setting == 2 && replicate == 1) || (setting == 0 && replicate == 4));
    }
  }
  assert_good(cv_lab_dataset_init(&experiment, 4, &dataset)); /* fewer than there are */
  assert_good(cv_lab_store_load(store, &dataset, &why));
  double numbers[NUMBERS];
  fill_numbers(2, 1, numbers);
  assert_true(cv_lab_value(&dataset, 1, 0, 2, 0) == numbers[0]);
  assert_true(cv_lab_value(&dataset, 1, 0, 2, 1) == numbers[1]);
  assert_true(cv_lab_value(&dataset, 1, 1, 2, 0) == numbers[2]);
  assert_true(isnan(cv_lab_value(&dataset, 1, 1, 2, 1)));
  assert_true(isnan(cv_lab_value(&dataset, 1, 0, 1, 0)));
  cv_lab_dataset_fini(&dataset);
  assert_good(cv_lab_store_close(store, &why));
}

static void *put_every_second(void *data) {
  struct cv_lab_store *store = data;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static uint64_t next;
  enum cv_err err = CV_OK;
  for (;;) {
    (void)pthread_mutex_lock(&lock);
    uint64_t at = next++;
    (void)pthread_mutex_unlock(&lock);
    if (at >= 3 * 500 || err != CV_OK) {
      return err == CV_OK ? NULL : data;
    }
    double numbers[NUMBERS];
    fill_numbers(at % SETTINGS, at / SETTINGS, numbers);
    err = cv_lab_store_put(store, at % SETTINGS, at / SETTINGS, numbers, NULL);
  }
}

static void test_many_threads_put(void **state) {
  struct cv_lab_store *store = opened(false);
  pthread_t thread[4];
  struct cv_lab_results results;
  for (size_t i = 0; i < CV_COUNT(thread); i++) {
    assert_int_equal(pthread_create(&thread[i], NULL, put_every_second, store), 0);
  }
  for (size_t i = 0; i < CV_COUNT(thread); i++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(thread[i], &failed), 0);
    assert_null(failed);
  }
  assert_good(cv_lab_store_close(store, &why));
  assert_good(cv_lab_results_read(path, &results, &why));
  assert_int_equal(results.dataset.replicates, 500);
  for (uint64_t replicate = 0; replicate < 500; replicate++) {
    for (size_t setting = 0; setting < SETTINGS; setting++) {
      double numbers[NUMBERS];
      fill_numbers(setting, replicate, numbers);
      assert_true(cv_lab_value(&results.dataset, replicate, 1, setting, 0) == numbers[2]);
    }
  }
  cv_lab_results_fini(&results);
}

static uint32_t number_at(FILE *file, long offset) {
  uint8_t bytes[4] = {0};
  if (fseek(file, offset, SEEK_SET) != 0 || fread(bytes, sizeof(bytes), 1, file) != 1) {
    return 0;
  }
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The length of the log, if it ends with a whole commit; 0 if it ends inside one (sqlite.org/fileformat2). */
static long committed_bytes(void) {
  enum { HEADER = 32, FRAME_HEADER = 24 };
  FILE *log = fopen(folder_file(&folder, "a.db-wal"), "rb");
  long size = 0;
  if (log != NULL) {
    (void)fseek(log, 0, SEEK_END);
    size = ftell(log);
    long frame = FRAME_HEADER + (long)number_at(log, 8);
    size = size > HEADER && (size - HEADER) % frame == 0 && number_at(log, size - frame + 4) != 0 ? size : 0;
    (void)fclose(log);
  }
  return size;
}

/* Nothing is put after it, and the store is not closed. */
static _Noreturn void put_one_and_be_killed(void) {
  struct cv_lab_store *store = NULL;
  if (open_seed(7, false, &store) != CV_OK) {
    _exit(1);
  }
  long before = committed_bytes();
  double begun = cv_lab_seconds();
  if (put(store, 1, 1) != CV_OK) {
    _exit(2);
  }
  while (committed_bytes() <= before && cv_lab_seconds() < begun + 10) {
  }
  (void)raise(SIGKILL);
  _exit(3);
}

static void test_a_piece_is_on_disk_though_no_other_follows(void **state) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    put_one_and_be_killed();
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  struct cv_lab_store *store = opened(true);
  assert_true(cv_lab_store_has(store, 1, 1));
  assert_good(cv_lab_store_close(store, &why));
}

/* ---- whose results they are ---- */

static void assert_refused(enum cv_err found, enum cv_err expected, const char *told) {
  assert_int_equal(found, expected);
  if (strstr(why.text, path) == NULL || strstr(why.text, told) == NULL) {
    fail_msg("\"%s\" does not say %s", why.text, told);
  }
}

static void test_results_that_are_there_are_kept(void **state) {
  struct cv_lab_store *store = opened(false);
  assert_good(put(store, 0, 0));
  assert_good(cv_lab_store_close(store, &why));
  assert_refused(open_seed(7, false, &store), CV_ERR_EXISTS, "--resume");
  assert_refused(open_seed(8, true, &store), CV_ERR_INVALID, "seed 7; expected seed 8");
  store = opened(true);
  assert_true(cv_lab_store_has(store, 0, 0));
  assert_good(cv_lab_store_close(store, &why));
}

static void test_an_empty_file_is_as_good_as_none(void **state) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fclose(file), 0);
  assert_good(cv_lab_store_close(opened(false), &why));
}

/* Reports on the socket that it has the file open, and closes it when the other end is closed. */
static _Noreturn void hold_the_file(int socket) {
  struct cv_lab_store *one = NULL;
  char byte = 0;
  bool ok = open_seed(7, false, &one) == CV_OK && write(socket, &byte, 1) == 1 && read(socket, &byte, 1) == 0 &&
            put(one, 0, 0) == CV_OK && cv_lab_store_close(one, &why) == CV_OK;
  _exit(ok ? 0 : 1);
}

/* File locks belong to a process. The child is forked before this process has threads. */
static void test_two_stores_on_one_file_are_refused(void **state) {
  struct cv_lab_store *other = NULL;
  int end[2], status = 0;
  char byte;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  (void)close(end[child == 0 ? 0 : 1]);
  if (child == 0) {
    hold_the_file(end[1]);
  }
  assert_int_equal(read(end[0], &byte, 1), 1);
  assert_refused(open_seed(7, true, &other), CV_ERR_STATE, "in use by a running program");
  (void)close(end[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  other = opened(true);
  assert_true(cv_lab_store_has(other, 0, 0));
  assert_good(cv_lab_store_close(other, &why));
}

static void write_data(const char *scores) {
  FILE *file = fopen(folder_file(&folder, "scores.csv"), "we");
  assert_non_null(file);
  (void)fprintf(file, "item,score\na,0\na,1\nb,%s\n", scores);
  assert_int_equal(fclose(file), 0);
}

static void test_results_of_other_data_are_refused(void **state) {
  static const char of_data[] =
      "campaign: data\n"
      "items: {source: csv, path: scores.csv, item: item, score: score, scale: [0, 1], replacement: true}\n"
      "policy: {name: ppar, alpha: 0.1, tokens_per_round: 10}\n"
      "privacy: {mechanism: hybrid, epsilon: 1}\n"
      "limits: {tokens: 100}\n"
      "experiment: {replicates: 2, metrics: [accuracy], x: {vary: policy.alpha, values: [.1, .2]}}\n";
  struct cv_lab_store *store = NULL;
  struct cv_lab_results results;
  cv_lab_experiment_fini(&experiment);
  assert_good(
      cv_lab_experiment_parse(folder_file(&folder, "data.yaml"), of_data, strlen(of_data), NULL, &experiment, &why));
  write_data("1");
  assert_good(cv_lab_store_close(opened(false), &why));
  assert_good(cv_lab_store_close(opened(true), &why));
  write_data("0");
  assert_refused(open_seed(7, true, &store), CV_ERR_INVALID, "other data");
  assert_int_equal(remove(folder_file(&folder, "scores.csv")), 0);
  assert_int_equal(open_seed(7, true, &store), CV_ERR_NOT_FOUND);
  assert_non_null(strstr(why.text, "scores.csv: "));
  assert_good(cv_lab_results_read(path, &results, &why)); /* reading needs no data */
  assert_int_equal(results.origin.files, 1);
  assert_int_equal(results.dataset.replicates, 0);
  cv_lab_results_fini(&results);
}

/* ---- a whole run ---- */

static bool are_equal(const struct cv_lab_dataset *a, const struct cv_lab_dataset *b) {
  for (uint64_t replicate = 0; replicate < a->replicates; replicate++) {
    for (size_t i = 0; i < 2 * SETTINGS * 2; i++) {
      double x = cv_lab_value(a, replicate, i / 6, i / 2 % 3, i % 2);
      double y = cv_lab_value(b, replicate, i / 6, i / 2 % 3, i % 2);
      if (!(x == y || (isnan(x) && isnan(y)))) {
        return false;
      }
    }
  }
  return a->replicates == b->replicates;
}

/* With more replicates and other jobs, after another run has done a part of each setting. */
static void test_a_run_in_parts_finds_what_a_run_in_one_go_finds(void **state) {
  struct cv_lab_dataset whole, part, resumed;
  struct cv_lab_work work = {.experiment = &experiment, .replicates = 8, .seed = 7, .jobs = 2, .shard = {1, 1}};
  assert_good(cv_lab_work_run(&work, &whole, &why));
  work.file = path;
  work.replicates = 5;
  work.shard = (struct cv_lab_shard){2, 2};
  work.jobs = 1;
  assert_good(cv_lab_work_run(&work, &part, &why));
  assert_true(isnan(cv_lab_value(&part, 0, 0, 0, 1)) && !isnan(cv_lab_value(&part, 1, 0, 0, 1)));
  work.replicates = 8;
  work.shard = (struct cv_lab_shard){1, 1};
  assert_int_equal(cv_lab_work_run(&work, &resumed, &why), CV_ERR_EXISTS);
  work.resume = true;
  assert_good(cv_lab_work_run(&work, &resumed, &why));
  assert_true(are_equal(&whole, &resumed));
  cv_lab_dataset_fini(&resumed);
  cv_lab_dataset_fini(&part);
  cv_lab_dataset_fini(&whole);
}

static void test_more_replicates_than_memory_are_refused_before_the_run(void **state) {
  struct cv_lab_dataset dataset;
  struct cv_lab_work work = {
      .experiment = &experiment, .replicates = 1000000000, .seed = 7, .shard = {1, 1}, .file = path};
  assert_int_equal(cv_lab_work_run(&work, &dataset, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "1000000000 replicates do not fit into memory; expected at most "));
  assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_what_was_put_comes_back_in_its_place, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_many_threads_put, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_piece_is_on_disk_though_no_other_follows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_results_that_are_there_are_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_an_empty_file_is_as_good_as_none, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_two_stores_on_one_file_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_results_of_other_data_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_run_in_parts_finds_what_a_run_in_one_go_finds, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_more_replicates_than_memory_are_refused_before_the_run, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
