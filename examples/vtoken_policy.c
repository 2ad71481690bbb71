/* A policy as a shared object: the newest tokens of each eight stay.
 *
 *     cc -shared -fPIC -Iinclude examples/vtoken_policy.c -o plugin.so */
#include "hidane_vtoken.h"

static int32_t Score(void* user, const hidane_vt_view* view, float* score) {
  uint32_t i;
  (void)user;
  for (i = 0; i < view->n; ++i) score[i] = (float)(view->positions[i] % 8);
  return 0;
}

HIDANE_VT_API const hidane_vt_policy* hidane_vt_policy_entry(void);
const hidane_vt_policy* hidane_vt_policy_entry(void) {
  static hidane_vt_policy policy;
  HIDANE_VT_INIT(policy);
  policy.name = "newest-of-eight";
  policy.sinks = 1;
  policy.recent = 2;
  policy.score = Score;
  return &policy;
}
