// Attributes for rarely called functions. Inlined, they would make their callers save more
// registers, which dominates the time of a small call.
#pragma once

#define DMLOPS_COLD __attribute__((cold, noinline))
