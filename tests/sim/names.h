/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broker and third-party share a few names, since no program links both but this one. In front of the third-party's
 * sources these give it names of its own.
 */
#ifndef CV_SIM_NAMES_H
#define CV_SIM_NAMES_H

#define cv_batch_fini       cv_thirdparty_batch_fini
#define cv_campaign_release cv_thirdparty_campaign_release
#define cv_campaign_stop    cv_thirdparty_campaign_stop

#endif
