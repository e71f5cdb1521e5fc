/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/config.h"

#include "tests/unit/config/file.h"

struct sample {
  char *name, *state, *ca, *events, *peer, *peers, *brokers;
  uint64_t port, lease_ms, idle_ms;
  double ratio;
  bool verbose;
  int level;
};

static const char *const levels[] = {"error", "warning", "info", NULL};
#define AT(field) offsetof(struct sample, field)
static const struct cv_config_rule rules[] = {
    {.key = "name", .type = CV_CONFIG_TEXT, .offset = AT(name), .help = "what it is called"},
    {.key = "state", .type = CV_CONFIG_PATH, .offset = AT(state), .required = true, .help = "folder of the database"},
    {.key = "tls.ca", .type = CV_CONFIG_PATH, .offset = AT(ca), .fallback = "ca.pem"},
    {.key = "listen.port", .type = CV_CONFIG_WHOLE, .offset = AT(port), .high = 65535, .fallback = "7000"},
    {.key = "limits.lease",
     .type = CV_CONFIG_TIME,
     .offset = AT(lease_ms),
     .low = 100,
     .high = 3600000,
     .fallback = "5s"},
    {.key = "limits.idle_time", .type = CV_CONFIG_TIME, .offset = AT(idle_ms), .high = 86400000, .fallback = "none"},
    {.key = "ratio", .type = CV_CONFIG_REAL, .offset = AT(ratio), .low = 0, .high = 1, .fallback = "0.5"},
    {.key = "verbose", .type = CV_CONFIG_BOOL, .offset = AT(verbose), .fallback = "false"},
    {.key = "log.events", .type = CV_CONFIG_WORDS, .offset = AT(events), .choices = levels},
    {.key = "peer", .type = CV_CONFIG_PARTY, .offset = AT(peer)},
    {.key = "peers", .type = CV_CONFIG_PARTIES, .offset = AT(peers)},
    {.key = "brokers", .type = CV_CONFIG_ADDRESSES, .offset = AT(brokers), .help = "where they are"},
    {.key = "log.level", .type = CV_CONFIG_WORD, .offset = AT(level), .choices = levels, .fallback = "info"},
};
static const struct cv_config_table table = {
    .program = "crowdveil-sample", .about = "A sample.", .rules = rules, .count = CV_COUNT(rules)};

static void a_file_fills_the_struct(void **state) {
  struct sample sample = {0};
  struct cv_why why = {0};
  const char *path = write_text(
      "# a comment\n"
      "name: \"5\"\n"
      "state: data\n"
      "tls:\n  ca: /etc/ca.pem\n"
      "listen: {port: 0}\n"
      "limits: {lease: 250ms, idle_time: 2m}\n"
      "ratio: 2.5e-1\n"
      "verbose: true\n"
      "peer: main\n"
      "peers: alice, 17\n"
      "log: {level: error, events: \"info, error\"}\n");
  assert_int_equal(cv_config_load(&table, path, &sample, &why), CV_OK);
  assert_string_equal(sample.name, "5");
  assert_string_equal(sample.state, folder_file(&folder, "data"));
  assert_string_equal(sample.ca, "/etc/ca.pem");
  assert_int_equal(sample.port, 0);
  assert_int_equal(sample.lease_ms, 250);
  assert_int_equal(sample.idle_ms, 120000);
  assert_true(sample.ratio == 0.25);
  assert_true(sample.verbose);
  assert_int_equal(sample.level, 0);
  assert_string_equal(sample.events, "info, error");
  assert_string_equal(sample.peer, "main");
  assert_string_equal(sample.peers, "alice, 17");
  cv_config_fini(&table, &sample);
  assert_null(sample.state);
}

static void addresses_are_one_or_a_list(void **state) {
  static const struct {
    const char *text, *value;
  } good[] = {{"b.example:7401", "b.example:7401"},
              {"a:1, b:2", "a:1, b:2"},
              {"\"[::1]:7401\"", "[::1]:7401"},
              {"[a.example:7401, b.example:7401]", "a.example:7401,b.example:7401"},
              {"\n  - 127.0.0.1:1\n  - \"[::1]:2\"", "127.0.0.1:1,[::1]:2"},
              {"[a:1]", "a:1"}};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    struct sample sample = {0};
    struct cv_why why = {0};
    char text[200];
    (void)snprintf(text, sizeof(text), "state: x\nbrokers: %s\n", good[i].text);
    if (cv_config_load(&table, write_text(text), &sample, &why) != CV_OK) {
      fail_msg("%s", why.text);
    }
    assert_string_equal(sample.brokers, good[i].value);
    cv_config_fini(&table, &sample);
  }
}

static void what_is_not_said_has_its_default(void **state) {
  struct sample sample = {0};
  assert_int_equal(cv_config_load(&table, write_text("state: /var/lib\n"), &sample, NULL), CV_OK);
  assert_null(sample.name);
  assert_string_equal(sample.state, "/var/lib");
  assert_string_equal(sample.ca, folder_file(&folder, "ca.pem"));
  assert_int_equal(sample.port, 7000);
  assert_int_equal(sample.lease_ms, 5000);
  assert_int_equal(sample.idle_ms, 0);
  assert_true(sample.ratio == 0.5);
  assert_false(sample.verbose);
  assert_int_equal(sample.level, 2);
  cv_config_fini(&table, &sample);
}

static const struct {
  const char *text, *message;
} bad[] = {
    {"", ": the file is empty; expected keys and values"},
    {"# nothing\n", ": the file is empty; expected keys and values"},
    {"- a\n", ":1:1: the file is a list; expected keys and values"},
    {"hello\n", ":1:1: the file is \"hello\"; expected keys and values"},
    {"name: x\n", ":1:1: missing state; expected a path"},
    {"state: x\nnaem: y\n", ":2:1: unknown key \"naem\"; did you mean \"name\"?"},
    {"state: x\nlimits: {lese: 5s}\n", ":2:10: unknown key \"lese\" in limits; did you mean \"lease\"?"},
    {"state: x\nlimits: {colour: red}\n", ":2:10: unknown key \"colour\" in limits; expected lease or idle_time"},
    {"tls.ca: x\n",
     ":1:1: unknown key \"tls.ca\"; expected name, state, tls, listen, limits, ratio, verbose, log, peer, peers or "
     "brokers"},
    {"state: x\nstate: y\n", ":2:1: duplicate key \"state\"; the first is on line 1"},
    {"state: x\n[a]: y\n", ":2:1: a key is a list; expected a word"},
    {"state:\n", ":1:7: state has no value; expected a path"},
    {"state: \"\"\n", ":1:8: state has no value; expected a path"},
    {"state: [x]\n", ":1:8: state is a list; expected a path"},
    {"state: \"a\\nb\"\n", ":1:8: state is \"a?b\"; expected a path"},
    {"state: x\ntls: y\n", ":2:6: tls is \"y\"; expected a mapping of keys and values"},
    {"state: x\nlisten: {port: 65536}\n", ":2:16: listen.port is \"65536\"; expected a whole number from 0 to 65535"},
    {"state: x\nlisten: {port: -1}\n", ":2:16: listen.port is \"-1\"; expected a whole number from 0 to 65535"},
    {"state: x\nlisten: {port: 1.0}\n", ":2:16: listen.port is \"1.0\"; expected a whole number from 0 to 65535"},
    {"state: x\nlisten: {port: \"80\"}\n", ":2:16: listen.port is \"80\"; expected a whole number from 0 to 65535"},
    {"state: x\nlisten: {port: 99999999999999999999999}\n",
     ":2:16: listen.port is \"99999999999999999999999\"; expected a whole number from 0 to 65535"},
    {"state: x\nlisten:\n  port: {a: 1}\n", ":3:9: listen.port is a mapping; expected a whole number from 0 to 65535"},
    {"state: x\nratio: 1.1\n", ":2:8: ratio is \"1.1\"; expected a number from 0 to 1"},
    {"state: x\nratio: nan\n", ":2:8: ratio is \"nan\"; expected a number from 0 to 1"},
    {"state: x\nratio: 0x1\n", ":2:8: ratio is \"0x1\"; expected a number from 0 to 1"},
    {"state: x\nverbose: on\n", ":2:10: verbose is \"on\"; expected true or false (yes or no)"},
    {"state: x\nlog:\n  events: info errro,warning\n", ":3:16: log.events names \"errro\"; did you mean \"error\"?"},
    {"state: x\nlog:\n  events: 'info, all'\n",
     ":3:18: log.events names \"all\"; expected some of error, warning or info"},
    {"state: x\nlog:\n  events: \"info\n    all\"\n",
     ":3:11: log.events names \"all\"; expected some of error, warning or info"},
    {"state: x\nlog: {events: \", \"}\n", ":2:15: log.events is \", \"; expected some of error, warning or info"},
    {"state: x\nlog: {events: [info]}\n", ":2:15: log.events is a list; expected some of error, warning or info"},
    {"state: x\npeer: any\n", ":2:7: peer is \"any\"; expected the name in a certificate, without its role"},
    {"state: x\npeer: broker/main\n",
     ":2:7: peer is \"broker/main\"; expected the name in a certificate, without its role"},
    {"state: x\npeers: any, alice\n",
     ":2:8: peers is \"any, alice\"; expected names in certificates, separated by commas or blanks, or any"},
    {"state: x\nbrokers: b.example\n", ":2:10: brokers has \"b.example\"; expected HOST:PORT or [IPV6]:PORT"},
    {"state: x\nbrokers: a:1, b:65536\n", ":2:15: brokers has \"b:65536\"; expected HOST:PORT or [IPV6]:PORT"},
    {"state: x\nbrokers: [a:1, b]\n", ":2:16: brokers has \"b\"; expected HOST:PORT or [IPV6]:PORT"},
    {"state: x\nbrokers:\n  - a:1\n  - [b:2]\n",
     ":4:5: brokers is a list; expected HOST:PORT, or up to 8 of them, separated by commas or blanks"},
    {"state: x\nbrokers: {a: 1}\n",
     ":2:10: brokers is a mapping; expected HOST:PORT, or up to 8 of them, separated by commas or blanks"},
    {"state: x\nbrokers: []\n",
     ":2:10: brokers is a list; expected HOST:PORT, or up to 8 of them, separated by commas or blanks"},
    {"state: x\nbrokers: a:1 a:1 a:1 a:1 a:1 a:1 a:1 a:1 b:2\n",
     ":2:10: brokers is \"a:1 a:1 a:1 a:1 a:1 a:1 a:1 a:1 b:2\"; expected HOST:PORT, or up to 8 of them, separated by "
     "commas or blanks"},
    {"state: x\nlog: {level: debug}\n", ":2:14: log.level is \"debug\"; expected error, warning or info"},
    {"state: x\nlimits: {lease: 50ms}\n",
     ":2:17: limits.lease is \"50ms\"; expected a time from 100ms to 1h (like 250ms, 30s, 5m, 1h or 2d)"},
    {"state: x\nlimits: {lease: 5}\n",
     ":2:17: limits.lease is \"5\"; expected a time from 100ms to 1h (like 250ms, 30s, 5m, 1h or 2d)"},
    {"state: x\nlimits: {lease: none}\n",
     ":2:17: limits.lease is \"none\"; expected a time from 100ms to 1h (like 250ms, 30s, 5m, 1h or 2d)"},
    {"state: x\nlimits: {idle_time: 2d}\n",
     ":2:21: limits.idle_time is \"2d\"; expected a time of at most 1d (like 250ms, 30s, 5m, 1h or 2d) or none"},
    {"state: x\nlimits: {idle_time: 999999999999999999d}\n",
     ":2:21: limits.idle_time is \"999999999999999999d\"; expected a time of at most 1d (like 250ms, 30s, 5m, 1h or "
     "2d) or none"},
    {"state: [x\n", ":2:1: not valid YAML: did not find expected ',' or ']'"},
    {"state: x\n\tname: y\n", ":2:1: not valid YAML: found a tab character that violates indentation"},
    {"state: x\nname: \xff\n", ":2:7: not valid YAML: invalid leading UTF-8 octet"},
    {"state: &a x\n", ":1:8: an anchor, alias or tag; expected a plain value"},
    {"state: *a\n", ":1:8: an anchor, alias or tag; expected a plain value"},
    {"state: !!str x\n", ":1:8: an anchor, alias or tag; expected a plain value"},
    {"state: x\n---\nstate: y\n", ":2:1: a second document; expected only one"},
    {"name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nverbose: "
     "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeee\n",
     ":2:10: verbose is \"aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...\"; expected true or false (yes or no)"},
};

static void a_bad_file_is_one_clear_line(void **state) {
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct sample sample, before;
    memset(&sample, 0x5a, sizeof(sample));
    memset(&before, 0x5a, sizeof(before));
    struct cv_why why = {0};
    assert_int_not_equal(cv_config_load(&table, write_text(bad[i].text), &sample, &why), CV_OK);
    assert_message(&why, bad[i].message);
    assert_memory_equal(&sample, &before, sizeof(sample));
  }
}

static void a_deep_file_is_refused(void **state) {
  char text[4000];
  memset(text, '[', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  memcpy(text, "state: ", 7);
  struct sample sample = {0};
  struct cv_why why = {0};
  assert_int_equal(cv_config_load(&table, write_text(text), &sample, &why), CV_ERR_FORMAT);
  assert_message(&why, ":1:23: nested too deeply");
}

static void a_zero_byte_is_refused(void **state) {
  struct sample sample = {0};
  struct cv_why why = {0};
  static const char text[] = "state: a\0b\n";
  assert_int_not_equal(cv_config_load(&table, write_bytes(text, sizeof(text) - 1), &sample, &why), CV_OK);
  static const char escaped[] = "state: \"a\\0b\"\n";
  assert_int_not_equal(cv_config_load(&table, write_text(escaped), &sample, &why), CV_OK);
}

static void a_file_that_cannot_be_read_is_named(void **state) {
  struct sample sample = {0};
  struct cv_why why = {0};
  assert_int_equal(cv_config_load(&table, "/nowhere/x.yaml", &sample, &why), CV_ERR_IO);
  assert_string_equal(why.text, "/nowhere/x.yaml: cannot be opened: No such file or directory");
  assert_int_equal(cv_config_load(&table, "/tmp", &sample, &why), CV_ERR_IO);
  assert_string_equal(why.text, "/tmp: cannot be read: Is a directory");
  assert_int_equal(cv_config_load(&table, "/dev/zero", &sample, &why), CV_ERR_LIMIT);
}

/* cv_config_start with what it prints. */
struct run {
  int status;
  struct sample sample;
  char out[4000], err[1000];
};

static void read_back(FILE *file, char *to, size_t size) {
  rewind(file);
  to[fread(to, 1, size - 1, file)] = '\0';
  (void)fclose(file);
}

static void start(struct run *run, int argc, const char *const *argv) {
  memset(run, 0, sizeof(*run));
  char *copy[16] = {0};
  for (int i = 0; i < argc; i++) {
    copy[i] = (char *)(uintptr_t)argv[i];
  }
  (void)fflush(NULL);
  FILE *out = tmpfile(), *err = tmpfile();
  int old_out = dup(1), old_err = dup(2);
  assert_true(out != NULL && err != NULL && dup2(fileno(out), 1) == 1 && dup2(fileno(err), 2) == 2);
  run->status = cv_config_start(&table, argc, copy, &run->sample);
  (void)fflush(NULL);
  assert_true(dup2(old_out, 1) == 1 && dup2(old_err, 2) == 2);
  (void)close(old_out);
  (void)close(old_err);
  read_back(out, run->out, sizeof(run->out));
  read_back(err, run->err, sizeof(run->err));
}

#define START(run, ...) start_all(run, (const char *const[]){"./x", __VA_ARGS__, NULL})
static void start_all(struct run *run, const char *const *argv) {
  int argc = 0;
  while (argv[argc] != NULL) {
    argc++;
  }
  start(run, argc, argv);
}

static void options_override_the_file(void **state) {
  struct run run;
  const char *path = write_text("state: data\nlisten: {port: 1}\nverbose: true\n");
  START(&run, "--config", path, "--listen-port=2", "--limits-idle-time", "3s", "--verbose=false", "--tls-ca", "my.pem");
  assert_int_equal(run.status, -1);
  assert_int_equal(run.sample.port, 2);
  assert_int_equal(run.sample.idle_ms, 3000);
  assert_false(run.sample.verbose);
  assert_string_equal(run.sample.ca, "my.pem"); /* relative to the working folder */
  assert_string_equal(run.sample.state, folder_file(&folder, "data"));
  assert_string_equal(run.out, "");
  assert_string_equal(run.err, "");
  cv_config_fini(&table, &run.sample);
}

static void options_are_enough(void **state) {
  struct run run;
  START(&run, "--state", "s", "--verbose");
  assert_int_equal(run.status, -1);
  assert_true(run.sample.verbose);
  assert_string_equal(run.sample.state, "s");
  assert_string_equal(run.sample.ca, "ca.pem");
  cv_config_fini(&table, &run.sample);
  static const char *const ways[] = {"--verbose=yes", "--verbose=true", "--verbose=no", "--verbose=false"};
  for (size_t i = 0; i < CV_COUNT(ways); i++) {
    START(&run, "--state", "s", ways[i]);
    assert_int_equal(run.sample.verbose, i < 2);
    cv_config_fini(&table, &run.sample);
  }
}

static void check_config_starts_nothing(void **state) {
  struct run run;
  struct sample untouched;
  memset(&untouched, 0, sizeof(untouched));
  START(&run, "--check-config", "--config", write_text("state: data\n"));
  assert_int_equal(run.status, 0);
  assert_string_equal(run.out, "crowdveil-sample: the configuration is valid\n");
  assert_memory_equal(&run.sample, &untouched, sizeof(untouched));
  START(&run, "--check-config", "--config", write_text("stat: data\n"));
  assert_int_equal(run.status, 2);
  assert_non_null(strstr(run.err, ":1:1: unknown key \"stat\"; did you mean \"state\"?\n"));
}

static void help_names_every_option(void **state) {
  struct run run;
  START(&run, "--help");
  assert_int_equal(run.status, 0);
  static const char *const wanted[] = {"--config FILE",           "--check-config",   "--version",      "--tls-ca PATH",
                                       "--limits-idle-time TIME", "--log-level WORD", "(default 7000)", "(required)",
                                       "--brokers ADDRESSES"};
  for (size_t i = 0; i < CV_COUNT(wanted); i++) {
    assert_non_null(strstr(run.out, wanted[i]));
  }
  START(&run, "--version");
  assert_int_equal(run.status, 0);
  assert_memory_equal(run.out, "crowdveil-sample ", 17);
}

static void a_bad_option_is_one_clear_line(void **state) {
  static const struct {
    const char *option, *value, *message;
  } cases[] = {
      {"--listen-port", "x", "crowdveil-sample: --listen-port is \"x\"; expected a whole number from 0 to 65535\n"},
      {"--listn-port", "1", "crowdveil-sample: unknown option \"--listn-port\"; did you mean \"--listen-port\"?\n"},
      {"--colour", "1", "crowdveil-sample: unknown option \"--colour\"; see --help\n"},
      {"-xy", NULL, "crowdveil-sample: unknown option \"-x\"; see --help\n"},
      {"--state", NULL, "crowdveil-sample: option \"--state\" has no value\n"},
      {"file.yaml", NULL, "crowdveil-sample: unexpected argument \"file.yaml\"; expected options only\n"},
      {"--verbose", "true", "crowdveil-sample: unexpected argument \"true\"; expected options only\n"},
      {"--verbose", NULL,
       "crowdveil-sample: missing state; expected a path, in a file (--config FILE) or as --state\n"},
      {"--brokers", "a:1,b", "crowdveil-sample: --brokers has \"b\"; expected HOST:PORT or [IPV6]:PORT\n"},
      {"--state", "", "crowdveil-sample: --state is \"\"; expected a path\n"},
      {"--config", "/nowhere", "crowdveil-sample: /nowhere: cannot be opened: No such file or directory\n"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct run run;
    START(&run, cases[i].option, cases[i].value);
    assert_int_equal(run.status, 2);
    assert_string_equal(run.err, cases[i].message);
    assert_string_equal(run.out, "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_fills_the_struct),
      cmocka_unit_test(addresses_are_one_or_a_list),
      cmocka_unit_test(what_is_not_said_has_its_default),
      cmocka_unit_test(a_bad_file_is_one_clear_line),
      cmocka_unit_test(a_deep_file_is_refused),
      cmocka_unit_test(a_zero_byte_is_refused),
      cmocka_unit_test(a_file_that_cannot_be_read_is_named),
      cmocka_unit_test(options_override_the_file),
      cmocka_unit_test(options_are_enough),
      cmocka_unit_test(check_config_starts_nothing),
      cmocka_unit_test(help_names_every_option),
      cmocka_unit_test(a_bad_option_is_one_clear_line),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
