/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of all policies. A new policy is a file in this folder and a row ROW(file, class) for cv_policy_<class>. The
 * table, the declarations and the build's list of sources derive from this list.
 */
#ifndef CV_THIRDPARTY_CLASSES_H
#define CV_THIRDPARTY_CLASSES_H

#include "thirdparty/policy/policy.h"

#define CV_POLICIES(ROW)                      \
  ROW(ppar, ppar)                             \
  ROW(ppar_kl, ppar_kl)                       \
  ROW(pair_sort, pair_sort)                   \
  ROW(dpf, dpf)                               \
  ROW(dpu, dpu)                               \
  ROW(dpu_kl, dpu_kl)                         \
  ROW(eps_greedy, eps_greedy)                 \
  ROW(eps_greedy, eps_greedy_true_gap)        \
  ROW(dp_ucb_bound, dp_ucb_bound)             \
  ROW(baselines, cheapest)                    \
  ROW(baselines, uniform)                     \
  ROW(baselines, opt)                         \
  ROW(gap, gap)                               \
  ROW(gap, gapu)                              \
  ROW(graph_ucb, graph_ucb)                   \
  ROW(aae, aae)                               \
  ROW(dp_se, dp_se)                           \
  ROW(best_arm, best_arm)                     \
  ROW(adap_tt, adap_tt)                       \
  ROW(alpha_sample, alpha_sample)             \
  ROW(klucb_cf, klucb_cf)                     \
  ROW(ucb_cf, ucb_cf)                         \
  ROW(ts_cf, ts_cf)                           \
  ROW(kl_local, kl_local)                     \
  ROW(posterior_quantile, posterior_quantile) \
  ROW(exp3_plain, exp3)                       \
  ROW(dp_exp3_lap, dp_exp3_lap)               \
  ROW(exp3_tau, exp3_tau)                     \
  ROW(tsallis_inf, tsallis_inf)

/* cv_policy_ppar, ... */
#define CV_POLICY_DECLARED(file, class) extern const struct cv_policy_class cv_policy_##class;
CV_POLICIES(CV_POLICY_DECLARED)
#undef CV_POLICY_DECLARED

#endif
