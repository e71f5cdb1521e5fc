/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/campaign.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_campaign_file campaign;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_campaign_load(file.path, &campaign, &why) == CV_OK) {
    /* the arms of a data file are not known yet */
    if (cv_items_file(&campaign.items) != NULL && campaign.spec.arms == 0) {
      campaign.spec.arms = 2;
    }
    if (campaign.items.are_paid) { /* nor are the costs of the workers that can be hired */
      CV_REQUIRE(campaign.spec.budget_micro > 0);
      campaign.spec.budget_micro = 0;
    }
    CV_REQUIRE(cv_spec_check(&campaign.spec, &why) == CV_OK);
    cv_campaign_fini(&campaign);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
