/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil check: what is wrong with a campaign file, without a broker; or every key that such a file can have. */
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "common/base/text.h"
#include "deploy/launcher/admit.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/exposure.h"
#include "deploy/launcher/reference.h"
#include "deploy/launcher/unit.h"

struct settings {
  struct cv_client_settings client;
  bool keys, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "keys",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, keys),
     .fallback = "false",
     .help = "list every key of a campaign file instead, with what it accepts and an example"},
    CV_CLIENT_RULES_AS(struct settings, client, false),
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil check",
    .arguments = "FILE",
    .about =
        "checks all of a campaign file that can be checked without a broker, its data file too; exit status 2 if "
        "it is wrong. With the options of a broker it asks that broker, too; exit status 1 if it does not accept the "
        "campaign",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = cv_launcher_check_file,
};

/* What the broker's operator has to permit for this campaign; NULL: nothing. */
static const char *needs(const struct cv_spec *spec) {
  return cv_spec_is_exact(spec) ? "limits.trusted_thirdparty: true"
         : cv_spec_has_noise(spec) && cv_traits_of(spec->mechanism.name)->private == CV_PRIVATE_NEVER
             ? "unsafe_mechanisms: true"
         : spec->brokers == 2 ? "cobroker"
                              : NULL;
}

/* `is_accepted`: the broker that was asked accepts it. */
static int say_valid(const struct settings *settings, const char *path, const struct cv_prepared *prepared,
                     bool is_accepted) {
  const struct cv_spec *spec = &prepared->file.spec;
  uint64_t token_micro = cv_exposure_token_micro(&prepared->file);
  struct cv_exposure exposure;
  if (cv_exposure_plan(prepared, token_micro, &exposure) != CV_OK) {
    return cv_command_fail(&table, 1, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  const char *asked = needs(spec);
  json_t *least = is_accepted ? json_integer(cv_spec_release_tokens(spec)) : json_null();
  if (settings->json) {
    return cv_launcher_print_json(
        &table,
        json_pack("{s:s, s:b, s:s, s:i, s:s, s:s, s:s, s:I, s:o, s:o, s:s?, s:o}", "file", path, "valid", 1, "campaign",
                  spec->name, "items", (int)spec->arms, "policy", spec->policy.name, "mechanism", spec->mechanism.name,
                  "privatizer", spec->privatizer.name, "epsilon_micro", (json_int_t)token_micro, "data",
                  cv_exposure_json(&exposure), "notes", cv_unit_notes_json(prepared), "broker_needs", asked,
                  "release_tokens", least),
        0);
  }
  (void)printf("%s: valid: campaign %s, %u %s, policy %s, mechanism %s, privatizer %s", cv_text_line(path).text,
               cv_text_shown(spec->name).text, spec->arms, spec->cost_micro != NULL ? "workers" : "items",
               spec->policy.name, spec->mechanism.name, spec->privatizer.name);
  if (!cv_spec_is_exact(spec)) {
    (void)printf(", epsilon %.6g a score", (double)token_micro / (double)CV_MICRO);
  }
  if (spec->brokers == 2) {
    (void)printf(", two brokers with shares of %u bit%s", spec->score_bits, spec->score_bits == 1 ? "" : "s");
  }
  (void)printf("\n");
  cv_exposure_print(&exposure, "", stdout);
  cv_unit_print_notes(prepared, stdout);
  json_decref(least);
  if (is_accepted) {
    (void)printf("broker %s accepts it; a release has %u token%s at least\n", settings->client.broker_name,
                 cv_spec_release_tokens(spec), cv_spec_release_tokens(spec) == 1 ? "" : "s");
  } else if (asked != NULL) {
    (void)printf("only a broker that is configured with %s runs it\n", asked);
  }
  return 0;
}

static int check(const struct settings *settings, const char *path) {
  struct cv_prepared prepared;
  struct cv_why why;
  if (cv_launcher_prepare(&table, path, CV_SEED_NONE, &prepared, &why) != CV_OK) {
    if (settings->json) {
      return cv_launcher_print_json(&table, json_pack("{s:s, s:b, s:s}", "file", path, "valid", 0, "message", why.text),
                                    2);
    }
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  bool is_accepted;
  int status = cv_admit_ask(&table, &settings->client, &prepared, &is_accepted);
  status = status == 0 ? say_valid(settings, path, &prepared, is_accepted) : status;
  cv_prepared_fini(&prepared);
  return status;
}

static int list_keys(const struct settings *settings) {
  json_t *reference = cv_reference_json();
  if (settings->json || reference == NULL) {
    return cv_launcher_print_json(&table, reference, 0);
  }
  cv_reference_print(reference, stdout);
  json_decref(reference);
  return 0;
}

int cv_launcher_check(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 0, 1, words, &settings);
  if (status < 0 && (words[0] == NULL) != settings.keys) {
    status = cv_command_fail(&table, 2, "%s",
                             settings.keys ? "FILE cannot be used with --keys; expected one of them"
                                           : "missing FILE; usage: crowdveil check FILE");
  } else if (status < 0) {
    status = settings.keys ? list_keys(&settings) : check(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
