/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil export: saves what a broker has about a campaign to a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/config/sink.h"
#include "common/config/standard.h"
#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/export.h"
#include "deploy/launcher/lies.h"

enum format { FORMAT_JSON, FORMAT_CSV };
enum what { WHAT_RESULT, WHAT_RELEASES, WHAT_ALL };
static const char *const formats[] = {"json", "csv", NULL};
static const char *const whats[] = {"result", "releases", "all", NULL};

struct settings {
  struct cv_client_settings client;
  int format, what;
  char *output;
};

static const struct cv_config_rule rules[] = {
    CV_CLIENT_RULES(struct settings, client),
    {.key = "format",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct settings, format),
     .choices = formats,
     .fallback = "json",
     .help = "format of the output; only JSON has everything and can be read by crowdveil verify"},
    {.key = "what",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct settings, what),
     .choices = whats,
     .help = "rows of a CSV file: the result (default) or the releases"},
    {.key = "output",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, output),
     .help = "file to write (default: standard output)"},
};

static const struct cv_config_table table = {
    .program = "crowdveil export",
    .arguments = "[CAMPAIGN]",
    .about = "saves a campaign's spec, plans, releases and result; without CAMPAIGN those of your newest campaign",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  struct cv_export *export = data;
  if (frame->kind != CV_ORDER_PART) {
    return CV_ANSWER_MORE;
  }
  enum cv_err err = cv_export_add(export, &frame->as.part);
  if (err != CV_OK) {
    (void)cv_command_fail(&table, 1, "the broker sent an invalid export: %s", cv_err_text(err));
    return CV_ANSWER_FAILED;
  }
  return export->complete ? CV_ANSWER_DONE : CV_ANSWER_MORE;
}

static enum cv_err write_to(const struct settings *settings, const struct cv_export *export, FILE *to) {
  if (settings->format == FORMAT_JSON) {
    CV_TRY(cv_export_write_json(export, to));
  } else if (settings->what == WHAT_RELEASES) {
    cv_export_write_releases_csv(export, to);
  } else {
    struct cv_lies lies;
    CV_TRY(cv_lies_of(export, &lies));
    cv_export_write_result_csv(export, &lies, to);
    cv_lies_fini(&lies);
  }
  return fflush(to) == 0 && ferror(to) == 0 ? CV_OK : CV_ERR_IO;
}

/* Writes to a temporary name and renames it: a failure leaves no incomplete file. */
static int save(const struct settings *settings, const struct cv_export *export) {
  char partial[4096];
  if (settings->output == NULL) {
    enum cv_err err = write_to(settings, export, stdout);
    return err == CV_OK ? 0
                        : cv_command_fail(&table, 1, "%s", err == CV_ERR_IO ? cv_standard_reason() : cv_err_text(err));
  }
  (void)snprintf(partial, sizeof(partial), "%s.partial", settings->output);
  FILE *file = cv_sink_open(partial);
  if (file == NULL) {
    return cv_command_fail(&table, 1, "%s: %s", partial, strerror(errno));
  }
  enum cv_err err = write_to(settings, export, file);
  bool written = fclose(file) == 0 && err == CV_OK && rename(partial, settings->output) == 0;
  if (!written) {
    int status = cv_command_fail(&table, 1, "%s: cannot write: %s", settings->output,
                                 err == CV_OK || err == CV_ERR_IO ? strerror(errno) : cv_err_text(err));
    (void)unlink(partial);
    return status;
  }
  return 0;
}

int cv_launcher_export(int argc, char **argv) {
  struct settings settings = {.what = -1};
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_order_frame request = {.kind = CV_ORDER_EXPORT};
  struct cv_export export = {0};
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 0, 1, words, &settings);
  if (status < 0) {
    if (words[0] != NULL && cv_launcher_number(words[0], &request.as.campaign, &why) != CV_OK) {
      status = cv_command_fail(&table, 2, "%s", why.text);
    } else if (settings.format == FORMAT_JSON ? settings.what >= 0 && settings.what != WHAT_ALL
                                              : settings.what == WHAT_ALL) {
      status = cv_command_fail(&table, 2,
                               "--what %s cannot be used with --format %s; expected all for json, result or "
                               "releases for csv",
                               whats[settings.what], formats[settings.format]);
    } else {
      /* The file is written only after the last part has arrived. */
      status = cv_client_run(&table, &settings.client, &request, on_answer, &export);
      status = status == 0 ? save(&settings, &export) : status;
    }
  }
  cv_export_fini(&export);
  cv_config_fini(&table, &settings);
  return status;
}
