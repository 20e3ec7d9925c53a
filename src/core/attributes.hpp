// For functions that are hardly ever called. In their callers they would take registers, which a
// small call spends its time on saving.
#pragma once

#define DMLOPS_COLD __attribute__((cold, noinline))
